// SPDX-License-Identifier: Apache-2.0
//
// The C interface's benchmark: the measuring loop over contexts of its own.
#include "perf/benchmark.h"

#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/use.h"
#include "runtime/ranks.h"

using hone::StateError;
using hone::capi::ArgumentError;
using hone::capi::guarded;
using hone::capi::require;
using hone::capi::require_index;
using hone::capi::Use;

namespace {

struct BenchmarkStream {
  std::unique_ptr<hone_context> context;
  std::unique_ptr<hone::Query> query;
  bool allocated = false;
};

}  // namespace

struct hone_benchmark : hone::capi::Handle<hone::capi::Kind::benchmark> {
  std::shared_ptr<const hone::Engine> engine;
  std::vector<BenchmarkStream> streams;
  std::vector<hone::Trace> traces;
  hone_query_fn ended = nullptr;
  void* user = nullptr;
};

namespace {

constexpr int kMostStreams = 1024;

BenchmarkStream& stream_of(hone_benchmark* benchmark, int stream) {
  require(benchmark, "benchmark");
  if (stream < 0) throw ArgumentError(fmt::format("stream is {}", stream));
  require_index(static_cast<size_t>(stream), benchmark->streams.size(), "stream");
  return benchmark->streams[static_cast<size_t>(stream)];
}

void require_memory(const BenchmarkStream& stream) {
  if (!stream.allocated)
    throw StateError("there is no memory for the present shapes", "call hone_benchmark_allocate() for each stream");
}

/// The memory was made for other shapes: nothing may go on using it.
void take_memory(BenchmarkStream& stream) {
  if (!std::exchange(stream.allocated, false)) return;
  const hone::Engine& engine = stream.context->context->engine();
  for (const hone::IoTensor& io : engine.plan().io)
    if (!engine.by_value(io.name)) stream.context->context->bind(io.name, nullptr);
}

hone_query_times times_of(const hone::Trace& trace) {
  return {.size = sizeof(hone_query_times),
          .enqueue_start = trace.enqueue_start,
          .enqueue_end = trace.enqueue_end,
          .input_start = trace.h2d_start,
          .input_end = trace.h2d_end,
          .compute_start = trace.compute_start,
          .compute_end = trace.compute_end,
          .output_start = trace.d2h_start,
          .output_end = trace.d2h_end};
}

hone::PerfOptions loop_options(const hone_benchmark_options& given) {
  hone::PerfOptions options;
  options.iterations = given.iterations;
  options.warm_up_ms = given.warm_up_ms;
  options.duration_s = given.duration_ms == -1 ? -1 : given.duration_ms / 1000;
  options.sleep_ms = given.sleep_ms;
  options.idle_ms = given.idle_ms;
  options.threads = given.threads != 0;
  options.expose_dma = given.one_at_a_time != 0;
  return options;
}

/// The contexts belong to this thread, and tell of their layers, as long as it lives.
struct Running {
  explicit Running(hone_context& context) : use(context), times(context), spans(context) {}
  Use use;
  hone::capi::LayerTimes times;
  hone::capi::LayerSpans spans;
};

}  // namespace

hone_status hone_benchmark_create(const hone_engine* engine, int profile, int streams, int data_transfers,
                                  hone_benchmark** benchmark) {
  return guarded([&] {
    require(engine, "engine");
    require(benchmark, "benchmark");
    if (profile < 0) throw ArgumentError(fmt::format("profile is {}", profile));
    require_index(static_cast<size_t>(profile), engine->engine->plan().profiles.size(), "profile");
    if (streams < 1 || streams > kMostStreams)
      throw ArgumentError(fmt::format("streams is {}, there may be 1 to {}", streams, kMostStreams));
    if (streams > 1 && hone::is_divided(engine->engine->plan()))
      throw hone::Error(fmt::format("{} streams are asked for of a network that is divided over ranks", streams),
                        "it runs one inference at a time: measure one stream");
    auto made = std::make_unique<hone_benchmark>();
    made->engine = engine->engine;
    made->streams.resize(static_cast<size_t>(streams));
    for (BenchmarkStream& stream : made->streams) {
      stream.context = std::make_unique<hone_context>(engine->engine, profile);
      stream.context->reshaped = [&stream] { take_memory(stream); };
      stream.query = std::make_unique<hone::Query>(*stream.context->context, data_transfers != 0);
    }
    *benchmark = made.release();
  });
}

