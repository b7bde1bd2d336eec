// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/run/graph_edges.h"

#include <vector>

namespace hone::cuda {
namespace {

bool is_waiting(CUgraphNode node, const std::set<CUfunction>& waiting) {
  CUDA_KERNEL_NODE_PARAMS parameters{};
  return driver().cuGraphKernelNodeGetParams(node, &parameters) == CUDA_SUCCESS && waiting.contains(parameters.func);
}

}  // namespace

size_t keep_early_edges(CUgraph graph, const std::set<CUfunction>& waiting) {
  const Driver& cuda = driver();
  if (cuda.cuGraphGetEdges == nullptr) return 0;  // before 12.3 graphs had no such edges
  size_t count = 0;
  check(cuda.cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &count), "reading a graph");
  std::vector<CUgraphNode> from(count), to(count);
  std::vector<CUgraphEdgeData> edges(count);
  check(cuda.cuGraphGetEdges(graph, from.data(), to.data(), edges.data(), &count), "reading a graph");
  constexpr CUgraphEdgeData kWhenEnded{};
  size_t early = 0;
  for (size_t i = 0; i < count; ++i) {
    if (edges[i].type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT && edges[i].from_port == CU_GRAPH_KERNEL_NODE_PORT_DEFAULT)
      continue;
    if (is_waiting(to[i], waiting)) {
      ++early;
      continue;
    }
    check(cuda.cuGraphRemoveDependencies(graph, &from[i], &to[i], &edges[i], 1), "changing a graph");
    check(cuda.cuGraphAddDependencies(graph, &from[i], &to[i], &kWhenEnded, 1), "changing a graph");
  }
  return early;
}

}  // namespace hone::cuda
