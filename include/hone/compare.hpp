// SPDX-License-Identifier: Apache-2.0
//
// Runs of a model held against each other, as `hone run` does it, beside hone.hpp: what its --gen-script writes are calls of this.
//
//   namespace compare = hone::compare;
//   const compare::Model model{"model.onnx"};
//   const std::vector<compare::Feed> feeds{compare::draw({{"x", {{4, 3}}}})};
//   const compare::Results results{{"cpu-0", compare::all(compare::engine(model), feeds)}, {"ref-0", compare::all(compare::reference(model), feeds)}};
//   const bool good = compare::agree(results, {.atol = {{"", 1e-4}}});
//
// Names of metrics and statistics are Polygraphy's, and so are the numbers that are drawn. compare_files.hpp reads and writes files.
#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <random>

#include "hone/graph.hpp"
#include "hone/hone.hpp"
#include "hone/reference.hpp"

namespace hone::compare {

/// A tensor of its own: elements as they lie in memory, or texts.
struct Array {
  hone_dtype dtype = HONE_F32;
  std::vector<int64_t> sizes = {};
  std::vector<std::byte> bytes = {};
  std::vector<std::string> texts = {};
};
using Feed = std::map<std::string, Array>;
using Run = std::function<Feed(const Feed&)>;
/// By run, an entry for each iteration.
using Results = std::vector<std::pair<std::string, std::vector<Feed>>>;

inline size_t bytes_of(hone_dtype dtype) {
  switch (dtype) {
    case HONE_F64:
    case HONE_I64:
    case HONE_U64: return 8;
    case HONE_F32:
    case HONE_I32:
    case HONE_U32: return 4;
    case HONE_F16:
    case HONE_BF16:
    case HONE_I16:
    case HONE_U16: return 2;
    case HONE_I8:
    case HONE_U8:
    case HONE_BOOL: return 1;
    default:
      throw std::runtime_error(
          "elements of this type are not compared: floats of 16 to 64 bits, integers and bools are");
  }
}
inline size_t count_of(const std::vector<int64_t>& sizes) {
  return static_cast<size_t>(std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>()));
}

namespace detail {

inline float float_of_half(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16, exponent = half >> 10 & 31u, fraction = half & 1023u;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                   : std::ldexp(static_cast<float>(fraction + 1024), static_cast<int>(exponent) - 25);
  return sign == 0 ? size : -size;
}
inline uint16_t half_of_float(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), sign = bits >> 16 & 0x8000u;
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7e00u);
  const float size = std::abs(value);
  if (size >= 65520) return static_cast<uint16_t>(sign | 0x7c00u);
  int exponent = 0;
  std::frexp(size, &exponent);
  // A half has eleven digits, fewer below the smallest normal one; nearbyint takes the even of two.
  const int last = std::max(exponent - 11, -24);
  const auto digits = static_cast<uint32_t>(std::nearbyint(std::ldexp(size, -last)));
  return static_cast<uint16_t>(sign | (last == -24 ? digits : static_cast<uint32_t>(last + 24) * 1024u + digits));
}
inline uint16_t bfloat_of_float(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 64u);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

template <typename T>
T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

inline std::vector<double> numbers_of(const Array& array) {
  const size_t step = bytes_of(array.dtype), count = array.bytes.size() / step;
  std::vector<double> numbers(count);
  for (size_t i = 0; i < count; ++i) {
    const std::byte* from = array.bytes.data() + i * step;
    switch (array.dtype) {
      case HONE_F64: numbers[i] = read<double>(from); break;
      case HONE_F32: numbers[i] = read<float>(from); break;
      case HONE_F16: numbers[i] = float_of_half(read<uint16_t>(from)); break;
      case HONE_BF16: numbers[i] = std::bit_cast<float>(uint32_t{read<uint16_t>(from)} << 16); break;
      case HONE_I64: numbers[i] = static_cast<double>(read<int64_t>(from)); break;
      case HONE_U64: numbers[i] = static_cast<double>(read<uint64_t>(from)); break;
      case HONE_I32: numbers[i] = read<int32_t>(from); break;
      case HONE_U32: numbers[i] = read<uint32_t>(from); break;
      case HONE_I16: numbers[i] = read<int16_t>(from); break;
      case HONE_U16: numbers[i] = read<uint16_t>(from); break;
      case HONE_I8: numbers[i] = read<int8_t>(from); break;
      default: numbers[i] = read<uint8_t>(from);
    }
  }
  return numbers;
}

