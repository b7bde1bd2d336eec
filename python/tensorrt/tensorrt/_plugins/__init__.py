# SPDX-License-Identifier: Apache-2.0
"""Plugins: the registry, the interfaces that programs implement, those that TensorRT has by name, and how they become Hone's operators."""
