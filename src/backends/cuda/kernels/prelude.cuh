// SPDX-License-Identifier: Apache-2.0
//
// Stands before every generated source: element types, their conversion to and from float, vectors of them, and sums over
// a warp and a block. No header of the toolkit is needed, so the compiler's library alone can build everything.

typedef long long i64;

struct f16 { unsigned short bits; };
struct bf16 { unsigned short bits; };

static inline float as_float(f16 value) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
}
static inline float as_float(bf16 value) { return __uint_as_float((unsigned)value.bits << 16); }
static inline float as_float(float value) { return value; }
static inline float as_float(double value) { return (float)value; }
static inline float as_float(int value) { return (float)value; }
static inline float as_float(i64 value) { return (float)value; }

template <typename To, typename From> struct Convert { static To of(From value) { return (To)value; } };
template <typename To> struct Convert<To, f16> { static To of(f16 value) { return (To)as_float(value); } };
template <typename To> struct Convert<To, bf16> { static To of(bf16 value) { return (To)as_float(value); } };
template <typename From> struct Convert<f16, From> {
  static f16 of(From value) {
    f16 result;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"((float)value));
    return result;
  }
};
template <typename From> struct Convert<bf16, From> {
  static bf16 of(From value) {
    bf16 result;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"((float)value));
    return result;
  }
};
template <> struct Convert<f16, f16> { static f16 of(f16 value) { return value; } };
template <> struct Convert<bf16, bf16> { static bf16 of(bf16 value) { return value; } };
template <> struct Convert<f16, bf16> { static f16 of(bf16 value) { return Convert<f16, float>::of(as_float(value)); } };
template <> struct Convert<bf16, f16> { static bf16 of(f16 value) { return Convert<bf16, float>::of(as_float(value)); } };
template <typename From> struct Convert<bool, From> { static bool of(From value) { return value != (From)0; } };
template <> struct Convert<bool, f16> { static bool of(f16 value) { return as_float(value) != 0; } };
template <> struct Convert<bool, bf16> { static bool of(bf16 value) { return as_float(value) != 0; } };

template <typename To, typename From> static inline To convert(From value) { return Convert<To, From>::of(value); }

// What a sum of elements is kept in.
template <typename T> struct Wide { typedef float type; };
template <> struct Wide<double> { typedef double type; };

template <typename T, int N> struct alignas(sizeof(T) * N) Vector { T at[N]; };

template <typename T> static inline T warp_sum(T value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}
template <typename T> static inline T warp_max(T value) {
  for (int step = 16; step > 0; step /= 2) {
    const T other = __shfl_xor_sync(0xffffffffu, value, step);
    value = other > value ? other : value;
  }
  return value;
}

// Over all threads of a block of whole warps; `scratch` holds one value per warp. Every thread gets the result.
template <typename T> static inline T block_sum(T value, T* scratch) {
  value = warp_sum(value);
  const int warps = blockDim.x / 32;
  if (warps == 1) return value;
  __syncthreads();
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
  __syncthreads();
  T total = 0;
  for (int i = 0; i < warps; ++i) total += scratch[i];
  return total;
}
template <typename T> static inline T block_max(T value, T* scratch) {
  value = warp_max(value);
  const int warps = blockDim.x / 32;
  if (warps == 1) return value;
  __syncthreads();
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
  __syncthreads();
  T top = scratch[0];
  for (int i = 1; i < warps; ++i) top = scratch[i] > top ? scratch[i] : top;
  return top;
}

#define INFINITY_F __int_as_float(0x7f800000)
