// SPDX-License-Identifier: Apache-2.0
//
// Streams and workers divide the processor's cores, so one number says both; rows are doubled for each of these while that gains. A model is
// built for each setting, since kernels for two workers are others than those for sixteen. The winner's kernels are then timed once more while
// its other streams compute, which leaves them the memory and caches that they will have, and that engine stays if it turns out faster.
#include "tools/commands/bench_throughput.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/text.h"
#include "tools/commands/commands.h"
#include "tools/common/inference.h"
#include "tools/common/model_shapes.h"
#include "tools/common/plan_streams.h"
#include "tools/common/terminal.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostRows = 8;  // where nothing says how many there may be
constexpr double kWorthDoubling = 1.03;
constexpr float kSteadyTail = 3;  // a setting whose p99 is further from its median is taken only where all are such
constexpr int kTurns = 3;
const std::vector<int> kCardStreams = {1, 2, 4, 8};

struct Setting {
  int streams = 1, workers = 0;  // 0: the device has none
  int64_t rows = 1;
};

struct Point {
  Setting at;
  double rows_per_second = 0, median_ms = 0, p99_ms = 0;

  bool steady() const { return p99_ms <= double{kSteadyTail} * median_ms; }
};

/// Whether an answer is expected sooner than it comes here goes before how many come.
bool is_better(const Point& a, const Point& b, double most_ms) {
  const auto rank = [&](const Point& point) { return most_ms > 0 ? point.p99_ms <= most_ms : point.steady(); };
  return rank(a) != rank(b) ? rank(a) : a.rows_per_second > b.rows_per_second;
}

/// No other has both more rows a second and a smaller p99.
bool is_on_frontier(const Point& point, const std::vector<Point>& all) {
  return std::ranges::none_of(all, [&](const Point& other) {
    return other.rows_per_second > point.rows_per_second && other.p99_ms <= point.p99_ms;
  });
}

/// An engine for a setting, and the streams that run it.
class Trial {
 public:
  Trial(const Options& options, const Setting& setting, const Voices& voices)
      : setting_(setting), options_(options), session_(options_, device_for_streams(options_), voices) {
    if (options_.tool.load_engine.empty()) session_.build();
    session_.load();
    inference_.emplace(session_, options_, voices);
    inference_->set_up();
  }

  Point measure() {
    const std::vector<Trace> traces = inference_->measure(options_.perf);
    const auto timed = std::span(traces).subspan(warm_up_queries(traces, static_cast<float>(options_.perf.warm_up_ms)));
    if (timed.empty()) throw Error("no query was measured", "raise -t or -n");
    const float percentiles[] = {50, 99};
    const Summary latency = summarize(round_trips(timed), percentiles);
    return {.at = setting_,
            .rows_per_second = static_cast<double>(setting_.rows) * queries_per_second(timed),
            .median_ms = double{latency.percentiles[0]},
            .p99_ms = double{latency.percentiles[1]}};
  }
  /// Some queries of all streams but one.
  void disturb() {
    PerfOptions perf = options_.perf;
    perf.iterations = 1;
    perf.warm_up_ms = 0;
    perf.duration_s = 0.2;
    inference_->measure(perf, setting_.streams - 1);
  }
  const Options& options() const { return options_; }
  const Setting& setting() const { return setting_; }
  const hone_plan* plan() const { return session_.plan(); }

 private:
  const Setting setting_;
  const Options options_;
  Session session_;
  std::optional<Inference> inference_;
};

