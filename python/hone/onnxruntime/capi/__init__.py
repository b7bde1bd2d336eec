# SPDX-License-Identifier: Apache-2.0
"""Where scripts look for ONNX Runtime's exceptions."""
