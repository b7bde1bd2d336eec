// SPDX-License-Identifier: Apache-2.0
//
// Every offer for every region of tests/regions, at every instruction set that this machine has, with one and two workers.
#include <gmock/gmock.h>

#include <random>
#include <set>

#include "backends/cpu/onednn/onednn.h"
#include "backends/cpu/support/tactic_testing.h"
#include "device/coverage_testing.h"
#include "device/fields_testing.h"

namespace hone::cpu {
namespace {

/// A region in an element type, with operands of f32 rounded to bf16, weights to f16, or nothing rounded, also where matrix tiles
/// are emulated.
struct Sample {
  const RegionSample* region;
  DType dtype = DType::f32;
  bool rounds = false, halves = false, tiles = false;

  std::string name() const {
    return fmt::format("{}_{}{}", region->name, name_of(dtype),
                       rounds   ? "_rounded"
                       : halves ? "_halves"
                       : tiles  ? "_tiles"
                                : "");
  }
  /// Of the largest result. A recurrent layer hands its rounding on from step to step.
  double tolerance() const {
    if (dtype == DType::bf16 || rounds || halves) return 0.02;
    return region->has("LSTM(") || region->has("GRU(") ? 1e-3 : 1e-4;
  }
};
// NOLINTNEXTLINE(readability-identifier-naming): googletest's name
void PrintTo(const Sample& sample, std::ostream* out) { *out << sample.name(); }

std::vector<Sample> all_samples() {
  std::vector<Sample> list;
  for (const RegionSample& region : region_samples()) {
    list.push_back({&region});
    if (!region.is_typed()) continue;
    list.push_back({&region, DType::f32, true});
    list.push_back({&region, DType::bf16, true});
    if (region.has("Linear(") || region.has("Conv(") || region.has("Attention("))
      list.push_back({.region = &region, .tiles = true});
    if (region.has("Linear(")) list.push_back({&region, DType::f32, false, true});
  }
  return list;
}

class CpuCorpus : public testing::TestWithParam<Sample> {};

TEST_P(CpuCorpus, EveryOfferAgreesWithTheMeaning) {
  const Sample& sample = GetParam();
  check_tactics(sample.region->graph(sample.dtype), "",
                {.tolerance = sample.tolerance(),
                 .rounds = sample.rounds,
                 .emulates = sample.tiles,
                 .halves = sample.halves,
                 .tuned = {{"N", 2}},
                 .run = {{{"N", 2}}, {{"N", 1}}, {{"N", 3}}}});
}

std::set<std::string> offered(const TacticSource& source, const DeviceInfo& device) {
  std::set<std::string> names;
  setenv("HONE_CPU_BF16", "emulated", 1);
  for (const Sample& sample : all_samples()) {
    Problem problem = sample_problem(sample.region->graph(sample.dtype), 2, device);
    problem.allowed.bf16 = sample.rounds;
    Candidates candidates;
    source.propose(problem, candidates);
    for (const Tactic& tactic : candidates.offers()) names.insert(tactic.name);
  }
  unsetenv("HONE_CPU_BF16");
  return names;
}

TEST(CpuCorpus, NoFamilyGoesWithoutARegion) {
  const std::set<std::string> names =
      offered(source(), {.architecture = "avx512", .workers = 2, .bf16_matmuls = true, .byte_dots = true});
  for (const CpuTactic* family : cpu_tactics())
    EXPECT_TRUE(names.contains(std::string(family->name)))
        << "tests/regions has none that cpu." << family->name << " takes";
}

TEST(CpuCorpus, TakesTheRegionsThatItTook) {
  const DeviceInfo device{
      .name = "none", .architecture = "avx512", .workers = 2, .bf16_matmuls = true, .byte_dots = true};
  setenv("HONE_CPU_BF16", "emulated", 1);
  const auto takes = [&](const RegionSample& sample, DType dtype) {
    Problem problem = sample_problem(sample.graph(dtype), 2, device);
    problem.allowed.bf16 = true;
    return !offers_of(problem, "").empty();
  };
  const NamedRows left = regions_left({DType::f32, DType::bf16}, takes);
  unsetenv("HONE_CPU_BF16");
  expect_regions_left("src/backends/cpu/regions_left.txt", left,
                      "hone_cpu_corpus_test --gtest_filter='CpuCorpus.TakesTheRegionsThatItTook'");
}

TEST(CpuCorpus, NoValueOfAParameterGoesUntried) {
  UntriedValues untried;
  for (const CpuTactic* family : cpu_tactics()) untried.expect(family->fields());
  setenv("HONE_CPU_BF16", "emulated", 1);
  for (const Sample& sample : all_samples())
    for (const bool byte_dots : {false, true}) {
      Problem problem =
          sample_problem(sample.region->graph(sample.dtype), 2,
                         {.architecture = "avx512", .workers = 2, .bf16_matmuls = true, .byte_dots = byte_dots});
      problem.allowed.bf16 = sample.rounds, problem.allowed.f16 = sample.halves;
      for (const CpuTactic* family : cpu_tactics())
        for (const Tactic& tactic : offers_of(problem, family->name))
          untried.meet(family->fields(), decode_code(source().compile(problem, tactic).code).attrs);
    }
  unsetenv("HONE_CPU_BF16");
  EXPECT_THAT(untried.list(), testing::IsEmpty()) << "tests/regions has none with these values";
}

#if HONE_WITH_ONEDNN
TEST(CpuCorpus, TheLibraryGoesWithNoFamilyUntried) {
  DeviceInfo device = CpuDevice({.workers = 2}).info();
  if (device.architecture != "avx512")
    GTEST_SKIP() << "the library asks the processor, which has no AVX-512 or may not use it";
  device.bf16_matmuls = true;
  const std::set<std::string> names = offered(onednn_source(), device);
  for (const char* family : {"convolution", "linear", "matmul", "recurrent", "attention"})
    EXPECT_TRUE(names.contains(family)) << "tests/regions has none that onednn." << family << " takes";
}
#endif

/// A family whose estimate is nothing would be taken wherever nothing is timed.
TEST(CpuCorpus, EveryOfferCostsSomething) {
  setenv("HONE_CPU_BF16", "emulated", 1);
  for (const Sample& sample : all_samples()) {
    Problem problem = sample_problem(sample.region->graph(sample.dtype), 2,
                                     {.architecture = "avx512", .workers = 2, .bf16_matmuls = true, .byte_dots = true});
    problem.allowed.bf16 = sample.rounds;
    Candidates candidates;
    source().propose(problem, candidates);
    for (const Tactic& tactic : candidates.offers()) {
      const Cost cost = source().cost(problem, tactic);
      for (const double factor : {cost.arithmetic, cost.operands, cost.weights})
        EXPECT_TRUE(factor >= 0 && factor < 1e4) << sample.name() << ": " << tactic.text() << " has " << factor;
      EXPECT_GT(cost.operands, 0) << sample.name() << ": " << tactic.text();
    }
  }
  unsetenv("HONE_CPU_BF16");
}

/// Every number of every code: out of bounds load() refuses it; within, it refuses it or makes a kernel of it.
TEST(CpuCorpus, DamagedCodesAreRefusedOrLoaded) {
  const CpuDevice device({.workers = 2});
  std::mt19937 random(7);
  int refused = 0, loaded = 0;
  for (const RegionSample& sample : region_samples()) {
    const Graph region = sample.graph(DType::f32).specialize({{"N", 2}});
    const Problem problem = make_problem(region, {}, device.info());
    for (const CpuTactic* family : cpu_tactics()) {
      const std::vector<Tactic> offers = offers_of(problem, family->name);
      if (offers.empty()) continue;
      const Compiled compiled = source().compile(problem, offers[0]);
      const KernelCode code = decode_code(compiled.code);
      KernelShapes shapes = check::shapes_of(region, offers[0], {});
      shapes.constant_bytes.emplace();
      for (const Tensor& constant : compiled.constants) shapes.constant_bytes->push_back(constant.bytes().size());
      const auto load_with = [&](const std::string& name, AttrValue value) {
        Attrs attrs = code.attrs;
        attrs.set(name, std::move(value));
        load(device.info(), encode_code(code.family, attrs, code.version), shapes);
      };
      for (const Field& field : family->fields()) {
        const AttrValue* value = code.attrs.find(field.name);
        if (!can_damage(value, field)) continue;
        SCOPED_TRACE(offers[0].text() + " " + field.name);
        if (has_ends(field)) {
          EXPECT_THROW(load_with(field.name, damaged(*value, field, false, random)), Error);
        }
        for (int i = 0; i < 4; ++i) try {
            load_with(field.name, damaged(*value, field, true, random));
            ++loaded;
          } catch (const Error&) {
            ++refused;
          }
      }
    }
  }
  std::printf("seed 7: %d damaged codes refused, %d loaded\n", refused, loaded);
  EXPECT_GT(refused, loaded / 4);
}

INSTANTIATE_TEST_SUITE_P(Regions, CpuCorpus, testing::ValuesIn(all_samples()),
                         [](const auto& sample) { return sample.param.name(); });

}  // namespace
}  // namespace hone::cpu
