// SPDX-License-Identifier: Apache-2.0
//
// Passes: named steps from graph to graph. A Pass is a value in a list (see pipeline.cpp); it is one of three things:
// a function, a set of rewrites, or a group of passes that repeats until nothing changes. `run` does around each what
// every pass wants: skip by name, time, remove dead nodes, verify, snapshot, log.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "ir/graph.h"

namespace hone {

struct Rewrite;

/// An ONNX node that no node of the graph stands for any more, and the pass that made it unnecessary.
struct Folded {
  std::string node;
  std::string_view pass;
};

/// What is asked of a layer's types: of what it computes in, and of its results (one for all, or one for each). None: anything.
struct AskedTypes {
  std::optional<DType> computes = {};
  std::vector<DType> results = {};
};

struct PassContext {
  const Logger& log;
  std::vector<std::string> disabled = {};             // passes to skip, by name
  std::string dump_directory = {};                    // where snapshots go; empty: none
  bool widen_half = false;                            // the device has no arithmetic in f16 and bf16
  bool byte_matmuls = false;                          // the device has kernels for matmuls of 8-bit integers
  bool code_products = false;                         // and for products of codes inside networks of floats
  bool float8_products = false;                       // and of codes that are floats of 8 bits
  bool quantized_weights = false;                     // and of f32 with constants of up to 8 bits
  bool half_quantized_weights = false;                // and of f16 and bf16 with such
  std::vector<Folded>* folded = nullptr;              // receives the ONNX nodes that passes make unnecessary
  DType precision = DType::f32;                       // what select_precision brings floats to
  bool only_convolutions = false;                     // and whether only around convolutions
  std::function<bool(const Node&)> keeps_f32 = {};    // nodes that select_precision leaves in f32; empty: none
  std::function<AskedTypes(const Node&)> asked = {};  // what constrain_types brings nodes to; empty: nothing
  std::string_view pass = {};                         // the pass that is running; set by `run`

  /// The log's pair of lines about a fusion: "Running: FuseGelu on <first>", "FuseGelu: Fusing <first> with <second>".
  void report_fusion(std::string_view first, std::string_view second) const;
  /// "Running: …" and "Removing <layer>".
  void report_removal(std::string_view layer) const;
};

struct Pass {
  std::string_view name;  // verb_noun
  void (*run)(Graph&, const PassContext&) = nullptr;
  std::string_view milestone = {};  // logged as "After <milestone>: N layers"
  std::span<const Rewrite> (*rewrites)() = nullptr;
  std::span<const Pass> group = {};
};

/// Runs the list in order. An error names the pass; with a dump directory the graph before it lies there too.
void run(Graph& graph, std::span<const Pass> passes, const PassContext& context);

/// "fuse_gelu" as the log writes it: "FuseGelu".
std::string camel_case(std::string_view name);

}  // namespace hone
