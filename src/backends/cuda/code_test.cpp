// SPDX-License-Identifier: Apache-2.0
//
// What can be tested without a GPU: that generated code compiles for every architecture, and that code in a plan is checked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>

#include "backends/cuda/run/sources.h"
#include "backends/cuda/support/divisor.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/parameters.h"
#include "backends/cuda/support/place.h"
#include "backends/cuda/support/signature.h"
#include "backends/cuda/tactic_table.h"
#include "device/coverage_testing.h"
#include "device/fields_testing.h"

namespace hone::cuda {
namespace {

std::vector<Tactic> offers_of(const Problem& problem) {
  Candidates candidates;
  source().propose(problem, candidates);
  return candidates.offers();
}

/// Where there is no driver, one that does nothing takes its place (tests/cuda/stub_driver.c), so that kernels can be loaded.
class Driver final : public testing::Environment {
 public:
  void SetUp() override {
    const char* given = std::getenv("HONE_CUDA_PATH");
    const std::string folder = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "stub_driver";
    setenv("HONE_CUDA_PATH", (given == nullptr ? folder : given + (":" + folder)).c_str(), 1);
    // NVRTC looks for a driver when it first compiles; that one has no answers for it, so it must not be there yet.
    if (nvrtc_library().found()) compile_cubin("", "sm_90");
  }
};
const testing::Environment* const g_driver = testing::AddGlobalTestEnvironment(new Driver);

KernelShapes shapes_at(const Graph& symbolic, int64_t n, const std::vector<Tensor>& constants, const Tactic& tactic) {
  KernelShapes shapes = shapes_of(sample_at(symbolic, n), tactic, {{"N", n}});
  shapes.constant_bytes.emplace();
  for (const Tensor& constant : constants) shapes.constant_bytes->push_back(constant.bytes().size());
  return shapes;
}

/// Loads a compiled kernel for a size as an engine would.
void load_at(const Graph& symbolic, int64_t n, const Compiled& compiled, const Tactic& tactic) {
  if (device_count() == 0) return;
  static CudaDevice device(0);
  const KernelShapes shapes = shapes_at(symbolic, n, compiled.constants, tactic);
  EXPECT_NO_THROW(load(device, tactic.source, compiled.code, shapes)) << tactic.text() << " at " << n;
}

/// A word that stands in the name of each of a family's kernels.
std::string_view kernel_of(std::string_view family) {
  return family == "copy" ? "tiles_" : family == "reduce" ? "reduce_by" : family;
}

#ifdef __SANITIZE_ADDRESS__
constexpr bool kCompilesAll = false;
#else
constexpr bool kCompilesAll = true;
#endif

/// As a source compiles it, but for the machine code: the sanitizers see nothing of NVIDIA's compiler, under which it takes minutes.
Compiled compile_without_nvrtc(const Problem& problem, const Tactic& tactic) {
  const CudaTactic& family =
      **std::ranges::find(cuda_tactics(), tactic.name, [](const CudaTactic* row) { return row->name; });
  Generated made = family.generate(problem, "sm_90", tactic);
  EXPECT_FALSE(made.source.empty());
  return {.code = encode_device_code(
              {{"sm_90", {tactic.name, std::move(made.attrs), family.version}, Blob::copy(kernel_of(tactic.name))}}),
          .constants = std::move(made.constants)};
}

TEST(CudaCode, CompilesForEveryArchitectureAndLoads) {
  if (!nvrtc_library().found()) GTEST_SKIP() << nvrtc_library().missing;
  constexpr std::pair<DType, const char*> kTargets[] = {
      {DType::f32, "sm_90"}, {DType::f16, "sm_90"}, {DType::bf16, "sm_80"}, {DType::f16, "sm_100"}};
  for (const RegionSample& sample : region_samples())
    for (const auto& [dtype, architecture] : kTargets) {
      // f16 with sizes fixed, as most engines have them; the other types with a symbolic one.
      const Graph symbolic = sample.graph(dtype),
                  region = dtype == DType::f16 ? symbolic.specialize({{"N", 2}}) : symbolic.clone();
      SCOPED_TRACE(print(region) + architecture);
      const Problem problem = sample_problem(region, 2, {.name = "none", .architecture = architecture});
      // All offers once, in f16 for one GPU; elsewhere the first of each family.
      const bool all = dtype == DType::f16 && architecture == std::string_view("sm_90");
      std::set<std::string> seen;
      for (const Tactic& tactic : offers_of(problem)) {
        const bool first = seen.insert(tactic.name).second;
        if (!first && !all) continue;
        const Compiled compiled =
            first || kCompilesAll ? source().compile(problem, tactic) : compile_without_nvrtc(problem, tactic);
        const std::vector<DeviceCode> codes = decode_device_code(compiled.code);
        ASSERT_EQ(codes.size(), 1u);
        if (architecture == std::string_view("sm_90"))
          for (const int64_t n : {2, 3})
            if (n == 2 || dtype != DType::f16) load_at(region, n, compiled, tactic);
        const DeviceCode& code = codes[0];
        EXPECT_EQ(code.code.family, tactic.name);
        EXPECT_NE(code.cubin.text().find(kernel_of(tactic.name)), std::string_view::npos)
            << "the machine code lacks its kernel";
      }
    }
}

size_t count(std::string_view text, std::string_view word) {
  size_t found = 0;
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

TEST(CudaCode, RefusesAPlanOfAnotherVersion) {
  if (device_count() == 0) GTEST_SKIP();
  CudaDevice device(0);
  const KernelShapes shapes{.inputs = {{DType::f32, {4}}}, .outputs = {{DType::f16, {4}}}, .symbols = {}};
  const Blob code = encode_device_code({{"sm_90", {"cast", {}, 1}, Blob::copy("machine code")}});
  EXPECT_THROW(load(device, "cuda", code, shapes), Error);
}

struct Text {
  std::string_view name, text;
};
const Text kTexts[] = {
#define TEXT(name, file) {#name, kernels::name},
#include "backends/cuda/families.def"
#undef TEXT
};

TEST(CudaCode, EveryKernelWaitsForTheOnesBeforeIt) {
  for (const auto& [name, text] : kTexts) {
    const size_t waits = count(text, "await_operands();"), kernels = count(text, "__global__");
    if (name == "pool" || name == "reduce") EXPECT_GT(waits, 0u) << name;  // in what their kernels share
    else if (name == "pointwise") EXPECT_EQ(waits, 1u);                    // BEGIN, in every kernel made of this text
    else EXPECT_EQ(waits, kernels) << name;
  }
}

TEST(CudaCode, EveryKernelHasTheParametersThatTheHostDeclares) {
  for (const auto& [name, text] : kTexts) EXPECT_EQ(count(text, "_PARAMETERS"), count(text, "__global__")) << name;
}

struct Pair {
  static constexpr std::string_view kName = "Pair";
  int32_t first = 0;
  int64_t second[2] = {};
  static void fields(auto& self, auto& visit) {
    visit("first", self.first);
    visit("second", self.second);
  }
};
struct Unlisted {
  static constexpr std::string_view kName = "Unlisted";
  int32_t first = 0, second = 0;
  static void fields(auto& self, auto& visit) { visit("first", self.first); }
};
struct Swapped {
  static constexpr std::string_view kName = "Swapped";
  int32_t first = 0, second = 0;
  static void fields(auto& self, auto& visit) {
    visit("second", self.second);
    visit("first", self.first);
  }
};
struct PairParameters {
  static constexpr std::string_view kKernel = "pair";
  Reads x;
  Writes y;
  Pair pair;
  float scale = 1;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, "T");
    visit("y", self.y, "T");
    visit("pair", self.pair);
    visit("scale", self.scale);
  }
};

TEST(CudaCode, ParametersAreDeclaredOnce) {
  EXPECT_EQ(declare<PairParameters>(),
            "struct Pair {\n  int first;\n  i64 second[2];\n};\n"
            "#define PAIR_PARAMETERS const T* x, T* y, const Pair pair, float scale\n");
  EXPECT_THROW(Declarations().add_struct<Unlisted>(), InternalError);
  EXPECT_THROW(Declarations().add_struct<Swapped>(), InternalError);
}

/// Without machine code: what is under test is what load() makes of its parameters.
TEST(CudaCode, RefusesOrLoadsDamagedParameters) {
  if (device_count() == 0) GTEST_SKIP();
  CudaDevice device(0);
  std::mt19937 random(7);
  int refused = 0, loaded = 0;
  for (const RegionSample& sample : region_samples()) {
    const Graph region = sample.graph(DType::f16).specialize({{"N", 2}});
    const Problem problem = sample_problem(region, 2, {.name = "none", .architecture = "sm_90", .workers = 132});
    for (const CudaTactic* family : cuda_tactics()) {
      Candidates candidates;
      family->propose(problem, candidates);
      if (candidates.offers().empty()) continue;
      const Tactic& tactic = candidates.offers()[0];
      const Generated generated = family->generate(problem, "sm_90", tactic);
      const KernelShapes shapes = shapes_at(region, 2, generated.constants, tactic);
      const auto load_with = [&](const std::string& name, const AttrValue& value) {
        Attrs attrs = generated.attrs;
        attrs.set(name, value);
        const Blob code = encode_device_code(
            {{"sm_90", {tactic.name, std::move(attrs), family->version}, Blob::copy("machine code")}});
        load(device, "cuda", code, shapes);
      };
      for (const Field& field : family->fields()) {
        const AttrValue* value = generated.attrs.find(field.name);
        if (!can_damage(value, field)) continue;
        SCOPED_TRACE(tactic.text() + " " + field.name);
        if (has_ends(field)) {
          EXPECT_THROW(load_with(field.name, damaged(*value, field, false, random)), Error);
        }
        for (int i = 0; i < 8; ++i) try {
            load_with(field.name, damaged(*value, field, true, random));
            ++loaded;
          } catch (const Error&) {
            ++refused;
          }
      }
    }
  }
  EXPECT_GT(refused, loaded / 4);
}

TEST(CudaCode, TakesTheRegionsThatItTook) {
  const auto takes = [](const RegionSample& sample, DType dtype) {
    return !offers_of(sample_problem(sample.graph(dtype), 3, {.architecture = "sm_90"})).empty();
  };
  expect_regions_left("src/backends/cuda/regions_left.txt", regions_left({DType::f32, DType::f16, DType::bf16}, takes),
                      "hone_cuda_code_test --gtest_filter='CudaCode.TakesTheRegionsThatItTook'");
}

TEST(CudaCode, RefusesDamagedCode) {
  const Blob whole = encode_device_code({{"sm_80", {"cast", {{"width", int64_t{1}}}}, Blob::copy("machine code")}});
  const std::vector<DeviceCode> decoded = decode_device_code(whole);
  ASSERT_EQ(decoded.size(), 1u);
  EXPECT_EQ(decoded[0].architecture, "sm_80");
  EXPECT_EQ(decoded[0].code.family, "cast");
  EXPECT_EQ(decoded[0].cubin.text(), "machine code");
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_THROW(decode_device_code(Blob(nullptr, whole.bytes().first(length))), Error) << length;
}

TEST(CudaCode, NoFamilyGoesWithoutARegion) {
  std::set<std::string> names;
  for (const RegionSample& sample : region_samples())
    for (const DType dtype : {DType::f32, DType::f16})
      for (const Tactic& tactic : offers_of(sample_problem(sample.graph(dtype), 2, {.architecture = "sm_90"})))
        names.insert(tactic.name);
  for (const CudaTactic* family : cuda_tactics())
    EXPECT_TRUE(names.contains(std::string(family->name)))
        << "tests/regions has none that cuda." << family->name << " takes";
}

TEST(CudaCode, NoValueOfAParameterGoesUntried) {
  UntriedValues untried;
  for (const CudaTactic* family : cuda_tactics()) untried.expect(family->fields());
  for (const RegionSample& sample : region_samples())
    for (const DType dtype : {DType::f32, DType::f16})
      for (const char* gpu : {"sm_80", "sm_90"}) {
        const Problem problem = sample_problem(sample.graph(dtype), 2, {.architecture = gpu, .workers = 132});
        for (const CudaTactic* family : cuda_tactics()) {
          Candidates candidates;
          family->propose(problem, candidates);
          for (const Tactic& tactic : candidates.offers())
            untried.meet(family->fields(), family->generate(problem, gpu, tactic).attrs);
        }
      }
  EXPECT_THAT(untried.list(), testing::IsEmpty()) << "tests/regions has none with these values";
}

TEST(CudaCode, RunsOnlyWithWhatItWasMadeFor) {
  const Graph graph = parse_graph("(%x: f16[N,3,4], %y: f16[3,1]) {\n %z = Mul(%x, %y)\n return %z\n}", find_op);
  const Problem problem = sample_problem(graph, 2, {});
  Tactic tactic{.source = "cuda", .name = "pointwise", .params = {}};
  tactic.in = {Layout::channels_last, Layout::linear}, tactic.out = {Layout::channels_last};
  const Signature made = signature_of(problem, tactic, {Tensor::of<float>({2, 2}, {1, 2, 3, 4})});
  ASSERT_EQ(constants_of(made).size(), 1u);
  EXPECT_EQ(constants_of(made)[0].dims, (Dims{2, 2}));

  KernelShapes shapes;
  shapes.inputs = {{DType::f16, {5, 3, 4}, Layout::channels_last}, {DType::f16, {3, 1}, Layout::linear}};
  shapes.outputs = {{DType::f16, {5, 3, 4}, Layout::channels_last}};
  shapes.symbols = {{"N", 5}};
  shapes.constant_bytes = {16};
  EXPECT_NO_THROW(require_signature(made, shapes));
  const auto refused = [&](auto&& alter) {
    KernelShapes altered = shapes;
    alter(altered);
    EXPECT_THROW(require_signature(made, altered), Error);
  };
  refused([](KernelShapes& s) { s.inputs[0].dims[1] = 2; });
  refused([](KernelShapes& s) { s.inputs[1].dtype = DType::i8; });
  refused([](KernelShapes& s) { s.inputs.pop_back(); });
  refused([](KernelShapes& s) { s.outputs[0].layout = Layout::linear; });
  refused([](KernelShapes& s) { s.outputs[0].dims[0] = 6; });
  refused([](KernelShapes& s) { s.constant_bytes = {12}; });
  refused([](KernelShapes& s) { s.constant_bytes->clear(); });
  EXPECT_THROW(require_signature({}, shapes), Error);
  refused([](KernelShapes& s) { s.constant_bytes = {16, 16}; });

  const Place second{PlaceKind::constant, 1};
  EXPECT_NO_THROW(Arguments().pointer(input(1)).pointer(output(0)).pointer(constant(0)).require_places(shapes));
  EXPECT_NO_THROW(Arguments().pointer(Place().pointer()).value(5).require_places(shapes));
  EXPECT_THROW(Arguments().pointer(input(2)).require_places(shapes), Error);
  EXPECT_THROW(Arguments().pointer(output(1)).require_places(shapes), Error);
  EXPECT_THROW(Arguments().pointer(second.pointer()).require_places(shapes), Error);
}

TEST(CudaCode, HoldsMachineCodeForSeveralGpus) {
  if (!nvrtc_library().found()) GTEST_SKIP() << nvrtc_library().missing;
  const Graph region = region_samples()[0].graph(DType::f16);
  Problem problem = sample_problem(region, 2, {.name = "none", .architecture = "sm_90"});
  problem.targets = {"sm_80", "sm_90", "sm_100"};
  const std::vector<DeviceCode> codes = decode_device_code(source().compile(problem, offers_of(problem).at(0)).code);
  ASSERT_EQ(codes.size(), 3u);
  EXPECT_EQ(code_for(codes, "sm_86").architecture, "sm_80");
  EXPECT_EQ(code_for(codes, "sm_90").architecture, "sm_90");
  EXPECT_EQ(code_for(codes, "sm_100").architecture, "sm_100");
  EXPECT_THROW(code_for(codes, "sm_75"), Error);
  EXPECT_THROW(code_for(codes, "sm_120"), Error);
}

TEST(CudaDevice, TellsProfilersThatWaitWhenToRecord) {
  if (device_count() == 0) GTEST_SKIP() << driver_library().missing;
  void* stub = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (stub == nullptr) {
    const std::string path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "stub_driver/libcuda.so.1";
    stub = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  }
  const auto counter = [&](const char* name) {
    return stub == nullptr ? nullptr : static_cast<int*>(dlsym(stub, name));
  };
  const int *begun = counter("profiler_begun"), *ended = counter("profiler_ended");
  CudaDevice device(0);
  if (begun == nullptr || ended == nullptr) GTEST_SKIP() << "a real driver does not tell";
  const int before = *begun;
  device.profile(true);
  EXPECT_EQ(*begun, before + 1);
  EXPECT_EQ(*ended, before);
  device.profile(false);
  EXPECT_EQ(*ended, before + 1);
}

#include "backends/cuda/support/division.cuh"

TEST(Divisor, GivesExactQuotients) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  std::uniform_int_distribution<int64_t> any(1, std::numeric_limits<int32_t>::max());
  std::vector<int64_t> sizes{1, 2, 3, 7, 641, int64_t{1} << 30, (int64_t{1} << 30) + 1, any.max()};
  for (int i = 0; i < 1000; ++i) sizes.push_back(any(random) >> any(random) % 31);
  for (const int64_t size : sizes) {
    const Divisor by(std::max<int64_t>(size, 1));
    std::vector<int64_t> numbers{0, 1, by.size - 1, by.size, any.max(), any.max() / by.size * by.size - 1};
    for (int i = 0; i < 20; ++i) numbers.push_back(any(random));
    for (const int64_t number : numbers) {
      auto rest = static_cast<unsigned>(number);
      EXPECT_EQ(split_off(rest, by), number % by.size) << number << " by " << by.size;
      EXPECT_EQ(rest, number / by.size) << number << " by " << by.size;
    }
  }
  EXPECT_THROW(Divisor(int64_t{1} << 31), Error);
}

TEST(CudaDevice, SaysWhyThereIsNone) {
  try {
    CudaDevice device(99);
    FAIL() << "opened a GPU that is not there";
  } catch (const Error& error) {
    EXPECT_FALSE(error.message().empty());
    EXPECT_FALSE(error.hint().empty());
  }
}

}  // namespace
}  // namespace hone::cuda
