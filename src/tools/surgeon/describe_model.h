// SPDX-License-Identifier: Apache-2.0
//
// A model in words, as `inspect model` and the surgeon print it, and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "edit/model.h"

namespace hone {

struct ModelView {
  bool layers = false, attrs = false, weights = false;
  bool neighbours = false;  // of each node and tensor: whose results it reads and who reads its own
  bool metadata = false;    // producer, documentation, functions, operator sets
};

std::string model_text(const edit::Model& model, const ModelView& view);
nlohmann::ordered_json model_json(const edit::Model& model, const ModelView& view);
/// NumPy's way to print an array; long ones are shortened.
std::string values_text(const Tensor& tensor, size_t most = 1000);

}  // namespace hone
