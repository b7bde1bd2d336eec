// SPDX-License-Identifier: Apache-2.0

#include "regions/copy_plan.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "base/error.h"

namespace hone {
namespace {

void require(bool condition) { HONE_CHECK(condition, "a kernel in the plan copies between tensors that do not fit"); }

/// A tensor, or a part of it, as a walk: what the two sides of a copy are made of.
struct Walk {
  Dims sizes, strides;
  int64_t offset = 0;

  /// Elements first, first + step, … along an axis.
  void slice(size_t axis, int64_t first, int64_t count, int64_t step = 1) {
    offset = checked_add(offset, checked_multiply(first, strides[axis]));
    if (count > 1) strides[axis] = checked_multiply(strides[axis], step);
    sizes[axis] = count;
  }
  void permute(const Dims& order) {
    Dims new_sizes, new_strides;
    for (const int64_t axis : order)
      new_sizes.push_back(sizes.at(static_cast<size_t>(axis))),
          new_strides.push_back(strides.at(static_cast<size_t>(axis)));
    sizes = std::move(new_sizes), strides = std::move(new_strides);
  }
  /// One axis as two: `inner` consecutive elements of it belong together.
  void split(size_t axis, int64_t inner) {
    require(inner > 0 && sizes[axis] % inner == 0);
    const int64_t stride = strides[axis];
    sizes[axis] /= inner;
    strides[axis] *= inner;
    sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(axis) + 1, inner);
    strides.insert(strides.begin() + static_cast<std::ptrdiff_t>(axis) + 1, stride);
  }
};

Walk walk(const ConcreteType& type) { return {type.dims, layout_strides(type.dims, type.layout), 0}; }

struct Copies {
  std::vector<CopyStep> steps;
  void add(const Walk& from, const Walk& to, size_t source = 0, size_t destination = 0) {
    require(from.sizes == to.sizes);
    steps.push_back({{to.sizes, from.strides, to.strides, from.offset, to.offset},
                     static_cast<int>(source),
                     static_cast<int>(destination)});
  }
};

void plan_flat(const CopyRequest& request, Copies& out) {
  const int64_t count = elements(request.outputs[0].dims);
  require(count == elements(request.sources[0].type.dims) &&
          request.sources[0].type.layout == request.outputs[0].layout);
  out.add({{count}, {1}, 0}, {{count}, {1}, 0});
}

void plan_transpose(const CopyRequest& request, Copies& out) {
  Walk from = walk(request.sources[0].type);
  const Dims& order = request.op().perm;
  Dims sorted = order, all(from.sizes.size());
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  require(sorted == all);
  from.permute(order);
  out.add(from, walk(request.outputs[0]));
}

void plan_concat(const CopyRequest& request, Copies& out) {
  const size_t axis = normalize_axis(request.op().axis, request.outputs[0].dims.size());
  int64_t position = 0;
  for (size_t i = 0; i < request.sources.size(); ++i) {
    const Walk from = walk(request.sources[i].type);
    require(from.sizes.size() == request.outputs[0].dims.size());
    Walk to = walk(request.outputs[0]);
    to.slice(axis, position, from.sizes[axis]);
    position += from.sizes[axis];
    if (hone::elements(from.sizes) != 0) out.add(from, to, i);
  }
  require(position == request.outputs[0].dims[axis]);
}

void plan_split(const CopyRequest& request, Copies& out) {
  const size_t axis = normalize_axis(request.op().axis, request.sources[0].type.dims.size());
  const Dims sizes = request.numbers(request.op().sizes), &parts = request.op().parts;
  require(parts.size() == request.outputs.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    require(parts[i] >= 0 && parts[i] < static_cast<int64_t>(sizes.size()));
    Walk from = walk(request.sources[0].type);
    from.slice(axis, std::accumulate(sizes.begin(), sizes.begin() + parts[i], int64_t{0}, checked_add),
               sizes[static_cast<size_t>(parts[i])]);
    out.add(from, walk(request.outputs[i]), 0, i);
  }
}

/// Where a Slice begins.
int64_t first_of(int64_t start, int64_t size, int64_t step) {
  const int64_t first = start < 0 ? start + size : start;
  return std::clamp<int64_t>(first, 0, step > 0 ? size : std::max<int64_t>(size - 1, 0));
}

void plan_slice(const CopyRequest& request, Copies& out) {
  Walk from = walk(request.sources[0].type);
  const Dims starts = request.numbers(request.op().starts), axes = request.numbers(request.op().axes),
             steps = request.numbers(request.op().steps);
  require(starts.size() == axes.size() && starts.size() == steps.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = normalize_axis(axes[i], from.sizes.size());
    require(axis < request.outputs[0].dims.size());
    const int64_t size = from.sizes[axis], count = request.outputs[0].dims[axis], step = steps[i];
    if (count == 0) return;
    from.slice(axis, first_of(starts[i], size, step), count, step);
  }
  out.add(from, walk(request.outputs[0]));
}

/// A box of a value that is put together from parts of the sources: where it is read, and where it begins in the value.
struct Piece {
  size_t source;
  Walk from;
  Dims at;
};
struct Assembled {
  Dims sizes;
  std::vector<Piece> pieces;
};

constexpr size_t kMaxPieces = 4096;

/// Elements first, first + step, … of an axis: of every piece those that it holds.
Assembled sliced(const Assembled& value, size_t axis, int64_t start, int64_t count, int64_t step) {
  require(step != 0 && count >= 0 && count <= value.sizes[axis]);
  const int64_t size = value.sizes[axis];
  step = std::clamp(step, -std::max<int64_t>(size, 1), std::max<int64_t>(size, 1));  // further away there is nothing
  const int64_t stride = std::abs(step), first = first_of(start, size, step);
  Assembled result{value.sizes, {}};
  result.sizes[axis] = count;
  for (const Piece& piece : value.pieces) {
    const int64_t begin = piece.at[axis], last = begin + piece.from.sizes[axis] - 1;
    const int64_t low = step > 0 ? begin - first : first - last, high = step > 0 ? last - first : first - begin;
    if (high < 0) continue;
    const int64_t from = low <= 0 ? 0 : (low + stride - 1) / stride, to = std::min(high / stride, count - 1);
    if (from > to) continue;
    Piece& part = result.pieces.emplace_back(piece);
    part.from.slice(axis, first + from * step - begin, to - from + 1, step);
    part.at[axis] = from;
  }
  return result;
}

Assembled joined(const std::vector<const Assembled*>& parts, size_t axis) {
  Assembled result = *parts.front();
  for (size_t i = 1; i < parts.size(); ++i) {
    Dims like = parts[i]->sizes;
    require(like.size() == result.sizes.size());
    like[axis] = result.sizes[axis];
    require(like == result.sizes);
    for (Piece piece : parts[i]->pieces) {
      piece.at[axis] += result.sizes[axis];
      result.pieces.push_back(std::move(piece));
    }
    result.sizes[axis] += parts[i]->sizes[axis];
  }
  require(result.pieces.size() <= kMaxPieces);
  return result;
}

/// Channels [first, first + count) of a value that begin at `at` of one that is shuffled, a step of `groups` apart; one group where
/// nothing is.
struct Dealt {
  int64_t first, count, at;
};
std::vector<Dealt> dealt(int64_t begin, int64_t count, int64_t channels, int64_t groups) {
  require(groups > 0 && channels % groups == 0);
  const int64_t each = std::max<int64_t>(channels / groups, 1);
  std::vector<Dealt> parts;
  for (int64_t first = begin; first < begin + count;) {
    const int64_t group = first / each, end = std::min((group + 1) * each, begin + count);
    parts.push_back({first - begin, end - first, first % each * groups + group});
    first = end;
  }
  return parts;
}

/// All channels of a value at once, as [groups, each].
bool shuffle_whole(const Piece& piece, const Walk& to, int64_t groups, Copies& out) {
  if (piece.from.sizes != to.sizes || groups == 1) return false;
  Walk from = piece.from, dealt_to = to;
  from.split(1, to.sizes[1] / groups);
  dealt_to.split(1, groups);
  Dims exchanged(dealt_to.sizes.size());
  std::iota(exchanged.begin(), exchanged.end(), 0);
  std::swap(exchanged[1], exchanged[2]);
  dealt_to.permute(exchanged);
  out.add(from, dealt_to, piece.source);
  return true;
}

/// Slices and Concats of each other, and a shuffle of the last: only the boxes that remain are copied.
void plan_assembly(const CopyRequest& request, Copies& out) {
  int64_t groups = 1;
  std::vector<Assembled> values;
  for (size_t i = 0; i < request.sources.size(); ++i) {
    const Walk whole = walk(request.sources[i].type);
    values.push_back({whole.sizes, {}});
    if (hone::elements(whole.sizes) != 0) values.back().pieces.push_back({i, whole, Dims(whole.sizes.size(), 0)});
  }
  for (const CopyOperator& op : request.operators) {
    std::vector<const Assembled*> operands;
    for (const int64_t operand : op.operands) {
      require(operand < static_cast<int64_t>(values.size()));
      operands.push_back(&values[static_cast<size_t>(operand)]);
    }
    require(!operands.empty());
    if (op.kind == CopyKind::shuffle) {
      require(&op == &request.operators.back() && operands[0]->sizes.size() >= 3);
      groups = op.block;
      values.push_back(*operands[0]);
      continue;
    }
    require(op.kind == CopyKind::concat || op.kind == CopyKind::slice);
    if (op.kind == CopyKind::concat) {
      values.push_back(joined(operands, normalize_axis(op.axis, operands[0]->sizes.size())));
      continue;
    }
    Assembled result = *operands[0];
    const Dims starts = request.numbers(op.starts), axes = request.numbers(op.axes), steps = request.numbers(op.steps),
               counts = request.numbers(op.counts);
    require(starts.size() == axes.size() && steps.size() == axes.size() && counts.size() == axes.size());
    for (size_t i = 0; i < axes.size(); ++i)
      result = sliced(result, normalize_axis(axes[i], result.sizes.size()), starts[i], counts[i], steps[i]);
    values.push_back(std::move(result));
  }
  require(values.back().sizes == request.outputs[0].dims);
  const Walk whole = walk(request.outputs[0]);
  for (const Piece& piece : values.back().pieces) {
    if (shuffle_whole(piece, whole, groups, out)) continue;
    Walk to = whole;
    for (size_t axis = 0; axis < to.sizes.size(); ++axis)
      if (axis != 1 || groups == 1) to.slice(axis, piece.at[axis], piece.from.sizes[axis]);
    if (groups == 1) {
      out.add(piece.from, to, piece.source);
      continue;
    }
    for (const auto& [first, count, at] : dealt(piece.at[1], piece.from.sizes[1], whole.sizes[1], groups)) {
      Walk from = piece.from, part = to;
      from.slice(1, first, count);
      part.slice(1, at, count, groups);
      out.add(from, part, piece.source);
    }
  }
}

void plan_expand(const CopyRequest& request, Copies& out) {
  Walk from = walk(request.sources[0].type);
  const Walk to = walk(request.outputs[0]);
  require(from.sizes.size() <= to.sizes.size());
  const size_t missing = to.sizes.size() - from.sizes.size();
  from.sizes.insert(from.sizes.begin(), missing, 1);
  from.strides.insert(from.strides.begin(), missing, 0);
  for (size_t axis = 0; axis < to.sizes.size(); ++axis)
    if (from.sizes[axis] == 1) from.sizes[axis] = to.sizes[axis], from.strides[axis] = 0;
  out.add(from, to);
}

/// Both sides as [copies, size] per axis.
void plan_tile(const CopyRequest& request, Copies& out) {
  Walk from = walk(request.sources[0].type), to = walk(request.outputs[0]);
  require(from.sizes.size() == to.sizes.size());
  for (size_t axis = from.sizes.size(); axis-- > 0;) {
    const int64_t size = from.sizes[axis];
    require(size > 0 && to.sizes[axis] % size == 0);
    to.split(axis, size);
    from.sizes.insert(from.sizes.begin() + static_cast<std::ptrdiff_t>(axis), to.sizes[axis]);
    from.strides.insert(from.strides.begin() + static_cast<std::ptrdiff_t>(axis), 0);
  }
  out.add(from, to);
}

/// Nearest neighbour by whole factors: both sides as [size, repeats] per axis.
void plan_resize(const CopyRequest& request, Copies& out) {
  Walk from = walk(request.sources[0].type), to = walk(request.outputs[0]);
  require(from.sizes.size() == to.sizes.size());
  for (size_t axis = from.sizes.size(); axis-- > 0;) {
    require(from.sizes[axis] > 0 && to.sizes[axis] % from.sizes[axis] == 0);
    const int64_t factor = to.sizes[axis] / from.sizes[axis];
    to.split(axis, factor);
    from.sizes.insert(from.sizes.begin() + static_cast<std::ptrdiff_t>(axis) + 1, factor);
    from.strides.insert(from.strides.begin() + static_cast<std::ptrdiff_t>(axis) + 1, 0);
  }
  out.add(from, to);
}

/// The channels of the deep side as [block, block, C] or [C, block, block]; the wide side as [H, block] and [W, block].
void plan_depth(const CopyRequest& request, Copies& out) {
  const bool to_space = request.op().kind == CopyKind::depth_to_space;
  const int64_t block = request.op().block;
  Walk deep = walk(to_space ? request.sources[0].type : request.outputs[0]);
  Walk wide = walk(to_space ? request.outputs[0] : request.sources[0].type);
  require(deep.sizes.size() == 4 && wide.sizes.size() == 4 && deep.sizes[1] % (block * block) == 0);
  require(wide.sizes[2] == deep.sizes[2] * block && wide.sizes[3] == deep.sizes[3] * block);
  if (request.op().channels_first) {
    deep.split(1, block * block);  // N C bb H W
    deep.split(2, block);          // N C b b H W
    deep.permute({0, 1, 4, 2, 5, 3});
  } else {
    deep.split(1, deep.sizes[1] / block);  // N b bC H W
    deep.split(2, deep.sizes[2] / block);  // N b b C H W
    deep.permute({0, 3, 4, 1, 5, 2});
  }
  wide.split(3, block);  // N C H' W b
  wide.split(2, block);  // N C H b W b
  out.add(to_space ? deep : wide, to_space ? wide : deep);
}

/// One stretch of an axis of a padded tensor.
struct Stretch {
  int64_t to, count, from, step;
  bool filled;
};

std::vector<Stretch> stretches(PadMode mode, int64_t size, int64_t before, int64_t after) {
  std::vector<Stretch> list;
  const int64_t last = size - 1;
  const int64_t cut = std::max<int64_t>(-before, 0), kept = size - cut - std::max<int64_t>(-after, 0);
  require(kept >= 0 && (mode == PadMode::constant || kept == size));
  if (mode == PadMode::reflect) require(std::max(before, after) <= last);
  if (mode == PadMode::wrap) require(std::max(before, after) <= size);
  if (before > 0)
    list.push_back(mode == PadMode::edge      ? Stretch{0, before, 0, 0, false}
                   : mode == PadMode::reflect ? Stretch{0, before, before, -1, false}
                   : mode == PadMode::wrap    ? Stretch{0, before, size - before, 1, false}
                                              : Stretch{0, before, 0, 0, true});
  list.push_back({std::max<int64_t>(before, 0), kept, cut, 1, false});
  if (after > 0)
    list.push_back(mode == PadMode::edge      ? Stretch{before + size, after, last, 0, false}
                   : mode == PadMode::reflect ? Stretch{before + size, after, last - 1, -1, false}
                   : mode == PadMode::wrap    ? Stretch{before + size, after, 0, 1, false}
                                              : Stretch{std::max<int64_t>(before, 0) + kept, after, 0, 0, true});
  return list;
}

/// Every combination of stretches of the axes; a filled stretch takes the whole rest of the axes behind it in one piece.
void pad_axes(const CopyRequest& request, const std::vector<std::vector<Stretch>>& axes, size_t axis, const Walk& from,
              const Walk& to, Copies& out) {
  if (axis == axes.size()) return out.add(from, to);
  for (const Stretch& stretch : axes[axis]) {
    Walk part_to = to, part_from = from;
    part_to.slice(axis, stretch.to, stretch.count);
    if (stretch.filled) {
      out.add({part_to.sizes, Dims(part_to.sizes.size(), 0), 0}, part_to, 1);
    } else {
      part_from.slice(axis, stretch.from, stretch.count, stretch.step);
      pad_axes(request, axes, axis + 1, part_from, part_to, out);
    }
  }
}

/// Before and behind every axis, where perhaps only some are padded.
Dims all_pads(const CopyRequest& request, size_t rank) {
  const Dims pads = request.numbers(request.op().pads), axes = request.numbers(request.op().axes);
  require(pads.size() == 2 * axes.size());
  Dims all(2 * rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = normalize_axis(axes[i], rank);
    all[axis] = pads[i];
    all[axis + rank] = pads[i + axes.size()];
  }
  return all;
}

void plan_pad(const CopyRequest& request, Copies& out) {
  const Walk from = walk(request.sources[0].type), to = walk(request.outputs[0]);
  const Dims pads = all_pads(request, from.sizes.size());
  require(to.sizes.size() == from.sizes.size());
  std::vector<std::vector<Stretch>> axes;
  for (size_t axis = 0; axis < from.sizes.size(); ++axis) {
    const int64_t before = pads[axis], after = pads[axis + from.sizes.size()];
    require(std::max(before, after) <= to.sizes[axis] && std::min(before, after) >= -from.sizes[axis] &&
            before + after + from.sizes[axis] == to.sizes[axis]);
    axes.push_back(stretches(request.op().mode, from.sizes[axis], before, after));
  }
  pad_axes(request, axes, 0, from, to, out);
}

int64_t block_of(Layout layout) { return is_blocked(layout) ? channel_block(layout) : 0; }

/// The channels that only fill up a padded layout, as [N, padding, spatial...].
Walk padding_walk(const ConcreteType& type) {
  ConcreteType padded = type;
  padded.dims[1] = round_up(type.dims[1], channel_block(type.layout));
  Walk result = walk(padded);
  result.slice(1, type.dims[1], padded.dims[1] - type.dims[1]);
  return result;
}

/// `channels` channels from `first` as [N, blocks, block, spatial...] of a tensor in any layout.
Walk channel_walk(const ConcreteType& type, int64_t first, int64_t channels, int64_t block) {
  if (const int64_t own = block_of(type.layout); own != 0) {
    require(own == block);
    Dims padded = type.dims;
    padded[1] = (padded[1] + block - 1) / block;
    Dims sizes{padded[0], channels >= block ? channels / block : 1, std::min(channels, block)},
        strides = strides_of(padded);
    for (int64_t& stride : strides) stride *= block;
    Walk result{sizes, {strides[0], strides[1], 1}, first / block * strides[1] + first % block};
    for (size_t axis = 2; axis < padded.size(); ++axis)
      result.sizes.push_back(padded[axis]), result.strides.push_back(strides[axis]);
    return result;
  }
  Walk result = walk(type);
  result.slice(1, first, channels);
  result.split(1, std::min(channels, block));
  return result;
}

void plan_reformat(const CopyRequest& request, Copies& out) {
  const ConcreteType &from = request.sources[0].type, &to = request.outputs[0];
  require(from.dims == to.dims);
  const int64_t block = std::max(block_of(from.layout), block_of(to.layout));
  if (block == 0) {
    out.add(walk(from), walk(to));
    if (to.dims.size() < 3 || to.dims[1] % channel_block(to.layout) == 0) return;
    const Walk zeros = padding_walk(to);
    return out.add({zeros.sizes, Dims(zeros.sizes.size(), 0), 0}, zeros, 1);
  }
  require(from.dims.size() >= 3);
  const int64_t channels = from.dims[1], whole = channels / block * block, tail = channels - whole;
  if (whole > 0) out.add(channel_walk(from, 0, whole, block), channel_walk(to, 0, whole, block));
  if (tail == 0) return;
  out.add(channel_walk(from, whole, tail, block), channel_walk(to, whole, tail, block));
  if (block_of(to.layout) == 0) return;
  ConcreteType padded = to;
  padded.dims[1] = whole + block;
  const Walk zeros = channel_walk(padded, whole + tail, block - tail, block);
  out.add({zeros.sizes, Dims(zeros.sizes.size(), 0), 0}, zeros, 1);
}

void plan_operator(const CopyRequest& request, Copies& out) {
  switch (request.op().kind) {
    case CopyKind::identity:
    case CopyKind::flat: return plan_flat(request, out);
    case CopyKind::reformat: return plan_reformat(request, out);
    case CopyKind::transpose: return plan_transpose(request, out);
    case CopyKind::concat: return plan_concat(request, out);
    case CopyKind::split: return plan_split(request, out);
    case CopyKind::slice: return plan_slice(request, out);
    case CopyKind::expand: return plan_expand(request, out);
    case CopyKind::tile: return plan_tile(request, out);
    case CopyKind::pad: return plan_pad(request, out);
    case CopyKind::resize: return plan_resize(request, out);
    case CopyKind::depth_to_space:
    case CopyKind::space_to_depth: return plan_depth(request, out);
    case CopyKind::shuffle: return plan_assembly(request, out);
  }
}

void check_inside(const Dims& sizes, const Dims& strides, int64_t offset, const ConcreteType& type) {
  if (hone::elements(sizes) == 0) return;
  int64_t low = offset, high = offset;
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    int64_t& end = strides[axis] < 0 ? low : high;
    end = checked_add(end, checked_multiply(sizes[axis] - 1, strides[axis]));
  }
  require(low >= 0 && high < type.bytes() / static_cast<int64_t>(size_of(type.dtype)));
}

}  // namespace

