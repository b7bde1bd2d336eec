// SPDX-License-Identifier: Apache-2.0
//
// ConvInteger with one filter per channel, its sums exact. Rows are shared out in blocks of channels. Weights with zero points of
// their own are kept less those, as words.
//
// Where windows follow each other without a stride, and the channels fill no whole blocks, several pixels side by side are taken
// for one of as many channels more: of 24 channels 8 pixels fill 3 blocks of 64.
#include <algorithm>
#include <numeric>

#include "backends/cpu/quant/depthwise_row.h"
#include "backends/cpu/quant/integer_convolution.h"
#include "backends/cpu/quant/integer_pack.h"
#include "backends/cpu/quant/integer_weights.h"
#include "base/checked.h"

namespace hone::cpu {
namespace {

constexpr int64_t kMostTaps = 256;           // whose code is written out
constexpr int64_t kMostBlocksOfPixels = 16;  // that are taken for one

struct DepthwiseChoice {
  bool bytes = false;  // four taps at once (VNNI), or two as words
  static void fields(auto& self, auto& visit) { visit("bytes", self.bytes); }
  IntegerDot dot() const { return bytes ? IntegerDot::bytes : IntegerDot::words; }
};

struct IntegerDepthwiseCode {
  IntegerConvCode region;
  DepthwiseChoice choice;
  static void fields(auto& self, auto& visit) {
    IntegerConvCode::fields(self.region, visit);
    DepthwiseChoice::fields(self.choice, visit);
  }
};

IntegerSums sums_of(const IntegerConvCode& code) {
  return {.input = code.conv.input, .column_zeros = false, .epilogue = code.conv.epilogue, .sums = code.sums};
}

/// A as one group of all channels, in bytes: what is packed.
IntegerShape packed_shape(IntegerShape shape) {
  shape.depth = std::exchange(shape.groups, 1);
  shape.columns = shape.depth;
  return shape;
}
constexpr IntegerConfig kBytes{IntegerDot::bytes, 1, 1};

int64_t steps_of(const IntegerShape& shape, IntegerDot dot) { return (shape.taps() + step_of(dot) - 1) / step_of(dot); }
/// Pixels that are taken for one.
int64_t pixels_together(const IntegerShape& shape, Isa isa) {
  const int64_t channels = std::lcm(shape.groups, depthwise_block(isa));
  const bool follow = shape.strides.back() == 1 && shape.groups % kStepBytes == 0;
  return follow && channels <= kMostBlocksOfPixels * depthwise_block(isa) ? channels / shape.groups : 1;
}
int64_t padded_channels(const IntegerShape& shape, Isa isa) {
  return round_up(shape.groups * pixels_together(shape, isa), depthwise_block(isa));
}

/// The order of the sums.
ColumnOrder in_quarters(const IntegerShape& shape, Isa isa) {
  const int64_t block = depthwise_block(isa);
  return {shape.groups, padded_channels(shape, isa),
          [=](int64_t c) { return c / block * block + depthwise_place(c % block, isa); }, pixels_together(shape, isa)};
}

template <typename T>
Tensor packed_weights(const SignedWeights& weights, const IntegerShape& shape, IntegerDot dot, Isa isa) {
  const ColumnOrder order = in_quarters(shape, isa);
  const int64_t block = depthwise_block(isa), step = step_of(dot), row = steps_of(shape, dot) * step;
  TensorBuilder builder(sizeof(T) == 1 ? DType::i8 : DType::i16, {order.padded, row});
  const std::span<T> to = builder.data<T>();
  std::ranges::fill(to, T{0});
  for (int64_t c = 0; c < order.columns * order.copies; ++c)
    for (int64_t tap = 0; tap < weights.taps; ++tap) {
      const int64_t place = order.place(c), at = (tap / step * block + place % block) * step + tap % step;
      to[static_cast<size_t>(place / block * block * row + at)] =
          static_cast<T>(weights.values[static_cast<size_t>(c % order.columns * weights.taps + tap)]);
    }
  return builder.finish();
}

/// Whether the window's taps, whose places are written into the code, are within reach of a pixel.
bool within_reach(const IntegerShape& shape) {
  const int64_t pixel = round_up(shape.groups, kStepBytes),
                row = checked_multiply(pixel, shape.span(shape.in.size() - 1)),
                rows = shape.in.size() == 1 ? 1 : shape.filter[0] * shape.dilations[0];
  return shape.taps() <= kMostTaps && checked_multiply(row, rows) < INT32_MAX &&
         checked_multiply(pixel, shape.strides.back()) < INT32_MAX;
}

class IntegerDepthwise final : public CpuKernel {
 public:
  IntegerDepthwise(const IntegerDepthwiseCode& code, const IntegerShape& shape, const KernelShapes& shapes, Isa isa)
      : s_(shape),
        conv_(code.region.conv),
        sums_(code.region.sums),
        places_(sums_of(code.region)),
        pack_(packed_shape(shape), kBytes, IntegerPack::Copy::always),
        signed_zero_(sums_.zero_input >= 0 && shapes.inputs[static_cast<size_t>(sums_.zero_input)].dtype == DType::i8),
        block_(depthwise_block(isa)),
        together_(pixels_together(shape, isa)),
        blocks_(ceil_divide(shape.groups * together_, block_)),
        left_(shape.out.back() % together_ * shape.groups),
        steps_(steps_of(shape, code.choice.dot())),
        result_bytes_(static_cast<int64_t>(size_of(shapes.outputs[0].dtype))) {
    size_t offsets[2] = {};
    const int64_t some = (together_ > 1 ? left_ : s_.groups) % block_;
    emitter_ = Emitter::generate(isa, [&](Emitter& e) {
      for (const int partial : {0, 1})
        offsets[partial] = emit_depthwise_row(e, spec_of(code.choice.dot(), partial != 0 && some != 0 ? some : block_));
    });
    for (const int partial : {0, 1}) rows_[partial] = emitter_->entry<DepthwiseRowFunction>(offsets[partial]);
  }

