// SPDX-License-Identifier: Apache-2.0
//
// libhone.so: the C interface alone is visible.
#include "hone/tools.h"
