// SPDX-License-Identifier: Apache-2.0
//
// What inputs hold where no file says it: the numbers that Polygraphy draws, bit for bit, so that files made with either fit both.
// An iteration is drawn from its own seed, its inputs one behind the other from one generator.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tools/companion/narrator.h"
#include "tools/compare/model_face.h"

namespace hone {

struct DrawRange {
  double low = 0, high = 1;
};

struct InputRequest {
  std::map<std::string, Dims> shapes;                      // --input-shapes
  std::map<std::string, DrawRange, std::less<>> ranges;    // --val-range; "" for all that are not named
  std::map<std::string, DrawRange, std::less<>> accepted;  // integers that the network takes, where it says so
  uint32_t seed = 1;
  int64_t iterations = 1;
};

/// NumPy's RandomState of this seed.
class LegacyRandom {
 public:
  explicit LegacyRandom(uint32_t seed) : engine_(seed) {}
  Tensor reals(DType type, const Dims& dims, double low, double high);
  /// Both ends included.
  Tensor integers(DType type, const Dims& dims, int64_t low, int64_t high);

 private:
  uint64_t bounded(uint64_t most, uint64_t mask, size_t bytes);
  std::mt19937 engine_;
  uint32_t held_ = 0;  // the rest of a word that small integers are cut of
  int left_ = 0;
};

/// Where the values of an input come from: a range, or the contents that --input-shapes gives a shape tensor.
struct DrawnInput {
  DrawRange range;
  bool accepted = false;  // the range is what the network takes
  std::optional<Dims> contents;
};
DrawnInput drawn_input(const KnownTensor& input, const InputRequest& request);

/// The sizes that inputs run with; says which became 1. Throws UsageError for names that are none, or sizes that the model does not have.
std::vector<KnownTensor> resolved_inputs(const ModelFace& face, const InputRequest& request, const Narrator& narrator);
/// `tell`: once a run is enough.
TensorList draw_inputs(const std::vector<KnownTensor>& inputs, const InputRequest& request, int64_t iteration,
                       const Narrator& narrator, bool tell);

/// "x:[1,3,'h',4]" or "x:1x3" words; -1 for sizes in quotes. Throws UsageError.
std::map<std::string, Dims> parse_shape_words(std::string_view flag, const std::vector<std::string>& words);
/// "[0,1] x:[5,6]" words.
std::map<std::string, DrawRange, std::less<>> parse_range_words(const std::vector<std::string>& words);
/// "1e-2 m:1e-6": by name, "" for all others.
std::map<std::string, std::string, std::less<>> parse_named_words(const std::vector<std::string>& words);

}  // namespace hone
