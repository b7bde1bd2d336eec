// SPDX-License-Identifier: Apache-2.0
//
// What the families that multiply on tensor cores read in a region: a convolution of one group, channels last, or matmuls of one
// input; operands as floats of 16 bits or as codes. Its weights, and the text that stands before their sources.
#pragma once

#include <array>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "backends/cuda/conv/filters.h"
#include "backends/cuda/support/parameters.h"
#include "ops/weight_codes.h"

namespace hone::cuda {

inline constexpr int64_t kMostMatmuls = 4;

/// The weight's sizes as a matmul sees them.
struct Filters {
  int64_t count, taps, channels;
};

struct Images {
  static constexpr std::string_view kName = "Images";
  int32_t pixels = 0, in_h = 1, in_w = 1, out_h = 1, out_w = 1;
  static void fields(auto& self, auto& visit) {
    visit("pixels", self.pixels);
    visit("in_h", self.in_h);
    visit("in_w", self.in_w);
    visit("out_h", self.out_h);
    visit("out_w", self.out_w);
  }
};

/// What both kernels finish a sum with: of each matmul a result. Factors are what sums of codes are multiplied by and, where the
/// operand's zero point is no code of 0, what is added to them then, one of each a filter.
struct FinishParameters {
  EpilogueReads epilogue;
  Reads factors;
  std::array<Writes, kMostMatmuls> y;
  static void fields(auto& self, auto& visit) {
    EpilogueReads::fields(self.epilogue, visit);
    visit("factors", self.factors, "float");
    for (size_t i = 0; i < self.y.size(); ++i) visit("y" + std::to_string(i), self.y[i], "Result");
  }
};

/// The convolution, or the matmuls of one input.
struct Anchors {
  explicit Anchors(const Graph& region);
  bool found() const { return conv || !linears.empty(); }
  const RegionMatch& match() const { return conv ? conv->match : linears[0].match; }
  const Node& node() const { return *match().anchor; }
  const Decoding& coding() const { return match().operand_codes; }
  bool coded() const { return static_cast<bool>(coding()); }
  DType floats() const { return node().output()->type.dtype; }
  /// The type of both operands, and whether sums of them are integers.
  DType multiplied() const { return coded() ? coding().codes : floats(); }
  bool sums_integers() const { return multiplied() == DType::i8; }
  /// Operands of 16 bytes, and how many of them rows of channels let be fetched at once.
  int64_t piece() const { return coded() ? kCodesAtOnce : 8; }
  int64_t unit() const { return std::gcd(filters().channels, piece()); }
  const EpilogueCode& epilogue() const { return conv ? conv->code.epilogue : linears[0].code.epilogue; }
  /// Whether a row of the image is read as one of wider pixels.
  bool patches() const;
  /// Of the image that the kernel takes for one.
  int64_t pixel() const { return patches() ? conv->window.kernel[1] : 1; }
  int64_t matmuls() const { return conv ? 1 : static_cast<int64_t>(linears.size()); }
  /// Of one of the matmuls.
  Filters filters() const;
  /// Rows of the result.
  int64_t pixels() const;
  Layout layout() const { return conv ? Layout::channels_last : Layout::linear; }

  std::optional<ConvRegion> conv;
  std::vector<LinearRegion> linears;  // none where it is a convolution
};

/// What load() of either family needs, besides its choice.
struct GemmCode {
  int64_t x = 0, filters = 1;  // of all matmuls
  bool images = false;
  int64_t pixel = 1;   // of the image that the kernel takes for one
  bool coded = false;  // operand and weights are codes
  EpilogueCode epilogue;
  std::vector<double> numbers = {};
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, 0, kMostOperands - 1);
    visit("filters", self.filters, 1, kMostSize);
    visit("images", self.images);
    visit("pixel", self.pixel, 1, kMostSize);
    visit("coded", self.coded);
    EpilogueCode::fields(self.epilogue, visit);
    visit("numbers", self.numbers, StepNumbers::kMost);
  }
};
GemmCode gemm_code(const Problem& problem, const Anchors& anchors);

/// Why tensor cores do not multiply this; empty where they do.
std::string reason_against_anchors(const Problem& problem, const Anchors& anchors);
/// [filter][tap][channel] of all matmuls, of codes where the operand is codes; their bias where there is one; and what sums of codes are
/// multiplied by, one of each filter, with what is added to them then.
std::vector<Tensor> constants_for(const Anchors& anchors);

/// Sizes of the window as switches: always two spatial axes.
std::string window_text(const Anchors& anchors);
/// What the multiplying instructions call their types, in C++ and in their names.
std::string types_text(const Anchors& anchors);
/// The images at concrete sizes of operand and result, and the results with what finishes them. Both throw Error where the plan's
/// tensors are not such.
Images images_of(const GemmCode& code, const LoadContext& context);
FinishParameters finish_parameters(const GemmCode& code, const LoadContext& context);

}  // namespace hone::cuda
