// SPDX-License-Identifier: Apache-2.0
//
// After the first run at a shape, an inference allocates nothing. This program replaces malloc by one that counts, for all
// threads and libraries, builds small plans that hold every kind of layer, runs each once per shape, and counts what further
// runs allocate while the shapes change. Models in ALLOCATION_MODELS (paths with ':' between) are tried the same way.
//
// oneDNN builds a map of its arguments at every execution, so its kernels are left out here.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>

#include "backends/all.h"
#include "builder/build.h"
#include "onnx/importer.h"
#include "ops/all.h"
#include "runtime/engine.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HONE_COUNTS_ALLOCATIONS 0
#else
#define HONE_COUNTS_ALLOCATIONS 1
#endif

namespace {
std::atomic<bool> g_counting{false};
std::atomic<int64_t> g_allocations{0};

#if HONE_COUNTS_ALLOCATIONS
void note() {
  if (g_counting.load(std::memory_order_relaxed)) g_allocations.fetch_add(1, std::memory_order_relaxed);
}
#endif
}  // namespace

#if HONE_COUNTS_ALLOCATIONS
// Under the names of the C library, so that operator new and every library come here.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

__attribute__((visibility("default"))) void* malloc(size_t bytes) {
  note();
  return __libc_malloc(bytes);
}
__attribute__((visibility("default"))) void* calloc(size_t count, size_t bytes) {
  note();
  return __libc_calloc(count, bytes);
}
__attribute__((visibility("default"))) void* realloc(void* memory, size_t bytes) {
  note();
  return __libc_realloc(memory, bytes);
}
__attribute__((visibility("default"))) void* memalign(size_t alignment, size_t bytes) {
  note();
  return __libc_memalign(alignment, bytes);
}
__attribute__((visibility("default"))) void* aligned_alloc(size_t alignment, size_t bytes) {
  note();
  return __libc_memalign(alignment, bytes);
}
__attribute__((visibility("default"))) int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  note();
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr;
}
}
// NOLINTEND(readability-identifier-naming)
#endif

