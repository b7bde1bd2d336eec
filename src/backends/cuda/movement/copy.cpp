// SPDX-License-Identifier: Apache-2.0
//
// Operators that only move elements, as strided copies (regions/copy_plan.h). A copy is brought to its simplest form: axes in
// the order of the destination, neighbours merged, and elements taken together up to 16 bytes where both sides allow. Copies
// that take as many bytes together share a launch.
#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <span>

#include "backends/cuda/family.h"
#include "backends/cuda/support/divisor.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "regions/copy_request.h"
#include "regions/layout_offers.h"

namespace hone::cuda {
namespace {

constexpr size_t kAxes = 8, kParts = 8;

/// Innermost axis last; axes that are not there have the size 1.
struct Walk {
  static constexpr std::string_view kName = "Walk";
  Divisor sizes[kAxes];
  int32_t from[kAxes] = {}, to[kAxes] = {};
  static void fields(auto& self, auto& visit) {
    visit("sizes", self.sizes);
    visit("from", self.from);
    visit("to", self.to);
  }
};

/// Of parts that are not there: a count of 0, and no block.
struct Parts {
  static constexpr std::string_view kName = "Parts";
  Walk walks[kParts] = {};
  int32_t counts[kParts] = {}, first_block[kParts] = {}, each = 1;
  static void fields(auto& self, auto& visit) {
    visit("walks", self.walks);
    visit("counts", self.counts);
    visit("first_block", self.first_block);
    visit("each", self.each);
  }
};

struct TilesParameters {
  static constexpr std::string_view kKernel = "tiles", kElement = "E";
  Reads from;
  Writes to;
  Walk walk;
  static void fields(auto& self, auto& visit) {
    visit("from", self.from, "E");
    visit("to", self.to, "E");
    visit("walk", self.walk);
  }
};

struct ElementsParameters {
  static constexpr std::string_view kKernel = "elements", kElement = "E";
  TilesParameters common;
  int32_t count = 0, each = 1;
  static void fields(auto& self, auto& visit) {
    TilesParameters::fields(self.common, visit);
    visit("count", self.count);
    visit("each", self.each);
  }
};

struct PiecesParameters {
  static constexpr std::string_view kKernel = "pieces", kElement = "E";
  ElementsParameters common;
  int64_t step = 0;
  static void fields(auto& self, auto& visit) {
    ElementsParameters::fields(self.common, visit);
    visit("step", self.step);
  }
};

struct PartsParameters {
  static constexpr std::string_view kKernel = "parts", kElement = "E";
  std::array<Reads, kParts> from;
  std::array<Writes, kParts> to;
  Parts parts;
  static void fields(auto& self, auto& visit) {
    for (size_t i = 0; i < kParts; ++i) visit("f" + std::to_string(i), self.from[i], "E");
    for (size_t i = 0; i < kParts; ++i) visit("t" + std::to_string(i), self.to[i], "E");
    visit("parts", self.parts);
  }
};

/// Innermost axis last; at least one axis.
StridedCopy simplified(const StridedCopy& copy) {
  std::vector<size_t> order;
  for (size_t axis = 0; axis < copy.sizes.size(); ++axis)
    if (copy.sizes[axis] != 1) order.push_back(axis);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return std::abs(copy.to[a]) > std::abs(copy.to[b]); });
  StridedCopy result{{}, {}, {}, copy.from_offset, copy.to_offset};
  for (const size_t axis : order) {
    const bool merges = !result.sizes.empty() && result.from.back() == copy.from[axis] * copy.sizes[axis] &&
                        result.to.back() == copy.to[axis] * copy.sizes[axis];
    if (merges) {
      result.sizes.back() *= copy.sizes[axis];
      result.from.back() = copy.from[axis];
      result.to.back() = copy.to[axis];
    } else {
      result.sizes.push_back(copy.sizes[axis]);
      result.from.push_back(copy.from[axis]);
      result.to.push_back(copy.to[axis]);
    }
  }
  if (result.sizes.empty()) result.sizes = {1}, result.from = {1}, result.to = {1};
  return result;
}

/// Takes neighbours together: returns the bytes of what is then one element.
size_t widen(StridedCopy& copy, size_t element) {
  const auto divisible = [&](int64_t by) {
    bool fits = copy.from.back() == 1 && copy.to.back() == 1 && copy.sizes.back() % by == 0 &&
                copy.from_offset % by == 0 && copy.to_offset % by == 0;
    for (size_t axis = 0; axis + 1 < copy.sizes.size(); ++axis)
      fits &= copy.from[axis] % by == 0 && copy.to[axis] % by == 0;
    return fits;
  };
  for (size_t bytes = 16; bytes > element; bytes /= 2) {
    const auto by = static_cast<int64_t>(bytes / element);
    if (!divisible(by)) continue;
    copy.sizes.back() /= by;
    copy.from_offset /= by;
    copy.to_offset /= by;
    for (size_t axis = 0; axis + 1 < copy.sizes.size(); ++axis) copy.from[axis] /= by, copy.to[axis] /= by;
    return bytes;
  }
  return element;
}

