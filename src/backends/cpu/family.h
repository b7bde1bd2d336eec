// SPDX-License-Identifier: Apache-2.0
//
// A family of CPU kernels as one typed description. A family is a struct:
//
//   struct SoftmaxFamily {
//     static constexpr std::string_view kName = "softmax";
//     static constexpr int kVersion = 1;
//     static constexpr Cost kCost = {.operands = 3};    // or cost(const Problem&, const Params&, const Tactic&)
//     using Params = NoParams;    // what a tactic chooses
//     struct Code { ... };        // what load() needs besides shapes; both list their fields (device/fields.h)
//     static void propose(const Problem&, const CpuInfo&, Candidates&);    // a tactic's params are write_fields(Params)
//     static Built<Code> compile(const Problem&, const Params&, const Tactic&);
//     static std::vector<ConstantSpec> constants(const Code&, const KernelShapes&, const CpuInfo&);
//     static std::shared_ptr<const CpuKernel> load(const Code&, const KernelShapes&, const CpuInfo&);
//   };
//   const CpuTactic tactics::softmax = describe<SoftmaxFamily>();
//
// The cost decides where nothing is timed. Its numbers are medians over the layers of the zoo (bench/estimates.py, docs/adr/0010).
//
// Between compile() and load() lies a plan. What comes back from it is within the fields' bounds, and the plan's constants are
// those that constants() declares, before load() sees anything. A family whose constants are packed for an instruction set
// says so with `static constexpr bool kPacksForIsa = true`; its plan is then loaded for that set, not the machine's.
#pragma once

#include <utility>
#include <vector>

#include "backends/cpu/tactic_table.h"

namespace hone::cpu {

struct NoParams {
  static void fields(auto&, auto&) {}
};

/// What compile() of a family gives.
template <typename Code>
struct Built {
  Code code;
  std::vector<Tensor> constants = {};
};

template <typename Family>
constexpr bool packs_for_isa() {
  if constexpr (requires { Family::kPacksForIsa; }) return Family::kPacksForIsa;
  else return false;
}

template <typename Family>
Cost cost_of(const Problem& problem, const Tactic& tactic) {
  if constexpr (requires { &Family::cost; })
    return Family::cost(problem, read_fields<typename Family::Params>(tactic.params), tactic);
  else return Family::kCost;
}

template <typename Family>
Compiled compile_family(const Problem& problem, const Tactic& tactic) {
  Built<typename Family::Code> built =
      Family::compile(problem, read_fields<typename Family::Params>(tactic.params), tactic);
  Attrs attrs = write_fields(built.code);
  if constexpr (packs_for_isa<Family>()) attrs.set("isa", std::string(to_string(cpu_info(problem.device).isa)));
  return {encode_code(Family::kName, attrs, Family::kVersion), std::move(built.constants)};
}

template <typename Family>
std::shared_ptr<const CpuKernel> load_family(const Attrs& attrs, const KernelShapes& shapes, const CpuInfo& info) {
  const auto code = read_fields<typename Family::Code>(attrs);
  require_constants(shapes, Family::constants(code, shapes, info));
  return Family::load(code, shapes, info);
}

template <typename Family>
constexpr CpuTactic describe() {
  return {Family::kName,       Family::propose,  compile_family<Family>,
          load_family<Family>, Family::kVersion, list_fields<typename Family::Code>,
          cost_of<Family>};
}

}  // namespace hone::cpu
