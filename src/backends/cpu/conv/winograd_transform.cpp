// SPDX-License-Identifier: Apache-2.0
//
// Interpolation points come in pairs ±a, so rows of `in` (and columns of `out`) come in pairs that differ in the sign of
// every other element: even and odd part are computed once and added and subtracted.
// Two-dimensional maps are two passes of one-dimensional ones through a small buffer that stays in L1.

#include "backends/cpu/conv/winograd_transform.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace hone::cpu {
namespace {

/// Coefficients of the product of (x - root), lowest power first.
std::vector<double> polynomial_with_roots(const std::vector<double>& roots) {
  std::vector<double> c{1};
  for (double root : roots) {
    c.insert(c.begin(), 0);
    for (size_t i = 0; i + 1 < c.size(); ++i) c[i] -= root * c[i + 1];
  }
  for (double& x : c) x = std::round(x * 0x1p40) / 0x1p40;  // the same numbers in whatever order the roots came
  return c;
}

/// The points decide the rounding error. For m = 4, ±3/5 and ±3/2 measured 8e-7 (relative norm, 128 channels) against
/// 1.9e-6 for the textbook's ±1 and ±2; for m = 6, ±1, ±2, ±1/2 measured 3e-6.
std::vector<double> points(int m) {
  switch (m) {
    case 2: return {0, 1, -1};
    case 4: return {0, 0.6, -0.6, 1.5, -1.5};
    case 6: return {0, 1, -1, 2, -2, 0.5, -0.5};
    default: throw InternalError("no Winograd points for this tile size");
  }
}

class TransformEmitter {
 public:
  using Vec = Emitter::Vec;

  explicit TransformEmitter(Emitter& emitter) : e_(emitter), math_(emitter) {}

  Xbyak::Address arg(size_t offset) const { return e_.qword[e_.rdi + static_cast<int>(offset)]; }
  Xbyak::Address at(const Xbyak::Reg64& base, int64_t offset) const {
    HONE_ASSERT(offset == static_cast<int32_t>(offset), "{} bytes do not fit a displacement", offset);
    return e_.ptr[base + static_cast<int>(offset)];
  }

  /// y = sum of row[j] x_j over the j that `use` accepts; false when that is empty.
  template <typename Use>
  bool combine(const Vec& y, const std::vector<double>& row, Use&& use) {
    int first = -1;  // a coefficient 1 starts the sum without a multiplication
    for (int j = 0; j < int(row.size()); ++j)
      if (use(j) && row[size_t(j)] != 0 && (first < 0 || row[size_t(j)] == 1)) first = j;
    if (first < 0) return false;
    if (row[size_t(first)] == 1) {
      e_.vmovaps(y, e_.vec(first));
    } else {
      e_.vmulps(y, e_.vec(first), e_.constant(float(row[size_t(first)])));
    }
    for (int j = 0; j < int(row.size()); ++j) {
      if (j == first || !use(j) || row[size_t(j)] == 0) continue;
      if (row[size_t(j)] == 1) {
        e_.vaddps(y, y, e_.vec(j));
      } else if (row[size_t(j)] == -1) {
        e_.vsubps(y, y, e_.vec(j));
      } else {
        e_.vfmadd231ps(y, e_.vec(j), e_.constant(float(row[size_t(j)])));
      }
    }
    return true;
  }

  /// x_0 … x_{n-1} lie in registers 0 … n-1; put(i, y) takes each result. Rows 1+2, 3+4, … are pairs.
  template <typename Put>
  void apply_paired_rows(const Matrix& in, Put&& put) {
    const int n = int(in.size());
    const Vec even = e_.vec(n), odd = e_.vec(n + 1), y = e_.vec(n + 2);
    for (int i = 0; i < n; ++i) {
      const bool pair = i % 2 == 1 && i + 1 < n - 1 + (n % 2);
      if (!pair) {
        combine(y, in[size_t(i)], [](int) { return true; });
        put(i, y);
        continue;
      }
      const auto &plus = in[size_t(i)], &minus = in[size_t(i + 1)];
      combine(even, plus, [&](int j) { return plus[size_t(j)] == minus[size_t(j)]; });
      combine(odd, plus, [&](int j) { return plus[size_t(j)] != minus[size_t(j)]; });
      e_.vaddps(y, even, odd);
      put(i, y);
      e_.vsubps(even, even, odd);
      put(i + 1, even);
      ++i;
    }
  }

