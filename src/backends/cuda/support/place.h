// SPDX-License-Identifier: Apache-2.0
//
// Where a kernel finds an operand, as its code in a plan says: among the region's inputs, among its own constants, or nowhere.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "backends/cuda/run/kernel.h"
#include "device/tactic.h"
#include "regions/operand_code.h"

namespace hone::cuda {

enum class PlaceKind { none, input, constant };
constexpr std::array<std::string_view, 3> field_names(PlaceKind) { return {"none", "input", "constant"}; }

struct Place {
  PlaceKind kind = PlaceKind::none;
  int64_t index = 0;

  static constexpr int64_t kMost = 1 << 16;  // operands of a kernel
  /// Of the operand `name`.
  static void fields(auto& self, auto& visit, const std::string& name) {
    visit(name, self.kind);
    visit(name + "_index", self.index, 0, kMost - 1);
  }
  bool given() const { return kind != PlaceKind::none; }
  /// The pointer of a launch; null where the operand is not given. `bytes` behind its start.
  Reads pointer(int64_t bytes = 0) const;
};

enum class GivenKind { input, constant };
constexpr std::array<std::string_view, 2> field_names(GivenKind) { return {"input", "constant"}; }

/// Of an operand that a kernel cannot do without: a code cannot say that there is none.
struct GivenPlace : Place {
  GivenPlace(const Place& place = {PlaceKind::input, 0}) : Place(place) {}  // NOLINT: what place_of() gives becomes one
  static void fields(auto& self, auto& visit, const std::string& name) {
    GivenKind given = self.kind == PlaceKind::constant ? GivenKind::constant : GivenKind::input;
    visit(name, given);
    if constexpr (!std::is_const_v<std::remove_reference_t<decltype(self)>>)
      self.kind = given == GivenKind::constant ? PlaceKind::constant : PlaceKind::input;
    visit(name + "_index", self.index, 0, kMost - 1);
  }
};

/// Where a value of the region is found; a constant is appended to `constants`. A null value is nowhere.
Place place_of(const Problem& problem, const Value* value, std::vector<Tensor>& constants);

/// The same of an operand in a typed region's code.
Place place_of(const OperandCode& operand);

/// Which result of the region a kernel writes, -1 where nobody reads it; and its pointer.
int64_t result_of(const Problem& problem, const Value* value);
Writes result_pointer(int64_t result);

}  // namespace hone::cuda