Dims CopyRequest::numbers(const std::vector<std::string>& texts) const {
  Dims values;
  for (const std::string& text : texts) values.push_back(Dim::parse(text).evaluate(symbols));
  return values;
}

std::optional<CopyKind> copy_kind(std::string_view op) {
  constexpr std::pair<std::string_view, CopyKind> kKinds[] = {
      {"Reformat", CopyKind::reformat},
      {"Transpose", CopyKind::transpose},
      {"Concat", CopyKind::concat},
      {"Split", CopyKind::split},
      {"Slice", CopyKind::slice},
      {"Expand", CopyKind::expand},
      {"Tile", CopyKind::tile},
      {"Pad", CopyKind::pad},
      {"Resize", CopyKind::resize},
      {"DepthToSpace", CopyKind::depth_to_space},
      {"SpaceToDepth", CopyKind::space_to_depth},
      {"Identity", CopyKind::identity},
      {"View", CopyKind::flat},
      {"Reshape", CopyKind::flat},
      {"Flatten", CopyKind::flat},
      {"Squeeze", CopyKind::flat},
      {"Unsqueeze", CopyKind::flat},
  };
  for (const auto& [name, kind] : kKinds)
    if (name == op) return kind;
  return std::nullopt;
}

std::vector<CopyStep> plan_copies(const CopyRequest& request) {
  require(!request.sources.empty() && !request.outputs.empty() && !request.operators.empty());
  Copies copies;
  if (request.operators.size() > 1) plan_assembly(request, copies);
  else plan_operator(request, copies);
  for (const CopyStep& step : copies.steps) {
    require(step.source < static_cast<int>(request.sources.size()));
    const ConcreteType& from = request.sources[static_cast<size_t>(step.source)].type;
    const ConcreteType& to = request.outputs[static_cast<size_t>(step.destination)];
    require(from.dtype == to.dtype);
    check_inside(step.copy.sizes, step.copy.from, step.copy.from_offset, from);
    check_inside(step.copy.sizes, step.copy.to, step.copy.to_offset, to);
  }
  return std::move(copies.steps);
}

}  // namespace hone
