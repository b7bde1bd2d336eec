// SPDX-License-Identifier: Apache-2.0

#include "passes/pipeline.h"

#include "passes/passes.h"

namespace hone {
namespace {

#define BEGIN(list) const Pass k_##list[] = {
#define END() \
  }           \
  ;
#define GROUP(title, list, ...) {.name = #title, .milestone = "" __VA_ARGS__, .group = k_##list},
#define PASS(title, file, ...) {.name = #title, .run = passes::title, .milestone = "" __VA_ARGS__},
#define REWRITES(title, file, ...) {.name = #title, .milestone = "" __VA_ARGS__, .rewrites = passes::title},
#include "passes/pipeline.def"

const Pass* find_in(std::span<const Pass> passes, std::string_view name) {
  for (const Pass& pass : passes) {
    if (pass.name == name) return &pass;
    if (const Pass* inner = find_in(pass.group, name)) return inner;
  }
  return nullptr;
}

}  // namespace

std::span<const Pass> pipeline() { return k_pipeline; }
const Pass* find_pass(std::string_view name) { return find_in(k_pipeline, name); }

}  // namespace hone
