// SPDX-License-Identifier: Apache-2.0
//
// What constant folding leaves: pairs of casts that undo each other, integers that are computed as floats between casts, and Ifs whose
// condition is known. Edits of the main graph; bodies are looked at once they have become a part of it.
#pragma once

#include "edit/infer.h"

namespace hone::edit {

/// Removes Cast nodes where no value changes for it: behind another one into a type that holds all values of the first, and around Add,
/// Sub, Mul, Max, Min and Concat on integers, which are computed exactly then. How many Casts went.
size_t drop_casts(Model& model);
/// Puts the branch that is taken in the place of each If whose condition is a weight. How many.
size_t flatten_ifs(Model& model);

}  // namespace hone::edit
