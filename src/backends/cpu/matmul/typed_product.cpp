// SPDX-License-Identifier: Apache-2.0
//
// A few rows by two vectors of columns stay in registers for the whole sum; the last columns are done one by one.
#include "backends/cpu/matmul/typed_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/matmul/typed_product.cpp"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include <type_traits>

#include "backends/cpu/support/targets.h"

// NOLINTBEGIN(readability-identifier-naming): functions that exist once per instruction set are named as Highway names its
HWY_BEFORE_NAMESPACE();
namespace hone::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET <= HWY_AVX3
constexpr int kMostRows = 8;
#else
constexpr int kMostRows = 4;  // of 16 registers eight hold sums
#endif

template <typename V>
HWY_INLINE V Added(V sum, V a, V b) {
  if constexpr (std::is_same_v<hn::TFromV<V>, double>) return hn::MulAdd(a, b, sum);
  else return hn::Add(sum, hn::Mul(a, b));
}

template <typename T>
struct Tile {
  const T *a, *b, *bias;
  T* c;
  int64_t k, n;
};

template <int rows, int vectors, typename T>
HWY_INLINE void Vectors(const Tile<T>& t, int64_t column) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> sums[rows][vectors];
  for (int i = 0; i < rows; ++i)
    for (int v = 0; v < vectors; ++v)
      sums[i][v] = t.bias == nullptr ? hn::Zero(d) : hn::LoadU(d, t.bias + column + v * lanes);
  for (int64_t p = 0; p < t.k; ++p) {
    hn::Vec<decltype(d)> b[vectors];
    for (int v = 0; v < vectors; ++v) b[v] = hn::LoadU(d, t.b + p * t.n + column + v * lanes);
    for (int i = 0; i < rows; ++i) {
      const auto a = hn::Set(d, t.a[i * t.k + p]);
      for (int v = 0; v < vectors; ++v) sums[i][v] = Added(sums[i][v], a, b[v]);
    }
  }
  for (int i = 0; i < rows; ++i)
    for (int v = 0; v < vectors; ++v) hn::StoreU(sums[i][v], d, t.c + i * t.n + column + v * lanes);
}

template <int rows, typename T>
void Rows(const Tile<T>& t, int64_t columns) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  int64_t column = 0;
  for (; column + 2 * lanes <= columns; column += 2 * lanes) Vectors<rows, 2>(t, column);
  for (; column + lanes <= columns; column += lanes) Vectors<rows, 1>(t, column);
  for (; column < columns; ++column)
    for (int i = 0; i < rows; ++i) {
      using Sum = std::conditional_t<std::is_same_v<T, double>, double,
                                     std::make_unsigned_t<std::conditional_t<std::is_same_v<T, double>, int, T>>>;
      Sum sum = t.bias == nullptr ? Sum(0) : static_cast<Sum>(t.bias[column]);
      for (int64_t p = 0; p < t.k; ++p)
        sum += static_cast<Sum>(t.a[i * t.k + p]) * static_cast<Sum>(t.b[p * t.n + column]);
      t.c[i * t.n + column] = static_cast<T>(sum);
    }
}

template <typename T>
void Product(const ProductArgs& args) {
  Tile<T> tile{static_cast<const T*>(args.a),
               static_cast<const T*>(args.b),
               static_cast<const T*>(args.bias),
               static_cast<T*>(args.c),
               args.k,
               args.n};
  int64_t row = 0;
  const auto advance = [&](int rows) { row += rows, tile.a += rows * args.k, tile.c += rows * args.n; };
  for (; row + kMostRows <= args.rows; advance(kMostRows)) Rows<kMostRows>(tile, args.columns);
  for (; row + 2 <= args.rows; advance(2)) Rows<2>(tile, args.columns);
  for (; row < args.rows; advance(1)) Rows<1>(tile, args.columns);
}

TypedProduct ProductOf(DType dtype) {
  if (dtype == DType::f64) return Product<double>;
  return dtype == DType::i32 || dtype == DType::u32 ? TypedProduct(Product<int32_t>) : Product<int64_t>;
}

}  // namespace HWY_NAMESPACE
}  // namespace hone::cpu
HWY_AFTER_NAMESPACE();
// NOLINTEND(readability-identifier-naming)

#if HWY_ONCE
namespace hone::cpu {

HWY_EXPORT(ProductOf);

bool has_typed_product(DType dtype) {
  return dtype == DType::f64 || dtype == DType::i32 || dtype == DType::u32 || dtype == DType::i64 ||
         dtype == DType::u64;
}

TypedProduct typed_product(DType dtype, Isa isa) { return HWY_DISPATCH_TABLE(ProductOf)[target_index(isa)](dtype); }

}  // namespace hone::cpu
#endif
