// SPDX-License-Identifier: Apache-2.0
//
// Where the processor has no tiles their multiplication is done in plain C++, everything around it as ever.

#include "backends/cpu/matmul/matrix_tiles.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "backends/cpu/conv/pack.h"
#include "backends/cpu/jit/kernel_testing.h"

namespace hone::cpu {
namespace {

using trial::Guarded;
using trial::Random;

/// Values as a kernel reads or writes them; bf16 takes half of the floats' room.
class Operand {
 public:
  Operand(const std::vector<float>& values, DType type, bool at_end)
      : type_(type), count_(values.size()), memory_(stored(values, type), at_end) {}
  float* data() const { return memory_.data(); }
  float operator[](size_t i) const {
    return type_ == DType::f32 ? memory_[i] : bfloat_to_float(reinterpret_cast<const uint16_t*>(memory_.data())[i]);
  }
  size_t size() const { return count_; }

 private:
  static std::vector<float> stored(const std::vector<float>& values, DType type) {
    if (type == DType::f32) return values;
    std::vector<float> room((values.size() + 1) / 2);
    for (size_t i = 0; i < values.size(); ++i) {
      const uint16_t narrow = float_to_bfloat(values[i]);
      std::memcpy(reinterpret_cast<std::byte*>(room.data()) + 2 * i, &narrow, 2);
    }
    return room;
  }
  DType type_;
  size_t count_;
  Guarded memory_;
};

ConvShape random_shape(Random& r) {
  ConvShape s;
  s.n = r.integer(1, 3);
  s.ic = r.coin(0.4) ? 32 * r.integer(1, 4) : r.integer(1, 90);
  s.oc = r.coin(0.4) ? 32 * r.integer(1, 4) : r.integer(1, 90);
  s.kh = r.pick({1, 1, 1, 2, 3, 5});
  s.kw = r.pick({1, 1, 1, 3, 3, 7});
  if (r.coin(0.4)) s.kh = s.kw = 1;
  s.stride_h = r.pick({1, 1, 2, 3});
  s.stride_w = r.pick({1, 1, 2, 3});
  s.dilation_h = r.pick({1, 1, 2});
  s.dilation_w = r.pick({1, 1, 3});
  if (r.coin(0.6)) {
    s.pad_top = r.integer(0, 3), s.pad_bottom = r.integer(0, 3);
    s.pad_left = r.integer(0, 3), s.pad_right = r.integer(0, 3);
  } else if (s.kh * s.kw == 1) {
    s.stride_h = s.stride_w = 1;
  }
  s.ih = r.integer(1, 12) + std::max<int64_t>(0, s.dilation_h * (s.kh - 1) - s.pad_top - s.pad_bottom);
  s.iw =
      r.integer(1, r.coin(0.2) ? 300 : 20) + std::max<int64_t>(0, s.dilation_w * (s.kw - 1) - s.pad_left - s.pad_right);
  return s;
}

/// As a kernel of one part rounds it; parts are as good as the whole.
float operand(float value, int parts) { return parts == 1 ? bfloat_to_float(float_to_bfloat(value)) : value; }

double reference(const ConvShape& s, const Operand& src, const std::vector<float>& weights, int parts, int64_t n,
                 int64_t oy, int64_t ox, int64_t o) {
  double sum = 0;
  for (int64_t ky = 0; ky < s.kh; ++ky)
    for (int64_t kx = 0; kx < s.kw; ++kx) {
      const int64_t y = oy * s.stride_h - s.pad_top + ky * s.dilation_h,
                    x = ox * s.stride_w - s.pad_left + kx * s.dilation_w;
      if (y < 0 || y >= s.ih || x < 0 || x >= s.iw) continue;
      for (int64_t c = 0; c < s.ic; ++c) {
        const float pixel = operand(src[static_cast<size_t>(((n * s.ih + y) * s.iw + x) * s.ic + c)], parts);
        sum += double{pixel} * double{weights[static_cast<size_t>(((o * s.ic + c) * s.kh + ky) * s.kw + kx)]};
      }
    }
  return sum;
}

void check(Random& r) {
  const ConvShape s = random_shape(r);
  const Epilogue epilogue = r.epilogue();
  const int parts = static_cast<int>(r.integer(1, 3));
  const DType src_type = parts > 1 ? DType::f32 : r.pick({DType::f32, DType::bf16});
  const DType dst_type = r.pick({DType::f32, DType::bf16});
  const int workers = static_cast<int>(r.integer(1, 4));
  SCOPED_TRACE(fmt::format(
      "{} images {}x{}x{} to {}, filter {}x{}, stride {}x{}, dilation {}x{}, pads {} {} {} {}, {} to {}, {} parts", s.n,
      s.ih, s.iw, s.ic, s.oc, s.kh, s.kw, s.stride_h, s.stride_w, s.dilation_h, s.dilation_w, s.pad_top, s.pad_left,
      s.pad_bottom, s.pad_right, name_of(src_type), name_of(dst_type), parts));
  const auto count = static_cast<size_t>(s.n * s.oh() * s.ow() * s.oc);
  const Operand src(r.floats(static_cast<size_t>(s.n * s.ih * s.iw * s.ic)), src_type, true);
  const Operand residual(r.floats(count), dst_type, true), dst(std::vector<float>(count, 7), dst_type, r.coin());
  std::vector<float> weights = r.floats(static_cast<size_t>(s.oc * s.ic * s.kh * s.kw), 0.3f);
  for (float& weight : weights) weight = operand(weight, parts);
  const std::vector<float> bias = r.floats(static_cast<size_t>(s.oc));

  std::vector<float> tiled(tiled_weight_count(s, parts)), packed_bias(packed_bias_floats(s.oc, 1, kTileChannels));
  tile_weights(weights.data(), {s.ic * s.kh * s.kw, s.kh * s.kw, 1}, s, parts, tiled.data());
  const Operand tiles(tiled, DType::bf16, true);
  pack_bias(bias.data(), s.oc, 1, kTileChannels, packed_bias.data());

  const MatrixTileKernel kernel(s, epilogue, src_type, dst_type, parts, workers);
  std::vector<float> garbage(kernel.workspace_bytes() / 4, std::numeric_limits<float>::quiet_NaN());
  const Guarded workspace(garbage, true);
  const MatrixTileArgs args{src.data(),
                            tiles.data(),
                            epilogue.bias ? packed_bias.data() : nullptr,
                            epilogue.residual ? residual.data() : nullptr,
                            dst.data(),
                            workspace.data()};
  if (kernel.packs()) trial::on_team(workers, [&](int worker, int team) { kernel.pack(worker, team, args); });
  trial::on_team(workers, [&](int worker, int team) { kernel.multiply(worker, team, args); });

  // Of a sum of products of about 0.3: what f32 sums lose, and where there are two parts what these leave out of each operand.
  const double tolerance = (parts == 2 ? 2e-5 : 2e-6) * std::sqrt(double(s.ic * s.kh * s.kw)),
               rounding = dst_type == DType::bf16 ? 0x1p-8 : 0;
  size_t at = 0;
  for (int64_t n = 0; n < s.n; ++n)
    for (int64_t y = 0; y < s.oh(); ++y)
      for (int64_t x = 0; x < s.ow(); ++x)
        for (int64_t o = 0; o < s.oc; ++o, ++at) {
          const double want = trial::finish(epilogue, reference(s, src, weights, parts, n, y, x, o),
                                            double{bias[static_cast<size_t>(o)]}, double{residual[at]});
          ASSERT_NEAR(want, double{dst[at]}, tolerance + rounding * std::fabs(want))
              << n << " " << y << " " << x << " " << o;
        }
}

TEST(MatrixTiles, RandomConvolutionsAgreeWithTheReference) {
  if (machine_isa() < Isa::avx512) GTEST_SKIP() << "needs AVX-512";
  for (uint64_t i = 0; i < 250; ++i) {
    const uint64_t seed = trial::test_seed() + i;
    SCOPED_TRACE("HONE_TEST_SEED=" + std::to_string(seed));
    Random random(seed);
    check(random);
    if (HasFatalFailure()) return;
  }
}

/// In parts of f32 infinities and what is no number come out as they do without parts, and the largest numbers do not become infinite.
TEST(MatrixTiles, PartsKeepWhatIsInfiniteOrNoNumber) {
  if (machine_isa() < Isa::avx512) GTEST_SKIP() << "needs AVX-512";
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kMost = std::numeric_limits<float>::max();
  constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  const ConvShape s{.ic = 2, .iw = 6, .oc = 2};
  const float pixels[][2] = {{kInfinity, 1}, {-kInfinity, 1}, {kMost, 0}, {1, kNone}, {1, 2}, {-kMost, 0}};
  const float weights[] = {0.37f, 1.03f, -1.01f, kInfinity};  // [oc][ic]
  const float wanted[] = {kInfinity, kNone, -kInfinity, kInfinity, 0.37f * kMost,  kNone,
                          kNone,     kNone, 2.43f,      kInfinity, -0.37f * kMost, kNone};
  for (const int parts : {2, 3}) {
    const Operand src({&pixels[0][0], &pixels[0][0] + 12}, DType::f32, true),
        dst(std::vector<float>(12), DType::f32, true);
    std::vector<float> tiled(tiled_weight_count(s, parts));
    tile_weights(weights, {2, 1, 1}, s, parts, tiled.data());
    const Operand tiles(tiled, DType::bf16, true);
    const MatrixTileKernel kernel(s, {}, DType::f32, DType::f32, parts, 1);
    const Guarded workspace(std::vector<float>(kernel.workspace_bytes() / 4), true);
    const MatrixTileArgs args{src.data(), tiles.data(), nullptr, nullptr, dst.data(), workspace.data()};
    kernel.pack(0, 1, args);
    kernel.multiply(0, 1, args);
    for (size_t i = 0; i < 12; ++i) {
      SCOPED_TRACE(fmt::format("{} parts, result {}", parts, i));
      if (std::isnan(wanted[i])) EXPECT_TRUE(std::isnan(dst[i])) << dst[i];
      else if (std::isinf(wanted[i])) EXPECT_EQ(dst[i], wanted[i]);
      else EXPECT_NEAR(dst[i], wanted[i], 2e-5 * std::fabs(wanted[i]));
    }
  }
}

TEST(MatrixTiles, ReadsPixelsInPlaceWhereTheyLieAsTilesDo) {
  if (machine_isa() < Isa::avx512) GTEST_SKIP() << "needs AVX-512";
  ConvShape s{.n = 2, .ic = 64, .ih = 7, .iw = 7, .oc = 40};
  EXPECT_FALSE(MatrixTileKernel(s, {}, DType::bf16, DType::bf16, 1, 1).packs());
  EXPECT_TRUE(MatrixTileKernel(s, {}, DType::f32, DType::f32, 1, 1).packs());
  s.n = 1, s.ih = 4;  // fewer pixels than a strip
  EXPECT_TRUE(MatrixTileKernel(s, {}, DType::bf16, DType::bf16, 1, 1).packs());
}

}  // namespace
}  // namespace hone::cpu
