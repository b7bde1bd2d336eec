# SPDX-License-Identifier: Apache-2.0
"""Networks as one ONNX model: `to_onnx.py` puts it together, `layers*.py` say what each kind of layer made by add_* is."""