hone_context* hone_benchmark_context(const hone_benchmark* benchmark, int stream) {
  hone_context* context = nullptr;
  guarded([&] { context = stream_of(const_cast<hone_benchmark*>(benchmark), stream).context.get(); });
  return context;
}

hone_status hone_benchmark_allocate(hone_benchmark* benchmark, int stream) {
  return guarded([&] {
    BenchmarkStream& of = stream_of(benchmark, stream);
    const Use use(*of.context);
    of.context->flights.settle();
    take_memory(of);
    of.query->allocate();
    of.allocated = true;
  });
}

hone_status hone_benchmark_memory(hone_benchmark* benchmark, int stream, const char* tensor, void** memory,
                                  int64_t* bytes) {
  return guarded([&] {
    BenchmarkStream& of = stream_of(benchmark, stream);
    require(tensor, "tensor");
    require(memory, "memory");
    require(bytes, "bytes");
    require_memory(of);
    const Use use(*of.context);
    const std::vector<hone::IoTensor>& io = benchmark->engine->plan().io;
    const auto found = std::ranges::find(io, std::string_view(tensor), &hone::IoTensor::name);
    HONE_CHECK(found != io.end(), "the engine has no tensor called '{}'", tensor);
    HONE_CHECK(!hone::is_object(found->type.dtype) && found->type.ranked, "{} holds {}, which has no bytes", tensor,
               found->type.text());
    *memory = of.query->host(tensor);
    *bytes = of.context->context->bytes(tensor);
  });
}

hone_status hone_benchmark_run_once(hone_benchmark* benchmark, int stream) {
  return guarded([&] {
    BenchmarkStream& of = stream_of(benchmark, stream);
    require_memory(of);
    const Running running(*of.context);
    hone::capi::on_cores(benchmark->engine->device(), [&] {
      of.query->upload();
      of.query->run(0);
      of.query->download();
    });
  });
}

hone_status hone_benchmark_run(hone_benchmark* benchmark, const hone_benchmark_options* options) {
  return guarded([&] {
    require(benchmark, "benchmark");
    const hone_benchmark_options given =
        options == nullptr ? hone_benchmark_options{.iterations = 10} : hone::capi::taken(options, "options");
    const size_t all = benchmark->streams.size();
    if (given.streams < 0 || static_cast<size_t>(given.streams) > all)
      throw ArgumentError(fmt::format("options->streams is {}, there are {}", given.streams, all));
    const size_t count = given.streams == 0 ? all : static_cast<size_t>(given.streams);
    std::vector<std::unique_ptr<Running>> running;
    std::vector<hone::Query*> queries;
    for (size_t i = 0; i < count; ++i) {
      require_memory(benchmark->streams[i]);
      running.push_back(std::make_unique<Running>(*benchmark->streams[i].context));
      queries.push_back(benchmark->streams[i].query.get());
    }
    std::function<void(const hone::Trace&)> ended;
    if (benchmark->ended != nullptr)
      ended = [benchmark](const hone::Trace& trace) {
        const hone_query_times times = times_of(trace);
        benchmark->ended(benchmark->user, &times);
      };
    std::vector<hone::Trace> traces;
    hone::capi::on_cores(benchmark->engine->device(), [&] {
      for (hone::Query* query : queries) query->upload();
      traces = hone::run_benchmark(queries, loop_options(given), ended);
      queries.front()->download();
    });
    benchmark->traces = std::move(traces);
  });
}

hone_status hone_benchmark_set_query_function(hone_benchmark* benchmark, hone_query_fn function, void* user) {
  return guarded([&] {
    require(benchmark, "benchmark");
    benchmark->ended = function;
    benchmark->user = user;
  });
}

size_t hone_benchmark_queries(const hone_benchmark* benchmark) {
  size_t count = 0;
  guarded([&] {
    require(benchmark, "benchmark");
    count = benchmark->traces.size();
  });
  return count;
}

hone_status hone_benchmark_query(const hone_benchmark* benchmark, size_t index, hone_query_times* times) {
  return guarded([&] {
    require(benchmark, "benchmark");
    require_index(index, benchmark->traces.size(), "query");
    const hone::Trace& trace = benchmark->traces[index];
    hone::capi::fill(times, "times", times_of(trace));
  });
}

void hone_benchmark_destroy(hone_benchmark* benchmark) { hone::capi::destroy(benchmark, "benchmark"); }
