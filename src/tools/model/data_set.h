// SPDX-License-Identifier: Apache-2.0
//
// Samples that a network is run on, one batch after the other: only one is in memory at a time, however many there are.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "ir/graph.h"
#include "tools/files/npy.h"

namespace hone {

/// Archives (.npz) with an array for each network input by its name, whose first axis counts the samples; for a network with one
/// input arrays of their own (.npy), too. A folder's files are taken in the order of their names.
class DataSet {
 public:
  /// A file or a folder. A batch has as many samples as the inputs' first size, or one where that is dynamic; the other dynamic sizes
  /// are those of the arrays. Throws Error naming file and input for what does not fit, or when there is not one whole batch.
  DataSet(const std::string& path, const Graph& network);

  /// What a batch is bound at, by input.
  const std::map<std::string, Dims>& shapes() const { return shapes_; }
  size_t batches() const { return batches_; }
  size_t samples() const { return samples_; }
  /// Samples at the ends of files that fill no batch.
  size_t left_over() const { return left_over_; }
  /// Copies an input of a batch to `memory`, converted to the input's type, or to that which it has in another form of the network.
  /// Throws Error for values that the type does not hold.
  void load(size_t batch, const std::string& input, std::span<std::byte> memory, std::optional<DType> type = {});
  /// All inputs of a batch.
  std::map<std::string, Tensor> values(size_t batch);

 private:
  struct Source {
    std::string path;
    size_t batches;
  };
  void add_file(const std::string& path);
  void open(const Source& source);
  int64_t samples_in(const MappedFile& file, const std::string& input, const TensorType& type);

  std::map<std::string, TensorType> inputs_;
  std::map<std::string, Dims> shapes_;
  std::vector<Source> sources_;
  std::shared_ptr<const MappedFile> open_;    // the file that was read last
  std::map<std::string, NpyReader> readers_;  // of its arrays, by input
  size_t batches_ = 0, samples_ = 0, left_over_ = 0;
};

}  // namespace hone
