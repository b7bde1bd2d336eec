# SPDX-License-Identifier: Apache-2.0
"""TensorRT's own plugins by name: creators, and what each is in ONNX's operators."""

CREATORS = []
