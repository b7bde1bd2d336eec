// SPDX-License-Identifier: Apache-2.0
//
// Operators that only move elements, as strided copies (regions/copy_plan.h). A copy is brought to its simplest form: axes in
// the order of the destination, neighbours merged, and elements taken together up to 16 bytes where both sides allow.
#include <algorithm>
#include <numeric>

#include "backends/cuda/kernels/embedded.h"
#include "backends/cuda/tactics/source_text.h"
#include "backends/regions/copy_request.h"
#include "backends/regions/layout_offers.h"

namespace hone::cuda {
namespace {

constexpr size_t kAxes = 8;
struct WalkArgument {
  int32_t sizes[kAxes], from[kAxes], to[kAxes];
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

WalkArgument walk_argument(const StridedCopy& copy) {
  HONE_CHECK(copy.sizes.size() <= kAxes, "a copying kernel walks {} axes", copy.sizes.size());
  WalkArgument walk{};
  std::fill(std::begin(walk.sizes), std::end(walk.sizes), 1);
  const size_t shift = kAxes - copy.sizes.size();
  for (size_t axis = 0; axis < copy.sizes.size(); ++axis) {
    HONE_CHECK(std::abs(copy.from[axis]) < int64_t{1} << 31 && std::abs(copy.to[axis]) < int64_t{1} << 31,
               "a copying kernel's strides are too large");
    walk.sizes[shift + axis] = static_cast<int32_t>(copy.sizes[axis]);
    walk.from[shift + axis] = static_cast<int32_t>(copy.from[axis]);
    walk.to[shift + axis] = static_cast<int32_t>(copy.to[axis]);
  }
  return walk;
}

GridLaunch launch_of(const Module& module, const StridedCopy& plan, size_t element, int64_t source,
                     int64_t destination) {
  StridedCopy copy = simplified(plan);
  const size_t bytes = widen(copy, element);
  const int64_t count = elements(copy.sizes);
  HONE_CHECK(count < int64_t{1} << 31, "a copying kernel moves {} elements", count);
  GridLaunch launch;
  const int64_t from_bytes = copy.from_offset * static_cast<int64_t>(bytes),
                to_bytes = copy.to_offset * static_cast<int64_t>(bytes);
  launch.arguments.place(source, from_bytes).output(destination, to_bytes);
  const bool tiles = arrange_tiles(copy);
  launch.arguments.value(walk_argument(copy));
  launch.function = module.function(fmt::format("{}_{}", tiles ? "tiles" : "elements", bytes));
  if (tiles) {
    const size_t last = copy.sizes.size() - 1;
    launch.grid = {blocks_of(copy.sizes[last], 32), blocks_of(copy.sizes[last - 1], 32),
                   count / copy.sizes[last] / copy.sizes[last - 1]};
    if (launch.grid.y < 65536 && launch.grid.z < 65536) return launch;
    launch.function = module.function(fmt::format("elements_{}", bytes));
  }
  launch.arguments.value(static_cast<int32_t>(count));
  launch.block = 256;
  launch.grid = {blocks_of(std::max<int64_t>(count, 1), launch.block), 1, 1};
  return launch;
}

void propose(const Problem& problem, Candidates& out) { offer_copies(problem, "cuda", out); }

Generated generate(const Problem& problem, const std::string&, const Tactic&) {
  Generated result;
  const std::string reason = read_copy(problem, result.attrs, result.constants);
  HONE_ASSERT(reason.empty(), "refused after all: {}", reason);
  result.source = kernels::copy;
  return result;
}

std::shared_ptr<const CudaKernel> load(const LoadContext& context) {
  const CopyRequest request = copy_request(context.attrs, context.shapes);
  std::vector<GridLaunch> launches;
  for (const CopyStep& step : plan_copies(request)) {
    const CopySource& source = request.sources[static_cast<size_t>(step.source)];
    if (elements(step.copy.sizes) != 0)
      launches.push_back(
          launch_of(*context.module, step.copy, size_of(source.type.dtype), source.index, step.destination));
  }
  return std::make_shared<GridKernel>(context.module, std::move(launches));
}

}  // namespace

const CudaTactic tactics::copy = {"copy", propose, generate, load};

}  // namespace hone::cuda
