// SPDX-License-Identifier: Apache-2.0
//
// What several ranks do together: one operator for TensorRT's DistCollective and com.microsoft's AllReduce, AllGather and AllToAll.
// Blocks of ranks lie along the first axis; where a model wants another one, transpositions stand around. A rank alone cannot say what
// the result is: only a group of one has a meaning here, evaluate_collective() is the meaning for all ranks at once.
#include "ops/collective.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "base/node_error.h"
#include "ops/expansions.h"
#include "ops/movement.h"
#include "ops/ops.h"
#include "ops/support.h"
#include "tensor/collective.h"

namespace hone {
namespace {

template <typename Kind>
Kind kind_of(const std::string& text, std::string_view what) {
  const auto& names = field_names(Kind{});
  const auto found = std::ranges::find(names, text);
  HONE_CHECK(found != names.end(), "there is no {} called '{}'", what, text);
  return static_cast<Kind>(found - names.begin());
}

CollectiveKind kind_of(const Attrs& attrs) {
  return kind_of<CollectiveKind>(attrs.text("operation"), "collective operation");
}

bool grows(CollectiveKind kind) { return kind == CollectiveKind::all_gather || kind == CollectiveKind::gather; }
bool shrinks(CollectiveKind kind) { return kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::scatter; }
bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::reduce;
}
bool is_rooted(CollectiveKind kind) {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce || kind == CollectiveKind::gather ||
         kind == CollectiveKind::scatter;
}

constexpr int64_t kMostRanks = 1 << 16;

void check_group(const Attrs& attrs, CollectiveKind kind) {
  const int64_t size = attrs.integer("group_size"), root = attrs.integer("root");
  HONE_CHECK(size >= 0 && size <= kMostRanks, "{} ranks are to take part", size);
  HONE_CHECK(!is_rooted(kind) || (root >= 0 && (size == 0 || root < size)), "the root {} is none of {} ranks", root,
             size);
  if (!attrs.has("groups")) return;
  std::vector<int64_t> ranks = attrs.integers("groups");
  HONE_CHECK(size > 0 && ranks.size() % static_cast<size_t>(size) == 0, "{} ranks do not make groups of {}",
             ranks.size(), size);
  std::ranges::sort(ranks);
  HONE_CHECK(ranks.empty() || (ranks.front() >= 0 && ranks.back() < kMostRanks), "a group holds the rank {}",
             ranks.front() < 0 ? ranks.front() : ranks.back());
  HONE_CHECK(std::ranges::adjacent_find(ranks) == ranks.end(), "the rank {} is in two groups",
             *std::ranges::adjacent_find(ranks));
}

void infer_collective(InferContext& context) {
  const CollectiveKind kind = kind_of(context.attrs());
  check_group(context.attrs(), kind);
  const DType dtype = context.dtype(0);
  HONE_CHECK_AS(TypeError, !is_object(dtype), "{} cannot be sent between ranks", name_of(dtype));
  if (reduces(kind)) {
    kind_of<ReduceKind>(context.attrs().text("reduce"), "reduction");
    HONE_CHECK_AS(TypeError, dtype != DType::boolean && !is_small(dtype), "{} cannot be reduced", name_of(dtype));
  }
  Shape shape = context.shape(0);
  if (grows(kind) || shrinks(kind) || kind == CollectiveKind::all_to_all) {
    const int64_t size = context.attrs().integer("group_size");
    HONE_CHECK(size > 0, "{} needs to know how many ranks take part (group_size)", context.attrs().text("operation"));
    HONE_CHECK(shape.rank() > 0, "a scalar has no blocks for {} ranks", size);
    HONE_CHECK(grows(kind) || !shape[0].is_constant() || shape[0].value() % size == 0,
               "{} rows do not come out even for {} ranks", shape[0].text(), size);
    if (grows(kind)) shape[0] = shape[0] * Dim(size);
    if (shrinks(kind)) shape[0] = floor_divide(shape[0], Dim(size));
  }
  context.set(0, dtype, std::move(shape));
}

void eval_collective(EvalContext& context) {
  if (context.attrs().integer("group_size") != 1)
    throw Error("what several ranks do together cannot be computed by one",
                "run the model with as many ranks as it was made for: docs/several-cards.md");
  context.set(0, evaluate_collective(context.attrs(), {context.input(0)}).front());
}

// ---- Meaning ----

double reduced(ReduceKind kind, double a, double b) {
  switch (kind) {
    case ReduceKind::prod: return a * b;
    case ReduceKind::max: return std::max(a, b);
    case ReduceKind::min: return std::min(a, b);
    default: return a + b;
  }
}
int64_t reduced(ReduceKind kind, int64_t a, int64_t b) {
  switch (kind) {  // sums and products of integers wrap
    case ReduceKind::prod: return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    case ReduceKind::max: return std::max(a, b);
    case ReduceKind::min: return std::min(a, b);
    default: return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
}

template <typename T>
std::vector<T> all_reduced(ReduceKind kind, const std::vector<std::vector<T>>& parts) {
  std::vector<T> total = parts.front();
  for (size_t p = 1; p < parts.size(); ++p)
    for (size_t i = 0; i < total.size(); ++i) total[i] = reduced(kind, total[i], parts[p][i]);
  if (kind == ReduceKind::avg)
    for (T& value : total) value /= static_cast<T>(parts.size());
  return total;
}

Tensor all_reduced(ReduceKind kind, const std::vector<Tensor>& operands) {
  const DType dtype = operands.front().dtype();
  const Dims& dims = operands.front().dims();
  if (is_integer(dtype)) {
    std::vector<std::vector<int64_t>> parts;
    for (const Tensor& operand : operands) parts.push_back(operand.integers());
    return write_integers(dtype, dims, all_reduced(kind, parts));
  }
  std::vector<std::vector<double>> parts;
  for (const Tensor& operand : operands) parts.push_back(read_doubles(operand));
  return write_doubles(dtype, dims, all_reduced(kind, parts));
}

/// One below the other.
Tensor stacked(const std::vector<Tensor>& parts) {
  Dims dims = parts.front().dims();
  dims[0] *= static_cast<int64_t>(parts.size());
  TensorBuilder builder(parts.front().dtype(), dims);
  std::byte* to = builder.bytes();
  for (const Tensor& part : parts) to = std::ranges::copy(part.bytes(), to).out;
  return builder.finish();
}

Tensor block_of(const Tensor& whole, size_t place, size_t places) {
  Dims dims = whole.dims();
  HONE_CHECK(dims[0] % static_cast<int64_t>(places) == 0, "{} rows do not come out even for {} ranks", dims[0], places);
  dims[0] /= static_cast<int64_t>(places);
  TensorBuilder builder(whole.dtype(), dims);
  const size_t bytes = whole.bytes().size() / places;
  std::ranges::copy(whole.bytes().subspan(place * bytes, bytes), builder.bytes());
  return builder.finish();
}

Tensor zeros_like(const Tensor& tensor) {
  TensorBuilder builder(tensor.dtype(), tensor.dims());
  std::memset(builder.bytes(), 0, tensor.bytes().size());
  return builder.finish();
}

}  // namespace

std::vector<Tensor> evaluate_collective(const Attrs& attrs, const std::vector<Tensor>& operands) {
  const CollectiveKind kind = kind_of(attrs);
  const size_t places = operands.size();
  for (const Tensor& operand : operands)
    HONE_CHECK(operand.type() == operands.front().type(), "one rank brings {}, another {}", operand.type().text(),
               operands.front().type().text());
  const auto root = static_cast<size_t>(attrs.integer("root"));
  const auto on_root = [&](const Tensor& result) {
    std::vector<Tensor> results(places, zeros_like(result));
    results.at(root) = result;
    return results;
  };
  const auto everywhere = [&](const Tensor& result) { return std::vector<Tensor>(places, result); };
  const auto blocks_of = [&](const Tensor& whole) {
    std::vector<Tensor> results;
    for (size_t place = 0; place < places; ++place) results.push_back(block_of(whole, place, places));
    return results;
  };
  const auto total = [&] { return all_reduced(kind_of<ReduceKind>(attrs.text("reduce"), "reduction"), operands); };
  switch (kind) {
    case CollectiveKind::all_reduce: return everywhere(total());
    case CollectiveKind::all_gather: return everywhere(stacked(operands));
    case CollectiveKind::reduce_scatter: return blocks_of(total());
    case CollectiveKind::broadcast: return everywhere(operands.at(root));
    case CollectiveKind::reduce: return on_root(total());
    case CollectiveKind::gather: return on_root(stacked(operands));
    case CollectiveKind::scatter: return blocks_of(operands.at(root));
    case CollectiveKind::all_to_all: break;
  }
  std::vector<Tensor> results;
  for (size_t place = 0; place < places; ++place) {
    std::vector<Tensor> parts;
    for (const Tensor& operand : operands) parts.push_back(block_of(operand, place, places));
    results.push_back(stacked(parts));
  }
  return results;
}

// ---- Import ----

namespace {

/// As the operator Collective; of one rank there is nothing to do.
Value* together(ImportContext& context, Value* x, Attrs attrs) {
  if (attrs.integer_or("group_size", 0) == 1) return made(context, "Identity", {x});
  return made(context, "Collective", {x}, std::move(attrs));
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

void import_dist_collective(ImportContext& context) {
  const Attrs& given = context.attrs();
  HONE_CHECK(given.has("collective_operation"), "DistCollective does not say its collective_operation");
  Attrs attrs{{"operation", lower(given.text("collective_operation"))},
              {"root", std::max<int64_t>(given.integer_or("root", 0), 0)},
              {"group_size", std::max<int64_t>(given.integer_or("group_size", 0), 0)}};
  if (given.has("reduce_op") && lower(given.text("reduce_op")) != "none")
    attrs.set("reduce", lower(given.text("reduce_op")));
  if (given.has("groups") && !given.integers("groups").empty()) attrs.set("groups", given.integers("groups"));
  context.set_output(0, together(context, context.input(0), std::move(attrs)));
}

void import_all_reduce(ImportContext& context) {
  for (size_t i = 0; i < context.outputs(); ++i)
    if (context.output_used(i))
      context.set_output(i, together(context, context.input(i), {{"operation", std::string("all_reduce")}}));
}

int64_t group_size_of(ImportContext& context) {
  const int64_t size = context.attrs().integer_or("group_size", 1);
  HONE_CHECK(size > 0, "the group_size is {}", size);
  return size;
}

/// The blocks of the ranks lie along the first axis; [size, a, b, c] becomes [a, size * b, c] for axis 1.
void import_all_gather(ImportContext& context) {
  Value* x = context.input(0);
  const int64_t size = group_size_of(context), rank = static_cast<int64_t>(x->type.shape.rank());
  const auto axis =
      static_cast<int64_t>(normalize_axis(context.attrs().integer_or("axis", 0), static_cast<size_t>(rank)));
  const Attrs attrs{{"operation", std::string("all_gather")}, {"group_size", size}};
  if (axis == 0 || size == 1) return context.set_output(0, together(context, x, attrs));
  Value* apart = made(context, "Unsqueeze", {x, integer_constant(context, {0})});
  Value* blocks = together(context, apart, attrs);
  std::vector<int64_t> perm;
  for (int64_t i = 1; i <= rank; ++i) {
    if (i == axis + 1) perm.push_back(0);
    perm.push_back(i);
  }
  Value* turned = made(context, "Transpose", {blocks}, {{"perm", std::move(perm)}});
  std::vector<std::string> sizes;
  for (int64_t i = 0; i < rank; ++i) {
    const Dim& dim = x->type.shape[static_cast<size_t>(i)];
    sizes.push_back((i == axis ? dim * Dim(size) : dim).text());
  }
  context.set_output(0, made(context, "View", {turned}, {{"shape", std::move(sizes)}}));
}

void import_all_to_all(ImportContext& context) {
  context.set_output(0, together(context, context.input(0),
                                 {{"operation", std::string("all_to_all")}, {"group_size", group_size_of(context)}}));
}

constexpr std::string_view kMicrosoft = "com.microsoft";

}  // namespace

namespace ops {

const OpDef collective = {
    .name = "Collective",
    .attrs = {required_attr("operation", AttrKind::text), text_attr("reduce", "sum"), integer_attr("root", 0),
              integer_attr("group_size", 0),  // 0: all ranks, however many there are
              integers_attr("groups")},       // so many ranks each, one group behind the other; not given: all ranks
    .infer = infer_collective,
    .eval = eval_collective,
    .onnx = {{"DistCollective", 1, kEveryLater, import_dist_collective},
             {"AllReduce", 1, kEveryLater, import_all_reduce, kMicrosoft, 1},
             {"AllGather", 1, kEveryLater, import_all_gather, kMicrosoft, 1},
             {"AllToAll", 1, kEveryLater, import_all_to_all, kMicrosoft, 1}},
    // Never folded, never merged: ranks do it as often as the model says.
    .traits = {.random = true, .few_bits = FewBits::follows, .layer = "Collective"},
};

}  // namespace ops
}  // namespace hone
