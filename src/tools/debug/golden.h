// SPDX-License-Identifier: Apache-2.0
//
// What all tensors of a model hold for one set of inputs, by the operators' plain meaning: parts of the model that are compared in this
// process are fed with the values that flow there in the whole model.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/companion/narrator.h"
#include "tools/compare/model_face.h"
#include "tools/compare/values.h"

namespace hone {

class GoldenValues {
 public:
  /// Where the model cannot be run as a whole a warning says so, and there are none.
  GoldenValues(const ModelFace& face, const TensorList& inputs, const Narrator& narrator);

  bool any() const { return !values_.empty(); }
  /// Of these tensors; less than all where some are not known.
  TensorList of(const std::vector<std::string>& names) const;

 private:
  std::map<std::string, Tensor, std::less<>> values_;
};

}  // namespace hone
