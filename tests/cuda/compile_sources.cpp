// SPDX-License-Identifier: Apache-2.0
//
// Compiles the kernels that the source "cuda" offers for the regions of some models, for each architecture named, and loads those
// that the device can: what a machine without a GPU (but with stub_driver.c's) can say about generated code. Without --all, of
// each family that takes a region the offer it thinks best. With --turns, a region is compiled for one of the architectures,
// which its text decides: a third of the work, and with many regions each family still meets every architecture.
//
//   hone_cuda_sources [--all] [--turns] [--offers] sm_80,sm_90 model.onnx[@name:1x32,...]...
//
// With --offers nothing is compiled. Behind @ stand the shapes of dynamic inputs; without, what is dynamic is 1.
//
// Prints, per model, architecture and precision, how many regions there are, how many of them the source takes, and how many
// kernels were compiled.
#include <cstdio>
#include <deque>
#include <future>
#include <optional>
#include <set>
#include <vector>

#include "backends/all.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "builder/prepare/data_sizes.h"
#include "builder/prepare/profile.h"
#include "builder/problem.h"
#include "builder/regions.h"
#include "device/regions_testing.h"
#include "onnx/importer.h"
#include "passes/passes.h"
#include "passes/pipeline.h"

namespace hone {
namespace {

struct Options {
  std::string architecture;
  DType precision = DType::f32;
  bool all = false, offers = false;
  std::vector<std::string> turns = {};  // architectures that share the regions; none: each takes all
};

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

/// What kernels are made for where a size is data-dependent.
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

/// As an engine does, at the sizes that it was compiled for.
void load_kernel(const Problem& problem, const Tactic& tactic, const Compiled& compiled) {
  const Backend& backend = *find_backend("cuda");
  if (backend.devices() == 0) return;
  static const std::unique_ptr<Device> device = backend.open(0);
  if (problem.device.architecture != device->info().architecture) return;
  KernelShapes shapes = shapes_of(problem.region, tactic, problem.symbols);
  shapes.constant_bytes.emplace();
  for (const Tensor& constant : compiled.constants) shapes.constant_bytes->push_back(constant.bytes().size());
  backend.load(*device, tactic.source, compiled.code, shapes);
}

/// The same for a region in whatever model it stands, so that what models share is still compiled once.
size_t turn_of(const Problem& problem, size_t count) { return hash64(problem.key()) % count; }

void compile_region(const Region& region, const Graph& graph, const DataSizes& sizes, const SymbolValues& opt,
                    const Options& options, Counts& counts) {
  const DeviceInfo device{.name = "any", .architecture = options.architecture, .workers = 132};
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
    for (const Region& piece : pieces) compile_region(piece, graph, sizes, opt, options, counts);
    if (!pieces.empty()) return;
  }
  if (!options.turns.empty() && options.turns[turn_of(problem, options.turns.size())] != options.architecture) return;
  ++counts.regions;
  counts.taken += !candidates.offers().empty();
  if (candidates.offers().empty()) counts.left.emplace(region.nodes[0]->op_name());
  std::set<std::string> families;
  for (const Tactic& tactic : candidates.offers()) {
    if (options.offers || (!families.insert(tactic.name).second && !options.all)) continue;
    with_note([&] { return fmt::format("{} for {}, region {}", tactic.text(), options.architecture, region.name()); },
              [&] { load_kernel(problem, tactic, cuda_source().compile(problem, tactic)); });
    ++counts.compiled;
  }
}

/// "x:1x32,y:1x4" as the only shapes of a profile.
ProfileOptions shapes_of(std::string_view text) {
  ProfileOptions profile;
  for (const std::string_view part : split(text, ',')) {
    const size_t colon = part.rfind(':');
    if (colon == std::string_view::npos) continue;
    Dims dims;
    for (const std::string_view size : split(part.substr(colon + 1), 'x'))
      dims.push_back(parse_integer(size).value_or(1));
    profile[std::string(part.substr(0, colon))] = {dims, dims, dims};
  }
  return profile;
}

Counts compile_model(const std::string& argument, const Options& options) {
  const size_t at = std::min(argument.rfind('@'), argument.size());
  const std::string shapes = argument.substr(std::min(at + 1, argument.size()));
  Graph graph = import_onnx(argument.substr(0, at), silent_logger()).graph;
  run(graph, pipeline(), {.log = silent_logger(), .half_quantized_weights = true, .precision = options.precision});
  if (!graph.size_deciders().empty()) graph.infer_all();
  ProfilePoints points = profile_points(graph, shapes_of(shapes), {});
  const DataSizes sizes(graph);
  for (const std::string& symbol : sizes.symbols()) points.opt.emplace(symbol, kAnySize);
  Counts counts;
  for (const Region& region : form_regions(graph))
    if (!region.is_view) compile_region(region, graph, sizes, points.opt, options, counts);
  return counts;
}

/// Both precisions side by side.
void compile_and_print(const std::string& path, Options options) {
  std::vector<std::pair<DType, std::future<Counts>>> compiling;
  for (const DType precision : {DType::f32, DType::f16}) {
    options.precision = precision;
    compiling.emplace_back(precision, std::async(std::launch::async, compile_model, path, options));
  }
  for (auto& [precision, result] : compiling) {
    const Counts counts = result.get();
    fmt::print("{} {} {}: {} regions, {} taken, {} kernels; not taken: {}\n", path.substr(0, path.rfind('@')),
               options.architecture, name_of(precision), counts.regions, counts.taken, counts.compiled,
               join(counts.left, " "));
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace hone

int main(int count, char** arguments) {
  try {
    hone::Options options;
    bool turns = false;
    int first = 1;
    for (; first < count && arguments[first][0] == '-'; ++first) {
      const std::string_view flag = arguments[first];
      (flag == "--all" ? options.all : flag == "--offers" ? options.offers : turns) = true;
    }
    HONE_CHECK(count > first + 1, "usage: hone_cuda_sources [--all] [--turns] [--offers] sm_80,sm_90 model.onnx...");
    const std::vector<std::string_view> architectures = hone::split(arguments[first], ',');
    if (turns) options.turns.assign(architectures.begin(), architectures.end());
    for (int i = first + 1; i < count; ++i)
      for (const std::string_view architecture : architectures) {
        options.architecture = architecture;
        hone::compile_and_print(arguments[i], options);
      }
    return 0;
  } catch (const hone::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
