// SPDX-License-Identifier: Apache-2.0
//
// Group normalisation as exporters spell it out before opset 18: groups take the place of the channels between two reshapes of an
// instance normalisation; the scale and the bias of each channel stand behind and join the operator's own.
#include "base/limits.h"
#include "ops/ops.h"
#include "passes/edit.h"
#include "passes/passes.h"

namespace hone::passes {
namespace {

/// [N, C, ...] seen as [N, groups, ...], and back; what stands for each channel can be a constant.
bool views_groups(const Match& match) {
  const Shape &x = match["x"]->type.shape, &grouped = match["a"]->type.shape, &y = match["y"]->type.shape;
  return is_float(match["x"]->type.dtype) && x.rank() >= 2 && grouped.rank() >= 2 && x == y && x[0] == grouped[0] &&
         x[1].is_constant() && grouped[1].is_constant() && grouped[1].value() > 0 &&
         x[1].value() % grouped[1].value() == 0 && x[1].value() <= kMaxFoldedBytes / 8;
}

Value* channels_of(const Match& match, const std::vector<double>& numbers) {
  return match.graph().add_constant(
      tensor_from(match["x"]->type.dtype, {static_cast<int64_t>(numbers.size())}, numbers));
}

Value* for_each_channel(const Match& match, std::string_view of_groups) {
  const std::vector<double> groups = numbers_of(*match[of_groups]->constant);
  std::vector<double> channels(static_cast<size_t>(match["x"]->type.shape[1].value()));
  for (size_t i = 0; i < channels.size(); ++i) channels[i] = groups[i / (channels.size() / groups.size())];
  return channels_of(match, channels);
}

void build_group_norm(const Match& match) {
  const Attrs attrs{{"epsilon", match.node("n")->attrs.real("epsilon")},
                    {"num_groups", match["a"]->type.shape[1].value()}};
  match.replace(match
                    .add(ops::group_normalization,
                         {match["x"], for_each_channel(match, "s"), for_each_channel(match, "b")}, attrs)
                    ->output());
}

/// [C, 1, ...], or [1, C, 1, ...].
bool is_for_channels(const Match& match) {
  const Shape& x = match["x"]->type.shape;
  Dims dims = match["w"]->constant->dims();
  if (dims.size() == x.rank() && dims[0] == 1) dims.erase(dims.begin());
  return dims.size() + 1 == x.rank() && x[1] == Dim(dims[0]) && match["w"]->constant->size() == dims[0];
}

Value* combined(const Match& match, std::string_view present, auto&& combine) {
  std::vector<double> numbers = numbers_of(*match[present]->constant);
  const std::vector<double> others = numbers_of(*match["w"]->constant);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = combine(numbers[i], others[i]);
  return channels_of(match, numbers);
}

void scale_group_norm(const Match& match) {
  const Node* norm = match.node("n");
  Value *scale = combined(match, "s", std::multiplies<>()), *bias = combined(match, "b", std::multiplies<>());
  match.replace(match.add(*norm->op, {match["x"], scale, bias}, norm->attrs)->output());
}

void shift_group_norm(const Match& match) {
  const Node* norm = match.node("n");
  match.replace(
      match.add(*norm->op, {match["x"], match["s"], combined(match, "b", std::plus<>())}, norm->attrs)->output());
}

const Rewrite kGroupNorm[] = {
    {.name = "group_norm",
     .match = R"(
       %a = View(%x)
       %n = InstanceNormalization(%a, %s:const, %b:const)
       %y = View(%n))",
     .when = views_groups,
     .build = build_group_norm},
    {.name = "group_norm_scale",
     .match = "%n = GroupNormalization(%x, %s:const, %b:const)\n%y = Mul(%n, %w:const)",
     .when = is_for_channels,
     .build = scale_group_norm},
    {.name = "group_norm_bias",
     .match = "%n = GroupNormalization(%x, %s:const, %b:const)\n%y = Add(%n, %w:const)",
     .when = is_for_channels,
     .build = shift_group_norm},
};

}  // namespace

std::span<const Rewrite> fuse_group_norm() { return kGroupNorm; }

}  // namespace hone::passes
