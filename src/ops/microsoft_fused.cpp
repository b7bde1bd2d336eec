// SPDX-License-Identifier: Apache-2.0
//
// com.microsoft: what ONNX Runtime's optimiser fuses, taken apart again, so that Hone's own fusions decide.
#include "base/node_error.h"
#include "ops/expansions.h"
#include "ops/movement.h"
#include "ops/support.h"
#include "ops/window.h"

namespace hone {

Value* as_type(ImportContext& context, Value* value, DType dtype) {
  return value->type.dtype == dtype ? value : made(context, "Cast", {value}, {{"to", std::string(name_of(dtype))}});
}

Value* scalar_like(ImportContext& context, const Value* value, double number) {
  return context.constant(scalar_of(value->type.dtype, number));
}

namespace {

constexpr std::string_view kDomain = "com.microsoft";

double real_or(const Attrs& attrs, std::string_view name, double fallback) {
  return attrs.has(name) ? attrs.real(name) : fallback;
}

void import_fast_gelu(ImportContext& context) {
  context.set_output(0, made(context, "GeluTanh", {plus(context, context.input(0), given(context, 1))}));
}
void import_bias_gelu(ImportContext& context) {
  context.set_output(0, made(context, "Gelu", {plus(context, context.input(0), context.input(1))}));
}
void import_quick_gelu(ImportContext& context) {
  context.set_output(0,
                     made(context, "Swish", {context.input(0)}, {{"alpha", real_or(context.attrs(), "alpha", 1.702)}}));
}

// ---- FusedMatMul ----

/// The last two axes exchanged; `batch`: the matrix's first axis stands behind all batch axes instead (transBatch).
Value* transposed(ImportContext& context, Value* x, bool matrix, bool batch) {
  const auto rank = static_cast<int64_t>(x->type.shape.rank());
  if ((!matrix && !batch) || rank < 2) return x;
  std::vector<int64_t> perm = iota(rank);
  if (batch) std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
  if (matrix) std::swap(perm[static_cast<size_t>(rank) - 1], perm[static_cast<size_t>(rank) - 2]);
  return made(context, "Transpose", {x}, {{"perm", std::move(perm)}});
}

void import_fused_mat_mul(ImportContext& context) {
  const Attrs& attrs = context.attrs();
  Value* a = transposed(context, context.input(0), attrs.integer_or("transA", 0) != 0,
                        attrs.integer_or("transBatchA", 0) != 0);
  Value* b = transposed(context, context.input(1), attrs.integer_or("transB", 0) != 0,
                        attrs.integer_or("transBatchB", 0) != 0);
  Value* product = made(context, "MatMul", {a, b});
  const double alpha = real_or(attrs, "alpha", 1);
  context.set_output(0, alpha == 1 ? product : made(context, "Mul", {product, scalar_like(context, product, alpha)}));
}

// ---- FusedConv, FusedGemm: an activation by name ----

Value* activated(ImportContext& context, Value* x, const std::vector<double>& parameters) {
  const std::string kind = context.attrs().has("activation") ? context.attrs().text("activation") : "";
  const auto parameter = [&](size_t i, double fallback) { return i < parameters.size() ? parameters[i] : fallback; };
  if (kind.empty()) return x;
  if (kind == "Relu" || kind == "Tanh" || kind == "Sigmoid") return made(context, kind, {x});
  if (kind == "LeakyRelu") return made(context, kind, {x}, {{"alpha", parameter(0, 0.01)}});
  if (kind == "HardSigmoid")
    return made(context, kind, {x}, {{"alpha", parameter(0, 0.2)}, {"beta", parameter(1, 0.5)}});
  if (kind == "Clip")
    return made(context, kind,
                {x, scalar_like(context, x, parameter(0, -3.4028234663852886e38)),
                 scalar_like(context, x, parameter(1, 3.4028234663852886e38))});
  throw AttributeError(fmt::format("the activation '{}' is not known", kind), "save the model without optimisation");
}

void import_fused_conv(ImportContext& context) {
  Attrs attrs = context.attrs();
  for (const char* name : {"activation", "activation_params"}) attrs.erase(name);
  complete_window_attrs(context, attrs, context.input(0)->type.shape, kernel_of_weight(context.input(1)->type.shape));
  Value* sum = made(context, "Conv", {context.input(0), context.input(1), given(context, 2)}, std::move(attrs));
  context.set_output(0, activated(context, plus(context, sum, given(context, 3)),
                                  context.attrs().has("activation_params") ? context.attrs().reals("activation_params")
                                                                           : std::vector<double>()));
}

void import_fused_gemm(ImportContext& context) {
  const Attrs& attrs = context.attrs();
  const Attrs gemm{{"alpha", real_or(attrs, "alpha", 1)},
                   {"beta", real_or(attrs, "beta", 1)},
                   {"transA", attrs.integer_or("transA", 0)},
                   {"transB", attrs.integer_or("transB", 0)}};
  Value* sum = made(context, "Gemm", {context.input(0), context.input(1), given(context, 2)}, gemm);
  std::vector<double> parameters;
  for (const char* name : {"activation_alpha", "activation_beta"})
    if (attrs.has(name)) parameters.push_back(attrs.real(name));
  context.set_output(0, activated(context, sum, parameters));
}

// ---- Skip + normalisation ----

template <bool centred>
void import_skip_norm(ImportContext& context) {
  // centred: x, skip, gamma, beta?, bias?; else x, skip, gamma, bias?
  Value* sum = made(context, "Add", {context.input(0), context.input(1)});
  sum = plus(context, sum, given(context, centred ? 4 : 3));
  const double epsilon = real_or(context.attrs(), "epsilon", 1e-5);
  std::vector<Value*> operands{sum, context.input(2)};
  if (centred && given(context, 3) != nullptr) operands.push_back(context.input(3));
  context.set_output(0, made(context, centred ? "LayerNormalization" : "RMSNormalization", std::move(operands),
                             {{"axis", int64_t{-1}}, {"epsilon", epsilon}}));
  for (const size_t statistic : {size_t{1}, size_t{2}})
    HONE_CHECK(!(statistic < context.outputs() && context.output_used(statistic)),
               "the statistics of a normalisation are for training");
  context.set_output(3, sum);
}

/// SimplifiedLayerNormalization, as ONNX Runtime writes it into the default domain.
void import_simplified_norm(ImportContext& context) {
  context.set_output(0, made(context, "RMSNormalization", {context.input(0), context.input(1)},
                             {{"axis", context.attrs().integer_or("axis", -1)},
                              {"epsilon", real_or(context.attrs(), "epsilon", 1e-5)}}));
}

/// ids, segments?, words, positions, segment table?, gamma, beta, mask?, position ids?
void import_embed_norm(ImportContext& context) {
  Value* ids = context.input(0);
  HONE_CHECK(ids->type.shape.rank() == 2, "EmbedLayerNormalization reads ids of rank 2");
  const auto rows = [&](Value* table, Value* places) {
    return made(context, "Gather", {table, places}, {{"axis", int64_t{0}}});
  };
  Value* sum = rows(context.input(2), ids);
  if (Value* places = given(context, 8)) {
    sum = plus(context, sum, rows(context.input(3), places));
  } else {
    Value* length =
        made(context, "Gather", {made(context, "Shape", {ids}), context.constant(Tensor::scalar<int64_t>(1))});
    Value* range =
        made(context, "Range",
             {context.constant(Tensor::scalar<int64_t>(0)), length, context.constant(Tensor::scalar<int64_t>(1))});
    sum = plus(context, sum, rows(context.input(3), range));
  }
  if (given(context, 1) != nullptr && given(context, 4) != nullptr)
    sum = plus(context, sum, rows(context.input(4), context.input(1)));
  const Attrs norm{{"axis", int64_t{-1}}, {"epsilon", real_or(context.attrs(), "epsilon", 1e-12)}};
  context.set_output(0, made(context, "LayerNormalization", {sum, context.input(5), context.input(6)}, norm));
  if (context.outputs() > 1 && context.output_used(1)) {
    Value* count = nullptr;  // ids that count, per row
    if (Value* mask = given(context, 7))
      count = made(context, "ReduceSum", {mask, integer_constant(context, {1})}, {{"keepdims", int64_t{0}}});
    else
      count = made(context, "Mul",
                   {made(context, "ReduceSum", {ids, integer_constant(context, {1})}, {{"keepdims", int64_t{0}}}),
                    scalar_like(context, ids, 0)});
    context.set_output(1, as_type(context, count, DType::i32));
  }
  context.set_output(2, sum);
}

const OnnxRule kRules[] = {
    {"FastGelu", 1, kEveryLater, import_fast_gelu, kDomain, 0x1},
    {"BiasGelu", 1, kEveryLater, import_bias_gelu, kDomain, 0x3},
    {"QuickGelu", 1, kEveryLater, import_quick_gelu, kDomain, 0x1},
    {"FusedMatMul", 1, kEveryLater, import_fused_mat_mul, kDomain, 0x3},
    {"TransposeMatMul", 1, kEveryLater, import_fused_mat_mul, kDomain, 0x3},
    {"FusedConv", 1, kEveryLater, import_fused_conv, kDomain, 0x3},
    {"FusedGemm", 1, kEveryLater, import_fused_gemm, kDomain, 0x3},
    {"SkipLayerNormalization", 1, kEveryLater, import_skip_norm<true>, kDomain, 0x7},
    {"SkipSimplifiedLayerNormalization", 1, kEveryLater, import_skip_norm<false>, kDomain, 0x7},
    {"SimplifiedLayerNormalization", 1, kEveryLater, import_simplified_norm, ""},
    {"EmbedLayerNormalization", 1, kEveryLater, import_embed_norm, kDomain, 0x6d},
};

}  // namespace

std::span<const OnnxRule> microsoft_fused_rules() { return kRules; }

}  // namespace hone
