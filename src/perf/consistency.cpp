// SPDX-License-Identifier: Apache-2.0
#include "perf/consistency.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <exception>
#include <thread>

#include "base/error.h"
#include "tensor/difference.h"
#include "tensor/layout.h"

namespace hone {
namespace {

using Outputs = std::map<std::string, Tensor>;

/// Layers are timed, and the times forgotten.
class IgnoringProfiler final : public Profiler {
 public:
  void layer(const Step&, double) override {}
};

/// The network's memory at one set of shapes, twice, so that bindings can change.
struct Memory {
  using Bound = std::map<std::string, Buffer>;
  std::array<Bound, 2> device;
};

/// One context in a stream of its own. Inferences are queued: nothing is waited for before finish().
class Lane {
 public:
  Lane(const std::shared_ptr<const Engine>& engine, int profile, std::span<const NetworkInputs> inputs)
      : inputs_(inputs),
        device_(engine->device()),
        context_(engine->context(profile)),
        stream_(device_.stream()),
        memory_(inputs.size()) {
    for (size_t at = inputs.size(); at-- > 0;) set_shapes(at);
  }
  ExecutionContext& context() { return *context_; }

  /// From now on inferences have these shapes.
  void set_shapes(size_t at) {
    at_ = at;
    for (const auto& [name, dims] : inputs_[at].shapes) context_->set_shape(name, dims);
    for (Memory::Bound& bound : memory_[at].device)
      for (const IoTensor& io : context_->engine().plan().io)
        if (!context_->engine().by_value(io.name) && !bound.contains(io.name))
          bound[io.name] = Buffer(device_, byte_count(io.name));
    bind(0);
  }
  void bind(size_t which) {
    bound_ = which;
    for (const auto& [name, buffer] : memory_[at_].device[which]) context_->bind(name, buffer.data());
  }
  void enqueue(size_t set) {
    for (const auto& [name, values] : inputs_[at_].sets[set])
      device_.copy(memory_[at_].device[bound_].at(name).data(), values.data(), byte_count(name), *stream_);
    context_->enqueue(*stream_);
    Pending& pending = pending_.emplace_back();
    for (const IoTensor& io : context_->engine().plan().io) {
      if (io.is_input || is_object(io.type.dtype) || !io.type.ranked) continue;
      if (context_->engine().by_value(io.name)) {
        pending.values.emplace(io.name, copy_of(context_->value(io.name)));
        continue;
      }
      Buffer host(device_, byte_count(io.name), MemoryKind::host);
      device_.copy(host.data(), memory_[at_].device[bound_].at(io.name).data(), host.size(), *stream_);
      pending.raw.push_back({&io, context_->shape(io.name), std::move(host)});
    }
  }
  /// The outputs of all inferences that were queued, in order.
  std::vector<Outputs> finish() {
    stream_->synchronize();
    std::vector<Outputs> results;
    for (Pending& pending : pending_) {
      for (const Raw& raw : pending.raw) pending.values.emplace(raw.io->name, linear(raw));
      results.push_back(std::move(pending.values));
    }
    pending_.clear();
    return results;
  }
  Outputs run(size_t set) {
    enqueue(set);
    return std::move(finish().front());
  }

 private:
  struct Raw {
    const IoTensor* io;
    Dims dims;
    Buffer host;
  };
  struct Pending {
    std::vector<Raw> raw;
    Outputs values;
  };

  size_t byte_count(const std::string& tensor) {
    return static_cast<size_t>(std::max<int64_t>(context_->bytes(tensor), 1));
  }
  static Tensor copy_of(const Tensor& tensor) {
    return Tensor(tensor.dtype(), tensor.dims(), Blob::copy(tensor.bytes()));
  }
  static Tensor linear(const Raw& raw) {
    AlignedBuffer values(static_cast<size_t>(byte_size(raw.io->type.dtype, raw.dims)));
    convert_layout(static_cast<const std::byte*>(raw.host.data()), values.data(), raw.io->type.dtype, raw.dims,
                   raw.io->type.layout, Layout::linear);
    return Tensor(raw.io->type.dtype, raw.dims, Blob::own(std::move(values)));
  }

  std::span<const NetworkInputs> inputs_;
  Device& device_;
  std::unique_ptr<ExecutionContext> context_;
  std::unique_ptr<Stream> stream_;
  std::vector<Memory> memory_;  // by index into inputs_
  std::vector<Pending> pending_;
  size_t at_ = 0, bound_ = 0;
};

class Checker {
 public:
  Checker(std::shared_ptr<const Engine> engine, int profile, std::span<const NetworkInputs> inputs, int inferences)
      : engine_(std::move(engine)),
        profile_(profile),
        inputs_(inputs),
        often_(std::max(inferences, 2)),
        seldom_(std::max(inferences / 10, 4)) {
    for (const IoTensor& io : engine_->plan().io)
      if (io.is_input && engine_->by_value(io.name))
        throw Error(fmt::format("input {} holds {}, which has no bytes to bind", io.name, io.type.text()),
                    "run such models through the C or Python interface");
  }

