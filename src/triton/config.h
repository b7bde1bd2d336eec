// SPDX-License-Identifier: Apache-2.0
//
// What a plan says of its inputs and outputs, and a model's configuration that is completed by it. Rows can be put together into one
// batch where the first size of every input and output is one and the same name, and nothing else depends on it.
#pragma once

#include <string>
#include <vector>

#include "triton/server.h"

namespace hone::triton {

struct Io {
  std::string name;
  hone_dtype dtype;
  TRITONSERVER_DataType type;
  size_t element_bytes;       // 0: texts
  bool by_value;              // an output that is read behind the run; texts
  std::vector<int64_t> dims;  // -1: not fixed. {-1} where not even the rank is known
};

/// The sizes that inputs may have; one entry for each, in their order.
struct ShapeProfile {
  std::vector<Range> inputs;
};

struct Interface {
  std::vector<Io> inputs, outputs;
  std::vector<ShapeProfile> profiles;
  bool has_rows = false;  // requests can share a batch
  int64_t most_rows = 0;
};

/// Throws where something cannot be served: sequences, maps, float8, bytes in another layout.
Interface interface_of(const Plan& plan);

/// The configuration with what it leaves open: sizes, types, the largest batch, dynamic batching.
std::string completed(const std::string& config, const Interface& interface);

/// Throws where a configuration says otherwise than the plan. Returns max_batch_size.
int64_t checked_batch(const std::string& config, const Interface& interface);

}  // namespace hone::triton
