// SPDX-License-Identifier: Apache-2.0
//
// What the opaque types of the C interface's run side hold, for the functions behind it and for tools that report on them.
#pragma once

#include <memory>
#include <string>

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
struct hone_context {
  std::unique_ptr<hone::ExecutionContext> context;
  std::unique_ptr<hone::Stream> stream;
};
