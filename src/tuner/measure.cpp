// SPDX-License-Identifier: Apache-2.0
//
// Rotation of candidates with early discard; medians. A sample launches the same kernel several times in one recording, as
// a step inside a chain would be, so that the cost of entering a parallel region is spread. Each launch reads another copy
// of the weights: between two inferences the rest of the network has pushed them out of the caches, and a kernel that trades
// arithmetic for larger weights (Winograd) must not be timed as if they stayed.
//
// Whoever is timed is right as users run it, not only once: two launches come before all that, on two sets of inputs, and one
// behind it, each on outputs and a workspace that hold NaNs. Who takes long needs fewer launches, or no more.
#include "tuner/measure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <future>
#include <map>
#include <optional>
#include <tuple>

#include "base/clock.h"
#include "ir/custom.h"
#include "tensor/difference.h"
#include "tensor/layout.h"
#include "tuner/few_rows.h"

namespace hone {
namespace {

constexpr uint64_t kSeeds[] = {1, 2};  // of the sets of inputs
constexpr size_t kMinLaunches = 4, kMaxLaunches = 16;
constexpr double kShortMs = 0.5;                 // a launch whose entry counts
constexpr double kLongSampleMs = 10;             // what enters and leaves so seldom needs no further launches
constexpr double kHopeless = 4;                  // a long launch this many times as long as another's is not repeated
constexpr size_t kColdBytes = size_t{48} << 20;  // copies of the weights together, where that many fit

constexpr std::string_view kNotTimed = "not timed: the build was told to stop";

/// Whether the reference says what must come out: not of a program's operator that has no function for the host, or draws.
bool has_one_meaning(const Graph& region) {
  return std::ranges::none_of(region.nodes(), [](const Node* node) {
    const CustomOperator* op = node->op->custom;
    return op != nullptr && (op->random || !op->on_host);
  });
}

/// An operand that all candidates share: what they read, and what it holds in turn.
struct SharedInput {
  Buffer present;
  std::array<Buffer, std::size(kSeeds)> sets;
};

/// A loaded candidate with its own buffers.
struct Runner {
  Candidate* candidate;
  Compiled compiled;
  std::shared_ptr<const Kernel> kernel;
  KernelShapes shapes;
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

class Measurer {
 public:
  Measurer(const Problem& problem, LoadAhead& ahead, Device& device, const MeasureOptions& options)
      : problem_(problem), ahead_(ahead), device_(device), options_(options), stream_(device.stream()) {}

