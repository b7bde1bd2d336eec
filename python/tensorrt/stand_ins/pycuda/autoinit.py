# SPDX-License-Identifier: Apache-2.0
"""Makes the one context, which there is anyway."""

from pycuda import driver

device = driver.Device(0)
context = device.make_context()
