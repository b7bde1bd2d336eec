// SPDX-License-Identifier: Apache-2.0
//
// What every unit test reads of others' headers, parsed once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "precompiled.h"
