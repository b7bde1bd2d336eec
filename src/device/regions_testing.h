// SPDX-License-Identifier: Apache-2.0
//
// The regions of tests/regions/*.ir, on which every source of every device is tested. In a file regions stand behind each other
// as graph text, T for the element type that a test puts in, N for a size that is symbolic; a line of words after # tells what
// the next region is about; behind "# sparse" its weights are pruned to 2:4 structure. For tests only.
#pragma once

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "device/tactic.h"
#include "ops/all.h"
#include "ops/ops.h"
#include "ops/sparse_weights.h"

namespace hone {

struct RegionSample {
  std::string name;  // file and number: "pool_2"
  std::string text;
  bool sparse = false;

  bool has(std::string_view word) const { return text.find(word) != std::string::npos; }
  /// Whether an element type is put in.
  bool is_typed() const { return with(DType::f16) != with(DType::f32); }
  Graph graph(DType dtype) const {
    Graph graph = parse_graph(with(dtype), find_op);
    if (sparse) prune_weights(graph);
    return graph;
  }

  /// The text with an element type.
  std::string with(DType dtype) const {
    std::string result;
    for (size_t i = 0; i < text.size(); ++i) {
      const bool alone = text[i] == 'T' && (i == 0 || !std::isalnum(static_cast<unsigned char>(text[i - 1]))) &&
                         i + 1 < text.size() && (text[i + 1] == '[' || text[i + 1] == '"');
      if (alone) result += name_of(dtype);
      else result += text[i];
    }
    return result;
  }
};

namespace region_samples_detail {

inline void read_file(const std::filesystem::path& path, std::vector<RegionSample>& samples) {
  std::ifstream file(path);
  RegionSample sample;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("# sparse")) sample.sparse = true;
    if (line.starts_with("#") || line.empty()) continue;
    sample.text += line + "\n";
    if (line != "}") continue;
    sample.name = path.stem().string() + "_" + std::to_string(number++);
    samples.push_back(std::move(sample));
    sample = {};
  }
  HONE_CHECK(sample.text.empty(), "{} ends inside of a region", path.string());
}

}  // namespace region_samples_detail

/// All regions, in the order of their files' names.
inline const std::vector<RegionSample>& region_samples() {
  static const std::vector<RegionSample> samples = [] {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator("tests/regions"))
      if (entry.path().extension() == ".ir") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    std::vector<RegionSample> list;
    for (const std::filesystem::path& file : files) region_samples_detail::read_file(file, list);
    return list;
  }();
  return samples;
}

/// At concrete sizes numbers that follow from sizes are ordinary constants, as the builder has them.
inline Graph sample_at(const Graph& symbolic, const SymbolValues& sizes) {
  Graph region = symbolic.specialize(sizes);
  for (Node* node : region.nodes())
    if (node->is(ops::symbolic_constant) && region.node_count() > 1)
      region.replace(node->output(), region.add_constant(evaluate_node(*node, {})[0]));
  region.erase_dead();
  region.infer_all();
  return region;
}

inline Graph sample_at(const Graph& symbolic, int64_t n) { return sample_at(symbolic, SymbolValues{{"N", n}}); }

/// The region at N = n as a problem for a device.
inline Problem sample_problem(const Graph& symbolic, int64_t n, const DeviceInfo& device) {
  Problem problem;
  problem.symbolic = symbolic.clone();
  problem.symbols = {{"N", n}};
  problem.region = sample_at(symbolic, n);
  problem.device = device;
  problem.allowed.sparse = have_sparse_weights(problem.region.nodes());
  return problem;
}

/// What a kernel wrote, without the room behind a result whose sizes it decided.
inline std::vector<Tensor> cut_to_sizes(const Graph& region, std::vector<Tensor> results) {
  if (!decides_sizes(region)) return results;
  const Dims dims = results[1].integers();
  const auto bytes = static_cast<size_t>(byte_size(results[0].dtype(), dims));
  HONE_CHECK(bytes <= results[0].bytes().size(), "a kernel writes sizes {}", join_dims(dims, ","));
  results[0] = Tensor(results[0].dtype(), dims, Blob::copy(results[0].bytes().first(bytes)));
  return results;
}

}  // namespace hone