  size_t workspace_bytes() const override { return static_cast<size_t>(base_bytes() + pack_.bytes() + block_); }
  int phases() const override { return 2; }

  void run(int phase, int worker, int workers, const Bindings& bindings) const override {
    if (phase == 1) return convolve(worker, workers, bindings);
    begin_sums(worker, workers, bindings);
    pack_.run(0, worker, workers, static_cast<const std::byte*>(bindings.inputs[static_cast<size_t>(conv_.input)]),
              zero(bindings), packed(bindings));
  }

 private:
  template <typename T>
  static const T* constant(const Bindings& bindings, int place) {
    return place < 0 ? nullptr : static_cast<const T*>(bindings.constants[static_cast<size_t>(place)]);
  }
  int64_t base_bytes() const { return sums_.zero_input < 0 ? 0 : blocks_ * block_ * 4; }
  std::byte* packed(const Bindings& bindings) const {
    return static_cast<std::byte*>(bindings.workspace) + base_bytes();
  }
  int64_t zero(const Bindings& bindings) const { return zero_point(sums_, signed_zero_, bindings) + kBytes.added(s_); }

  void begin_sums(int worker, int workers, const Bindings& bindings) const {
    if (sums_.zero_input < 0) return;
    const auto *base = constant<uint32_t>(bindings, places_.base), *leans = constant<uint32_t>(bindings, places_.leans);
    auto* to = static_cast<uint32_t*>(bindings.workspace);
    const auto z = static_cast<uint32_t>(zero(bindings));
    const Share share = share_of(blocks_ * block_, worker, workers);
    for (int64_t j = share.begin; j < share.end; ++j) to[j] = base[j] + z * leans[j];
  }

  void convolve(int worker, int workers, const Bindings& bindings) const {
    const auto* base = sums_.zero_input < 0 ? constant<int32_t>(bindings, places_.base)
                                            : static_cast<const int32_t*>(bindings.workspace);
    const auto* weights = constant<std::byte>(bindings, places_.weights);
    const auto *given = sums_.factor_input < 0
                            ? nullptr
                            : static_cast<const float*>(bindings.inputs[static_cast<size_t>(sums_.factor_input)]),
               *factor = given != nullptr ? given : constant<float>(bindings, places_.factor),
               *bias = constant<float>(bindings, places_.bias);
    const Share share = share_of(s_.images * pack_.rows() * blocks_, worker, workers);
    for (int64_t item = share.begin; item < share.end; ++item) {
      const int64_t row = item / blocks_, block = item % blocks_, channel = block * block_;
      DepthwiseRowArgs args{.src = packed(bindings) + pack_.place(row, 0) + channel,
                            .dst = static_cast<std::byte*>(bindings.outputs[0]) +
                                   (row * s_.out.back() * s_.groups + channel) * result_bytes_,
                            .weights = weights + channel * steps_ * kStepBytes,
                            .base = base + channel,
                            .factor = sums_.factor == Factor::columns ? factor + channel : factor,
                            .bias = bias == nullptr ? nullptr : bias + channel,
                            .pixels = s_.out.back()};
      if (together_ > 1) convolve_together(args, channel);
      else rows_[block == blocks_ - 1 ? 1 : 0](&args);
    }
  }

