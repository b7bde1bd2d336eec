// SPDX-License-Identifier: Apache-2.0
#include "options/compat.h"

#include <algorithm>

#include "base/error.h"
#include "options/tool_options.h"

namespace hone {

Release read_release(std::string_view text) {
  if (text == "8.6") return Release::v8_6;
  if (text == "10") return Release::v10;
  if (text == "11") return Release::v11;
  throw Error(fmt::format("Unknown compat: {}", text), "write --compat=8.6, --compat=10 or --compat=11");
}

void apply_release_defaults(Options& options, Release release) {
  options.tool.release = release;
  if (release != Release::v11) return;
  options.perf.data_transfers = false;
  options.perf.spin_wait = options.perf.use_graph = true;
  options.tool.separate_profile_run = options.tool.strongly_typed = true;
}

bool is_removed(std::string_view flag, Release release) {
  static constexpr std::string_view kSince11[] = {"--best",
                                                  "--bf16",
                                                  "--calib",
                                                  "--calibProfile",
                                                  "--fp16",
                                                  "--fp8",
                                                  "--int4",
                                                  "--int8",
                                                  "--layerOutputTypes",
                                                  "--layerPrecisions",
                                                  "--maxShapesCalib",
                                                  "--minShapesCalib",
                                                  "--optShapesCalib",
                                                  "--precisionConstraints",
                                                  "--restricted",
                                                  "--weightless"};
  return release == Release::v11 && std::ranges::find(kSince11, flag) != std::end(kSince11);
}

}  // namespace hone
