# SPDX-License-Identifier: Apache-2.0
"""A stand-in for cuda-python on a machine without a GPU: see README.md beside this folder."""

__version__ = "12.8.0"
