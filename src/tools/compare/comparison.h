// SPDX-License-Identifier: Apache-2.0
//
// Runs held against each other, iteration by iteration as they come, so that none has to be kept. What is printed has Polygraphy's
// labels; what is found is kept as numbers for JSON, for the accuracy file and for the line that names the first divergence.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/companion/narrator.h"
#include "tools/compare/metrics.h"
#include "tools/compare/model_face.h"
#include "tools/compare/tensor_files.h"

namespace hone {

struct ComparisonRequest {
  CompareRequest compare;
  std::string pairs = "first";  // or neighbour, all
  bool fail_fast = false, average = false, allow_unmatched = false;
  std::string heat_maps, error_plots;  // folders
};

/// Two runs, by their places in the list of runs.
struct RunPair {
  size_t first = 0, second = 0;
  std::string first_name, second_name;
  std::vector<std::vector<Verdict>> iterations;
  std::vector<std::string> unmatched;
  /// Of an iteration: nothing failed and nothing was left out.
  bool passed(size_t iteration, bool allow_unmatched) const;
};

class Comparison {
 public:
  /// `order` and `producers` are the model's, for the first divergence; may be empty.
  Comparison(ComparisonRequest request, const std::vector<std::string>& runners, std::vector<Produced> producers,
             const Narrator& narrator);

  /// An iteration's outputs by all runs, in their order. False where --fail-fast ends it all.
  bool add(const std::vector<TensorList>& outputs);
  /// Prints the summaries; whether all passed.
  bool finish();

  const std::vector<RunPair>& pairs() const { return pairs_; }
  /// Name, of the first pair; "" where all agree.
  const std::string& first_divergence() const { return first_divergence_; }
  Json json() const;
  /// What --save-accuracy-results writes.
  std::string kept_accuracy() const;

 private:
  bool compare_pair(RunPair& pair, const TensorList& found, const TensorList& expected, size_t iteration);
  bool compare_outputs(RunPair& pair, const TensorList& found, const TensorList& expected, size_t iteration);
  bool average_passed(const RunPair& pair) const;
  void tell_divergence(const RunPair& pair);
  std::string producer_text(const std::string& tensor) const;

  const ComparisonRequest request_;
  const std::vector<Produced> producers_;
  const Narrator& narrator_;
  std::vector<RunPair> pairs_;
  std::string first_divergence_, agreement_;
};

/// The mean of a metric over iterations, judged; of `simple` with the means of its statistic.
bool judge_average(const std::vector<const Verdict*>& iterations, double& mean_abs, double& mean_rel);

/// Prints a verdict as its metric does.
void tell_verdict(const Verdict& verdict, const Tensor& found, const Tensor& expected, const Narrator& narrator);

/// SVG files of the errors of one output, a grid for each of its images.
void write_heat_maps(const std::string& folder, const Verdict& verdict, size_t iteration);
/// Its errors over the size of what is expected.
void write_error_plot(const std::string& folder, const Verdict& verdict, const Tensor& expected, size_t iteration);

}  // namespace hone
