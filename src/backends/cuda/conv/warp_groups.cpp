// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/conv/warp_groups.h"

#include <algorithm>

#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"

namespace hone::cuda {
namespace {

int64_t size_of_codes_or(DType floats, bool codes) { return codes ? 1 : static_cast<int64_t>(size_of(floats)); }

/// What all that is added up is multiplied by, where it is held in steps of the result: integers, and codes.
std::optional<float> steps_per_one(const Anchors& anchors) {
  if (!anchors.sums_integers() || (anchors.epilogue().residual >= 0 && !anchors.match().residual_codes))
    return std::nullopt;
  return codes_per_one(anchors.match());
}

Tensor multiplied(const Tensor& values, float factor) {
  std::vector<float> products(values.data<float>().begin(), values.data<float>().end());
  for (float& value : products) value *= factor;
  return Tensor::of<float>(values.dims(), std::span<const float>(products));
}

}  // namespace

int64_t result_bytes(const Anchors& anchors) { return size_of_codes_or(anchors.floats(), anchors.match().encodes); }

int64_t added_bytes(const Anchors& anchors) {
  return size_of_codes_or(anchors.floats(), static_cast<bool>(anchors.match().residual_codes));
}

bool stores_whole_rows(const Anchors& anchors) { return anchors.filters().count * result_bytes(anchors) % 16 == 0; }

bool has_whole_rows(const Anchors& anchors) {
  return anchors.filters().count * std::min(result_bytes(anchors), added_bytes(anchors)) % 16 == 0;
}

int64_t bytes_through(const Anchors& anchors) { return stores_whole_rows(anchors) ? 0 : 16 * 64; }

std::string reason_against_ends(const Anchors& anchors) {
  if (anchors.epilogue().residual < 0) return {};
  if (!has_whole_rows(anchors)) return fmt::format("sums with rows of {}", anchors.filters().count);
  return anchors.matmuls() > 1 ? "several matmuls, and a sum" : "";
}

bool has_warp_groups(const Problem& problem) {
  return std::ranges::all_of(architectures_of(problem), [](const std::string& name) { return name == "sm_90"; });
}

std::string instruction_text(std::string_view function, int64_t columns, const Anchors& anchors,
                             std::string_view places) {
  const bool integers = anchors.sums_integers(), sparse = !places.empty();
  const std::string_view type = integers ? "s8" : type_name(anchors.multiplied());
  const int64_t sums = columns / 2;
  std::string list, operands;
  for (int64_t i = 0; i < sums; ++i) {
    list += fmt::format("{}%{}", i == 0 ? "" : ", ", i);
    operands += fmt::format("{}\"+{}\"(c[{}][{}])", i == 0 ? "" : ", ", integers ? 'r' : 'f', i / 4, i % 4);
  }
  const std::string types =
      fmt::format("k{0}.{1}.{2}.{2}", anchors.coded() || sparse ? 32 : 16, integers ? "s32" : "f32", type);
  const std::string name = fmt::format("adds_{}_{}{}{}", type, columns, sparse ? "_sparse" : "", places);
  return fmt::format(
      "static inline void {9}(Sum (*c)[4], unsigned long long a, unsigned long long b{10}) {{\n  asm volatile("
      "\"{{.reg .pred {0}; setp.ne.b32 {0}, %{1}, 0; wgmma.mma_async{11}.sync.aligned.m64n{2}{3} {{{4}}}, %{5}, %{6}, "
      "{12}{0}{7};}}\""
      " : {8} : \"l\"(a), \"l\"(b), \"r\"(1){13});\n}}\n",
      name, sums + 2, columns, types, list, sums, sums + 1,
      integers          ? ""
      : anchors.coded() ? ", 1, 1"
                        : ", 1, 1, 0, 0",
      operands, function, sparse ? ", unsigned places" : "", sparse ? ".sp" : "",
      sparse ? fmt::format("%{}, {}, ", sums + 3, places) : "", sparse ? ", \"r\"(places)" : "");
}

void finish_in_steps(const Anchors& anchors, std::vector<Tensor>& constants) {
  const std::optional<float> per_one = steps_per_one(anchors);
  if (!per_one) return;
  for (Tensor& ends : std::span(constants).subspan(1)) ends = multiplied(ends, *per_one);
}

std::string ends_text(const Anchors& anchors, const GemmCode& code) {
  return fmt::format("#define WHOLE_ROWS {:d}\n", stores_whole_rows(anchors)) +
         epilogue_text(anchors.match(), code.epilogue) +
         unrounded_text(anchors.match(), steps_per_one(anchors).has_value()) + kernels::ends;
}

int64_t blocks_that_stay(const GridLaunch& launch, int64_t cluster, int64_t tiles, const LoadContext& context) {
  // No more than run at once, or the others would begin when these have done their share.
  const int64_t known = cluster > 1 ? clusters_at_once(launch, cluster) : 0;
  const int64_t at_once = known > 0 ? known : std::max<int64_t>(context.processors / cluster, 1);
  return cluster * std::min(tiles, at_once);
}

}  // namespace hone::cuda