/// Puts the axis that is innermost in the source before the last one; false when tiles would not pay.
bool arrange_tiles(StridedCopy& copy) {
  const size_t last = copy.sizes.size() - 1;
  if (copy.sizes.size() < 2 || copy.to[last] != 1 || copy.from[last] == 1 || copy.sizes[last] < 8) return false;
  for (size_t axis = 0; axis < last; ++axis) {
    if (copy.from[axis] != 1 || copy.sizes[axis] < 8) continue;
    for (Dims* list : {&copy.sizes, &copy.from, &copy.to})
      std::rotate(list->begin() + static_cast<std::ptrdiff_t>(axis),
                  list->begin() + static_cast<std::ptrdiff_t>(axis) + 1,
                  list->begin() + static_cast<std::ptrdiff_t>(last));
    return true;
  }
  return false;
}

Walk walk_of(const StridedCopy& copy) {
  HONE_CHECK(copy.sizes.size() <= kAxes, "a copying kernel walks {} axes", copy.sizes.size());
  Walk walk;
  const size_t shift = kAxes - copy.sizes.size();
  for (size_t axis = 0; axis < copy.sizes.size(); ++axis) {
    HONE_CHECK(std::abs(copy.from[axis]) < int64_t{1} << 31 && std::abs(copy.to[axis]) < int64_t{1} << 31,
               "a copying kernel's strides are too large");
    walk.sizes[shift + axis] = Divisor(copy.sizes[axis]);
    walk.from[shift + axis] = static_cast<int32_t>(copy.from[axis]);
    walk.to[shift + axis] = static_cast<int32_t>(copy.to[axis]);
  }
  return walk;
}

constexpr int64_t kMostOfPiece = 4;

/// A few elements that lie side by side on one side of a copy and a step apart on the other.
struct Piece {
  int64_t elements = 1, step = 0;
  bool in_source = false;
};

/// Takes the axis of such pieces out of the copy; of one element where there is none.
Piece take_piece(StridedCopy& copy, size_t bytes) {
  for (size_t axis = 0; axis < copy.sizes.size() && copy.sizes.size() > 1; ++axis) {
    const int64_t size = copy.sizes[axis];
    const bool in_source = copy.from[axis] == 1 && copy.to[axis] != 1;
    const bool in_destination = copy.to[axis] == 1 && copy.from[axis] != 1;
    if ((size != 2 && size != kMostOfPiece) || bytes > 4 || in_source == in_destination) continue;
    const Dims& strides = in_source ? copy.from : copy.to;
    bool whole = (in_source ? copy.from_offset : copy.to_offset) % size == 0;
    for (size_t other = 0; other < strides.size(); ++other) whole &= other == axis || strides[other] % size == 0;
    if (!whole) continue;
    const Piece piece{size, in_source ? copy.to[axis] : copy.from[axis], in_source};
    for (Dims* list : {&copy.sizes, &copy.from, &copy.to})
      list->erase(list->begin() + static_cast<std::ptrdiff_t>(axis));
    return piece;
  }
  return {};
}

/// A copy in its simplest form, of elements of so many bytes.
struct Part {
  StridedCopy copy;
  size_t bytes;
  int64_t source, destination, count;  // a source as CopySource counts them
  bool tiles;

  Part(const CopyStep& step, const CopySource& read)
      : copy(simplified(step.copy)),
        bytes(widen(copy, size_of(read.type.dtype))),
        source(read.index),
        destination(step.destination),
        count(elements(copy.sizes)),
        tiles(arrange_tiles(copy)) {
    HONE_CHECK(count < int64_t{1} << 31, "a copying kernel moves {} elements", count);
    const size_t last = copy.sizes.size() - 1;
    if (tiles) tiles = blocks_of(copy.sizes[last - 1], 32) < 65536 && planes() < 65536;
  }
  /// Whether neighbours on either side of tiles can go in twos.
  bool in_pairs() const {
    bool even = bytes == 2 && copy.from_offset % 2 == 0 && copy.to_offset % 2 == 0;
    for (size_t axis = 0; axis < copy.sizes.size(); ++axis) {
      const size_t behind = copy.sizes.size() - axis;  // 1: innermost in the destination, 2: in the source
      if (behind <= 2) even &= copy.sizes[axis] % 2 == 0;
      even &= (behind == 2 || copy.from[axis] % 2 == 0) && (behind == 1 || copy.to[axis] % 2 == 0);
    }
    return even;
  }
  int64_t planes() const { return count / copy.sizes.back() / copy.sizes[copy.sizes.size() - 2]; }
  Reads from() const {
    const int64_t offset = copy.from_offset * static_cast<int64_t>(bytes);
    return source >= 0 ? input(source, offset) : constant(-1 - source, offset);
  }
  Writes to() const { return output(destination, copy.to_offset * static_cast<int64_t>(bytes)); }
};