  /// A row of pixels that are taken together; what is left of it at its end fills the first blocks, and a part of the next.
  void convolve_together(DepthwiseRowArgs args, int64_t channel) const {
    const int64_t whole = s_.out.back() / together_, more = channel + block_ <= left_ ? 1 : 0;
    args.pixels = whole + more;
    if (args.pixels > 0) rows_[0](&args);
    if (more != 0 || channel >= left_) return;
    args.src += whole * together_ * pack_.stride();
    args.dst += whole * together_ * s_.groups * result_bytes_;
    args.pixels = 1;
    rows_[1](&args);
  }

  DepthwiseRowSpec spec_of(IntegerDot dot, int64_t channels) const {
    return {.dot = dot,
            .taps = pack_.all_taps(),
            .channels = static_cast<int>(channels),
            .src_pixel = together_ * pack_.stride(),
            .dst_pixel = together_ * s_.groups * result_bytes_,
            .factor = sums_.factor,
            .bias = conv_.epilogue.bias,
            .activation = conv_.epilogue.activation,
            .result = sums_.result};
  }

  IntegerShape s_;
  ConvCode conv_;
  SumsCode sums_;
  IntegerConstants places_;
  IntegerPack pack_;
  bool signed_zero_;
  int64_t block_, together_, blocks_;
  int64_t left_;  // channels of the pixels at a row's end that are fewer than are taken together
  int64_t steps_, result_bytes_;
  std::unique_ptr<Emitter> emitter_;
  DepthwiseRowFunction rows_[2] = {};  // [of a part of a block]
};

struct IntegerDepthwiseFamily {
  static constexpr std::string_view kName = "integer_depthwise";
  static constexpr int kVersion = 2;
  static constexpr bool kPacksForIsa = true;
  static constexpr Cost kCost = {.arithmetic = 1.2, .operands = 2};
  using Params = DepthwiseChoice;
  using Code = IntegerDepthwiseCode;

  static void propose(const Problem& problem, const CpuInfo& info, Candidates& out) {
    const std::optional<IntegerConvRegion> region = offered_integer_conv(problem, info, kName, out);
    if (!region) return;
    const IntegerShape shape = integer_conv_shape(*region, Layout::channels_last);
    if (!is_depthwise(shape)) return out.refuse(kName, "groups have several channels");
    if (!within_reach(shape)) return out.refuse(kName, "its window is large");
    if (region->match.residual >= 0 || region->match.rounding) return out.refuse(kName, "a residual");
    const bool bytes = problem.device.byte_dots && !SignedWeights(region->node()).have_zeros();
    const DepthwiseChoice choice{bytes};
    out.offer(integer_conv_tactic(kName, problem, *region, Layout::channels_last, write_fields(choice)));
  }

  static Built<Code> compile(const Problem& problem, const Params& choice, const Tactic&) {
    const IntegerConvRegion region = *read_integer_conv_region(problem.region);
    const IntegerShape shape = integer_conv_shape(region, Layout::channels_last);
    const Isa isa = cpu_info(problem.device).isa;
    SignedWeights weights(region.node());
    weights.take_off_zeros();
    return {{region.code, choice},
            integer_constants(choice.bytes ? packed_weights<int8_t>(weights, shape, choice.dot(), isa)
                                           : packed_weights<int16_t>(weights, shape, choice.dot(), isa),
                              in_quarters(shape, isa), sums_of(region.code), weights, region, kBytes.added(shape))};
  }

  static std::vector<ConstantSpec> constants(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    const IntegerShape shape = checked_shape(code, shapes);
    const IntegerDot dot = code.choice.dot();
    const int64_t padded = padded_channels(shape, info.isa);
    return integer_constants({weight_type(dot), {padded, steps_of(shape, dot) * step_of(dot)}}, sums_of(code.region),
                             padded);
  }

  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    const IntegerShape shape = checked_shape(code, shapes);
    HONE_CHECK(!code.choice.bytes || has_byte_dots(info.isa),
               "a layer in the plan adds up products of bytes (VNNI), which this processor does not");
    require_packing(packed_shape(shape), kBytes);
    HONE_CHECK(within_reach(shape), "a depthwise convolution in the plan has a window of {} elements", shape.taps());
    return std::make_shared<IntegerDepthwise>(code, shape, shapes, info.isa);
  }

 private:
  static IntegerShape checked_shape(const Code& code, const KernelShapes& shapes) {
    IntegerShape shape = integer_conv_shape(code.region, shapes);
    const bool fits = is_depthwise(shape) && code.region.conv.epilogue.residual < 0 && !code.region.sums.rounding &&
                      shape.layout == Layout::channels_last;
    HONE_CHECK(fits, "a depthwise convolution in the plan has {} groups of {} channels", shape.groups, shape.depth);
    return shape;
  }
};

}  // namespace

const CpuTactic tactics::integer_depthwise = describe<IntegerDepthwiseFamily>();

}  // namespace hone::cpu