  Consistency run() {
    Lane lane(engine_, profile_, inputs_);
    for (size_t set = 0; set < sets(); ++set) result_.first.push_back(lane.run(set));
    repeat("again and again", lane, often_, [](int) {});
    lane.context().set_poison(true);
    repeat("on memory that holds NaNs", lane, often_, [](int) {});
    lane.context().set_poison(false);
    repeat("with other bindings each time", lane, seldom_, [&](int i) { lane.bind(static_cast<size_t>(i) % 2); });
    lane.bind(0);
    IgnoringProfiler profiler;
    lane.context().set_profiler(&profiler);
    repeat("layer by layer", lane, 2, [](int) {});
    lane.context().set_profiler(nullptr);
    queue("many queued at once", lane);
    together();
    if (inputs_.size() > 1) change_shapes(lane);
    repeat("after all that", lane, seldom_, [](int) {});
    return std::move(result_);
  }

 private:
  size_t sets() const { return inputs_[0].sets.size(); }

  static void compare(Situation& situation, const Outputs& found, const Outputs& expected) {
    ++situation.inferences;
    bool same = true;
    for (const auto& [name, want] : expected) {
      const Tensor& have = found.at(name);
      if (have.dims() == want.dims() && std::ranges::equal(have.bytes(), want.bytes())) continue;
      same = false;
      const double difference = relative_difference(have, want), by = std::isnan(difference) ? INFINITY : difference;
      if (by < situation.largest) continue;
      situation.largest = by;
      situation.tensor = name;
    }
    situation.different += same ? 0 : 1;
  }

  template <typename Before>
  void repeat(const char* name, Lane& lane, int count, const Before& before) {
    Situation situation{.name = name};
    for (int i = 0; i < count; ++i) {
      before(i);
      const size_t set = static_cast<size_t>(i) % sets();
      compare(situation, lane.run(set), result_.first[set]);
    }
    result_.situations.push_back(std::move(situation));
  }

  std::vector<Outputs> queued(Lane& lane, size_t begin) const {
    for (int i = 0; i < seldom_; ++i) lane.enqueue((begin + static_cast<size_t>(i)) % sets());
    return lane.finish();
  }

  void compare_queued(Situation& situation, std::span<const Outputs> outputs, size_t begin) const {
    for (size_t i = 0; i < outputs.size(); ++i) compare(situation, outputs[i], result_.first[(begin + i) % sets()]);
  }

  void queue(const char* name, Lane& lane) {
    Situation situation{.name = name};
    compare_queued(situation, queued(lane, 0), 0);
    result_.situations.push_back(std::move(situation));
  }

  /// Two contexts, each in a thread and a stream of its own, on different values at a time.
  void together() {
    constexpr size_t kLanes = 2;
    std::array<std::vector<Outputs>, kLanes> outputs;
    std::array<std::exception_ptr, kLanes> failures;
    std::vector<std::jthread> threads;
    for (size_t at = 0; at < kLanes; ++at)
      threads.emplace_back([&, at] {
        try {
          Lane lane(engine_, profile_, inputs_);
          outputs[at] = queued(lane, at);
        } catch (const std::exception&) {
          failures[at] = std::current_exception();
        }
      });
    threads.clear();  // joins
    Situation situation{.name = "in two contexts at once"};
    for (size_t at = 0; at < kLanes; ++at) {
      if (failures[at]) std::rethrow_exception(failures[at]);
      compare_queued(situation, outputs[at], at);
    }
    result_.situations.push_back(std::move(situation));
  }

  void change_shapes(Lane& lane) {
    Situation situation{.name = "between other shapes"};
    std::vector<Outputs> first(inputs_.size());
    for (int round = 0; round < 2; ++round)
      for (size_t at = 1; at < inputs_.size(); ++at) {
        lane.set_shapes(at);
        Outputs other = lane.run(0);
        if (round == 0) first[at] = std::move(other);
        else compare(situation, other, first[at]);
        lane.set_shapes(0);
        for (size_t set = 0; set < sets(); ++set) compare(situation, lane.run(set), result_.first[set]);
      }
    result_.situations.push_back(std::move(situation));
  }

  std::shared_ptr<const Engine> engine_;
  int profile_;
  std::span<const NetworkInputs> inputs_;
  int often_, seldom_;
  Consistency result_;
};

}  // namespace

bool Consistency::good() const {
  return std::ranges::all_of(situations, [](const Situation& situation) { return situation.different == 0; });
}

Consistency check_consistency(const std::shared_ptr<const Engine>& engine, int profile,
                              std::span<const NetworkInputs> inputs, int inferences) {
  HONE_CHECK(!inputs.empty() && inputs[0].sets.size() >= 2, "a check takes two sets of inputs");
  return Checker(engine, profile, inputs, inferences).run();
}

}  // namespace hone
