// SPDX-License-Identifier: Apache-2.0
//
// Random numbers: a Mersenne twister seeded by the node's `seed`, or by its name where it has none, so that a run can be
// repeated. The way from words to numbers is the one of numpy's RandomState, which defines ONNX's expected results.
#include <cmath>
#include <cstring>
#include <numbers>
#include <random>

#include "base/hash.h"
#include "base/numbers.h"
#include "ops/movement.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

class Source {
 public:
  explicit Source(uint32_t seed) : twister_(seed) {}
  /// In [0, 1), with 53 random bits.
  double uniform() {
    const uint32_t high = twister_() >> 5, low = twister_() >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
  }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform())), angle = 2 * std::numbers::pi * uniform();
    return radius * std::cos(angle);
  }

 private:
  std::mt19937 twister_;
};

Source source_of(const EvalContext& context) {
  const Attrs& attrs = context.attrs();
  if (attrs.has("seed")) return Source(static_cast<uint32_t>(saturated<int64_t>(attrs.real("seed"))));
  return Source(static_cast<uint32_t>(hash64(context.node().name)));
}

const AttrSpec kSeed = {"seed", AttrKind::real, std::nullopt, false, "the node's name seeds when not given"};

/// `shape`, or the sizes of the operand.
void infer_drawn(InferContext& context) {
  const DType dtype = dtype_of_onnx(context.attrs().integer("dtype"));
  context.set(
      0, dtype,
      context.inputs() > 0 ? context.shape(0) : Shape(std::span<const int64_t>(context.attrs().integers("sizes"))));
}

template <typename Draw>
void eval_drawn(EvalContext& context, const Draw& draw) {
  const Dims dims = context.has(0) ? context.input(0).dims() : context.attrs().integers("sizes");
  Source source = source_of(context);
  std::vector<double> out(static_cast<size_t>(elements(dims)));
  for (double& value : out) value = draw(source);
  context.set(0, write_doubles(dtype_of_onnx(context.attrs().integer("dtype")), dims, out));
}
void eval_uniform(EvalContext& context) {
  const double low = context.attrs().real("low"), high = context.attrs().real("high");
  eval_drawn(context, [=](Source& source) { return low + (high - low) * source.uniform(); });
}
void eval_normal(EvalContext& context) {
  const double mean = context.attrs().real("mean"), scale = context.attrs().real("scale");
  eval_drawn(context, [=](Source& source) { return mean + scale * source.normal(); });
}

int64_t onnx_number(DType dtype) {
  for (int64_t number = 1; number <= 26; ++number)
    if (number != 14 && number != 15 && dtype_of_onnx(number) == dtype) return number;
  throw InternalError(fmt::format("{} has no number in ONNX", name_of(dtype)));
}

template <const OpDef& op>
void import_drawn(ImportContext& context) {
  Attrs attrs = context.attrs();
  std::vector<Value*> inputs;
  if (Value* like = context.inputs() > 0 ? context.input(0) : nullptr; like != nullptr) {
    inputs.push_back(like);
    if (!attrs.has("dtype")) attrs.set("dtype", onnx_number(inputs[0]->type.dtype));
  } else {
    attrs.set("sizes", attrs.integers("shape"));
    attrs.erase("shape");
  }
  context.set_output(0, context.add(op.name, std::move(inputs), std::move(attrs))->output());
}

void eval_bernoulli(EvalContext& context) {
  const std::vector<double> chance = read_doubles(context.input(0));
  Source source = source_of(context);
  std::vector<double> out;
  for (const double p : chance) out.push_back(source.uniform() < p ? 1 : 0);
  context.set(0, write_doubles(dtype_of_onnx(context.attrs().integer("dtype")), context.input(0).dims(), out));
}

// ---- Multinomial: rows of unnormalised log-probabilities ----

void infer_multinomial(InferContext& context) {
  check_rank(context, 0, 2, "the input of Multinomial");
  context.set(0, dtype_of_onnx(context.attrs().integer("dtype")),
              {context.shape(0)[0], Dim(context.attrs().integer("sample_size"))});
}

void eval_multinomial(EvalContext& context) {
  const Tensor& x = context.input(0);
  const std::vector<double> logs = read_doubles(x);
  const int64_t rows = x.dims()[0], classes = x.dims()[1], samples = context.attrs().integer("sample_size");
  HONE_CHECK(classes > 0 && samples >= 0, "Multinomial draws {} samples of {} classes", samples, classes);
  Source source = source_of(context);
  std::vector<int64_t> out;
  for (int64_t r = 0; r < rows; ++r) {
    const double* row = logs.data() + r * classes;
    const double top = *std::max_element(row, row + classes);
    double total = 0;
    for (int64_t c = 0; c < classes; ++c) total += std::exp(row[c] - top);
    for (int64_t s = 0; s < samples; ++s) {
      double left = source.uniform() * total;
      int64_t c = 0;
      while (c + 1 < classes && (left -= std::exp(row[c] - top)) >= 0) ++c;
      out.push_back(c);
    }
  }
  context.set(0, write_integers(dtype_of_onnx(context.attrs().integer("dtype")), {rows, samples}, out));
}

