// SPDX-License-Identifier: Apache-2.0
#include "quantize/input_moments.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"

namespace hone {
namespace {

/// What is added to each square, as a share of their mean: channels that are never used, or are sums of others, stay solvable.
constexpr double kDamping = 0.01;

/// A square matrix, row by row.
class Matrix {
 public:
  explicit Matrix(size_t size) : size_(size), data_(size * size) {}
  double* operator[](size_t row) { return data_.data() + row * size_; }
  const double* operator[](size_t row) const { return data_.data() + row * size_; }
  size_t size() const { return size_; }

 private:
  size_t size_;
  std::vector<double> data_;
};

double dot(const double* a, const double* b, size_t count) {
  constexpr size_t kLanes = 8;
  std::array<double, kLanes> lanes{};
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
  double sum = 0;
  for (; i < count; ++i) sum += a[i] * b[i];
  for (const double lane : lanes) sum += lane;
  return sum;
}

/// The upper triangle R with R Rᵀ = the matrix, in its place; only the upper triangle of the matrix is read.
void factor(Matrix& matrix) {
  const size_t size = matrix.size();
  for (size_t j = size; j-- > 0;) {
    const double* const below = matrix[j] + j + 1;
    const double pivot = std::sqrt(matrix[j][j] - dot(below, below, size - j - 1));
    for (size_t i = 0; i < j; ++i) matrix[i][j] = (matrix[i][j] - dot(matrix[i] + j + 1, below, size - j - 1)) / pivot;
    matrix[j][j] = pivot;
  }
}

/// The inverse of an upper triangle.
Matrix inverse(const Matrix& upper) {
  const size_t size = upper.size();
  Matrix result(size);
  for (size_t i = size; i-- > 0;) {
    double* const row = result[i];
    for (size_t k = i + 1; k < size; ++k) {
      const double share = upper[i][k];
      const double* const other = result[k];
      for (size_t j = k; j < size; ++j) row[j] -= share * other[j];
    }
    for (size_t j = i + 1; j < size; ++j) row[j] /= upper[i][i];
    row[i] = 1 / upper[i][i];
  }
  return result;
}

}  // namespace

InputMoments::InputMoments(size_t channels, bool keeps_products)
    : channels_(channels), keeps_products_(keeps_products), sums_(keeps_products ? channels * channels : channels) {}

void InputMoments::add(std::span<const float> rows) {
  HONE_ASSERT(rows.size() % channels_ == 0, "rows of other than {} channels", channels_);
  HONE_CHECK(std::ranges::all_of(rows, [](float value) { return std::isfinite(value); }), "a value is not finite");
  for (size_t first = 0; first < rows.size(); first += channels_) {
    const float* const row = rows.data() + first;
    if (keeps_products_) {
      for (size_t i = 0; i < channels_; ++i)
        for (size_t j = i; j < channels_; ++j) sums_[i * channels_ + j] += row[i] * row[j];
    } else {
      for (size_t i = 0; i < channels_; ++i) sums_[i] += row[i] * row[i];
    }
  }
  rows_ += rows.size() / channels_;
}

std::vector<float> InputMoments::mean_squares() const {
  std::vector<float> means(channels_);
  for (size_t i = 0; i < channels_; ++i)
    means[i] = sums_[keeps_products_ ? i * channels_ + i : i] / static_cast<float>(std::max<size_t>(rows_, 1));
  return means;
}

std::vector<float> InputMoments::feedback() const {
  HONE_ASSERT(keeps_products_, "the products of channels were not kept");
  Matrix matrix(channels_);
  double squares = 0;
  for (size_t i = 0; i < channels_; ++i) squares += sums_[i * channels_ + i];
  const double damping = squares > 0 ? kDamping * squares / static_cast<double>(channels_) : 1;
  for (size_t i = 0; i < channels_; ++i) {
    std::copy_n(sums_.data() + i * channels_ + i, channels_ - i, matrix[i] + i);
    matrix[i][i] += damping;
  }
  factor(matrix);
  const Matrix upper = inverse(matrix);
  std::vector<float> feedback(channels_ * channels_);
  for (size_t i = 0; i < channels_; ++i)
    for (size_t j = i + 1; j < channels_; ++j)
      feedback[i * channels_ + j] = static_cast<float>(upper[i][j] / upper[i][i]);
  return feedback;
}

}  // namespace hone