/// All streams of a trial but one compute, until this ends.
class Neighbours {
 public:
  explicit Neighbours(Trial& trial)
      : thread_([this, &trial] {
          try {
            while (!ending_) trial.disturb();
          } catch (const std::exception&) {
            failure_ = std::current_exception();
          }
        }) {}
  ~Neighbours() { end(); }
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;
  void stop() {
    end();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void end() {
    ending_ = true;
    if (thread_.joinable()) thread_.join();
  }
  std::atomic<bool> ending_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

/// The open sizes of the inputs, and which rows there may be.
class Rows {
 public:
  Rows(const Options& options, const Voices& voices) : built_(options.tool.load_engine.empty()) {
    if (built_) read_model(options, voices);
    else read_plan(options);
    if (range_.empty() || names_.empty()) return;
    least_ = range_.at(names_[0]).min[0];
    most_ = range_.at(names_[0]).max[0];
    if (built_ && options.tool.shape_arguments.empty()) most_ = kMostRows;
    fixed_ = most_ == least_;
  }

  /// Of a query, in the order of trying; a network without rows has one.
  std::vector<int64_t> counts() const {
    if (fixed_) return {std::max<int64_t>(least_, 1)};
    std::vector<int64_t> all;
    for (int64_t rows = std::max<int64_t>(least_, 1); rows < most_; rows *= 2) all.push_back(rows);
    all.push_back(most_);
    return all;
  }
  /// Shapes to build for and to run with.
  void give(Options& options, int64_t rows) const {
    if (range_.empty()) return;
    ProfileOptions profile = range_;
    for (const std::string& name : names_) {
      ShapeRange& range = profile.at(name);
      range.min[0] = std::min(range.min[0], rows);
      range.opt[0] = range.max[0] = rows;
    }
    options.tool.shapes.clear();
    for (const auto& [name, range] : profile) options.tool.shapes[name] = range.opt;
    if (built_) options.build.profiles = {profile};
  }

 private:
  void read_model(const Options& options, const Voices& voices) {
    const auto model = make<hone_model>(hone_model_create_from_file, options.tool.onnx.c_str(), nullptr);
    const std::vector<NetworkTensor> tensors = tensors_of(model.get());
    if (options.build.profiles.size() > 1) throw Error("--throughput builds for one profile", "leave --profile out");
    const auto profiles = model_profiles(tensors, options.build.profiles, options.tool.shape_arguments, voices.tool);
    if (!profiles.empty()) range_ = profiles[0];
    names_ = inputs_with_rows(tensors);
  }
  void read_plan(const Options& options) {
    const auto plan = make<hone_plan>(hone_plan_create_from_file, options.tool.load_engine.c_str());
    const std::vector<PlanProfile> profiles = profiles_of(plan.get());
    const auto number = static_cast<size_t>(options.tool.use_profile);
    if (number >= profiles.size())
      throw Error(fmt::format("the plan has {} profiles, --useProfile={} is none of them", profiles.size(), number));
    for (const InputRange& range : profiles[number].ranges) range_[range.input] = {range.min, range.opt, range.max};
    for (const auto& [name, dims] : options.tool.shapes)
      if (range_.contains(name)) range_[name] = {dims, dims, dims};
    names_ = inputs_with_rows(tensors_of(plan.get()));
  }

  bool built_, fixed_ = true;
  ProfileOptions range_;  // of inputs with open sizes
  std::vector<std::string> names_;
  int64_t least_ = 1, most_ = 1;
};

/// 1, 2, 4 … and one stream a core; of those that give a stream as many workers the one of most streams.
std::vector<Setting> divisions(const hone_device_info& device) {
  std::vector<Setting> settings;
  if (device.host_accessible == 0) {
    for (const int streams : kCardStreams) settings.push_back({streams, 0, 1});
    return settings;
  }
  const int cores = std::max(device.workers, 1);
  for (int streams = 1; streams < cores; streams *= 2) settings.push_back({streams, cores / streams, 1});
  settings.push_back({cores, 1, 1});
  for (size_t i = settings.size() - 1; i-- > 0;)
    if (settings[i].workers == settings[i + 1].workers)
      settings.erase(settings.begin() + static_cast<std::ptrdiff_t>(i));
  return settings;
}

struct Found {
  std::vector<Point> points;
  std::unique_ptr<Trial> trial;  // of the winner
  Point best;
  std::optional<std::pair<double, double>> turns;  // rows a second of kernels timed alone, and beside the other streams
  bool under_load = false;                         // the latter are in the plan
};

Options options_for(const Options& given, const Setting& setting, const Rows& rows) {
  Options options = given;
  options.perf.streams = setting.streams;
  options.tool.replicas.clear();
  rows.give(options, setting.rows);
  return options;
}

Found search(const Options& given, const Rows& rows, const std::vector<Setting>& divided, double most_ms,
             const Voices& voices) {
  Found found;
  for (Setting setting : divided) {
    double before = 0;
    for (const int64_t count : rows.counts()) {
      setting.rows = count;
      auto trial = std::make_unique<Trial>(options_for(given, setting, rows), setting, voices);
      found.points.push_back(trial->measure());
      const Point& point = found.points.back();
      if (found.trial == nullptr || is_better(point, found.best, most_ms)) {
        found.best = point;
        found.trial = std::move(trial);
      }
      if (point.rows_per_second < kWorthDoubling * before) break;
      before = point.rows_per_second;
    }
  }
  return found;
}

/// Times are those of a machine that is busy: they go into no file, and none of a file are taken.
Options without_cache(const Options& given) {
  Options options = given;
  options.build.timing_cache_file.clear();
  std::erase_if(options.arguments,
                [](const std::string& argument) { return argument.starts_with("--timingCacheFile"); });
  return options;
}

double middle_of(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void tune_under_load(Found& found, const Voices& voices) {
  Neighbours neighbours(*found.trial);
  auto loaded = std::make_unique<Trial>(without_cache(found.trial->options()), found.trial->setting(), voices);
  neighbours.stop();
  std::vector<Point> points;
  std::vector<double> alone, beside;
  for (int turn = 0; turn < kTurns; ++turn) {
    alone.push_back(found.trial->measure().rows_per_second);
    points.push_back(loaded->measure());
    beside.push_back(points.back().rows_per_second);
  }
  found.turns = {middle_of(alone), middle_of(beside)};
  found.under_load = found.turns->second > found.turns->first;
  if (!found.under_load) return;
  std::ranges::sort(points, {}, &Point::rows_per_second);
  found.best = points[points.size() / 2];
  found.trial = std::move(loaded);
}

void save(const Found& found, const std::string& path) {
  const hone_throughput throughput{.size = sizeof(hone_throughput),
                                   .streams = found.best.at.streams,
                                   .workers = found.best.at.workers,
                                   .rows = found.best.at.rows,
                                   .rows_per_second = found.best.rows_per_second,
                                   .median_ms = found.best.median_ms,
                                   .p99_ms = found.best.p99_ms};
  const auto plan = make<hone_plan>(hone_plan_create_with_throughput, found.trial->plan(), &throughput);
  check(hone_plan_save(plan.get(), path.c_str()));
}

Json json_of(const Point& point) {
  return {{"streams", point.at.streams}, {"workers", point.at.workers},
          {"rows", point.at.rows},       {"rowsPerSecond", point.rows_per_second},
          {"medianMs", point.median_ms}, {"p99Ms", point.p99_ms}};
}

Json json_of(const Found& found, const FriendlyLine& line, const hone_device_info& device) {
  Json points = Json::array();
  for (const Point& point : found.points) {
    points.push_back(json_of(point));
    points.back()["onFrontier"] = is_on_frontier(point, found.points);
  }
  Json chosen = json_of(found.best);
  chosen["tunedUnderLoad"] = found.under_load;
  if (found.turns)
    chosen["rowsPerSecondOfTurns"] = {{"tunedAlone", found.turns->first}, {"tunedUnderLoad", found.turns->second}};
  return {{"file", line.file}, {"device", device.name}, {"cores", device.workers},
          {"points", points},  {"chosen", chosen},      {"plan", line.value("-o")}};
}

void print(const Json& result) {
  const Page page;
  page.title(result["file"].get<std::string>());
  page.line("  streams  workers     rows       rows/s    median ms       p99 ms");
  for (const Json& point : result["points"])
    page.line(fmt::format("{:9}{:9}{:9}{:13.1f}{:13.3f}{:13.3f}{}", point["streams"].get<int>(),
                          point["workers"].get<int>(), point["rows"].get<int64_t>(),
                          point["rowsPerSecond"].get<double>(), point["medianMs"].get<double>(),
                          point["p99Ms"].get<double>(), point["onFrontier"].get<bool>() ? "  frontier" : ""));
  const Json& chosen = result["chosen"];
  page.pair("chosen",
            fmt::format("{} streams of {} workers, {} rows a query: {:.1f} rows per second, {:.3f} ms median, "
                        "{:.3f} ms at 99 %",
                        chosen["streams"].dump(), chosen["workers"].dump(), chosen["rows"].dump(),
                        chosen["rowsPerSecond"].get<double>(), chosen["medianMs"].get<double>(),
                        chosen["p99Ms"].get<double>()));
  if (const auto turns = chosen.find("rowsPerSecondOfTurns"); turns != chosen.end())
    page.pair("kernels", fmt::format("{}: timed alone {:.1f} rows per second, beside the other streams {:.1f}",
                                     chosen["tunedUnderLoad"].get<bool>() ? "those timed beside the other streams"
                                                                          : "those timed alone",
                                     (*turns)["tunedAlone"].get<double>(), (*turns)["tunedUnderLoad"].get<double>()));
  const std::string plan = result["plan"].get<std::string>();
  page.pair("next", plan.empty() ? "-o FILE writes the engine with these streams" : "hone bench " + plan);
}

double most_latency(const FriendlyLine& line) {
  if (!line.has("--p99")) return 0;
  const auto ms = parse_real(line.value("--p99"));
  if (!ms || !(*ms > 0)) throw Error(fmt::format("--p99={} is no time", line.value("--p99")), "in ms: --p99 20");
  return *ms;
}

}  // namespace

int run_throughput_search(const FriendlyLine& line) {
  const Logger log = quiet_logger();
  const Voices voices(log, "");
  const double most_ms = most_latency(line);
  if (!line.options.tool.replicas.empty())
    throw Error("--throughput takes one device", "its streams are what computes beside each other");
  const auto opened = make_device(line.options.tool.device);
  const hone_device_info device = info_of(opened.get());
  Found found = search(line.options, Rows(line.options, voices), divisions(device), most_ms, voices);
  if (found.best.at.streams > 1 && device.host_accessible != 0 && line.options.tool.load_engine.empty())
    tune_under_load(found, voices);
  const Json result = json_of(found, line, device);
  if (line.has("-o")) save(found, line.value("-o"));
  if (line.json) fmt::print("{}\n", result.dump(2, ' ', false, Json::error_handler_t::replace));
  else print(result);
  return 0;
}

}  // namespace hone
