// SPDX-License-Identifier: Apache-2.0
//
// Types of all tensors of a model that is edited: what inference says where it gets, else what the model declares.
#pragma once

#include <map>

#include "edit/values.h"
#include "onnx/survey.h"

namespace hone::edit {

enum class WeightData { all, small };  // small: large weights are known by their types, which is enough for types
/// The model read as far as it goes. Throws Error for what is wrong with it as a whole.
onnx::Survey survey(const Model& model, WeightData data, bool missing_data_is_a_problem = false);

class KnownTypes {
 public:
  explicit KnownTypes(const Model& model);
  /// What inference made out; else what is declared; else nothing.
  std::optional<ValueType> of(const std::string& tensor) const;
  bool inferred(const std::string& tensor) const { return inferred_.contains(tensor); }

 private:
  std::map<std::string, ValueType, std::less<>> inferred_, declared_;
};

/// A type of the survey in the model's own words: symbols by the names that they have there.
ValueType type_of(const onnx::Survey& survey, const TensorType& type);

/// Writes what is inferred into the outputs, and of all results of nodes where `values` says so. The number of types that changed.
size_t infer_shapes(Model& model, bool values);
/// Takes away what is declared of results of nodes, outputs' sizes included: for inference to say it anew.
void forget_shapes(Model& model);

}  // namespace hone::edit
