// SPDX-License-Identifier: Apache-2.0

#include "report/time_line.h"

#include <algorithm>
#include <set>

#include "report/text.h"
#include "tensor/json.h"

namespace hone {
namespace {

constexpr size_t kMostSlices = 200'000;  // of a run: what a viewer still opens at once

std::string arguments_of(const TimeLineLayer& layer) {
  Json values{{"kind", layer.kind}, {"tactic", layer.tactic}, {"nodes", layer.nodes}};
  if (layer.flops > 0) values["flops"] = layer.flops;
  if (layer.bytes > 0) values["bytes"] = layer.bytes;
  return values.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// The list of events as it grows; times in ms, written in us.
class Events {
 public:
  void process(int id, std::string_view name) { name_of("process_name", id, 0, name); }
  void track(int process, int id, std::string_view name) {
    if (named_.emplace(process, id).second) name_of("thread_name", process, id, name);
  }
  void slice(int process, int track, const std::string& name, double begin, double end, const std::string& arguments) {
    add(fmt::format(R"({{"ph":"X","pid":{},"tid":{},"name":{},"ts":{:.3f},"dur":{:.3f}{}}})", process, track, name,
                    begin * 1e3, std::max(end - begin, 0.0) * 1e3, arguments.empty() ? "" : ",\"args\":" + arguments));
  }
  void counter(int process, std::string_view name, std::string_view unit, double at, int64_t value) {
    add(fmt::format(R"({{"ph":"C","pid":{},"name":"{}","ts":{:.3f},"args":{{"{}":{}}}}})", process, name, at * 1e3,
                    unit, value));
  }
  std::string take() { return R"({"displayTimeUnit":"ms","traceEvents":[)" + text_ + "\n]}\n"; }

 private:
  void name_of(std::string_view what, int process, int track, std::string_view name) {
    add(fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", what, process, track,
                    json_text(name)));
  }
  void add(std::string_view event) {
    text_ += text_.empty() ? "\n" : ",\n";
    text_ += event;
  }

  std::string text_;
  std::set<std::pair<int, int>> named_;
};

/// Tracks of a kind, as many as there are things at a time.
class Lanes {
 public:
  size_t lane(double begin, double end) {
    const auto free = std::ranges::find_if(ends_, [begin](double last) { return last <= begin; });
    if (free == ends_.end()) return ends_.push_back(end), ends_.size() - 1;
    *free = end;
    return static_cast<size_t>(free - ends_.begin());
  }