inline void store(Array& array, size_t at, double value) {
  std::byte* to = array.bytes.data() + at * bytes_of(array.dtype);
  const auto put = [&](auto bits) { std::memcpy(to, &bits, sizeof bits); };
  const auto single = static_cast<float>(value);
  if (array.dtype == HONE_F64) put(value);
  else if (array.dtype == HONE_F16) put(half_of_float(single));
  else if (array.dtype == HONE_BF16) put(bfloat_of_float(single));
  else put(single);
}

inline bool is_float(hone_dtype dtype) {
  return dtype == HONE_F32 || dtype == HONE_F64 || dtype == HONE_F16 || dtype == HONE_BF16;
}

/// NumPy's RandomState: floats of 53 bits from two words; integers by words that are drawn again until they are in range.
class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}

  void reals(Array& array, double low, double high) {
    const double scale = std::isinf(high)  ? high
                         : std::isinf(low) ? low
                                           : high - low,
                 shift = std::isinf(low) ? 0 : low;
    for (size_t i = 0; i < count_of(array.sizes); ++i) {
      const auto a = static_cast<double>(word() >> 5), b = static_cast<double>(word() >> 6);
      store(array, i, (a * 67108864.0 + b) / 9007199254740992.0 * scale + shift);
    }
  }
  void integers(Array& array, int64_t low, int64_t high) {
    const uint64_t most = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
    const uint64_t mask = most == 0 ? 0 : ~uint64_t{0} >> std::countl_zero(most);
    const size_t step = bytes_of(array.dtype);
    left_ = 0;
    for (size_t i = 0; i < count_of(array.sizes); ++i) {
      uint64_t drawn = 0;
      for (bool again = most > 0; again; again = drawn > most)
        drawn = bits(array.dtype == HONE_BOOL ? 1 : 8 * step, most) & mask;
      drawn += static_cast<uint64_t>(low);
      std::memcpy(array.bytes.data() + i * step, &drawn, step);
    }
  }

 private:
  uint32_t word() { return static_cast<uint32_t>(engine_()); }
  /// Types of at most 16 bits take several out of a word.
  uint64_t bits(size_t width, uint64_t most) {
    if (width > 16) {
      const uint64_t upper = most > 0xffffffffu ? uint64_t{word()} << 32 : 0;
      return upper | word();
    }
    if (left_ == 0) {
      held_ = word();
      left_ = 32 / static_cast<int>(width);
    } else {
      held_ >>= width;
    }
    --left_;
    return held_ & ((1u << width) - 1);
  }
  std::mt19937 engine_;
  uint32_t held_ = 0;
  int left_ = 0;
};

using ValueHandle = std::unique_ptr<hone_value, hone::detail::Destroy>;

inline ValueHandle value_of(const Array& array) {
  hone_value* value = nullptr;
  check(hone_value_create_tensor(array.dtype, array.sizes.data(), static_cast<int>(array.sizes.size()),
                                 array.bytes.data(), &value));
  return ValueHandle(value);
}

inline Array array_of(const Value& value) {
  const Tensor tensor = value.describe();
  Array array{tensor.dtype, tensor.dims};
  const size_t count = count_of(tensor.dims);
  if (tensor.dtype == HONE_STRING)
    for (size_t i = 0; i < count; ++i) array.texts.push_back(value.string(i));
  else if (const auto* from = static_cast<const std::byte*>(hone_value_data(value.get())))
    array.bytes.assign(from, from + count * bytes_of(tensor.dtype));
  return array;
}

inline const Array& input_of(const Feed& feed, const std::string& name) {
  if (const auto found = feed.find(name); found != feed.end()) return found->second;
  throw std::runtime_error("there are no values for the input " + name);
}

/// A context and the memory of its outputs.
struct Running {
  Running(const Plan& plan, const std::string& device_name, int profile)
      : device(device_name), engine(plan, device), context(engine, profile) {}

  Feed operator()(const Feed& feed) {
    const std::vector<Tensor> tensors = engine.tensors();
    for (const Tensor& io : tensors)
      if (io.is_input)
        check(hone_context_set_value(context.get(), io.name.c_str(), value_of(input_of(feed, io.name)).get()));
    for (const Tensor& io : tensors) {
      if (io.is_input || io.by_value) continue;
      auto& held = memory[io.name];
      held.resize(static_cast<size_t>(context.bytes(io.name)) / sizeof(std::max_align_t) + 1);
      context.bind(io.name, held.data(), HONE_MEMORY_HOST);
    }
    context.run();
    Feed outputs;
    for (const Tensor& io : tensors)
      if (!io.is_input) outputs.emplace(io.name, array_of(context.output(io.name)));
    return outputs;
  }

