// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/onednn/support.h"

#if HONE_WITH_ONEDNN
#include <dnnl_debug.h>

#include <cstring>

namespace hone::cpu::onednn {
namespace {

constexpr int kSlots = 4;  // launches of one kernel at the same time before one has to wait

dnnl::cpu_isa library_isa(Isa isa) {
  switch (isa) {
    case Isa::scalar: return dnnl::cpu_isa::sse41;
    case Isa::avx2: return dnnl::cpu_isa::avx2;
    case Isa::avx512: {
      const bool capped = has_matrix_tile_instructions() && !has_matrix_tiles(isa);
      return capped ? dnnl::cpu_isa::avx512_core_bf16 : dnnl::cpu_isa::isa_default;
    }
  }
  return dnnl::cpu_isa::isa_default;
}

dnnl::engine make_engine() {
  // Refused when the library has been used before us; then it keeps what it has.
  dnnl::set_max_cpu_isa(library_isa(best_isa()));
  return dnnl::engine(dnnl::engine::kind::cpu, 0);
}

class Kernel final : public CpuKernel {
 public:
  Kernel(std::vector<Program::Step> steps, size_t workspace, std::vector<Program::Step> preparations, size_t prepared,
         int workers)
      : steps_(std::move(steps)),
        preparations_(std::move(preparations)),
        workspace_(workspace),
        prepared_(prepared),
        workers_(workers) {
    for (int i = 0; i < kSlots; ++i) slots_.emplace_back(steps_);
  }
  size_t workspace_bytes() const override { return workspace_; }
  size_t prepared_bytes() const override { return prepared_; }
  void prepare(std::span<const void* const> constants, void* to) const override {
    const TeamSize team(workers_);
    std::vector<const void*> bound(constants.begin(), constants.end());
    bound.push_back(to);
    Slot slot(preparations_);
    execute(preparations_, slot, {{}, {}, bound, nullptr});
  }
  bool self_parallel() const override { return true; }

  void run(int, int, int, const Bindings& bindings) const override {
    const TeamSize team(workers_);
    Slot& slot = take();
    execute(steps_, slot, bindings);
    slot.busy.clear(std::memory_order_release);
  }

 private:
  struct Slot {
    explicit Slot(const std::vector<Program::Step>& steps) : stream(engine()) {
      for (const Program::Step& step : steps) {
        std::vector<dnnl_exec_arg_t>& list = arguments.emplace_back();
        for (const Program::Argument& argument : step.arguments) {
          memories.emplace_back(argument.desc, engine(), nullptr);
          list.push_back({argument.name, memories.back().get()});
        }
      }
    }
    std::atomic_flag busy;
    dnnl::stream stream;
    std::deque<dnnl::memory> memories;
    std::vector<std::vector<dnnl_exec_arg_t>> arguments;
  };

  static void execute(const std::vector<Program::Step>& steps, Slot& slot, const Bindings& bindings) {
    for (size_t i = 0; i < steps.size(); ++i) {
      std::vector<dnnl_exec_arg_t>& arguments = slot.arguments[i];
      for (size_t k = 0; k < arguments.size(); ++k)
        dnnl_memory_set_data_handle(arguments[k].memory, pointer(steps[i].arguments[k].operand, bindings));
      dnnl_primitive_execute(steps[i].primitive.get(), slot.stream.get(), static_cast<int>(arguments.size()),
                             arguments.data());
    }
  }

  Slot& take() const {
    while (true)
      for (Slot& slot : slots_)
        if (!slot.busy.test_and_set(std::memory_order_acquire)) return slot;
  }

  static void* pointer(const Operand& operand, const Bindings& bindings) {
    const size_t i = static_cast<size_t>(operand.index);
    const auto further = [](const void* base, size_t bytes) -> void* {
      return static_cast<std::byte*>(const_cast<void*>(base)) + bytes;
    };
    const size_t offset = static_cast<size_t>(operand.offset);
    switch (operand.place) {
      case Operand::input: return further(bindings.inputs[i], offset);
      case Operand::output: return further(bindings.outputs[i], offset);
      case Operand::constant: return further(bindings.constants[i], offset);
      case Operand::workspace: return further(bindings.workspace, i + offset);
      case Operand::prepared: return further(bindings.constants.back(), i + offset);
    }
    return nullptr;
  }