 private:
  std::vector<double> ends_;
};

void add_queries(Events& events, std::span<const Trace> queries) {
  constexpr int kProcess = 1, kLanes = 256;  // of a kind
  constexpr std::string_view kParts[] = {"enqueue", "copy in", "compute", "copy out"};
  events.process(kProcess, "queries");
  Lanes lanes[std::size(kParts)];
  for (size_t i = 0; i < std::min(queries.size(), kMostSlices / std::size(kParts)); ++i) {
    const Trace& query = queries[i];
    const std::pair<float, float> times[] = {{query.enqueue_start, query.enqueue_end},
                                             {query.h2d_start, query.h2d_end},
                                             {query.compute_start, query.compute_end},
                                             {query.d2h_start, query.d2h_end}};
    for (size_t part = 0; part < std::size(kParts); ++part) {
      const auto [begin, end] = times[part];
      if (end <= begin) continue;
      const size_t lane = lanes[part].lane(double{begin}, double{end});
      const int track = static_cast<int>(part) * kLanes + static_cast<int>(lane) + 1;
      events.track(kProcess, track,
                   lane == 0 ? std::string(kParts[part]) : fmt::format("{} {}", kParts[part], lane + 1));
      events.slice(kProcess, track, fmt::format("\"query {}\"", i), double{begin}, double{end}, {});
    }
  }
}

/// How many queries are between the beginning of their first copy and the end of their last.
void add_queries_in_flight(Events& events, std::span<const Trace> queries) {
  std::vector<std::pair<float, int>> changes;
  for (const Trace& query : queries.first(std::min(queries.size(), kMostSlices / 4))) {
    changes.emplace_back(std::min(query.h2d_start, query.compute_start), 1);
    changes.emplace_back(std::max(query.d2h_end, query.compute_end), -1);
  }
  std::ranges::sort(changes);
  int64_t count = 0;
  for (const auto& [at, change] : changes) events.counter(1, "queries in flight", "count", double{at}, count += change);
}

/// Where each inference begins: with its query, where those are as many; else behind the one before.
void place(std::vector<std::vector<TimeLineSlice>>& inferences, std::span<const Trace> queries) {
  double behind = 0;
  for (size_t i = 0; i < inferences.size(); ++i) {
    const double start =
        queries.size() == inferences.size() ? std::max(behind, double{queries[i].compute_start}) : behind;
    for (TimeLineSlice& slice : inferences[i]) {
      slice.begin += start, slice.end += start;
      behind = std::max(behind, slice.end);
    }
  }
}

double end_of(std::span<const std::vector<TimeLineSlice>> inferences) {
  double end = 0;
  for (const std::vector<TimeLineSlice>& slices : inferences)
    for (const TimeLineSlice& slice : slices) end = std::max(end, slice.end);
  return end;
}

}  // namespace

size_t TimeLine::index_of(std::string_view name) const {
  return static_cast<size_t>(std::ranges::find(layers_, name, &TimeLineLayer::name) - layers_.begin());
}

void TimeLine::layer(std::string_view name, double milliseconds) {
  size_t at = next_;
  while (at < layers_.size() && layers_[at].name != name) ++at;
  if (at == layers_.size()) at = index_of(name);
  if (at == layers_.size()) return;
  if (profiled_.empty() || at < next_) profiled_.emplace_back();
  std::vector<TimeLineSlice>& slices = profiled_.back();
  const double begin = slices.empty() ? 0 : slices.back().end;
  slices.push_back({at, 0, begin, begin + milliseconds});
  next_ = at + 1;
}

void TimeLine::end_layers(std::span<const Trace> queries) { place(profiled_, queries); }

void TimeLine::end_inferences(std::span<const Trace> queries) { place(inferences_, queries); }

std::string TimeLine::json() const {
  std::vector<std::string> names, arguments;
  for (const TimeLineLayer& layer : layers_) {
    names.push_back(json_text(layer.name));
    arguments.push_back(arguments_of(layer));
  }
  Events events;
  add_queries(events, queries_);
  add_queries_in_flight(events, queries_);
  double start = 0;  // of a run
  for (const Trace& query : queries_) start = std::max({start, double{query.compute_end}, double{query.d2h_end}});
  const auto add_run = [&](int process, std::span<const std::vector<TimeLineSlice>> inferences, bool one_by_one) {
    size_t slices = 0;
    for (const std::vector<TimeLineSlice>& inference : inferences) {
      slices += inference.size();
      if (slices > kMostSlices) break;
      for (const TimeLineSlice& slice : inference) {
        if (slice.end <= slice.begin) continue;  // a view
        events.track(process, slice.worker + 1,
                     one_by_one ? "layers" : fmt::format("{} {}", gpu_ ? "stream" : "worker", slice.worker));
        events.slice(process, slice.worker + 1, names[slice.layer], start + slice.begin, start + slice.end,
                     one_by_one ? arguments[slice.layer] : std::string());
        if (one_by_one)
          events.counter(process, "activations", "bytes", start + slice.begin, layers_[slice.layer].activations);
      }
    }
    start += end_of(inferences);
  };
  events.process(2, "layers one by one");
  add_run(2, profiled_, true);
  if (!inferences_.empty()) events.process(3, gpu_ ? "GPU streams" : "workers");
  add_run(3, inferences_, false);
  return events.take();
}

}  // namespace hone
