// SPDX-License-Identifier: Apache-2.0
//
// Between Hone's values and oneDNN's: descriptors, packed weights, epilogues, and the kernel that runs a list of primitives.
//
// A primitive's arguments are memory objects whose pointers are set before each launch. Kernels are shared between contexts,
// so each keeps a few sets of them and a launch takes a free one. oneDNN itself allocates a little at each execution.
#pragma once

#if HONE_WITH_ONEDNN
#include <dnnl.hpp>

#include <atomic>
#include <deque>
#include <functional>

#include "backends/cpu/family.h"
#include "backends/cpu/run/team.h"
#include "regions/operand_code.h"
#include "regions/region_match.h"

namespace hone::cpu::onednn {

using Desc = dnnl::memory::desc;

/// The library divides work among as many threads as the calling thread's regions have, when a primitive is made and when
/// it runs.
using cpu::TeamSize;

/// The processor; the first call caps the library's instruction set by HONE_CPU_ISA.
const dnnl::engine& engine();

using ElementType = dnnl::memory::data_type;

/// Throw Error for element types and layouts that the library does not have.
ElementType element_of(DType dtype);
Desc desc_of(const ConcreteType& type);
Desc plain_desc(const Dims& dims, ElementType element = ElementType::f32);
/// Sizes without a layout: the primitive chooses.
Desc any_desc(const Dims& dims, ElementType element = ElementType::f32);
/// The name of the library's format that a descriptor has, empty for one that has no name; and back.
std::string format_of(const Desc& desc);
Desc desc_in_format(const Dims& dims, const std::string& name, ElementType element = ElementType::f32);

/// Whether matmuls of f32 may round their operands to bf16 and gain by it.
inline bool may_round(const Problem& problem) { return problem.allowed.bf16 && problem.device.bf16_matmuls; }
/// Whether the library multiplies bf16 on AMX's tiles.
inline bool has_tiles(const Problem& problem) { return has_matrix_tiles(cpu_info(problem.device).isa); }
enum class RoundedType { bf16 };
inline constexpr std::array<std::string_view, 1> kRoundedTypeNames = {"bf16"};
constexpr const auto& field_names(RoundedType) { return kRoundedTypeNames; }

/// What a matmul's operands are rounded to, a parameter of the tactic and of the kernel's code; sums and results are f32.
struct OperandType {
  std::optional<RoundedType> rounded;
  OperandType() = default;
  explicit OperandType(ElementType element) {
    if (element == ElementType::bf16) rounded = RoundedType::bf16;
  }
  static void fields(auto& self, auto& visit) { visit("operands", self.rounded); }
  ElementType element() const { return rounded ? ElementType::bf16 : ElementType::f32; }
};

/// A constant that fills a descriptor.
ConstantSpec constant_spec(const Desc& desc);

/// Constant f32 weights, reordered, and rounded where `to` is bf16.
Tensor packed(const float* weights, const Desc& from, const Desc& to);

/// scratchpad by the caller, and the epilogue as post-operations on a result of this type; the residual has the result's type.
dnnl::primitive_attr attr_of(const Epilogue& epilogue, const Desc& result);
/// Where the residual stands among these post-operations.
int residual_position(const Epilogue& epilogue);
/// Whether an implementation is worth offering.
bool is_fast(const dnnl::primitive_desc_base& desc);

struct Operand {
  enum Place { input, output, constant, workspace, prepared } place;
  int64_t index = 0;   // bytes for the workspace and for prepared constants
  int64_t offset = 0;  // bytes further on
};

class Program {
 public:
  struct Argument {
    int name;
    Desc desc;
    Operand operand;
  };
  struct Step {
    dnnl::primitive primitive;
    std::vector<Argument> arguments;
  };

  /// Adds the primitive's scratchpad by itself: steps run one after the other and share the largest one's.
  void add(const dnnl::primitive& primitive, const Desc& scratchpad, std::vector<Argument> arguments);
  void add_reorder(const Desc& from, Operand source, const Desc& to, Operand target);
  /// A constant in another form, made before the first launch.
  Operand prepare(const Desc& from, Operand constant, const Desc& to);
  /// Room in the workspace.
  Operand reserve(size_t bytes);
  std::shared_ptr<const CpuKernel> finish(int workers) &&;

 private:
  std::vector<Step> steps_, preparations_;
  size_t workspace_ = 0, scratch_ = 0, prepared_ = 0;
};

/// An operand for a primitive that wants it as `wanted`: as it is, reordered once where it is a constant (the sizes and the team at
/// load time may make the library want another format than at build time), reordered at each launch otherwise.
Operand operand_as(Program& program, const Desc& given, const Desc& wanted, Operand operand);

/// Where a launch finds an operand of a kernel's code.
inline Operand operand_of(const hone::OperandCode& code) {
  return code.is_constant() ? Operand{Operand::constant, -1 - code.place} : Operand{Operand::input, code.place};
}

/// As CpuTactic, but load() lists primitives.
struct Family {
  std::string_view name;
  void (*propose)(const Problem&, Candidates&);
  Compiled (*compile)(const Problem&, const Tactic&);
  Program (*load)(const Attrs&, const KernelShapes&);
  int version = 1;
  std::vector<Field> (*fields)() = nullptr;
  Cost (*cost)(const Problem&, const Tactic&) = nullptr;
};
extern const Family convolution, linear, matmul, recurrent_layer, attention;

template <typename F>
Program load_program(const Attrs& attrs, const KernelShapes& shapes) {
  const auto code = read_fields<typename F::Code>(attrs);
  require_constants(shapes, F::constants(code, shapes));
  return F::load(code, shapes);
}

/// Of a struct as family.h describes it, without an instruction set: constants(code, shapes) and load(code, shapes).
template <typename F>
constexpr Family family_of() {
  return {F::kName,  F::propose, compile_family<F>, load_program<F>, F::kVersion, list_fields<typename F::Code>,
          cost_of<F>};
}

/// Runs `body` with the library's errors turned into ours.
template <typename Body>
auto guarded(Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const dnnl::error& error) {
    throw Error(fmt::format("oneDNN: {}", error.what()));
  }
}

}  // namespace hone::cpu::onednn
#endif
