// SPDX-License-Identifier: Apache-2.0
//
// Output row y takes tap k of input row i where y + pad = i * stride + k * dilation. With stride 1 that is a convolution with
// the mirrored filter; with dilation 1 the taps of a phase are k = r, r + stride, … where r = (y + pad) mod stride.

#include "backends/cpu/conv/conv_transpose_kernel.h"

#include <algorithm>

#include "backends/cpu/conv/pack.h"
#include "base/error.h"

namespace hone::cpu {
namespace {

constexpr int64_t kMostPhases = 1 << 14;  // a convolution of its own each

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// One dimension of a phase, as a convolution with stride 1.
struct Axis {
  int64_t first;  // output coordinate
  int64_t count;  // outputs of the phase
  int64_t tap;    // first filter tap; the others follow a stride apart
  int64_t taps;   // zero when no tap meets this phase: one tap of zeros stands in
  int64_t pad_begin, pad_end;
};

Axis axis(int64_t first, int64_t in, int64_t out, int64_t k, int64_t stride, int64_t dilation, int64_t pad) {
  Axis a{};
  a.first = first;
  a.count = ceil_div(out - first, stride);
  a.tap = (first + pad) % stride;
  a.taps = a.tap < k ? ceil_div(k - a.tap, stride) : 0;
  const int64_t length = std::max<int64_t>(1, a.taps), reach = (length - 1) * dilation;
  a.pad_begin = reach - (first + pad) / stride;
  a.pad_end = a.count + reach - in - a.pad_begin;
  return a;
}

struct PhaseShape {
  Axis y, x;
  ConvShape conv;
};

/// Also those without a pixel in a small image: the packed weights are the same for all sizes.
std::vector<PhaseShape> phases_of(const ConvTransposeShape& s) {
  std::vector<PhaseShape> all;
  for (int64_t py = 0; py < s.stride_h; ++py)
    for (int64_t px = 0; px < s.stride_w; ++px) {
      PhaseShape p{axis(py, s.ih, s.oh, s.kh, s.stride_h, s.dilation_h, s.pad_top),
                   axis(px, s.iw, s.ow, s.kw, s.stride_w, s.dilation_w, s.pad_left),
                   {}};
      ConvShape& c = p.conv;
      c.n = s.n, c.ic = s.ic, c.ih = s.ih, c.iw = s.iw, c.oc = s.oc, c.groups = s.groups;
      c.kh = std::max<int64_t>(1, p.y.taps), c.kw = std::max<int64_t>(1, p.x.taps);
      c.dilation_h = s.dilation_h, c.dilation_w = s.dilation_w;
      c.pad_top = p.y.pad_begin, c.pad_bottom = p.y.pad_end, c.pad_left = p.x.pad_begin, c.pad_right = p.x.pad_end;
      c.src_pixel_stride = s.src_pixel_stride;
      const int64_t dst = s.dst_pixel_stride ? s.dst_pixel_stride : s.oc,
                    residual = s.residual_pixel_stride ? s.residual_pixel_stride : s.oc;
      c.dst_pixel_stride = dst * s.stride_w, c.dst_row_stride = dst * s.ow * s.stride_h,
      c.dst_image_stride = dst * s.ow * s.oh;
      c.residual_pixel_stride = residual * s.stride_w, c.residual_row_stride = residual * s.ow * s.stride_h;
      c.residual_image_stride = residual * s.ow * s.oh;
      all.push_back(p);
    }
  return all;
}

}  // namespace

const char* conv_transpose_refusal(const ConvTransposeShape& s) {
  if ((s.dilation_h != 1 && s.stride_h != 1) || (s.dilation_w != 1 && s.stride_w != 1))
    return "dilation together with stride";
  if (s.pad_top < 0 || s.pad_left < 0) return "negative pads";
  if (s.stride_h * s.stride_w > kMostPhases) return "its stride has too many phases";
  return nullptr;
}

std::vector<ConvConfig> conv_transpose_candidates(const ConvTransposeShape& shape, Isa isa, int workers) {
  return conv_candidates(phases_of(shape).front().conv, isa, workers);
}

size_t packed_conv_transpose_floats(const ConvTransposeShape& shape, int64_t panel) {
  size_t floats = 0;
  for (const PhaseShape& p : phases_of(shape)) floats += packed_conv_floats(p.conv, panel);
  return floats;
}

void pack_conv_transpose_weights(const float* iohw, const ConvTransposeShape& s, int64_t panel, int64_t depth,
                                 float* packed) {
  const int64_t group_oc = s.oc / s.groups, group_ic = s.ic / s.groups;
  for (const PhaseShape& p : phases_of(s)) {
    const ConvShape& c = p.conv;
    std::vector<float> oihw(size_t(s.oc * group_ic * c.kh * c.kw), 0.0f);
    for (int64_t o = 0; o < s.oc; ++o)
      for (int64_t i = 0; i < group_ic; ++i)
        for (int64_t y = 0; y < p.y.taps; ++y)
          for (int64_t x = 0; x < p.x.taps; ++x) {
            const int64_t in = o / group_oc * group_ic + i;
            const int64_t ky = p.y.tap + (p.y.taps - 1 - y) * s.stride_h,
                          kx = p.x.tap + (p.x.taps - 1 - x) * s.stride_w;
            oihw[size_t(((o * group_ic + i) * c.kh + y) * c.kw + x)] =
                iohw[((in * group_oc + o % group_oc) * s.kh + ky) * s.kw + kx];
          }
    pack_conv_weights(oihw.data(), c, panel, depth, packed);
    packed += packed_conv_floats(c, panel);
  }
}

ConvTransposeKernel::ConvTransposeKernel(const ConvTransposeShape& s, const Epilogue& epilogue,
                                         const ConvConfig& config, Isa isa) {
  HONE_ASSERT(!conv_transpose_refusal(s), "{}", conv_transpose_refusal(s));
  size_t weights = 0;
  for (const PhaseShape& p : phases_of(s)) {
    const int64_t pixel = p.y.first * s.ow + p.x.first;
    if (p.y.count > 0 && p.x.count > 0)
      phases_.push_back({ConvKernel(p.conv, epilogue, config, isa), weights,
                         pixel * p.conv.dst_pixel_stride / s.stride_w,
                         pixel * p.conv.residual_pixel_stride / s.stride_w});
    weights += packed_conv_floats(p.conv, config.panel_channels(isa));
  }
}

bool ConvTransposeKernel::accumulates_in_dst() const {
  return std::any_of(phases_.begin(), phases_.end(), [](const Phase& p) { return p.kernel.accumulates_in_dst(); });
}

void ConvTransposeKernel::run(int worker, int workers, const ConvArgs& args) const noexcept {
  for (const Phase& p : phases_) {
    ConvArgs a = args;
    a.weights += p.weights;
    a.dst += p.dst;
    if (a.residual) a.residual += p.residual;
    p.kernel.run(worker, workers, a);
  }
}

}  // namespace hone::cpu