namespace hone {
namespace {

struct Cpu {
  const Backend* backend = find_backend("cpu");
  std::shared_ptr<Device> device = backend->open(0);
};

/// One shape: the inputs, and memory that is bound for all tensors.
struct Point {
  std::vector<std::string> names;
  std::vector<bool> is_input;
  std::vector<Dims> dims;
  std::vector<AlignedBuffer> buffers;
};

Point make_point(ExecutionContext& context, const Graph& graph, const SymbolValues& symbols) {
  const std::vector<Tensor> inputs = random_inputs(graph.specialize(symbols), 1);
  Point point;
  size_t next = 0;
  for (const IoTensor& io : context.engine().plan().io)
    if (io.is_input) context.set_shape(io.name, inputs[next++].dims());
  next = 0;
  for (const IoTensor& io : context.engine().plan().io) {
    point.names.push_back(io.name);
    point.is_input.push_back(io.is_input);
    point.dims.push_back(context.shape(io.name));
    AlignedBuffer& buffer =
        point.buffers.emplace_back(static_cast<size_t>(std::max<int64_t>(context.bytes(io.name), 1)));
    if (!io.is_input) continue;
    if (const auto bytes = inputs[next].bytes(); !bytes.empty()) std::memcpy(buffer.data(), bytes.data(), bytes.size());
    ++next;
  }
  return point;
}

void run(ExecutionContext& context, Point& point, Stream& stream) {
  for (size_t i = 0; i < point.names.size(); ++i) {
    if (point.is_input[i]) context.set_shape(point.names[i], point.dims[i]);
    context.bind(point.names[i], point.buffers[i].data());
  }
  context.enqueue(stream);
  stream.synchronize();
}

std::string sources_of(const Plan& plan) {
  std::string text;
  for (const Step& step : plan.profiles[0].steps)
    if (step.source == "reference" || step.source == "onednn") text += step.name + " runs on " + step.source + "\n";
  return text;
}

/// Allocations of the second and third round over all shapes.
void expect_no_allocations(const Graph& graph, const ProfileOptions& profile, const std::vector<SymbolValues>& shapes,
                           int level) {
  const Cpu cpu;
  TimingCache cache;
  BuildOptions options{.optimization_level = level, .disabled_sources = {"onednn"}};
  if (!profile.empty()) options.profiles = {profile};
  const auto engine =
      Engine::load(build(graph.clone(), options, *cpu.backend, *cpu.device, cache), *cpu.backend, cpu.device);
  EXPECT_EQ(sources_of(engine->plan()), "");
  const auto context = engine->context();
  const std::unique_ptr<Stream> stream = cpu.device->stream();
  std::vector<Point> points;
  for (const SymbolValues& symbols : shapes) points.push_back(make_point(*context, graph, symbols));
  for (int round = 0; round < 2; ++round)  // the second: memory has grown to the largest shape
    for (Point& point : points) run(*context, point, *stream);
  g_allocations = 0;
  g_counting = true;
  for (int round = 0; round < 2; ++round)
    for (Point& point : points) run(*context, point, *stream);
  g_counting = false;
  EXPECT_EQ(g_allocations.load(), 0);
}

struct Small {
  const char* name;
  const char* text;  // inputs have the symbol N where they are dynamic
};

const Small kGraphs[] = {
    {"Convolutions", R"((%x: f32[N,16,14,14]) {
      %w = constant f32[32,16,3,3]!1
      %d = constant f32[32,1,3,3]!2
      %c = Conv(%x, %w) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1], dilations=[1, 1]}
      %r = Relu(%c)
      %e = Conv(%r, %d) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2], dilations=[1, 1], group=32}
      %m = MaxPool(%e) {kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], dilations=[1, 1]}
      %a = AveragePool(%m) {kernel_shape=[2, 2], strides=[1, 1], pads=[0, 0, 0, 0], dilations=[1, 1]}
      %y = GlobalAveragePool(%a)
      return %y
    })"},
    {"Attention", R"((%i: i64[N,12], %m: i64[N,12]) {
      %t = constant f32[50,32]!1
      %w = constant f32[32,96]!2
      %s = constant f32[32]!3
      %o = constant f32[96,32]!4
      %e = Gather(%t, %i) {axis=0}
      %n = LayerNormalization(%e, %s, %s) {axis=-1}
      %p = Linear(%n, %w)
      %g = Gelu(%p)
      %f = Linear(%g, %o)
      %q = Transpose(%f) {perm=[0, 2, 1]}
      %c = MatMul(%f, %q)
      %k = Cast(%m) {to="f32"}
      %u = constant i64[1]{1}
      %k1 = Unsqueeze(%k, %u)
      %b = Add(%c, %k1)
      %x = Softmax(%b) {axis=-1}
      %y = MatMul(%x, %f)
      return %y
    })"},
    {"Recurrent", R"((%x: f32[7,N,20]) {
      %w = constant f32[2,96,20]!1
      %r = constant f32[2,96,24]!2
      %w1 = constant f32[1,72,24]!3
      %r1 = constant f32[1,72,24]!4
      %a, %h, %c = LSTM(%x, %w, %r) {direction="bidirectional"}
      %l = constant i64[1]{1}
      %s = ReduceSum(%a, %l) {keepdims=0}
      %y, %z = GRU(%s, %w1, %r1) {direction="forward"}
      return %y, %z, %c
    })"},
    {"Resizing", R"((%x: f32[N,8,9,11]) {
      %s = constant i64[2]{30, 40}
      %t = constant i64[2]{6, 7}
      %a = Resize(%x, _, _, %s) {mode="linear", axes=[2, 3]}
      %y = Resize(%a, _, _, %t) {mode="cubic", axes=[2, 3]}
      return %y
    })"},
    {"Indices", R"((%x: f32[N,6,5], %i: i64[N,6,2], %u: f32[N,6,2]) {
      %g = GatherElements(%x, %i) {axis=2}
      %s = ScatterElements(%x, %i, %u) {axis=2, reduction="add"}
      %p = constant i64[2,1]{0, -1}
      %n = GatherND(%x, %p)
      %v = constant f32[1,6,5]!7
      %q = constant i64[1,1]{0}
      %d = ScatterND(%x, %q, %v)
      return %g, %s, %n, %d
    })"},
    {"Shapes", R"((%x: i64[N,5]) {
      %s = Shape(%x)
      %z = ConstantOfShape(%s)
      %a = constant i64[]{0}
      %o = constant i64[]{1}
      %n = Gather(%s, %a) {axis=0}
      %r = Range(%a, %n, %o)
      %c = Cast(%r) {to="i32"}
      %k = constant i32[]{3}
      %m = Mul(%c, %k)
      %t = Trilu(%x) {upper=0}
      %l = Less(%x, %t)
      %w = Where(%l, %x, %t)
      %e = EyeLike(%x) {k=1}
      return %z, %m, %w, %e
    })"},
    {"Axes", R"((%x: f32[N,6,8,5], %i: i64[N,9]) {
      %s = constant f32[6]!1
      %g = GroupNormalization(%x, %s, %s) {num_groups=3}
      %n = InstanceNormalization(%g, %s, %s)
      %l = LRN(%n) {size=3}
      %p = LpNormalization(%l) {axis=1}
      %d = constant i64[8]{0, 0, 1, 2, 0, 0, 1, 0}
      %q = Pad(%p, %d) {mode="reflect"}
      %k = constant i64[1]{2}
      %v, %t = TopK(%q, %k) {axis=-1}
      %a = ArgMax(%q) {axis=1, keepdims=0}
      %c0 = constant i64[]{1}
      %c = CumSum(%i, %c0)
      %k0 = constant i64[1]{1}
      %r = ReduceSum(%c, %k0) {keepdims=0}
      %b = BitwiseAnd(%i, %c)
      %e = Einsum(%p, %x) {equation="nchw,ndhw->ncd"}
      %f = constant f32[]{0.05}
      %z = QuantizeLinear(%e, %f)
      %y = DequantizeLinear(%z, %f)
      return %v, %t, %a, %r, %b, %y
    })"},
    {"Halves", R"((%x: f16[N,8,12,12]) {
      %w = constant f16[16,8,3,3]!1
      %c = Conv(%x, %w) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1], dilations=[1, 1]}
      %r = Relu(%c)
      %g = GlobalAveragePool(%r)
      %m = Softmax(%g) {axis=1}
      %y = Cast(%m) {to="f32"}
      return %y
    })"},
};

