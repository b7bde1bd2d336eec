// SPDX-License-Identifier: Apache-2.0
//
// Compiles every kernel that the source "cuda" offers for the regions of some models, for each architecture named: what a
// machine without a card can say about generated code.
//
//   hone_cuda_sources sm_80,sm_90 model.onnx...
//
// Prints, per model in f32 and in f16, how many regions there are, how many of them the source takes, and how many kernels were compiled.
#include <cstdio>
#include <deque>
#include <optional>
#include <set>

#include "backends/all.h"
#include "base/error.h"
#include "base/text.h"
#include "builder/data_sizes.h"
#include "builder/profile.h"
#include "builder/regions.h"
#include "onnx/importer.h"
#include "passes/passes.h"
#include "passes/pipeline.h"

namespace hone {
namespace {

struct Counts {
  size_t regions = 0, taken = 0, compiled = 0;
  std::set<std::string> left;  // operators without a kernel
};

const TacticSource& cuda_source() {
  const Backend* backend = find_backend("cuda");
  HONE_CHECK(backend != nullptr, "this build has no CUDA backend");
  for (const TacticSource* source : backend->sources)
    if (source->name() == "cuda") return *source;
  throw InternalError("the CUDA backend has no source of its own");
}

/// What kernels are made for where only the data decide a size.
constexpr int64_t kAnySize = 64;

/// Nothing where the host has to run the region: it decides sizes, or those taken for them contradict each other.
std::optional<Problem> problem_of(const Region& region, const DataSizes& sizes, const SymbolValues& opt,
                                  const DeviceInfo& device) {
  if (sizes.host_only(region)) return std::nullopt;
  try {
    return make_problem(region, opt, device, {});
  } catch (const Error&) {
    if (sizes.symbols().empty()) throw;
    return std::nullopt;
  }
}

void compile_region(const Region& region, const Graph& graph, const DataSizes& sizes, const SymbolValues& opt,
                    const std::vector<std::string_view>& architectures, Counts& counts) {
  DeviceInfo device{.name = "any", .architecture = std::string(architectures[0]), .workers = 132};
  std::optional<Problem> found = problem_of(region, sizes, opt, device);
  if (!found) {
    ++counts.regions;
    counts.left.emplace(region.nodes[0]->op_name());
    return;
  }
  Problem& problem = *found;
  Candidates candidates;
  cuda_source().propose(problem, candidates);
  if (candidates.offers().empty()) {
    const std::vector<Region> pieces = split(region, graph);
    for (const Region& piece : pieces) compile_region(piece, graph, sizes, opt, architectures, counts);
    if (!pieces.empty()) return;
  }
  ++counts.regions;
  counts.taken += !candidates.offers().empty();
  if (candidates.offers().empty()) counts.left.emplace(region.nodes[0]->op_name());
  for (const std::string_view architecture : architectures) {
    problem.device.architecture = architecture;
    for (const Tactic& tactic : candidates.offers()) {
      with_note([&] { return fmt::format("{} for {}, region {}", tactic.text(), architecture, region.name()); },
                [&] { cuda_source().compile(problem, tactic); });
      ++counts.compiled;
    }
  }
}

Counts compile_model(const std::string& path, DType precision, const std::vector<std::string_view>& architectures) {
  Graph graph = import_onnx(path, silent_logger()).graph;
  run(graph, pipeline(), {.log = silent_logger(), .precision = precision});
  if (!graph.size_deciders().empty()) graph.infer_all();
  ProfilePoints points = profile_points(graph, {}, silent_logger());
  const DataSizes sizes(graph);
  for (const std::string& symbol : sizes.symbols()) points.opt.emplace(symbol, kAnySize);
  Counts counts;
  for (const Region& region : form_regions(graph))
    if (!region.is_view) compile_region(region, graph, sizes, points.opt, architectures, counts);
  return counts;
}

}  // namespace
}  // namespace hone

int main(int count, char** arguments) {
  try {
    HONE_CHECK(count > 2, "usage: hone_cuda_sources sm_80,sm_90 model.onnx...");
    const std::vector<std::string_view> architectures = hone::split(arguments[1], ',');
    for (int i = 2; i < count; ++i)
      for (const hone::DType precision : {hone::DType::f32, hone::DType::f16}) {
        const hone::Counts counts = hone::compile_model(arguments[i], precision, architectures);
        fmt::print("{} {}: {} regions, {} taken, {} kernels; not taken: {}\n", arguments[i], hone::name_of(precision),
                   counts.regions, counts.taken, counts.compiled, hone::join(counts.left, " "));
        std::fflush(stdout);
      }
    return 0;
  } catch (const hone::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
