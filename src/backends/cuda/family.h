// SPDX-License-Identifier: Apache-2.0
//
// A family of generated CUDA kernels as one typed description. A family is a struct:
//
//   struct SoftmaxFamily {
//     static constexpr std::string_view kName = "softmax";
//     static constexpr int kVersion = 2;  // goes up with every change of generate()'s results: code_versions.txt holds it
//     using Params = NoParams;            // what a tactic chooses
//     struct Code { ... };                // what load() needs besides shapes; both list their fields (device/fields.h)
//     static void propose(const Problem&, Candidates&);    // a tactic's params are write_fields(Params)
//     static Built<Code> generate(const Problem&, const std::string& architecture, const Params&, const Tactic&);
//     static std::shared_ptr<const CudaKernel> load(const Code&, const LoadContext&);
//   };
//   const CudaTactic tactics::softmax = describe<SoftmaxFamily>();
//
// Between generate() and load() lies a plan. What comes back from it is within the fields' bounds, and the step brings what the
// kernel was made for (support/signature.h), before load() sees anything. How a kernel's parameters are declared:
// support/parameters.h.
#pragma once

#include <utility>
#include <vector>

#include "backends/cuda/support/parameters.h"
#include "backends/cuda/support/signature.h"
#include "backends/cuda/tactic_table.h"

namespace hone::cuda {

struct NoParams {
  static void fields(auto&, auto&) {}
};
struct NoCode {
  static void fields(auto&, auto&) {}
};

/// What generate() of a family gives.
template <typename Code>
struct Built {
  Code code;
  std::string source;  // text, behind the prelude
  std::vector<Tensor> constants = {};
};

template <typename Family>
Generated generate_family(const Problem& problem, const std::string& architecture, const Tactic& tactic) {
  using Code = typename Family::Code;
  Built<Code> built =
      Family::generate(problem, architecture, read_fields<typename Family::Params>(tactic.params), tactic);
  const Signed<Code> code{std::move(built.code), signature_of(problem, tactic, built.constants)};
  return {write_fields(code), std::move(built.source), std::move(built.constants)};
}

template <typename Family>
std::shared_ptr<const CudaKernel> load_family(const Attrs& attrs, const KernelShapes& shapes,
                                              std::shared_ptr<const Module> module, int processors) {
  const auto read = read_fields<Signed<typename Family::Code>>(attrs);
  require_signature(read.made, shapes);
  return Family::load(read.code, {shapes, constants_of(read.made), std::move(module), processors});
}

template <typename Family>
constexpr CudaTactic describe() {
  return {Family::kName,           Family::kVersion,    Family::propose,
          generate_family<Family>, load_family<Family>, list_fields<Signed<typename Family::Code>>};
}

/// A kernel of one launch.
inline std::shared_ptr<const CudaKernel> single(const LoadContext& context, GridLaunch launch) {
  return std::make_shared<GridKernel>(context.module, std::vector{std::move(launch)});
}

}  // namespace hone::cuda