  const std::vector<Program::Step> steps_, preparations_;
  const size_t workspace_, prepared_;
  const int workers_;
  mutable std::deque<Slot> slots_;
};

dnnl::algorithm algorithm_of(ActivationKind kind) {
  using dnnl::algorithm;
  switch (kind) {
    case ActivationKind::none: break;
    case ActivationKind::relu:
    case ActivationKind::leaky_relu: return algorithm::eltwise_relu;
    case ActivationKind::clip: return algorithm::eltwise_clip;
    case ActivationKind::sigmoid: return algorithm::eltwise_logistic;
    case ActivationKind::silu: return algorithm::eltwise_swish;
    case ActivationKind::hard_sigmoid: return algorithm::eltwise_hardsigmoid;
    case ActivationKind::hard_swish: return algorithm::eltwise_hardswish;
    case ActivationKind::tanh: return algorithm::eltwise_tanh;
    case ActivationKind::gelu: return algorithm::eltwise_gelu_erf;
    case ActivationKind::gelu_tanh: return algorithm::eltwise_gelu_tanh;
  }
  return algorithm::undef;
}

void append_activation(dnnl::post_ops& ops, const Activation& activation) {
  if (activation.kind == ActivationKind::none) return;
  float alpha = activation.alpha, beta = activation.beta;
  if (activation.kind == ActivationKind::relu) alpha = 0;
  if (activation.kind == ActivationKind::silu) alpha = 1;
  if (activation.kind == ActivationKind::hard_swish) alpha = 1.0f / 6, beta = 0.5f;
  ops.append_eltwise(algorithm_of(activation.kind), alpha, beta);
}

}  // namespace

const dnnl::engine& engine() {
  static const dnnl::engine instance = make_engine();
  return instance;
}

Desc plain_desc(const Dims& dims, ElementType element) { return {dims, element, strides_of(dims)}; }
Desc any_desc(const Dims& dims, ElementType element) { return {dims, element, dnnl::memory::format_tag::any}; }

ElementType element_of(DType dtype) {
  HONE_CHECK(dtype == DType::f32 || dtype == DType::bf16, "oneDNN kernels here take f32 and bf16, not {}",
             name_of(dtype));
  return dtype == DType::f32 ? ElementType::f32 : ElementType::bf16;
}

Desc desc_of(const ConcreteType& type) {
  const ElementType element = element_of(type.dtype);
  using Tag = dnnl::memory::format_tag;
  constexpr Tag kTags[2][3] = {{Tag::aBc8b, Tag::aBcd8b, Tag::aBcde8b}, {Tag::aBc16b, Tag::aBcd16b, Tag::aBcde16b}};
  if (type.layout == Layout::linear || type.layout == Layout::channels_last)
    return {type.dims, element, layout_strides(type.dims, type.layout)};
  HONE_CHECK(type.layout == Layout::blocked8 || type.layout == Layout::blocked16,
             "oneDNN kernels here take no tensors in the layout {}", name_of(type.layout));
  HONE_CHECK(type.dims.size() >= 3 && type.dims.size() <= 5, "a blocked tensor has rank {}", type.dims.size());
  return {type.dims, element, kTags[type.layout == Layout::blocked16][type.dims.size() - 3]};
}

std::string format_of(const Desc& desc) {
  for (int tag = dnnl_format_tag_any + 1; tag < dnnl_format_tag_last; ++tag) {
    const Desc candidate(desc.get_dims(), desc.get_data_type(), static_cast<dnnl::memory::format_tag>(tag), true);
    if (candidate && candidate == desc) return dnnl_fmt_tag2str(static_cast<dnnl_format_tag_t>(tag));
  }
  return {};
}

Desc desc_in_format(const Dims& dims, const std::string& name, ElementType element) {
  for (int tag = dnnl_format_tag_any + 1; tag < dnnl_format_tag_last; ++tag) {
    if (name != dnnl_fmt_tag2str(static_cast<dnnl_format_tag_t>(tag))) continue;
    Desc desc(dims, element, static_cast<dnnl::memory::format_tag>(tag), true);
    if (desc) return desc;
  }
  throw Error(fmt::format("a kernel in the plan has weights in the format {}, which this oneDNN does not have", name),
              "rebuild it from the ONNX model");
}

ConstantSpec constant_spec(const Desc& desc) { return {DType::u8, {static_cast<int64_t>(desc.get_size())}}; }

Tensor packed(const float* weights, const Desc& from, const Desc& to) {
  TensorBuilder builder(DType::u8, {static_cast<int64_t>(to.get_size())});
  std::memset(builder.bytes(), 0, to.get_size());
  dnnl::memory source(from, engine(), const_cast<float*>(weights)), target(to, engine(), builder.bytes());
  dnnl::stream stream(engine());
  dnnl::reorder(source, target).execute(stream, source, target);
  stream.wait();
  return builder.finish();
}

dnnl::primitive_attr attr_of(const Epilogue& epilogue, const Desc& result) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::post_ops ops;
  const auto residual = [&] { ops.append_binary(dnnl::algorithm::binary_add, result); };
  if (epilogue.scale != 1) ops.append_eltwise(dnnl::algorithm::eltwise_linear, epilogue.scale, 0);
  if (epilogue.residual && !epilogue.residual_after_activation) residual();
  append_activation(ops, epilogue.activation);
  if (epilogue.residual && epilogue.residual_after_activation) residual();
  attr.set_post_ops(ops);
  return attr;
}