  void run(std::span<Candidate*> candidates) {
    few_ = with_two_entries(problem_.region);
    if (!few_ && std::ranges::all_of(candidates, is_linear)) few_ = with_two_rows(problem_.region);
    for (const uint64_t seed : kSeeds) inputs_.push_back(random_inputs(evaluated(), seed));
    std::vector<Runner> runners;
    load_ahead(candidates);
    for (Candidate* candidate : candidates) {
      if (!runners.empty() && stopped()) {
        candidate->timing = {-1, 0, 0, std::string(kNotTimed)};
        continue;
      }
      candidate->timed_now = true;
      const NamedRange range(candidate->tactic.text());
      try {
        Runner runner = prepare(*candidate);
        const std::unique_ptr<Recording> once = device_.record({with_weights(runner, 0)});
        runner.alone_ms = examine(runner, *once, 0, "the first inference");
        if (candidate->timing.ms < 0) continue;
        // The first may have loaded code; a device may do more the second time: capture a graph.
        runner.alone_ms =
            std::min(runner.alone_ms, examine(runner, *once, 1, "the second inference, on other values,"));
        if (candidate->timing.ms < 0) continue;
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
    give(0);
    sample(runners);
    for (Runner& runner : runners) {
      examine(runner, *runner.recording, 0, "an inference after many others");
      if (runner.candidate->timing.ms < 0) continue;
      const double median = runner.median();
      double deviation = 0;
      for (const double s : runner.samples) deviation = std::max(deviation, std::abs(s - median));
      runner.candidate->timing = {median, median > 0 ? deviation / median : 0, static_cast<int>(runner.samples.size()),
                                  ""};
    }
  }

 private:
  /// In whose memory the rows of a batch of one follow each other.
  static bool is_linear(const Candidate* candidate) {
    const auto linear = [](Layout layout) { return layout == Layout::linear; };
    return std::ranges::all_of(candidate->tactic.in, linear) && std::ranges::all_of(candidate->tactic.out, linear);
  }

  /// What the reference is asked about.
  const Graph& evaluated() const { return few_ ? few_->region : problem_.region; }

  Buffer upload(std::span<const std::byte> bytes) {
    Buffer buffer(device_, std::max<size_t>(bytes.size(), 1));
    device_.copy(buffer.data(), bytes.data(), bytes.size(), *stream_);
    return buffer;
  }

  void load_ahead(std::span<Candidate*> candidates) {
    std::vector<LoadAhead::Request> requests;
    for (const Candidate* candidate : candidates) requests.push_back({&problem_, candidate});
    ahead_.load(requests, {});
  }

  /// An input in the layout that a candidate wants. Candidates share it: none writes to its inputs.
  const void* input(size_t index, const ConcreteType& type) {
    SharedInput& shared = shared_[{index, type.layout}];
    if (shared.present.data() != nullptr) return shared.present.data();
    shared.present = Buffer(device_, static_cast<size_t>(std::max<int64_t>(type.bytes(), 1)));
    for (size_t set = 0; set < shared.sets.size(); ++set) {
      shared.sets[set] = Buffer(device_, shared.present.size());
      fill(shared.sets[set], type, inputs_[set][index]);
    }
    return shared.present.data();
  }

  /// The values in the operand's layout; where they are of two entries, these in turn.
  void fill(const Buffer& buffer, const ConcreteType& type, const Tensor& values) {
    ConcreteType given = type;
    given.dims = values.dims();
    const AlignedBuffer converted(static_cast<size_t>(std::max<int64_t>(given.bytes(), 1)));
    convert_layout(values.bytes().data(), converted.data(), given.dtype, given.dims, Layout::linear, given.layout);
    if (given.dims == type.dims) {
      device_.copy(buffer.data(), converted.data(), static_cast<size_t>(type.bytes()), *stream_);
    } else {
      const int64_t count = few_->count, entry = type.bytes() / count;
      for (int64_t i = 0; i < count; ++i)
        device_.copy(static_cast<std::byte*>(buffer.data()) + i * entry,
                     converted.data() + repeated_entry(i, count) * entry, static_cast<size_t>(entry), *stream_);
    }
    stream_->synchronize();  // before the host's copy goes
  }

  /// What candidates read from now on.
  void give(size_t set) {
    for (auto& [operand, shared] : shared_)
      device_.copy(shared.present.data(), shared.sets[set].data(), shared.present.size(), *stream_);
  }

  Runner prepare(Candidate& candidate) {
    Loaded loaded = ahead_.take({&problem_, &candidate});
    Runner runner{.candidate = &candidate,
                  .compiled = std::move(loaded.compiled),
                  .kernel = std::move(loaded.kernel),
                  .shapes = std::move(loaded.shapes),
                  .outputs = {},
                  .constants = {},
                  .workspace = {},
                  .recording = {},
                  .samples = {}};
    Launch launch;
    launch.kernel = runner.kernel;
    for (size_t i = 0; i < runner.shapes.inputs.size(); ++i) launch.inputs.push_back(input(i, runner.shapes.inputs[i]));
    for (const ConcreteType& type : runner.shapes.outputs) {
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

  /// What the reference makes of a set of inputs: of the entries that are checked.
  std::vector<Tensor> expected(size_t set) const {
    std::vector<Tensor> results = evaluate(evaluated(), inputs_[set]);
    if (!few_) return results;
    const int64_t count = few_->count;
    for (Tensor& result : results) {
      const size_t entry = result.bytes().size() / 2;
      Dims dims = result.dims();
      dims[few_->axis] = static_cast<int64_t>(checked_entries(count).size());
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

  /// Of all sets at once, side by side: nothing is timed meanwhile.
  const std::vector<Tensor>& reference_of(size_t set) {
    if (reference_.empty()) {
      std::vector<std::future<std::vector<Tensor>>> results;
      for (size_t i = 0; i < inputs_.size(); ++i)
        results.push_back(std::async(std::launch::async, [this, i] { return expected(i); }));
      for (std::future<std::vector<Tensor>>& result : results) reference_.push_back(result.get());
    }
    return reference_[set];
  }

  /// One replay on a set of inputs and memory that held something else; how long it took. Rejects a candidate whose outputs
  /// differ from the reference evaluation.
  double examine(Runner& runner, Recording& recording, size_t set, std::string_view which) {
    for (const Buffer& output : runner.outputs) device_.fill(output.data(), kPoison, output.size(), *stream_);
    device_.fill(runner.workspace.data(), kPoison, runner.workspace.size(), *stream_);
    recording.poison(*stream_);
    give(set);
    const double ms = replay_ms(recording);
    check(runner, set, which);
    return ms;
  }

  void check(Runner& runner, size_t set, std::string_view which) {
    for (size_t i = 0; comparable_ && i < runner.shapes.outputs.size(); ++i) {
      const double error = relative_difference(found(runner, i), reference_in(set, i, runner.shapes.outputs[i].layout));
      const double allowed = tolerance_of(runner.shapes.outputs[i].dtype, *problem_.region.outputs()[i]);
      if (!(error <= allowed)) {
        runner.candidate->timing = {
            -1, 0, 0,
            fmt::format("rejected: {} differs from the reference by {:.2g} (allowed {:.2g})", which, error, allowed)};
        return;
      }
    }
    runner.candidate->timing.ms = 0;
  }

  /// The entries of an output that are checked, linear or as bytes_alike() has them.
  Tensor found(const Runner& runner, size_t output) {
    ConcreteType type = runner.shapes.outputs[output];
    const int64_t entry = few_ ? type.bytes() / few_->count : type.bytes();
    const std::vector<int64_t> entries = few_ ? checked_entries(few_->count) : std::vector<int64_t>{0};
    if (few_) type.dims[few_->axis] = static_cast<int64_t>(entries.size());
    AlignedBuffer raw(static_cast<size_t>(type.bytes()));
    for (size_t k = 0; k < entries.size(); ++k)
      device_.copy(raw.data() + static_cast<int64_t>(k) * entry,
                   static_cast<const std::byte*>(runner.outputs[output].data()) + entries[k] * entry,
                   static_cast<size_t>(entry), *stream_);
    stream_->synchronize();
    if (bytes_alike(type.layout)) return Tensor(type.dtype, type.dims, Blob::own(std::move(raw)));
    AlignedBuffer linear(static_cast<size_t>(byte_size(type.dtype, type.dims)));
    convert_layout(raw.data(), linear.data(), type.dtype, type.dims, type.layout, Layout::linear);
    return Tensor(type.dtype, type.dims, Blob::own(std::move(linear)));
  }

  /// Whether a layout holds an element for each of the linear one's and nothing else: then it is compared as it lies.
  static bool bytes_alike(Layout layout) { return layout == Layout::linear || layout == Layout::channels_last; }

  /// What found() is compared with.
  const Tensor& reference_in(size_t set, size_t output, Layout layout) {
    const Tensor& reference = reference_of(set)[output];
    if (layout == Layout::linear || !bytes_alike(layout)) return reference;
    std::optional<Tensor>& known = references_in_layouts_[{set, output, layout}];
    if (!known) {
      AlignedBuffer raw(reference.bytes().size());
      convert_layout(reference.bytes().data(), raw.data(), reference.dtype(), reference.dims(), Layout::linear, layout);
      known.emplace(reference.dtype(), reference.dims(), Blob::own(std::move(raw)));
    }
    return *known;
  }

  /// A small float, or a byte that is made of floats, may be rounded to the other side.
  double tolerance_of(DType dtype, const Value& output) const {
    const Node* maker = output.producer;
    const bool rounded = is_integer(dtype) && bits_of(dtype) == 8 && maker != nullptr && !maker->inputs.empty() &&
                         maker->input(0) != nullptr && is_float(maker->input(0)->type.dtype);
    return std::max(options_.tolerance, dtype == DType::f16    ? 1e-3
                                        : dtype == DType::bf16 ? 8e-3
                                        : rounded              ? 2e-3
                                                               : 0.0);
  }

  double time_once(Runner& runner) {
    const double start = now_ms();
    for (int i = 0; i < runner.replays; ++i) runner.recording->replay(*stream_);
    stream_->synchronize();
    return (now_ms() - start) / (runner.replays * static_cast<double>(runner.launches));
  }

  bool stopped() const { return options_.stop && options_.stop(); }

  void sample(std::vector<Runner>& runners) {
    for (Runner& runner : runners) {
      runner.recording->replay(*stream_);
      stream_->synchronize();
      const double once = time_once(runner) * static_cast<double>(runner.launches);
      runner.replays = std::clamp(static_cast<int>(options_.sample_ms / std::max(once, 1e-4)), 1, 64);
    }
    for (int round = 0; round < options_.repeats && (round == 0 || !stopped()); ++round) {
      double best = 1e30;
      for (const Runner& runner : runners)
        if (!runner.samples.empty()) best = std::min(best, runner.median());
      for (Runner& runner : runners)
        if (round == 0 || runner.median() <= best * options_.discard_ratio) runner.samples.push_back(time_once(runner));
    }
  }

  const Problem& problem_;
  LoadAhead& ahead_;
  Device& device_;
  const MeasureOptions& options_;
  std::unique_ptr<Stream> stream_;
  double shortest_ms_ = 1e30;  // of the first launches of candidates that are right
  const bool comparable_ = has_one_meaning(problem_.region);
  std::optional<FewEntries> few_;                        // where there are many entries or rows
  std::vector<std::vector<Tensor>> inputs_, reference_;  // by set
  std::map<std::tuple<size_t, size_t, Layout>, std::optional<Tensor>> references_in_layouts_;  // by set and output
  std::map<std::pair<size_t, Layout>, SharedInput> shared_;
};

}  // namespace

void measure(const Problem& problem, std::span<Candidate> candidates, LoadAhead& ahead, Device& device,
             const MeasureOptions& options, TimingCache& cache) {
  std::vector<Candidate*> unknown;
  for (Candidate& candidate : candidates) {
    if (const Timing* known = cache.find(candidate.key)) candidate.timing = *known;
    else unknown.push_back(&candidate);
  }
  if (unknown.empty()) return;
  Measurer(problem, ahead, device, options).run(unknown);
  for (const Candidate* candidate : unknown)
    if (candidate->timing.note != kNotTimed) cache.put(candidate->key, candidate->timing);
}

}  // namespace hone