TEST(Allocations, NoneAfterTheFirstRunOfAnyLayer) {
  if (!HONE_COUNTS_ALLOCATIONS) GTEST_SKIP() << "a sanitizer counts";
  for (const Small& small : kGraphs) {
    SCOPED_TRACE(small.name);
    const Graph graph = parse_graph(small.text, find_op);
    ProfileOptions profile;
    for (const Value* input : graph.inputs())
      profile[input->name] = {input->type.shape.evaluate({{"N", 1}}), input->type.shape.evaluate({{"N", 2}}),
                              input->type.shape.evaluate({{"N", 8}})};
    expect_no_allocations(graph, profile, {{{"N", 2}}, {{"N", 8}}, {{"N", 1}}, {{"N", 5}}}, 0);
  }
}

TEST(Allocations, TheCountingCounts) {
  if (!HONE_COUNTS_ALLOCATIONS) GTEST_SKIP() << "a sanitizer counts";
  g_allocations = 0;
  g_counting = true;
  {
    const std::vector<int> numbers(1000, 1);
    EXPECT_EQ(numbers[999], 1);
  }
  g_counting = false;
  EXPECT_EQ(g_allocations.load(), 1);
}

TEST(Allocations, NoneInTheModelsThatAreGiven) {
  const char* given = std::getenv("ALLOCATION_MODELS");
  if (given == nullptr || !HONE_COUNTS_ALLOCATIONS) GTEST_SKIP() << "no models are given";
  for (std::string_view rest = given; !rest.empty();) {
    const std::string path(rest.substr(0, rest.find(':')));
    rest.remove_prefix(std::min(rest.size(), path.size() + 1));
    SCOPED_TRACE(path);
    const Graph graph = import_onnx(path, silent_logger()).graph;
    std::set<std::string> names;
    for (const Value* input : graph.inputs())
      for (const Dim& dim : input->type.shape) dim.collect_symbols(names);
    const auto all = [&](int64_t size) {
      SymbolValues symbols;
      for (const std::string& name : names) symbols[name] = size;
      return symbols;
    };
    ProfileOptions profile;
    for (const Value* input : graph.inputs())
      profile[input->name] = {input->type.shape.evaluate(all(1)), input->type.shape.evaluate(all(1)),
                              input->type.shape.evaluate(all(3))};
    const std::vector<SymbolValues> shapes = names.empty() ? std::vector{all(1)} : std::vector{all(1), all(3), all(2)};
    expect_no_allocations(graph, profile, shapes, 0);
  }
}

}  // namespace
}  // namespace hone
