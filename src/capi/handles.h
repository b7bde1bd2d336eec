// SPDX-License-Identifier: Apache-2.0
//
// What the opaque types of the C interface's run side hold, for the functions behind it and for tools that report on them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/all.h"
#include "hone/hone.h"
#include "plan/plan.h"
#include "runtime/engine.h"

struct hone_device : hone::OpenDevice {};

struct hone_plan {
  std::shared_ptr<const hone::Plan> plan;
  std::string json;
  hone::Blob bytes;  // of the file; empty until asked for
};
struct hone_engine {
  std::shared_ptr<const hone::Engine> engine;
};
struct hone_value {
  hone::Tensor tensor;
};
/// Host memory that the caller bound, where the device does not read it: what every run copies, and where to.
struct hone_binding {
  std::string tensor;
  bool is_input = true;
  void* host = nullptr;
  hone::Buffer device;
};
struct hone_context {
  std::unique_ptr<hone::ExecutionContext> context;
  std::unique_ptr<hone::Stream> stream;
  std::vector<hone_binding> bindings = {};  // empty where the device reads host memory
};
