// SPDX-License-Identifier: Apache-2.0
//
// The optimisers of the training preview: rate, step, then the tensors to optimise, their gradients and their states, in
// groups of one operand per tensor; results are the new tensors and the new states.
#include <cmath>

#include "base/node_error.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

/// Operands 2.. are `groups` runs of equal length; results are all but the gradients.
size_t tensors_of(size_t operands, size_t groups, std::string_view op) {
  HONE_CHECK(operands > 2 && (operands - 2) % groups == 0,
             "{} has {} operands behind rate and step, which are not {} per tensor", op, operands - 2, groups);
  return (operands - 2) / groups;
}

template <size_t groups>
void infer_optimizer(InferContext& context) {
  const size_t count = tensors_of(context.inputs(), groups, context.node().op_name());
  HONE_CHECK(context.outputs() == count * (groups - 1), "{} has {} results for {} tensors", context.node().op_name(),
             context.outputs(), count);
  for (size_t i = 0; i < context.outputs(); ++i) {
    const size_t operand = 2 + (i < count ? i : i + count);
    context.set(i, context.dtype(operand), context.shape(operand));
  }
}

struct Update {
  double rate, step;
  const Attrs& attrs;
  double of(const char* name) const { return attrs.real(name); }
};

/// Runs `update(numbers of one element, state values)`: element 0 is the tensor, 1 the gradient, 2.. the states, all in place.
template <size_t groups, typename Change>
void eval_optimizer(EvalContext& context, const Change& change) {
  const size_t count = tensors_of(context.inputs(), groups, context.node().op_name());
  const Update update{context.input(0).real(0), context.input(1).real(0), context.attrs()};
  for (size_t t = 0; t < count; ++t) {
    std::vector<std::vector<double>> data;
    for (size_t g = 0; g < groups; ++g) data.push_back(read_doubles(context.input(2 + g * count + t)));
    for (size_t i = 0; i < data[0].size(); ++i) {
      double element[groups];
      for (size_t g = 0; g < groups; ++g) element[g] = data[g].at(i);
      change(update, element);
      for (size_t g = 0; g < groups; ++g) data[g][i] = element[g];
    }
    for (size_t g = 0; g < groups; ++g) {
      const Tensor& like = context.input(2 + g * count + t);
      if (g != 1) context.set((g == 0 ? 0 : g - 1) * count + t, write_doubles(like.dtype(), like.dims(), data[g]));
    }
  }
}

void eval_adagrad(EvalContext& context) {
  eval_optimizer<3>(context, [](const Update& u, double* e) {
    const double gradient = u.of("norm_coefficient") * e[0] + e[1];
    e[2] += gradient * gradient;
    e[0] -= u.rate / (1 + u.step * u.of("decay_factor")) * gradient / (std::sqrt(e[2]) + u.of("epsilon"));
  });
}

void eval_adam(EvalContext& context) {
  eval_optimizer<4>(context, [](const Update& u, double* e) {
    const double alpha = u.of("alpha"), beta = u.of("beta"), gradient = u.of("norm_coefficient") * e[0] + e[1];
    e[2] = alpha * e[2] + (1 - alpha) * gradient;
    e[3] = beta * e[3] + (1 - beta) * gradient * gradient;
    const double rate =
        u.step > 0 ? u.rate * std::sqrt(1 - std::pow(beta, u.step)) / (1 - std::pow(alpha, u.step)) : u.rate;
    e[0] = (1 - u.of("norm_coefficient_post")) * (e[0] - rate * e[2] / (std::sqrt(e[3]) + u.of("epsilon")));
  });
}

void eval_momentum(EvalContext& context) {
  const std::string& mode = context.attrs().text("mode");
  HONE_CHECK_AS(AttributeError, mode == "standard" || mode == "nesterov", "'{}' is no mode of Momentum", mode);
  eval_optimizer<3>(context, [&](const Update& u, double* e) {
    const double alpha = u.of("alpha"), gradient = u.of("norm_coefficient") * e[0] + e[1];
    e[2] = alpha * e[2] + (u.step > 0 ? u.of("beta") : 1) * gradient;
    e[0] -= u.rate * (mode == "nesterov" ? gradient + alpha * e[2] : e[2]);
  });
}

constexpr std::string_view kDomain = "ai.onnx.preview.training";

OpDef optimizer(std::string_view name, std::vector<AttrSpec> attrs, void (*infer)(InferContext&),
                void (*eval)(EvalContext&)) {
  return {.name = name,
          .attrs = std::move(attrs),
          .min_inputs = 5,
          .max_inputs = 0xffff,
          .infer = infer,
          .eval = eval,
          .onnx = {{name, 1, kEveryLater, nullptr, kDomain}}};
}

}  // namespace

const OpDef ops::adagrad =
    optimizer("Adagrad", {real_attr("decay_factor", 0), real_attr("epsilon", 1e-6), real_attr("norm_coefficient", 0)},
              infer_optimizer<3>, eval_adagrad);
const OpDef ops::adam = optimizer("Adam",
                                  {real_attr("alpha", 0.9), real_attr("beta", 0.999), real_attr("epsilon", 1e-6),
                                   real_attr("norm_coefficient", 0), real_attr("norm_coefficient_post", 0)},
                                  infer_optimizer<4>, eval_adam);
const OpDef ops::momentum =
    optimizer("Momentum",
              {required_attr("alpha", AttrKind::real), required_attr("beta", AttrKind::real),
               required_attr("mode", AttrKind::text), required_attr("norm_coefficient", AttrKind::real)},
              infer_optimizer<3>, eval_momentum);

}  // namespace hone
