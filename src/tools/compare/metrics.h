// SPDX-License-Identifier: Apache-2.0
//
// How far one tensor is from another, and whether that is near enough. Names and rules of Polygraphy; what is added says where and how
// much: counts, first and worst place, units in the last place, and the curve of tolerances that would just pass.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tools/compare/values.h"

namespace hone {

using ByName = std::map<std::string, double, std::less<>>;  // "" for all that are not named
using TextByName = std::map<std::string, std::string, std::less<>>;

struct CompareRequest {
  std::vector<std::string> metrics{"simple"};  // simple, indices, l2, cosine_similarity, psnr, snr
  ByName atol{{"", 1e-5}}, rtol{{"", 1e-5}}, quantile{{"", 0.99}}, index_tolerance{{"", 0}}, l2{{"", 1e-5}},
      cosine{{"", 0.997}}, psnr{{"", 30}}, snr{{"", 20}};
  TextByName stat{{"", "elemwise"}};  // elemwise, max, mean, median, quantile
  bool shape_check = true, infinities_equal = false;
};

/// The value for a name, else the one for all.
double value_for(const ByName& values, const std::string& name, double otherwise);

/// A place where two tensors differ.
struct Place {
  size_t index = 0;
  double found = 0, expected = 0;
};

struct Verdict {
  std::string output, metric;
  bool passed = false;
  std::string problem;  // that nothing could be compared: shapes, types
  // Of "simple".
  std::string stat;
  double atol = 0, rtol = 0, quantile = 0;
  Statistics absolute, relative;
  double needed_abs = 0, needed_rel = 0;
  size_t elements = 0, violations = 0;
  Place first, worst;
  double largest_ulp = 0;  // of floats of one type; -1: not counted
  size_t worst_channel = 0;
  bool has_channels = false, same_bits = false;
  std::vector<std::pair<double, double>> curve;  // (atol, least rtol) that pass, atol ascending
  std::vector<double> absolutes, relatives;      // for texts and pictures; dropped behind them
  void drop_elements() {
    absolutes = std::vector<double>();  // = {} would keep the memory
    relatives = std::vector<double>();
  }
  Dims dims;
  // Of the others: one number and what it is held against.
  double value = 0, threshold = 0;
};

/// One metric on one pair. Shapes that differ are a problem unless the request does not check them.
Verdict compare(const std::string& metric, const std::string& output, const Tensor& found, const Tensor& expected,
                const CompareRequest& request);
/// Judges numbers that were kept with other tolerances.
bool judge_simple(const std::string& stat, double atol, double rtol, double needed_abs, double needed_rel,
                  const std::vector<std::pair<double, double>>& curve);
/// "Cosine Similarity", "L2 Norm", ...
std::string metric_title(const std::string& metric);
/// Whether larger is better.
bool wants_high(const std::string& metric);

/// Nothing but finite values.
struct Finiteness {
  size_t infinities = 0, nans = 0;
};
Finiteness finiteness_of(const Tensor& tensor);

/// "top-3", "top-5,axis=1": places of the largest values, as int64.
Tensor top_places(const Tensor& tensor, int64_t count, int64_t axis);

}  // namespace hone
