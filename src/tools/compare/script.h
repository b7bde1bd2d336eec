// SPDX-License-Identifier: Apache-2.0
//
// --gen-script: a program that does what the command line asks for, in Python over the package `hone` or in C++ over hone.hpp, for those
// who want to see how it is done or to go on from there.
#pragma once

#include "tools/companion/narrator.h"
#include "tools/compare/model_face.h"

namespace hone {

ExitStatus write_script(const Arguments& arguments, const ModelFace& face, const Narrator& narrator);

}  // namespace hone
