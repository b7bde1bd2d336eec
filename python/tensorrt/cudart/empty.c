// SPDX-License-Identifier: Apache-2.0
//
// libnvinfer_plugin.so and libnvinfer_lean.so: programs open these names to make sure that they are there, and look for nothing inside.
// Hone's plug-ins and its run-time are part of the module.
