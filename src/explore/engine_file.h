// SPDX-License-Identifier: Apache-2.0
//
// An engine as exported files describe it: layer information (--exportLayerInfo with detailed verbosity), the profile of its layers
// (--exportProfile) and the times of its queries (--exportTimes), of Hone or of NVIDIA's trtexec.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "explore/tensor_row.h"

namespace hone {

/// What was tried for a layer, as a plan remembers it.
struct TriedTactic {
  std::string tactic, note;  // note: why it was not taken
  double ms = -1;            // -1: not timed
};

struct LayerRow {
  std::string name, type, tactic, precision, origin;  // origin: of reformats, why they are there
  std::vector<std::string> nodes;                     // of the model
  std::vector<TensorRow> inputs, outputs;
  std::string attributes = "{}";  // the whole object of the file, as JSON
  std::vector<TriedTactic> tried;
  int64_t groups = 1;  // of convolutions
  int64_t flops = 0, weight_bytes = 0, activation_bytes = 0;
  double average_ms = 0, median_ms = 0, share = 0;  // share: percent of the profile's time

  int64_t bytes() const { return weight_bytes + activation_bytes; }
};

/// Where a tensor lies in the memory of an inference, and from which layer to which.
struct MemoryPlace {
  std::string tensor;
  int64_t offset = 0, bytes = 0;
  size_t first = 0, last = 0;  // indices of layers
};

/// What a build did one after the other.
struct BuildPhase {
  std::string name;
  int depth = 0;
  double begin_ms = 0, end_ms = 0;
};

/// What a device does at best; 0: not known.
struct Peaks {
  double bytes_per_second = 0, f32_flops = 0, f16_flops = 0, i8_flops = 0;
};

struct EngineRows {
  std::string title;
  std::vector<std::pair<std::string, std::string>> facts;  // of device, build and run, in the order to be shown
  std::vector<LayerRow> layers;
  std::vector<TensorRow> bindings;
  std::map<std::string, std::string> views;  // a tensor that is another one in other words, which it was made of
  std::vector<double> latencies;             // ms, of the queries
  double queries_per_second = 0;             // from the first one's begin to the last one's end; 0: not known
  std::vector<MemoryPlace> memory;           // Hone's engines at fixed sizes have them
  std::vector<BuildPhase> build;             // of an engine that was built for this
  Peaks peaks;
  bool profiled = false;
  int64_t rounds = 0;  // of the profile: how many times each layer was timed; 0: not known

  double total_ms() const;  // of the layers, one inference
};

/// The texts of the three files; an empty one was not given. Throws Error saying which file is wrong and how.
EngineRows read_engine(std::string title, std::string_view graph, std::string_view profile, std::string_view times);

}  // namespace hone