  Device device;
  Engine engine;
  Context context;
  std::map<std::string, std::vector<std::max_align_t>> memory = {};
};

}  // namespace detail

/// What is drawn: floats from `low` to `high`, integers with both ends. `contents`: no random numbers but these.
struct Input {
  std::vector<int64_t> sizes;
  hone_dtype dtype = HONE_F32;
  double low = 0, high = 1;
  std::vector<int64_t> contents = {};
};
/// One behind the other from one generator, in this order. `hone run` draws iteration i from its seed + i.
using Inputs = std::vector<std::pair<std::string, Input>>;

inline Feed draw(const Inputs& inputs, uint32_t seed = 1) {
  detail::Random random(seed);
  Feed feed;
  for (const auto& [name, input] : inputs) {
    Array array{input.dtype, input.sizes, std::vector<std::byte>(count_of(input.sizes) * bytes_of(input.dtype))};
    if (!input.contents.empty())
      for (size_t i = 0; i < input.contents.size(); ++i)
        std::memcpy(array.bytes.data() + i * bytes_of(input.dtype), &input.contents[i], bytes_of(input.dtype));
    else if (detail::is_float(input.dtype)) random.reals(array, input.low, input.high);
    else random.integers(array, static_cast<int64_t>(input.low), static_cast<int64_t>(input.high));
    feed.emplace(name, std::move(array));
  }
  return feed;
}

/// An ONNX file, with other tensors as its outputs where some are named; where its external data lie, if not beside it.
struct Model {
  std::string path;
  std::vector<std::string> outputs = {};
  std::string folder = {};

  bool is_as_it_stands() const { return outputs.empty() && folder.empty(); }
  std::string data_folder() const {
    const size_t slash = path.rfind('/');
    if (!folder.empty()) return folder;
    return slash == std::string::npos ? "." : path.substr(0, slash + 1);
  }
  /// With the outputs that are named.
  Graph edited() const {
    Graph graph = Graph::load(path);
    if (!outputs.empty()) {
      const std::vector<GraphTensor> own = graph.tensors(HONE_GRAPH_OUTPUTS);
      for (const GraphTensor& output : own) graph.remove(HONE_GRAPH_OUTPUTS, output.name);
      for (const std::string& output : outputs) {
        const auto known = std::ranges::find(own, output, &GraphTensor::name);
        graph.declare(HONE_GRAPH_OUTPUTS, known == own.end() ? GraphTensor{output} : *known);
      }
    }
    return graph;
  }
  hone::Model load() const {
    if (is_as_it_stands()) return hone::Model::load(path);
    return hone::Model::parse(edited().bytes(), data_folder());
  }
};

/// How an engine is built, and what of it is kept in files.
struct EngineRequest {
  std::vector<std::string> flags = {};  // trtexec's, of builds
  std::vector<std::vector<Range>> profiles = {};
  int profile = 0;
  std::vector<Feed> feeds = {};             // without profiles, sizes that are not fixed are these'
  std::vector<std::string> libraries = {};  // of operators
  std::string load_cache = {}, save_cache = {}, save_plan = {}, save_tactics = {};
};

/// An engine of a plan's file.
inline Run plan(const std::string& path, const std::string& device = "cpu", int profile = 0) {
  const auto running = std::make_shared<detail::Running>(Plan::load(path), device, profile);
  return [running](const Feed& feed) { return (*running)(feed); };
}

/// Hone's operators by their plain meaning, node by node: the golden values.
inline Run reference(const Model& model) {
  const auto loaded = std::make_shared<hone::Model>(model.load());
  const auto golden = std::make_shared<Reference>(*loaded);
  return [loaded, golden](const Feed& feed) {
    const std::vector<Tensor> tensors = loaded->tensors();
    for (const Tensor& io : tensors)
      if (io.is_input)
        check(hone_reference_set_input(golden->get(), io.name.c_str(),
                                       detail::value_of(detail::input_of(feed, io.name)).get()));
    golden->run();
    Feed outputs;
    for (const Tensor& io : tensors)
      if (!io.is_input) outputs.emplace(io.name, detail::array_of(golden->output(io.name)));
    return outputs;
  };
}

inline std::vector<Feed> all(const Run& run, const std::vector<Feed>& feeds) {
  std::vector<Feed> results;
  for (const Feed& feed : feeds) results.push_back(run(feed));
  return results;
}

