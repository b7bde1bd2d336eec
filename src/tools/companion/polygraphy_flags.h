// SPDX-License-Identifier: Apache-2.0
//
// Flags that Polygraphy's commands take and that say nothing here: its command lines run as they are. What would change a result (a
// script in Python, TensorFlow) is no such flag: it is refused where it is used.
#pragma once

#include <string_view>
#include <vector>

#include "tools/companion/arguments.h"

namespace hone {

/// Groups, as Polygraphy's help has them: data (how inputs are made), model (how ONNX is read), network (TensorRT's), tensorflow.
enum class AcceptedFlags { data, model, network, builder, tensorflow };
/// `own`, and those of the groups whose names and spellings are not among them.
std::vector<CompanionFlag> with_accepted(std::vector<CompanionFlag> own, std::initializer_list<AcceptedFlags> groups);

/// Throws UsageError for a flag that names a script in Python, and StatusError for a runner that there is not.
void refuse_python(const Arguments& arguments);

}  // namespace hone
