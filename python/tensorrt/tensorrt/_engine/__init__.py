# SPDX-License-Identifier: Apache-2.0
"""Plans at work: runtime, engine, context, refitter, inspector, and the interfaces that programs implement for them."""