namespace detail {

/// From the smallest to the largest shape that comes.
inline std::vector<Range> around(const std::vector<Feed>& feeds, const hone::Model& model) {
  std::vector<Range> ranges;
  for (const Tensor& io : model.tensors()) {
    if (feeds.empty() || !io.is_input || std::ranges::find(io.dims, -1) == io.dims.end()) continue;
    const std::vector<int64_t>& first = input_of(feeds[0], io.name).sizes;
    Range& range = ranges.emplace_back(Range{io.name, first, first, first});
    for (const Feed& feed : feeds) {
      const std::vector<int64_t>& sizes = input_of(feed, io.name).sizes;
      for (size_t i = 0; i < std::min(sizes.size(), first.size()); ++i) {
        range.min[i] = std::min(range.min[i], sizes[i]);
        range.max[i] = std::max(range.max[i], sizes[i]);
      }
    }
  }
  return ranges;
}

/// What --save-tactics keeps: layers by name with source and tactic, none of which holds what JSON would escape but quotes.
inline void write_tactics(const Plan& plan, const std::string& path) {
  const auto quoted = [](std::string_view text) {
    std::string out = "\"";
    for (const char each : text) out += each == '"' || each == '\\' ? std::string("\\") + each : std::string(1, each);
    return out + "\"";
  };
  std::ofstream file(path);
  std::string between;
  file << "{\"replay\": {";
  for (const hone_layer& layer : plan.layers()) {
    file << std::exchange(between, ",") << "\n  " << quoted(layer.name)
         << ": {\"implementation\": " << quoted(layer.source) << ", \"tactic\": " << quoted(layer.tactic)
         << R"(, "inputs": [], "outputs": [], "polygraphy_class": "Algorithm"})";
  }
  file << "\n}, \"polygraphy_class\": \"TacticReplayData\"}\n";
  if (!file.flush()) throw std::runtime_error(path + " cannot be written");
}

}  // namespace detail

inline Run engine(const Model& model, const std::string& device_name = "cpu", const EngineRequest& request = {}) {
  for (const std::string& library : request.libraries) check(hone_operator_library_open(library.c_str(), 0, nullptr));
  const Device device(device_name);
  Options options(request.flags);
  for (const std::vector<Range>& ranges : request.profiles) options.add_profile(ranges);
  std::optional<TimingCache> cache;
  if (!request.load_cache.empty()) {
    std::ifstream file(request.load_cache, std::ios::binary);
    if (!file) throw std::runtime_error(request.load_cache + " cannot be read");
    const std::string text(std::istreambuf_iterator<char>(file), {});
    cache.emplace(std::as_bytes(std::span(text)));
  } else if (!request.save_cache.empty()) {
    cache.emplace();
  }
  if (cache) options.set_timing_cache(*cache);
  const hone::Model loaded = model.load();
  if (request.profiles.empty()) {
    const std::vector<Range> ranges = detail::around(request.feeds, loaded);
    if (!ranges.empty()) options.add_profile(ranges);
  }
  const Plan made = Plan::build(loaded, device, options);
  if (cache && !request.save_cache.empty()) {
    const std::span<const std::byte> bytes = cache->bytes();
    std::ofstream file(request.save_cache, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!file.flush()) throw std::runtime_error(request.save_cache + " cannot be written");
  }
  if (!request.save_plan.empty()) made.save(request.save_plan);
  if (!request.save_tactics.empty()) detail::write_tactics(made, request.save_tactics);
  const auto running = std::make_shared<detail::Running>(made, device_name, request.profile);
  return [running](const Feed& feed) { return (*running)(feed); };
}

/// Runs them, after `warm_up` inferences on the first, and prints how long each took.
inline void timed(const std::string& name, const Run& run, const std::vector<Feed>& feeds, int warm_up = 0) {
  for (int i = 0; i < warm_up; ++i) run(feeds.at(0));
  std::vector<double> times;
  for (const Feed& feed : feeds) {
    const auto start = std::chrono::steady_clock::now();
    run(feed);
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  if (times.empty()) return;
  std::ranges::sort(times);
  const auto part = [&](double of) {
    return times[static_cast<size_t>(of * static_cast<double>(times.size() - 1) + 0.5)];
  };
  const double mean = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  std::printf("%s | Latency over %zu iterations: mean %.4g ms, median %.4g ms, p90 %.4g ms, p95 %.4g ms, p99 %.4g ms\n",
              name.c_str(), times.size(), mean, part(0.5), part(0.9), part(0.95), part(0.99));
}

}  // namespace hone::compare

#include "hone/compare_judging.hpp"