// ---- Dropout(x, ratio?, training?) -> y, kept ----

void infer_dropout(InferContext& context) {
  context.set(0, context.dtype(0), context.shape(0));
  context.set(1, DType::boolean, context.shape(0));
}

void eval_dropout(EvalContext& context) {
  const Tensor& x = context.input(0);
  const bool training = context.has(2) && context.input(2).integer(0) != 0;
  const double ratio = training ? (context.has(1) ? context.input(1).real(0) : 0.5) : 0;
  HONE_CHECK(ratio >= 0 && ratio < 1, "Dropout with a ratio of {}", ratio);
  std::vector<double> y = read_doubles(x);
  TensorBuilder kept(DType::boolean, x.dims());
  Source source = source_of(context);
  for (size_t i = 0; i < y.size(); ++i) {
    const bool keep = ratio == 0 || source.uniform() >= ratio;
    kept.data<bool>()[i] = keep;
    y[i] = keep ? y[i] / (1 - ratio) : 0;
  }
  context.set(0, write_doubles(x.dtype(), x.dims(), y));
  if (context.outputs() > 1) context.set(1, kept.finish());
}

/// Outside of training Dropout keeps everything; only opset 12 and newer say by an operand that they train.
void import_dropout(ImportContext& context) {
  Value* x = context.input(0);
  Value* training = context.inputs() > 2 ? context.input(2) : nullptr;
  if (training != nullptr && !(training->is_constant() && training->constant->integer(0) == 0)) {
    Attrs attrs;
    if (context.attrs().has("seed")) attrs.set("seed", static_cast<double>(context.attrs().integer("seed")));
    return set_outputs(context,
                       *context.add("Dropout", {x, context.input(1), training}, std::move(attrs), context.outputs()));
  }
  context.set_output(0, context.add("Identity", {x})->output());
  if (context.outputs() < 2 || !context.output_used(1)) return;
  Value* kept = context.constant(Tensor::scalar<bool>(true));
  context.set_output(1, context.add("Expand", {kept, context.add("Shape", {x})->output()})->output());
}

OpDef drawn(std::string_view name, std::vector<AttrSpec> attrs, void (*eval)(EvalContext&),
            std::vector<OnnxRule> rules) {
  OpDef op{.name = name};
  op.attrs = std::move(attrs);
  op.attrs.insert(op.attrs.end(), {kSeed, integer_attr("dtype", 1), integers_attr("sizes")});
  op.min_inputs = 0;
  op.max_inputs = 1;
  op.infer = infer_drawn;
  op.eval = eval;
  op.onnx = std::move(rules);
  op.traits.random = true;
  return op;
}

}  // namespace

const OpDef ops::random_uniform = drawn("RandomUniform", {real_attr("low", 0), real_attr("high", 1)}, eval_uniform,
                                        {{"RandomUniform", 1, kEveryLater, import_drawn<ops::random_uniform>},
                                         {"RandomUniformLike", 1, kEveryLater, import_drawn<ops::random_uniform>}});
const OpDef ops::random_normal = drawn("RandomNormal", {real_attr("mean", 0), real_attr("scale", 1)}, eval_normal,
                                       {{"RandomNormal", 1, kEveryLater, import_drawn<ops::random_normal>},
                                        {"RandomNormalLike", 1, kEveryLater, import_drawn<ops::random_normal>}});
const OpDef ops::bernoulli =
    drawn("Bernoulli", {}, eval_bernoulli, {{"Bernoulli", 15, kEveryLater, import_drawn<ops::bernoulli>}});
const OpDef ops::multinomial{.name = "Multinomial",
                             .attrs = {kSeed, integer_attr("dtype", 6), integer_attr("sample_size", 1)},
                             .infer = infer_multinomial,
                             .eval = eval_multinomial,
                             .onnx = {{"Multinomial", 7}},
                             .traits = {.random = true}};
const OpDef ops::dropout{.name = "Dropout",
                         .attrs = {kSeed},
                         .min_inputs = 1,
                         .max_inputs = 3,
                         .infer = infer_dropout,
                         .eval = eval_dropout,
                         .onnx = {{"Dropout", 1, kEveryLater, import_dropout}},
                         .traits = {.random = true}};

}  // namespace hone
