# SPDX-License-Identifier: Apache-2.0
"""A stand-in for PyCUDA on a machine without a GPU: memory, copies, streams; no kernels. See README.md beside this folder."""

VERSION = (2024, 1)
VERSION_TEXT = "2024.1"