  /// Replaces x_1, x_2 by their sum and difference, and so on: what reduces `out` to the matrix of even_odd().
  void fold_pairs(int n) {
    const Vec sum = e_.vec(n);
    for (int j = 1; j + 1 < n - 1; j += 2) {
      e_.vaddps(sum, e_.vec(j), e_.vec(j + 1));
      e_.vsubps(e_.vec(j + 1), e_.vec(j), e_.vec(j + 1));
      e_.vmovaps(e_.vec(j), sum);
    }
  }
  static Matrix even_odd(Matrix out) {
    const int n = int(out[0].size());
    for (auto& row : out)
      for (int j = 1; j + 1 < n - 1; j += 2) {
        const bool same = row[size_t(j)] == row[size_t(j + 1)];
        row[size_t(j + 1)] = same ? 0 : row[size_t(j)];
        if (!same) row[size_t(j)] = 0;
      }
    return out;
  }

  Emitter& e_;
  VectorMath math_;
};

class InputTransform : TransformEmitter {
 public:
  InputTransform(Emitter& emitter, const InputTransformSpec& spec)
      : TransformEmitter(emitter), s_(spec), n_(spec.m + 2), in_(winograd_matrices(spec.m).in) {}

  size_t emit() {
    e_.align(64);
    const size_t offset = e_.getSize();
    e_.mov(src_, arg(offsetof(TransformArgs, src)));
    e_.mov(dst_, arg(offsetof(TransformArgs, dst)));
    e_.mov(temporary_, arg(offsetof(TransformArgs, temporary)));
    const int64_t whole = s_.channels / e_.lanes();
    if (whole) {
      Xbyak::Label loop;
      e_.mov(count_, static_cast<uint32_t>(whole));
      e_.L(loop);
      vector(false);
      e_.add(src_, e_.vector_bytes());
      e_.add(dst_, e_.vector_bytes());
      e_.dec(count_);
      e_.jnz(loop, e_.T_NEAR);
    }
    if (s_.channels % e_.lanes()) {
      e_.set_tail(int(s_.channels % e_.lanes()));
      vector(true);
    }
    e_.vzeroupper();
    e_.ret();
    return offset;
  }

 private:
  void vector(bool tail) {
    const int64_t bytes = e_.vector_bytes();
    for (int row = 0; row < n_; ++row) {
      for (int column = 0; column < n_; ++column) {
        const auto from = at(src_, row * s_.src_row + column * s_.src_pixel);
        if (tail) {
          e_.load_tail(e_.vec(column), from, e_.vec(column));
        } else {
          e_.load(e_.vec(column), from);
        }
      }
      apply_paired_rows(in_, [&](int i, const Vec& y) { e_.store(at(temporary_, (row * n_ + i) * bytes), y); });
    }
    for (int column = 0; column < n_; ++column) {
      for (int row = 0; row < n_; ++row) e_.load(e_.vec(row), at(temporary_, (row * n_ + column) * bytes));
      apply_paired_rows(in_, [&](int i, const Vec& y) { e_.store(at(dst_, (i * n_ + column) * s_.position), y); });
    }
  }

  const InputTransformSpec& s_;
  int n_;
  Matrix in_;
  const Xbyak::Reg64 src_{Xbyak::Operand::RSI}, dst_{Xbyak::Operand::RDX}, temporary_{Xbyak::Operand::R8};
  const Xbyak::Reg32 count_{Xbyak::Operand::ECX};
};

class OutputTransform : TransformEmitter {
 public:
  OutputTransform(Emitter& emitter, const OutputTransformSpec& spec)
      : TransformEmitter(emitter), s_(spec), n_(spec.m + 2), out_(even_odd(winograd_matrices(spec.m).out)) {}

  size_t emit() {
    e_.align(64);
    const size_t offset = e_.getSize();
    e_.mov(src_, arg(offsetof(TransformArgs, src)));
    e_.mov(dst_, arg(offsetof(TransformArgs, dst)));
    e_.mov(temporary_, arg(offsetof(TransformArgs, temporary)));
    if (s_.epilogue.residual) e_.mov(residual_, arg(offsetof(TransformArgs, residual)));
    if (s_.epilogue.bias) e_.mov(bias_, arg(offsetof(TransformArgs, bias)));
    e_.set_tail(s_.tail);
    for (int vector = 0; vector < s_.vectors; ++vector) emit_vector(vector);
    e_.vzeroupper();
    e_.ret();
    return offset;
  }

