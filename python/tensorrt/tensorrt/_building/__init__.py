# SPDX-License-Identifier: Apache-2.0
"""From a network and a configuration to a plan: flags, profiles, calibration, timing caches, algorithm selectors."""
