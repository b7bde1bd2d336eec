// SPDX-License-Identifier: Apache-2.0
#include "regions/together/collective_region.h"

#include <algorithm>

#include "base/checked.h"
#include "device/code.h"
#include "device/fields.h"
#include "ops/collective.h"
#include "ops/ops.h"

namespace hone {
namespace {

template <typename Kind>
Kind kind_called(const std::string& text) {
  const auto& names = field_names(Kind{});
  const auto found = std::ranges::find(names, text);
  HONE_ASSERT(found != names.end(), "{} passed inference", text);
  return static_cast<Kind>(found - names.begin());
}

/// Of the group that this rank is in, ascending; empty: all ranks.
std::vector<int> ranks_of(const CollectiveCode& code, const Group& group) {
  if (code.groups.empty()) {
    if (code.group_size != 0 && code.group_size != group.size())
      throw Error(fmt::format("the network was made for {} ranks, there are {}", code.group_size, group.size()),
                  fmt::format("start it with {} ranks, or divide the model for {}", code.group_size, group.size()));
    return {};
  }
  HONE_CHECK(code.group_size > 0 && code.groups.size() % static_cast<size_t>(code.group_size) == 0,
             "{} ranks do not make groups of {}", code.groups.size(), code.group_size);
  for (auto begin = code.groups.begin(); begin != code.groups.end(); begin += code.group_size) {
    std::vector<int> ranks(begin, begin + code.group_size);
    std::ranges::sort(ranks);
    HONE_CHECK(std::ranges::adjacent_find(ranks) == ranks.end(), "a rank stands twice in a group");
    HONE_CHECK(ranks.back() < group.size(), "the network's groups hold rank {}, there are {} ranks", ranks.back(),
               group.size());
    if (std::ranges::find(ranks, group.rank()) == ranks.end()) continue;
    if (static_cast<int>(ranks.size()) == group.size()) return {};
    return ranks;
  }
  throw Error(fmt::format("rank {} is in none of the network's groups", group.rank()),
              "start as many ranks as the groups have");
}

int64_t result_elements(CollectiveKind kind, int64_t elements, int64_t ranks) {
  switch (kind) {
    case CollectiveKind::all_gather:
    case CollectiveKind::gather: return checked_multiply(elements, ranks);
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::scatter: return elements % ranks == 0 ? elements / ranks : -1;
    case CollectiveKind::all_to_all: return elements % ranks == 0 ? elements : -1;
    default: return elements;
  }
}

}  // namespace

const Node* collective_node(const Graph& region) {
  const Node* found = nullptr;
  for (const Node* node : region.nodes()) {
    if (node->is(ops::symbolic_constant)) continue;
    if (!node->is(ops::collective) || found != nullptr) return nullptr;
    found = node;
  }
  return found;
}

void offer_collective(const Problem& problem, std::string_view source, Candidates& out) {
  const Node* node = collective_node(problem.region);
  if (node == nullptr) return;
  if (node->input(0)->is_constant()) {
    out.refuse(source, "its operand is a constant");
    return;
  }
  out.offer({std::string(source), node->attrs.text("operation"), {}, {Layout::linear}, {Layout::linear}});
}

Compiled compile_collective(const Problem& problem, int64_t version) {
  const Attrs& attrs = collective_node(problem.symbolic)->attrs;
  CollectiveCode code{.kind = kind_called<CollectiveKind>(attrs.text("operation")),
                      .reduce = kind_called<ReduceKind>(attrs.text("reduce")),
                      .root = attrs.integer("root"),
                      .group_size = attrs.integer("group_size"),
                      .groups = {}};
  if (attrs.has("groups")) code.groups = attrs.integers("groups");
  return {encode_code(kCollectiveFamily, write_fields(code), version), {}};
}

CollectiveForm collective_form(const Blob& blob, const KernelShapes& shapes, const Group* group,
                               std::string_view source, int64_t version) {
  const KernelCode decoded = decode_code(blob);
  require_version(decoded, source,
                  decoded.family == kCollectiveFamily ? std::optional<int64_t>(version) : std::nullopt);
  const auto code = read_fields<CollectiveCode>(decoded.attrs);
  if (group == nullptr)
    throw Error("the network is divided over several ranks, and this process is none of them",
                "start one process per rank: torchrun, mpirun or srun, or RANK and WORLD_SIZE (docs/several-cards.md)");
  HONE_CHECK(shapes.inputs.size() == 1 && shapes.outputs.size() == 1, "a collective has {} operands and {} results",
             shapes.inputs.size(), shapes.outputs.size());
  const ConcreteType &input = shapes.inputs[0], &output = shapes.outputs[0];
  CollectiveForm form{.kind = code.kind,
                      .reduce = code.reduce,
                      .root = static_cast<int>(code.root),
                      .ranks = ranks_of(code, *group),
                      .dtype = input.dtype,
                      .elements = elements(input.dims)};
  const auto ranks = static_cast<int64_t>(form.ranks.empty() ? static_cast<size_t>(group->size()) : form.ranks.size());
  HONE_CHECK(form.root < ranks, "the root {} is none of {} ranks", form.root, ranks);
  HONE_CHECK(!is_object(input.dtype) && input.dtype == output.dtype && input.layout == Layout::linear &&
                 output.layout == Layout::linear &&
                 elements(output.dims) == result_elements(form.kind, form.elements, ranks),
             "{} of {} ranks makes {} of [{}], not {} of [{}]", kCollectiveNames[static_cast<size_t>(form.kind)], ranks,
             name_of(input.dtype), join_dims(input.dims, ","), name_of(output.dtype), join_dims(output.dims, ","));
  const bool reduces = form.kind == CollectiveKind::all_reduce || form.kind == CollectiveKind::reduce ||
                       form.kind == CollectiveKind::reduce_scatter;
  HONE_CHECK(!reduces || (input.dtype != DType::boolean && !is_small(input.dtype)), "{} cannot be reduced",
             name_of(input.dtype));
  return form;
}

}  // namespace hone
