# SPDX-License-Identifier: Apache-2.0
"""What all else stands on: the release that is shown, enums, values, loggers, Hone underneath, ONNX's wire format."""