 private:
  void emit_vector(int vector) {
    const int64_t bytes = e_.vector_bytes(), lane = vector * bytes;
    for (int column = 0; column < n_; ++column) {
      for (int row = 0; row < n_; ++row) e_.load(e_.vec(row), at(src_, (row * n_ + column) * s_.position + lane));
      fold_pairs(n_);
      for (int i = 0; i < s_.rows; ++i) {
        combine(e_.vec(n_), out_[size_t(i)], [](int) { return true; });
        e_.store(at(temporary_, (i * n_ + column) * bytes), e_.vec(n_));
      }
    }
    for (int row = 0; row < s_.rows; ++row) {
      for (int column = 0; column < n_; ++column) e_.load(e_.vec(column), at(temporary_, (row * n_ + column) * bytes));
      fold_pairs(n_);
      for (int column = 0; column < s_.columns; ++column) {
        combine(e_.vec(n_), out_[size_t(column)], [](int) { return true; });
        finish(e_.vec(n_), row, column, vector, lane);
      }
    }
  }

  void finish(const Vec& y, int row, int column, int vector, int64_t lane) {
    const Vec s0 = e_.vec(n_ + 1), s1 = e_.vec(n_ + 2), s2 = e_.vec(n_ + 3);
    const bool tail = s_.tail && vector == s_.vectors - 1;
    const auto add_residual = [&] {
      const auto from = at(residual_, row * s_.residual_row + column * s_.residual_pixel + lane);
      if (tail) {
        e_.load_tail(s0, from, s0);
        e_.vaddps(y, y, s0);
      } else {
        e_.vaddps(y, y, from);
      }
    };
    if (s_.epilogue.bias) e_.vaddps(y, y, at(bias_, lane));
    if (s_.epilogue.residual && !s_.epilogue.residual_after_activation) add_residual();
    math_.activation(s_.epilogue.activation, y, s0, s1, s2);
    if (s_.epilogue.residual && s_.epilogue.residual_after_activation) add_residual();
    const auto to = at(dst_, row * s_.dst_row + column * s_.dst_pixel + lane);
    if (tail) {
      e_.store_tail(to, y, s0);
    } else {
      e_.store(to, y);
    }
  }

  const OutputTransformSpec& s_;
  int n_;
  Matrix out_;
  const Xbyak::Reg64 src_{Xbyak::Operand::RSI}, dst_{Xbyak::Operand::RDX}, temporary_{Xbyak::Operand::R8},
      residual_{Xbyak::Operand::R9}, bias_{Xbyak::Operand::R10};
};

}  // namespace

WinogradMatrices winograd_matrices(int m) {
  const auto p = points(m);
  const size_t n = p.size() + 1;
  WinogradMatrices w{Matrix(n, std::vector<double>(n)), Matrix(n, std::vector<double>(3)),
                     Matrix(size_t(m), std::vector<double>(n))};
  for (size_t j = 0; j + 1 < n; ++j) {
    std::vector<double> others;
    double scale = 1;
    for (size_t l = 0; l + 1 < n; ++l)
      if (l != j) {
        others.push_back(p[l]);
        scale *= p[j] - p[l];
      }
    const auto c = polynomial_with_roots(others);
    for (size_t i = 0; i < c.size(); ++i) w.in[j][i] = c[i];
    double power = 1;
    for (size_t i = 0; i < std::max<size_t>(3, size_t(m)); ++i, power *= p[j]) {
      if (i < 3) w.filter[j][i] = power / scale;
      if (i < size_t(m)) w.out[i][j] = power;
    }
  }
  const auto c = polynomial_with_roots(p);
  for (size_t i = 0; i < c.size(); ++i) w.in[n - 1][i] = c[i];
  w.filter[n - 1][2] = 1;
  w.out[size_t(m) - 1][n - 1] = 1;
  return w;
}

size_t emit_input_transform(Emitter& emitter, const InputTransformSpec& spec) {
  return InputTransform(emitter, spec).emit();
}
size_t emit_output_transform(Emitter& emitter, const OutputTransformSpec& spec) {
  return OutputTransform(emitter, spec).emit();
}

}  // namespace hone::cpu