constexpr unsigned kThreads = 256;
constexpr int64_t kMostEach = 4;  // elements of a thread

/// Several where that leaves every processor enough threads.
int64_t each_of(const LoadContext& context, int64_t count) { return context.fills(count / kMostEach) ? kMostEach : 1; }

GridLaunch launch_one(const LoadContext& context, const Part& part) {
  const Module& module = *context.module;
  const std::string variant = fmt::format("_{}", part.bytes);
  StridedCopy copy = part.copy;
  Piece piece;
  if (!part.tiles && context.fills(part.count / kMostOfPiece)) piece = take_piece(copy, part.bytes);
  const TilesParameters ends{.from = part.from(), .to = part.to(), .walk = walk_of(copy)};
  if (part.tiles) {
    const Dims& sizes = copy.sizes;
    const bool pairs = part.in_pairs() && context.fills(part.count / 8);
    const int64_t tile = pairs ? 64 : 32;
    const Blocks blocks{{blocks_of(sizes.back(), tile), blocks_of(sizes[sizes.size() - 2], tile), part.planes()},
                        kThreads};
    return launch_of(module, ends, blocks, pairs ? variant + "_pairs" : variant);
  }
  const int64_t count = part.count / piece.elements, each = each_of(context, count);
  const ElementsParameters common{ends, static_cast<int32_t>(count), static_cast<int32_t>(each)};
  const Blocks blocks{{blocks_of(count, kThreads * each)}, kThreads};
  if (piece.elements == 1) return launch_of(module, common, blocks, variant);
  return launch_of(module, PiecesParameters{common, piece.step}, blocks,
                   fmt::format("{}_{}_{}", variant, piece.elements, piece.in_source ? "from" : "to"));
}

/// Up to kParts copies of equally large elements; whatever has to be there for the others repeats the first one's pointers.
GridLaunch launch_several(const LoadContext& context, std::span<const Part* const> list) {
  PartsParameters parameters;
  int64_t blocks = 0, count = 0;
  for (const Part* part : list) count += part->count;
  const int64_t each = each_of(context, count);
  parameters.parts.each = static_cast<int32_t>(each);
  for (size_t i = 0; i < kParts; ++i) {
    const Part& part = i < list.size() ? *list[i] : *list[0];
    parameters.from[i] = part.from();
    parameters.to[i] = part.to();
    if (i >= list.size()) continue;
    parameters.parts.walks[i] = walk_of(part.copy);
    parameters.parts.counts[i] = static_cast<int32_t>(part.count);
    parameters.parts.first_block[i] = static_cast<int32_t>(blocks);
    blocks += blocks_of(part.count, kThreads * each);
  }
  return launch_of(*context.module, parameters, {{blocks}, kThreads}, fmt::format("_{}", list[0]->bytes));
}

std::vector<GridLaunch> launches_of(const LoadContext& context, const std::vector<Part>& parts) {
  std::vector<GridLaunch> launches;
  std::map<size_t, std::vector<const Part*>> by_bytes;
  for (const Part& part : parts) {
    if (part.tiles) launches.push_back(launch_one(context, part));
    else by_bytes[part.bytes].push_back(&part);
  }
  for (const auto& [bytes, list] : by_bytes)
    for (size_t first = 0; first < list.size(); first += kParts) {
      const std::span<const Part* const> group = std::span(list).subspan(first, std::min(kParts, list.size() - first));
      launches.push_back(group.size() == 1 ? launch_one(context, *group[0]) : launch_several(context, group));
    }
  return launches;
}

struct CopyFamily {
  static constexpr std::string_view kName = "copy";
  static constexpr int kVersion = 5;
  using Params = NoParams;
  using Code = CopyCode;

  static void propose(const Problem& problem, Candidates& out) { offer_copies(problem, "cuda", out); }

  static Built<Code> generate(const Problem& problem, const std::string&, const Params&, const Tactic&) {
    Built<Code> built;
    const std::string reason = read_copy(problem, built.code, built.constants);
    HONE_ASSERT(reason.empty(), "refused after all: {}", reason);
    built.source = fmt::format("#define AXES {}\n#define PARTS {}\n#define MOST_EACH {}\n", kAxes, kParts, kMostEach) +
                   declare<ElementsParameters, PartsParameters, PiecesParameters, TilesParameters>() +
                   kernels::division + kernels::copy;
    return built;
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    require_constants(context.shapes, copy_constants(code, context.shapes));
    const CopyRequest request = copy_request(code, context.shapes);
    std::vector<Part> parts;
    for (const CopyStep& step : plan_copies(request))
      if (elements(step.copy.sizes) != 0) parts.emplace_back(step, request.sources[static_cast<size_t>(step.source)]);
    return std::make_shared<GridKernel>(context.module, launches_of(context, parts));
  }
};

}  // namespace

const CudaTactic tactics::copy = describe<CopyFamily>();

}  // namespace hone::cuda