int residual_position(const Epilogue& epilogue) {
  return (epilogue.scale != 1 ? 1 : 0) +
         (epilogue.residual_after_activation && epilogue.activation.kind != ActivationKind::none ? 1 : 0);
}

bool is_fast(const dnnl::primitive_desc_base& desc) {
  return std::string_view(desc.impl_info_str()).find("ref") == std::string_view::npos;
}

Operand Program::reserve(size_t bytes) {
  const Operand operand{Operand::workspace, static_cast<int64_t>(workspace_)};
  workspace_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return operand;
}

void Program::add(const dnnl::primitive& primitive, const Desc& scratchpad, std::vector<Argument> arguments) {
  if (scratchpad.get_size() != 0) arguments.push_back({DNNL_ARG_SCRATCHPAD, scratchpad, {Operand::workspace}});
  scratch_ = std::max(scratch_, scratchpad.get_size());
  steps_.push_back({primitive, std::move(arguments)});
}

Operand Program::prepare(const Desc& from, Operand constant, const Desc& to) {
  const Operand target{Operand::prepared, static_cast<int64_t>(prepared_)};
  prepared_ += (to.get_size() + kAlignment - 1) / kAlignment * kAlignment;
  const dnnl::reorder::primitive_desc desc(engine(), from, engine(), to);
  preparations_.push_back({dnnl::reorder(desc), {{DNNL_ARG_FROM, from, constant}, {DNNL_ARG_TO, to, target}}});
  return target;
}

void Program::add_reorder(const Desc& from, Operand source, const Desc& to, Operand target) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::reorder::primitive_desc desc(engine(), from, engine(), to, attr);
  add(dnnl::reorder(desc), desc.scratchpad_desc(), {{DNNL_ARG_FROM, from, source}, {DNNL_ARG_TO, to, target}});
}

std::shared_ptr<const CpuKernel> Program::finish(int workers) && {
  const Operand scratch = reserve(scratch_);
  for (Step& step : steps_)
    for (Argument& argument : step.arguments)
      if (argument.name == DNNL_ARG_SCRATCHPAD) argument.operand = scratch;
  return std::make_shared<Kernel>(std::move(steps_), workspace_, std::move(preparations_), prepared_, workers);
}

Operand operand_as(Program& program, const Desc& given, const Desc& wanted, Operand operand) {
  if (given == wanted) return operand;
  if (operand.place == Operand::constant) return program.prepare(given, operand, wanted);
  const Operand room = program.reserve(wanted.get_size());
  program.add_reorder(given, operand, wanted, room);
  return room;
}

}  // namespace hone::cpu::onednn
#endif
