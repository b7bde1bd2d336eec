// SPDX-License-Identifier: Apache-2.0
//
// A model's file brought from FP32 to FP16 or BF16, node by node: what has values beyond the type's range, or no meaning in few bits,
// stays in FP32 between casts, and says why.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "ir/graph.h"

namespace hone {

struct FewBitsRules {
  DType type = DType::f16;  // or bf16
  bool keeps_io = false;    // inputs and outputs stay f32
  /// Of a node of the file by its name and type. Empty: none.
  std::function<bool(const std::string& node, std::string_view op_type)> keeps_floats = {};
  /// The largest magnitude that was seen of a tensor, where any was.
  std::map<std::string, float, std::less<>> reach = {};
};

struct KeptNode {
  std::string node, op_type, reason;
};

struct FewBitsModel {
  std::string bytes;            // of the file
  size_t nodes = 0, casts = 0;  // in the small type; that were inserted
  std::vector<KeptNode> left;   // nodes on floats that stay in FP32
};

/// `directory` is where external data lie, which come into the file; types are read off `graph`, the model as it was imported. BF16 brings
/// the model to an operator set that has it.
FewBitsModel convert_to_few_bits(const Blob& model, const std::string& directory, const Graph& graph,
                                 const FewBitsRules& rules);

/// The largest finite magnitude of FP16 and BF16.
float few_bits_range(DType type);

}  // namespace hone
