# SPDX-License-Identifier: Apache-2.0
"""ONNX models read into a network, one layer a node, with the parameters that programs ask of them."""
