// SPDX-License-Identifier: Apache-2.0
//
// A part of a model as a model of its own.
#pragma once

#include "edit/values.h"

namespace hone::edit {

/// A tensor at the edge of what is cut out; what is not given of its type is found out.
struct Boundary {
  std::string name;
  std::optional<std::vector<Size>> sizes;
  std::optional<int64_t> element;
};

/// "name:shape:type" of an input; of an output also "name:type"; "auto" for what shall be found out, and it may be left out.
Boundary parse_boundary(const std::string& text, bool output);

/// Keeps what computes the outputs from the inputs. An empty list keeps the model's own. Throws UnknownName for a tensor that is not there,
/// and Error where something else would be needed or a type cannot be found out.
void extract(Model& model, const std::vector<Boundary>& inputs, const std::vector<Boundary>& outputs);

}  // namespace hone::edit
