// SPDX-License-Identifier: Apache-2.0
//
// The run side of trtexec: contexts and their data, the measured run, the profiled run, and what is told about them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "report/circumstances.h"
#include "report/layer_profile.h"
#include "report/tensors.h"
#include "report/time_line.h"
#include "tools/common/session.h"

namespace hone {

/// A measured run.
struct Measurement {
  std::vector<Trace> traces;                  // of all devices, warm-up included
  size_t warm_up = 0;                         // how many of them
  std::vector<std::vector<Trace>> by_device;  // the same, of each
  Circumstances circumstances;

  std::span<const Trace> timed() const { return std::span(traces).subspan(warm_up); }
};

double queries_per_second(std::span<const Trace> timed);

class Inference {
 public:
  Inference(const Session& session, const Options& options, const Voices& voices);

  /// Contexts, shapes, memory and inputs of all streams.
  void set_up();
  /// From now on what is measured here runs on those others, too: each with its streams, on a device of its own.
  void run_beside(std::vector<Inference*> others) { beside_ = std::move(others); }
  /// Measures, reports, dumps, profiles, as asked for.
  void run();
  /// Holds the outputs against the references that were given; says what is off. True without references.
  bool validate();
  Measurement measure_all();
  /// Of all streams, or of the first ones; warm-up included.
  std::vector<Trace> measure(const PerfOptions& perf, int streams = 0);
  /// Measures once more, layer by layer.
  LayerProfile profile_layers(const ProfileCeilings& ceilings, const PerfOptions& perf);
  /// What --trace writes: of the measured run, of the profile, and of a short run in which workers tell what they are at.
  void write_time_line();
  /// One inference on the inputs of the first stream.
  void run_once();
  /// Inputs and outputs of the first stream as they are now.
  std::vector<BoundTensor> tensors();
  /// Of the measured run; 0 when there was none.
  double mean_compute_ms() const { return mean_compute_ms_; }
  /// What validate() found, by output.
  const std::vector<std::pair<std::string, double>>& losses() const { return losses_; }
  /// The shapes that run.
  const InputShapes& shapes() const { return shapes_; }

 private:
  void set_up_stream(int stream);
  void fill_inputs(int stream);
  std::span<std::byte> memory(const std::string& tensor, int stream = 0) const;
  hone_context* context(int stream = 0) const { return hone_benchmark_context(benchmark_.get(), stream); }
  void report_allocation(int64_t bytes) const;
  bool validate_pair(const ReferencePair& pair);
  std::vector<std::vector<Trace>> measure_everywhere();
  std::vector<float> closed_loop(std::span<const Trace> timed);
  void measure_and_report();
  void report_tensors();
  void reserve(hone_context* context) const;
  void report_profile(const LayerProfile& profile);

  const Session& session_;
  const Options& options_;
  const Voices& voices_;
  InputShapes shapes_;
  Owned<hone_benchmark> benchmark_;
  std::vector<Inference*> beside_;
  double mean_compute_ms_ = 0;
  std::vector<std::pair<std::string, double>> losses_;
  std::optional<TimeLine> time_line_;  // where one is asked for
};

/// --dumpLayerInfo and --exportLayerInfo; without shapes, dynamic sizes are -1.
void report_layers(const Session& session, const ReportOptions& options, const InputShapes& shapes, const Logger& log);
/// --dumpOptimizationProfile.
void report_optimization_profiles(const Session& session, const Logger& log);
/// What the device has been seen to do at best.
ProfileCeilings ceilings_of(hone_device* device);
/// Writes a report's file; throws Error with the path when it cannot.
void export_text(const std::string& path, const std::string& text);

}  // namespace hone
