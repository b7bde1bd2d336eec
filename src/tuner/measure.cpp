// SPDX-License-Identifier: Apache-2.0
//
// Rotation of candidates with early discard; medians. A sample launches the same kernel several times in one recording, as
// a step inside a chain would be, so that the cost of entering a parallel region is spread. Each launch reads another copy
// of the weights: between two inferences the rest of the network has pushed them out of the caches, and a kernel that trades
// arithmetic for larger weights (Winograd) must not be timed as if they stayed. One launch comes before all that: it shows
// whether the result is right, and who takes long needs fewer, or no more.
#include "tuner/measure.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <future>
#include <map>
#include <optional>

#include "base/clock.h"
#include "tensor/layout.h"
#include "tuner/few_rows.h"

namespace hone {
namespace {

constexpr uint64_t kSeed = 1;
constexpr size_t kMinLaunches = 4, kMaxLaunches = 16;
constexpr double kShortMs = 0.5;                 // a launch whose entry counts
constexpr double kLongSampleMs = 10;             // what enters and leaves so seldom needs no further launches
constexpr double kHopeless = 4;                  // a long launch this many times as long as another's is not repeated
constexpr size_t kColdBytes = size_t{48} << 20;  // copies of the weights together, where that many fit

/// A loaded candidate with its own buffers.
struct Runner {
  Candidate* candidate;
  Compiled compiled;
  std::shared_ptr<const Kernel> kernel;
  std::vector<ConcreteType> in, out;
  std::vector<Buffer> outputs, constants;
  Buffer workspace;
  std::unique_ptr<Recording> recording;
  Launch launch = {};   // without constants
  size_t copies = 1;    // of the weights
  double alone_ms = 0;  // what a launch took by itself
  size_t launches = 1;  // per recording
  int replays = 1;      // recordings per sample
  std::vector<double> samples;
  double median() const {
    std::vector<double> sorted = samples;
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

std::vector<ConcreteType> concrete(std::span<Value* const> values, std::span<const Layout> layouts) {
  std::vector<ConcreteType> types;
  for (size_t i = 0; i < values.size(); ++i)
    types.push_back(
        {values[i]->type.dtype, values[i]->type.shape.values(), i < layouts.size() ? layouts[i] : Layout::linear});
  return types;
}

class Measurer {
 public:
  Measurer(const Problem& problem, const Backend& backend, Device& device, const MeasureOptions& options)
      : problem_(problem),
        backend_(backend),
        device_(device),
        options_(options),
        stream_(device.stream()),
        few_(with_two_entries(problem.region)),
        inputs_(random_inputs(few_ ? *few_ : problem.region, kSeed)) {}

  void run(std::span<Candidate*> candidates) {
    std::vector<Runner> runners;
    std::vector<std::future<Compiled>> compiling = compile(candidates);
    for (size_t i = 0; i < candidates.size(); ++i) {
      Candidate* candidate = candidates[i];
      candidate->timed_now = true;
      try {
        Runner runner = load(*candidate, compiling[i].get());
        const std::unique_ptr<Recording> once = device_.record({with_weights(runner, 0)});
        runner.alone_ms = replay_ms(*once);
        check(runner);
        if (candidate->timing.ms < 0) continue;
        if (runner.alone_ms > kShortMs)
          runner.alone_ms = std::min(runner.alone_ms, replay_ms(*once));  // code was loaded
        shortest_ms_ = std::min(shortest_ms_, runner.alone_ms);
        if (runner.alone_ms > kLongSampleMs && runner.alone_ms > kHopeless * shortest_ms_) {
          candidate->timing = {runner.alone_ms, 0, 1, ""};
          continue;
        }
        record(runner);
        runners.push_back(std::move(runner));
      } catch (const Error& error) {
        candidate->timing = {-1, 0, 0, error.message()};
      }
    }
    sample(runners);
    for (Runner& runner : runners) {
      const double median = runner.median();
      double deviation = 0;
      for (const double s : runner.samples) deviation = std::max(deviation, std::abs(s - median));
      runner.candidate->timing = {median, median > 0 ? deviation / median : 0, static_cast<int>(runner.samples.size()),
                                  ""};
    }
  }

 private:
  Buffer upload(std::span<const std::byte> bytes) {
    Buffer buffer(device_, std::max<size_t>(bytes.size(), 1));
    device_.copy(buffer.data(), bytes.data(), bytes.size(), *stream_);
    return buffer;
  }

  /// Side by side where that takes long, else when the result is asked for.
  std::vector<std::future<Compiled>> compile(std::span<Candidate*> candidates) const {
    std::vector<std::future<Compiled>> results;
    for (const Candidate* candidate : candidates)
      results.push_back(
          std::async(candidate->source->compiles_slowly() ? std::launch::async : std::launch::deferred,
                     [this, candidate] { return candidate->source->compile(problem_, candidate->tactic); }));
    return results;
  }

  /// An input in the layout that a candidate wants. Candidates share it: none writes to its inputs.
  const void* input(size_t index, const ConcreteType& type) {
    const auto known = uploaded_.find({index, type.layout});
    if (known != uploaded_.end()) return known->second.data();
    ConcreteType given = type;
    given.dims = inputs_[index].dims();
    const AlignedBuffer converted(static_cast<size_t>(std::max<int64_t>(given.bytes(), 1)));
    convert_layout(inputs_[index].bytes().data(), converted.data(), given.dtype, given.dims, Layout::linear,
                   given.layout);
    Buffer buffer(device_, static_cast<size_t>(std::max<int64_t>(type.bytes(), 1)));
    if (!few_) {
      device_.copy(buffer.data(), converted.data(), static_cast<size_t>(type.bytes()), *stream_);
    } else {
      const int64_t count = type.dims[0], entry = type.bytes() / count;
      for (int64_t i = 0; i < count; ++i)
        device_.copy(static_cast<std::byte*>(buffer.data()) + i * entry,
                     converted.data() + repeated_entry(i, count) * entry, static_cast<size_t>(entry), *stream_);
    }
    stream_->synchronize();  // before the host's copy goes
    return uploaded_.emplace(std::pair(index, type.layout), std::move(buffer)).first->second.data();
  }

  Runner load(Candidate& candidate, Compiled compiled) {
    Runner runner{.candidate = &candidate,
                  .compiled = std::move(compiled),
                  .kernel = {},
                  .in = {},
                  .out = {},
                  .outputs = {},
                  .constants = {},
                  .workspace = {},
                  .recording = {},
                  .samples = {}};
    runner.in = concrete(problem_.region.inputs(), candidate.tactic.in);
    runner.out = concrete(problem_.region.outputs(), candidate.tactic.out);
    runner.kernel = backend_.load(device_, candidate.tactic.source, runner.compiled.code,
                                  {runner.in, runner.out, problem_.symbols});
    Launch launch;
    launch.kernel = runner.kernel;
    for (size_t i = 0; i < runner.in.size(); ++i) launch.inputs.push_back(input(i, runner.in[i]));
    for (const ConcreteType& type : runner.out) {
      runner.outputs.emplace_back(device_, static_cast<size_t>(std::max<int64_t>(type.bytes(), 1)));
      launch.outputs.push_back(runner.outputs.back().data());
    }
    size_t weight_bytes = 1;
    for (const Tensor& constant : runner.compiled.constants) weight_bytes += constant.bytes().size();
    for (const Tensor& constant : runner.compiled.constants) runner.constants.push_back(upload(constant.bytes()));
    runner.workspace = Buffer(device_, runner.kernel->workspace_bytes());
    launch.workspace = runner.workspace.data();
    runner.launch = std::move(launch);
    runner.copies = std::clamp<size_t>(kColdBytes / weight_bytes, 1, kMaxLaunches);
    return runner;
  }

  /// The launch with one of the copies of the weights.
  static Launch with_weights(const Runner& runner, size_t copy) {
    Launch launch = runner.launch;
    const size_t count = runner.compiled.constants.size();
    for (size_t k = 0; k < count; ++k) launch.constants.push_back(runner.constants[copy * count + k].data());
    return launch;
  }

  double replay_ms(Recording& recording) {
    stream_->synchronize();
    const double start = now_ms();
    recording.replay(*stream_);
    stream_->synchronize();
    return now_ms() - start;
  }

  /// As many launches as spread the cost of entering and see cold weights, but no more than a sample has time for.
  void record(Runner& runner) {
    runner.launches = std::clamp(runner.copies, kMinLaunches, kMaxLaunches);
    if (runner.alone_ms > kShortMs)
      runner.launches = std::clamp<size_t>(static_cast<size_t>(kLongSampleMs / runner.alone_ms), 1, runner.launches);
    runner.copies = std::min(runner.copies, runner.launches);
    for (size_t copy = 1; copy < runner.copies; ++copy)
      for (const Tensor& constant : runner.compiled.constants) runner.constants.push_back(upload(constant.bytes()));
    std::vector<Launch> launches;
    for (size_t i = 0; i < runner.launches; ++i) launches.push_back(with_weights(runner, i % runner.copies));
    runner.recording = device_.record(std::move(launches));
  }

  /// The first, one in the middle and the last.
  static std::vector<int64_t> checked_entries(int64_t count) { return {0, count / 2, count - 1}; }

  /// What the reference makes of the inputs: of the entries that are checked.
  std::vector<Tensor> expected() const {
    std::vector<Tensor> results = evaluate(few_ ? *few_ : problem_.region, inputs_);
    if (!few_) return results;
    const int64_t count = problem_.region.inputs()[0]->type.shape[0].value();
    for (Tensor& result : results) {
      const size_t entry = result.bytes().size() / 2;
      Dims dims = result.dims();
      dims[0] = static_cast<int64_t>(checked_entries(count).size());
      TensorBuilder picked(result.dtype(), dims);
      std::byte* at = picked.bytes();
      for (const int64_t index : checked_entries(count)) {
        std::memcpy(at, result.bytes().data() + static_cast<size_t>(repeated_entry(index, count)) * entry, entry);
        at += entry;
      }
      result = picked.finish();
    }
    return results;
  }

  /// Rejects a candidate whose outputs differ from the reference evaluation.
  void check(Runner& runner) {
    if (reference_.empty()) reference_ = expected();
    for (size_t i = 0; i < runner.out.size(); ++i) {
      ConcreteType type = runner.out[i];
      const int64_t entry = few_ ? type.bytes() / type.dims[0] : type.bytes();
      const std::vector<int64_t> entries = few_ ? checked_entries(type.dims[0]) : std::vector<int64_t>{0};
      if (few_) type.dims[0] = static_cast<int64_t>(entries.size());
      AlignedBuffer raw(static_cast<size_t>(type.bytes())),
          linear(static_cast<size_t>(byte_size(type.dtype, type.dims)));
      for (size_t k = 0; k < entries.size(); ++k)
        device_.copy(raw.data() + static_cast<int64_t>(k) * entry,
                     static_cast<const std::byte*>(runner.outputs[i].data()) + entries[k] * entry,
                     static_cast<size_t>(entry), *stream_);
      stream_->synchronize();
      convert_layout(raw.data(), linear.data(), type.dtype, type.dims, type.layout, Layout::linear);
      const double error = relative_error(Tensor(type.dtype, type.dims, Blob::own(std::move(linear))), reference_[i]);
      const double allowed = tolerance_of(type.dtype);
      if (!(error <= allowed)) {
        runner.candidate->timing = {
            -1, 0, 0, fmt::format("rejected: differs from the reference by {:.2g} (allowed {:.2g})", error, allowed)};
        return;
      }
    }
    runner.candidate->timing.ms = 0;
  }

  /// A small float may be rounded to the other side.
  double tolerance_of(DType dtype) const {
    return std::max(options_.tolerance, dtype == DType::f16 ? 1e-3 : dtype == DType::bf16 ? 8e-3 : 0.0);
  }

  template <typename ValueOf>
  static double relative_error(int64_t count, const ValueOf& found, const ValueOf& expected) {
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < count; ++i) {
      const double x = found(i), y = expected(i);
      if (x == y || (std::isnan(x) && std::isnan(y))) {
        norm += std::isfinite(y) ? y * y : 0;
        continue;
      }
      difference += (x - y) * (x - y);
      norm += y * y;
    }
    return difference == 0 ? 0 : std::sqrt(difference / std::max(norm, 1e-30));
  }

  static double relative_error(const Tensor& a, const Tensor& b) {
    const auto any = [](const Tensor& tensor) { return [&tensor](int64_t i) { return tensor.real(i); }; };
    const auto floats = [](const Tensor& tensor) {
      return [values = tensor.data<float>()](int64_t i) { return double{values[static_cast<size_t>(i)]}; };
    };
    return a.dtype() == DType::f32 ? relative_error(a.size(), floats(a), floats(b))
                                   : relative_error(a.size(), any(a), any(b));
  }

  double time_once(Runner& runner) {
    const double start = now_ms();
    for (int i = 0; i < runner.replays; ++i) runner.recording->replay(*stream_);
    stream_->synchronize();
    return (now_ms() - start) / (runner.replays * static_cast<double>(runner.launches));
  }

  void sample(std::vector<Runner>& runners) {
    for (Runner& runner : runners) {
      runner.recording->replay(*stream_);  // a device may do more the second time: capture a graph
      stream_->synchronize();
      const double once = time_once(runner) * static_cast<double>(runner.launches);
      runner.replays = std::clamp(static_cast<int>(options_.sample_ms / std::max(once, 1e-4)), 1, 64);
    }
    for (int round = 0; round < options_.repeats; ++round) {
      double best = 1e30;
      for (const Runner& runner : runners)
        if (!runner.samples.empty()) best = std::min(best, runner.median());
      for (Runner& runner : runners)
        if (round == 0 || runner.median() <= best * options_.discard_ratio) runner.samples.push_back(time_once(runner));
    }
  }

  const Problem& problem_;
  const Backend& backend_;
  Device& device_;
  const MeasureOptions& options_;
  std::unique_ptr<Stream> stream_;
  double shortest_ms_ = 1e30;  // of the first launches of candidates that are right
  std::optional<Graph> few_;   // what is evaluated where the batch is large
  std::vector<Tensor> inputs_, reference_;
  std::map<std::pair<size_t, Layout>, Buffer> uploaded_;
};

}  // namespace

void measure(const Problem& problem, std::span<Candidate> candidates, const Backend& backend, Device& device,
             const MeasureOptions& options, TimingCache& cache) {
  std::vector<Candidate*> unknown;
  for (Candidate& candidate : candidates) {
    if (const Timing* known = cache.find(candidate.key)) candidate.timing = *known;
    else unknown.push_back(&candidate);
  }
  if (unknown.empty()) return;
  Measurer(problem, backend, device, options).run(unknown);
  for (const Candidate* candidate : unknown) cache.put(candidate->key, candidate->timing);
}

}  // namespace hone
