// SPDX-License-Identifier: Apache-2.0
//
// Floats as codes and back, by one scale, one for each index of an axis or one for each block along it: V elements in a row per
// thread, which look a scale up once where they share it. Before this stand X, Y, S (of scales), Z (of zero points), V, QUANTIZES,
// HAS_ZERO, LOW and HIGH (the ends of Y), and the parameters.

static inline i64 scale_of(const Scales& scales, i64 i) {
  if (scales.count == 1) return 0;
  const i64 at = i / scales.inner % scales.length;
  return scales.block == 0 ? at : (i / (scales.inner * scales.length) * scales.count + at / scales.block) * scales.inner + i % scales.inner;
}

static inline Y changed(X element, S scale, Z zero) {
#if QUANTIZES
  const float steps = rintf(as_float(convert<S>(as_float(element) / as_float(scale)))) + (HAS_ZERO ? (float)zero : 0.0f);
  return (Y)fminf(fmaxf(steps, LOW), HIGH);
#else
  return convert<Y>((float)(((double)element - (HAS_ZERO ? (double)zero : 0.0)) * (double)as_float(scale)));
#endif
}

extern "C" __global__ void __launch_bounds__(256) quantization(QUANTIZATION_PARAMETERS) {
  await_operands();
  const i64 first = ((i64)blockIdx.x * blockDim.x + threadIdx.x) * V;
  if (first >= scales.elements) return;
  i64 at = scale_of(scales, first);
  S s = scale[at];
  Z z = HAS_ZERO ? zero[at] : (Z)0;
  const auto next = [&](X element, int k) {
    if (!scales.shared && k > 0) at = scale_of(scales, first + k), s = scale[at], z = HAS_ZERO ? zero[at] : (Z)0;
    return changed(element, s, z);
  };
  if (first + V <= scales.elements) {
    const Vector<X, V> part = *reinterpret_cast<const Vector<X, V>*>(x + first);
    Vector<Y, V> result;
#pragma unroll
    for (int k = 0; k < V; ++k) result.at[k] = next(part.at[k], k);
    *reinterpret_cast<Vector<Y, V>*>(y + first) = result;
  } else {
    for (int k = 0; first + k < scales.elements; ++k) y[first + k] = next(x[first + k], k);
  }
}
