# SPDX-License-Identifier: Apache-2.0
"""Networks as lists of records: tensors, layers of all kinds, loops, the add_* methods, and what types and sizes tensors have."""
