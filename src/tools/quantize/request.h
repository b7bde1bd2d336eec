// SPDX-License-Identifier: Apache-2.0
//
// What the command line of `hone quantize` asks for.
#pragma once

#include <optional>
#include <string>

#include "quantize/clipping.h"
#include "tensor/scale.h"
#include "tools/common/friendly.h"

namespace hone {

/// int8 and fp8: activations and weights, or weights alone. int4: weights of matmuls by blocks. fp16 and bf16: all that can be.
enum class QuantizeMode { int8, int4, fp8, fp16, bf16 };

/// How weights in 4 bits are fitted to what they are multiplied by: the range of each block; a factor for each channel of the activation;
/// both.
enum class Awq { off, clip, lite, full };

struct QuantizeRequest {
  /// Throws Error for what contradicts.
  explicit QuantizeRequest(const FriendlyLine& line);

  std::string model, data, cache;         // read
  std::string out, new_cache, keep_list;  // written
  QuantizeMode mode = QuantizeMode::int8;
  Clipping clipping;
  Codes codes = Codes::symmetric;
  bool weights_only = false;  // int4 always is
  int64_t block = 128;
  Awq awq = Awq::clip;
  bool feeds_back = false;  // GPTQ
  bool equalizes = false, corrects_biases = false;
  std::optional<double> smooth;  // the activations' share
  bool keeps_io = false;
  bool ranks = false, verifies = false;
  std::optional<double> budget, threshold;
  std::string metric = "cosine_similarity";

  bool to_few_bits() const { return mode == QuantizeMode::fp16 || mode == QuantizeMode::bf16; }
  bool clips() const { return awq == Awq::clip || awq == Awq::full; }
  bool scales_channels() const { return awq == Awq::lite || awq == Awq::full; }
  std::string mode_text() const;

 private:
  void read_mode(const FriendlyLine& line);
  void read_blocks(const FriendlyLine& line);
  void read_balancing(const FriendlyLine& line);
  void read_analysis(const FriendlyLine& line);
  void refuse_contradictions() const;
};

}  // namespace hone
