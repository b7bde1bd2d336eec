// SPDX-License-Identifier: Apache-2.0

#include "regions/layout_offers.h"

#include "regions/copy_request.h"
#include "regions/region_match.h"

namespace hone {
namespace {

constexpr Layout kPlain[] = {Layout::linear, Layout::channels_last};
constexpr Layout kPadded[] = {Layout::blocked8,  Layout::blocked16,      Layout::blocked2,       Layout::blocked4,
                              Layout::blocked32, Layout::channels_last8, Layout::channels_last16};

bool image_rank(const Value* value) { return value->type.shape.rank() >= 3 && value->type.shape.rank() <= 5; }

std::vector<Layout> where_images(const std::vector<Value*>& values, Layout layout) {
  std::vector<Layout> list;
  for (const Value* value : values) list.push_back(image_rank(value) ? layout : Layout::linear);
  return list;
}

}  // namespace

void offer_layouts(const Problem& problem, std::string_view source, std::string_view family, Candidates& out) {
  const Graph& region = problem.region;
  if (region.inputs().empty()) return out.refuse(family, "nothing that it reads comes from outside");
  const size_t rank = region.inputs()[0]->type.shape.rank();
  for (const Layout layout : kPlain) {
    if (layout == Layout::channels_last && (rank < 3 || rank > 5 || region.outputs()[0]->type.shape.rank() != rank))
      continue;
    std::vector<Layout> in(region.inputs().size(), Layout::linear);
    in[0] = layout;
    out.offer({std::string(source), std::string(family), {}, std::move(in), {layout}});
  }
}

std::string reason_not_unary(const Problem& problem, const Node& node) {
  if (problem.region.outputs().size() != 1) return "more than one result is used";
  const Value* x = node.input(0);
  if (x->is_constant()) return "its input is a constant";
  if (node.output()->type.dtype != x->type.dtype)
    return fmt::format("input is {}, result {}", name_of(x->type.dtype), name_of(node.output()->type.dtype));
  if (x->type.shape.elements() == Dim(0)) return "empty input";
  return {};
}

void offer_copies(const Problem& problem, std::string_view source, Candidates& out) {
  const Node* node = copy_root(problem.region);
  if (node == nullptr || !copy_kind(node->op_name())) return;
  CopyCode code;
  std::vector<Tensor> constants;
  if (std::string reason = read_copy(problem, code, constants); !reason.empty())
    return out.refuse("copy", std::move(reason));
  const auto offer = [&](Layout in, Layout result) {
    out.offer({std::string(source),
               "copy",
               {},
               where_images(problem.region.inputs(), in),
               where_images(problem.region.outputs(), result)});
  };
  const CopyKind kind = code.operators.back().kind;
  const bool image = image_rank(node->output()) && (kind == CopyKind::shuffle || node->input(0)->type.shape.rank() ==
                                                                                     node->output()->type.shape.rank());
  if (!image || kind != CopyKind::reformat) offer(Layout::linear, Layout::linear);
  if (!image || kind == CopyKind::flat) return;
  if (kind != CopyKind::reformat) offer(Layout::channels_last, Layout::channels_last);
  if (kind != CopyKind::reformat && kind != CopyKind::transpose) return;
  offer(Layout::linear, Layout::channels_last);
  offer(Layout::channels_last, Layout::linear);
  if (kind == CopyKind::transpose) return;
  for (const Layout padded : kPadded)
    for (const Layout plain : kPlain) offer(plain, padded), offer(padded, plain);
}

}  // namespace hone
