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

// A kernel may be launched while the one before it in its stream still runs. Every thread of every kernel calls this before it
// touches anything but constants: the kernels before it have ended then, and their results are there. From there on the kernel
// behind may be launched in turn, if it is one that waits here too: no library's is (recording.h).
static inline void await_operands() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

#if __CUDA_ARCH__ >= 900
// Behind it, what any block of the cluster wrote to its shared memory before is there for all.
static inline void meet_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// Where `own`, a place in this block's shared memory, lies in that of the cluster's block `rank`.
static inline unsigned place_in_block(const float* own, unsigned rank) {
  const unsigned at = (unsigned)__cvta_generic_to_shared(own);
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank));
  return there;
}
static inline float of_block(const float* own, unsigned rank) {
  float value;
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(place_in_block(own, rank)) : "memory");
  return value;
}
static inline float2 pair_of_block(const float* own, unsigned rank) {
  float2 value;
  asm volatile("ld.shared::cluster.v2.f32 {%0, %1}, [%2];" : "=f"(value.x), "=f"(value.y) : "r"(place_in_block(own, rank)) : "memory");
  return value;
}
#endif

// What a sum of elements is kept in.
template <typename T> struct Wide { typedef float type; };
template <> struct Wide<double> { typedef double type; };

template <typename T, int N> struct alignas(sizeof(T) * N) Vector { T at[N]; };

// A choice that a function is compiled for, as an argument.
template <auto choice> struct Known { static constexpr auto value = choice; };

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

// Of 2^x and 1/x some 22 binary digits, of a hyperbolic tangent 11; numbers below 2^-126 count as 0.
static inline float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
static inline float fast_reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
static inline float fast_tanh(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
