// SPDX-License-Identifier: Apache-2.0
//
// The plan of a model's version: `model.hone` or `model.plan` as it is, `model.onnx` built here. What was built is kept beside the
// model, with a note of what it was made of, so that the next start only reads it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "triton/server.h"

namespace hone::triton {

struct Free {
  void operator()(std::byte* bytes) const noexcept;
};

struct PlanInMemory {
  std::unique_ptr<std::byte[], Free> bytes;
  Plan plan;
};

struct PlanRequest {
  std::string folder;  // of the version
  std::string file;    // "": the first of model.hone, model.plan, model.onnx that is there
  std::string flags;   // of a build, with blanks between
  std::string device;  // of a build
  int64_t most_rows;   // of a build whose flags say no shapes; 0: 8
};

std::shared_ptr<const PlanInMemory> plan_of(const PlanRequest& request, const Log& log);

}  // namespace hone::triton
