// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/cudnn/cudnn_attention.h"

#include "backends/cuda/cudnn/attention_graph.h"
#include "backends/cuda/cudnn/engine_tactic.h"
#include "backends/cuda/run/handles.h"
#include "backends/cuda/support/place.h"
#include "backends/cuda/support/signature.h"
#include "backends/cuda/tactic_table.h"
#include "base/error.h"
#include "device/fields.h"

namespace hone::cuda {
namespace {

constexpr size_t kOffers = 4;
constexpr int64_t kMaxDepth = 256;

struct PlacedAttention {
  GivenPlace q, k, v;
  double scale = 1;
  HeadOrder order = HeadOrder::heads_first;
  EngineTactic engine;
  static void fields(auto& self, auto& visit) {
    GivenPlace::fields(self.q, visit, "q");
    GivenPlace::fields(self.k, visit, "k");
    GivenPlace::fields(self.v, visit, "v");
    visit("scale", self.scale);
    visit("layout", self.order);
    EngineTactic::fields(self.engine, visit);
  }
};

std::string reason_against(const AttentionRegion& region) {
  const DType dtype = region.node->output()->type.dtype;
  if (dtype != DType::f16 && dtype != DType::bf16) return fmt::format("operand is {}", name_of(dtype));
  if (region.mask() != nullptr) return "the library knows no mask";
  for (const Value* operand : region.node->inputs)
    if (operand != nullptr && operand->type.dtype != dtype)
      return fmt::format("operand is {}", name_of(operand->type.dtype));
  for (const int64_t depth : {region.key_depth(), region.value_depth()})
    if (depth % 8 != 0 || depth > kMaxDepth) return fmt::format("a depth is {}", depth);
  return {};
}

AttentionSizes sizes_at_opt(const AttentionRegion& region) {
  const auto dims = [](const Value* value) { return value->type.shape.values(); };
  const Node& node = *region.node;
  return {{dims(node.input(0)), dims(node.input(1)), dims(node.input(2)), dims(node.output())}, region.code.order};
}

/// The engines that the library has for it; none where it refuses the graph.
std::vector<EngineChoice> engines_for(const AttentionRegion& region) {
  if (region.node->output()->type.shape.elements() == Dim(0)) return {};
  try {
    return graph_of(sizes_at_opt(region), region.node->output()->type.dtype, cudnn_handle()).engines(kOffers);
  } catch (const Error&) {
    return {};
  }
}

/// Whatever thread runs it uses its own handle, which carries the stream; the plan serves all handles of its GPU.
class AttentionKernel final : public CudaKernel {
 public:
  AttentionKernel(const AttentionSizes& sizes, DType dtype, const PlacedAttention& code)
      : plan_(ExecutionPlan::of(graph_of(sizes, dtype, cudnn_handle()), code.engine.choice(), cudnn_handle())),
        code_(code) {
    HONE_CHECK(static_cast<int64_t>(plan_.workspace_bytes()) <= kMaxWorkspace, "it needs {} bytes of workspace",
               plan_.workspace_bytes());
  }

  size_t workspace_bytes() const override { return plan_.workspace_bytes(); }

  void enqueue(CUstream stream, const Bindings& bindings, bool) const override {
    const cudnnHandle_t handle = cudnn_handle();
    check(cudnn().cudnnSetStream(handle, stream), "choosing a stream");
    auto scale = static_cast<float>(code_.scale);
    std::vector<int64_t> names;
    std::vector<void*> pointers;
    const auto bind = [&](Operand name, const void* pointer) {
      names.push_back(static_cast<int64_t>(name));
      pointers.push_back(const_cast<void*>(pointer));
    };
    const auto bind_place = [&](Operand name, const Place& place) {
      const auto& list = place.kind == PlaceKind::constant ? bindings.constants : bindings.inputs;
      bind(name, list[static_cast<size_t>(place.index)]);
    };
    bind_place(Operand::queries, code_.q);
    bind_place(Operand::keys, code_.k);
    bind_place(Operand::values, code_.v);
    bind(Operand::scale, &scale);
    bind(Operand::output, bindings.outputs[0]);
    plan_.run(handle, names, pointers, bindings.workspace);
  }

 private:
  ExecutionPlan plan_;
  PlacedAttention code_;
};

}  // namespace

bool is_attention(const Problem& problem) {
  return problem.only() != nullptr && read_attention_region(problem).has_value();
}

void propose_attention(const Problem& problem, Candidates& out) {
  const AttentionRegion region = *read_attention_region(problem);
  const std::string name(kAttention);
  if (std::string reason = reason_against(region); !reason.empty()) return out.refuse(name, std::move(reason));
  const std::vector<EngineChoice> engines = engines_for(region);
  if (engines.empty()) out.refuse(name, "the library has no engine for it");
  for (const EngineChoice& choice : engines)
    out.offer({"cudnn",
               name,
               write_fields(EngineTactic{.engine = choice.engine, .knobs = choice.knobs}),
               std::vector<Layout>(problem.region.inputs().size(), Layout::linear),
               {Layout::linear}});
}

Compiled compile_attention(const Problem& problem, const Tactic& tactic) {
  AttentionRegion region = *read_attention_region(problem);
  PlacedAttention code{
      .scale = region.scale, .order = region.code.order, .engine = read_fields<EngineTactic>(tactic.params)};
  Place* const places[] = {&code.q, &code.k, &code.v};
  for (size_t i = 0; i < region.code.operands.size(); ++i) *places[i] = place_of(region.code.operands[i]);
  const Signed<PlacedAttention> made{code, signature_of(problem, tactic, region.constants)};
  return {encode_code(kAttention, write_fields(made), kAttentionVersion), std::move(region.constants)};
}

std::shared_ptr<const CudaKernel> load_attention(const KernelCode& decoded, const KernelShapes& shapes) {
  require_version(decoded, "cudnn", kAttentionVersion);
  const auto [code, made] = read_fields<Signed<PlacedAttention>>(decoded.attrs);
  require_signature(made, shapes);
  const LoadContext context{.shapes = shapes, .constants = constants_of(made), .module = nullptr};
  HONE_CHECK(shapes.outputs.size() == 1, "an attention in the plan has {} results", shapes.outputs.size());
  const DType dtype = shapes.outputs[0].dtype;
  const AttentionSizes::Operands operands{context.dims_of(code.q), context.dims_of(code.k), context.dims_of(code.v),
                                          shapes.outputs[0].dims};
  for (const Place& place : {Place(code.q), Place(code.k), Place(code.v)}) {
    const auto at = static_cast<size_t>(place.index);
    const DType given = place.kind == PlaceKind::constant ? context.constants[at].dtype : shapes.inputs[at].dtype;
    HONE_CHECK(given == dtype, "an attention in the plan reads operands of several types");
  }
  return std::make_shared<AttentionKernel>(AttentionSizes(operands, code.order), dtype, code);
}

}  // namespace hone::cuda
