// SPDX-License-Identifier: Apache-2.0
//
// CustomOperator: an operator that the program brought, or a library that it named. To the graph it is an OpDef like all others,
// called "domain::Name"; behind it stand the program's functions. Graphs keep the operators of their nodes alive.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/op.h"

namespace hone {

/// An operand or a result at work. Of an operand that is left out `given` is false, and nothing else counts.
struct CustomTensor {
  DType dtype = DType::f32;
  Dims dims = {};
  Layout layout = Layout::linear;
  const void* data = nullptr;  // of results it is written to
  bool given = true;
};

/// One call of a program's function.
struct CustomCall {
  std::string_view node;
  const Attrs& attrs;
  std::vector<CustomTensor> inputs = {}, outputs = {};
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
  void* stream = nullptr;  // of the device, where the memory is
  int workers = 1;         // threads of the device that are free for it
};

/// A kernel as CUDA source text. Its parameters are the pointers to operands, results and, where there is one, workspace, then a
/// struct with the sizes (backends/cuda/custom/).
struct CudaText {
  std::string source, kernel;
  std::string blocks;  // sizes_from_text(): x, y and z of the grid
  int threads = 256;   // of a block
  std::string shared;  // bytes of dynamic shared memory; empty: 0
};

struct CustomOperator : std::enable_shared_from_this<CustomOperator> {
  CustomOperator() = default;
  CustomOperator(const CustomOperator&) = delete;
  CustomOperator& operator=(const CustomOperator&) = delete;
  ~CustomOperator() {
    if (registered && release) release();
  }

  std::string domain, name;
  int64_t version = 1;
  std::string library, hash;  // the file that it came from, and what it holds; empty: the program itself

  std::vector<uint32_t> input_types;  // bit 1 << dtype for each that it reads; the last holds for all further operands
  struct Result {
    DType dtype = DType::f32;  // without `as_input`
    std::optional<size_t> as_input = {};
    std::string sizes;  // text; empty: the function says them
  };
  std::vector<Result> results;
  std::vector<std::pair<std::string, AttrValue>> defaults;  // of attributes
  std::string workspace_text;                               // bytes, as sizes_from_text(); empty: the function says it
  std::vector<Layout> layouts = {Layout::linear};           // in which it takes tensors with channels, all alike
  bool random = false;                                      // calls with the same operands may give other results
  bool foldable = false;                                    // may be called for constants when an engine is built
  bool capturable = false;                                  // on_device may be called while a CUDA graph is captured
  bool replaces = false;  // Hone's own operator of this name, or a function of the model

  // What the program does; each throws Error where it fails.
  std::function<void(CustomCall&)> sizes;  // fills the dims of the results
  std::function<size_t(const CustomCall&)> workspace;
  std::function<void(CustomCall&)> on_host, on_device;
  std::function<void()> release;  // at its end, where it was registered
  bool registered = false;
  CudaText cuda;

  std::string full_name;  // "domain::Name"
  OpDef def;              // once complete() has been called

  /// Makes the OpDef of all that is set.
  void complete();
  /// What it is called in messages: "com.acme::Scale, version 2, of libscale.so".
  std::string text() const;
  std::shared_ptr<const OpDef> as_op() const { return {shared_from_this(), &def}; }
};

/// A call of the node at these tensors: results get their types and sizes, nothing is run. Throws Error where they do not fit.
CustomCall custom_call(const Node& node, std::vector<CustomTensor> inputs);
/// Bytes that a call asks to work in.
size_t custom_workspace(const CustomOperator& op, const CustomCall& call);

/// The program's operators that a graph and its bodies use, each once.
OperatorList custom_operators(const Graph& graph);

}  // namespace hone
