// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "plan/memory.h"
#include "plan/plan_testing.h"

namespace hone {
namespace {

Plan sample() {
  const TensorType type{DType::f32, {Dim::symbol("N"), 4}, Layout::linear};
  Plan plan;
  plan.meta = {.hone_version = "0.1.0",
               .backend = "cpu",
               .device = "test",
               .architecture = "avx2",
               .model = "m.onnx",
               .options = "{}"};
  plan.io = {{"x", type, true, ValueRange{0, 9}}, {"y", type, false}};
  plan.folded = {{"shape", "fold_shapes"}};
  Profile profile;
  profile.ranges = {{"x", {1, 4}, {2, 4}, {8, 4}}};
  profile.buffers = {{"x", type, BufferKind::input, -1}, {"y", type, BufferKind::output, -1}};
  profile.steps = {{.name = "a + \"b\"",
                    .origin = {"a", "b"},
                    .kind = "Linear",
                    .source = "cpu",
                    .tactic = "linear",
                    .tactic_params = {{"mr", int64_t{14}}},
                    .details = {{"max", INFINITY}, {"list", std::vector<double>{1, 2}}},
                    .inputs = {0},
                    .outputs = {1},
                    .constants = {0},
                    .code = 0,
                    .tuned_ms = 0.1}};
  plan.profiles = {profile};
  plan.constants = {Tensor::of<float>({4}, {1, 2, 3, 4})};
  plan.blobs = {Blob::copy("code")};
  plan.log = {{"a", {{"cpu.linear", 0.1, 0.01, ""}}, "cpu.linear"}};
  return plan;
}

Blob blob_of(const std::vector<std::byte>& bytes) { return Blob::copy(bytes); }

TEST(PlanFile, LoadIsTheInverseOfSave) {
  const std::vector<std::byte> bytes = save_plan(sample());
  const Plan plan = load_plan(blob_of(bytes));
  EXPECT_EQ(save_plan(plan), bytes);
  EXPECT_EQ(plan.profiles[0].steps[0].name, "a + \"b\"");
  EXPECT_EQ(plan.constants[0].data<float>()[3], 4);
  ASSERT_TRUE(plan.io[0].range.has_value());
  EXPECT_EQ(plan.io[0].range->high, 9);
  EXPECT_FALSE(plan.io[1].range.has_value());
  EXPECT_EQ(plan.folded.at(0).pass, "fold_shapes");
}

TEST(PlanFile, KeepsWhatThroughputWasFound) {
  Plan plan = sample();
  plan.throughput =
      PlanThroughput{.streams = 4, .workers = 2, .rows = 8, .rows_per_second = 900, .median_ms = 30, .p99_ms = 40};
  const std::vector<std::byte> bytes = save_plan(plan);
  const Plan loaded = load_plan(blob_of(bytes));
  ASSERT_TRUE(loaded.throughput.has_value());
  EXPECT_EQ(loaded.throughput->streams, 4);
  EXPECT_EQ(loaded.throughput->rows, 8);
  EXPECT_EQ(save_plan(loaded), bytes);
  for (auto spoil : {+[](PlanThroughput& t) { t.streams = 0; }, +[](PlanThroughput& t) { t.workers = 5000; },
                     +[](PlanThroughput& t) { t.rows = 0; }, +[](PlanThroughput& t) { t.p99_ms = -1; }}) {
    Plan wrong = plan;
    spoil(*wrong.throughput);
    EXPECT_THROW(save_plan(wrong), Error);
  }
}

TEST(PlanFile, PassesOverAThroughputOfALaterVersion) {
  Plan plan = sample();
  plan.throughput = PlanThroughput{.streams = 4};
  plan.constants.clear();
  plan.blobs.clear();
  plan.profiles[0].steps.clear();
  const std::vector<std::byte> bytes = save_plan(plan);
  std::string manifest(reinterpret_cast<const char*>(bytes.data()) + 48, bytes.size() - 48);
  const std::string text = "\"throughput\":{\"version\":1";
  ASSERT_NE(manifest.find(text), std::string::npos);
  manifest.replace(manifest.find(text), text.size(), "\"throughput\":{\"version\":2");
  EXPECT_FALSE(load_plan(Blob::copy(signed_plan(manifest))).throughput.has_value());
}

TEST(PlanFile, EveryAlteredByteIsRefused) {
  const std::vector<std::byte> bytes = save_plan(sample());
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::vector<std::byte> altered = bytes;
    altered[i] ^= std::byte{0x21};
    EXPECT_THROW(load_plan(blob_of(altered)), Error) << "byte " << i;
  }
}

TEST(PlanFile, EveryCutIsRefused) {
  const std::vector<std::byte> bytes = save_plan(sample());
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(load_plan(Blob::copy(std::span(bytes).first(size))), Error) << size;
}

TEST(PlanFile, ForeignFilesAreNamed) {
  try {
    load_plan(Blob::copy("ftrt and so on, much longer than a header would have to be............"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("TensorRT"), std::string::npos);
  }
}

/// The manifest of the sample without its table of sections, for tables of one's own.
std::string manifest_with(const std::string& table) {
  const std::vector<std::byte> bytes = save_plan(sample());
  const std::string file(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const size_t end = file.find('\0', 48), at = file.find("\"sections\":", 48), close = file.find("]]", at) + 2;
  return file.substr(48, at - 48) + "\"sections\":" + table + file.substr(close, end - close);
}

std::string refusal(const std::string& file) {
  try {
    load_plan(Blob::copy(file));
  } catch (const InternalError& error) {
    return fmt::format("INTERNAL {}", error.what());
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

/// A file whose sections of 16 and 4 bytes follow each other, with `table` made of their places and hashes.
std::string plan_with(auto&& table) {
  const std::vector<std::byte> original = save_plan(sample());
  const std::string first(16, '\1'), second(4, '\2');
  size_t start = 0;
  std::string manifest;
  for (int round = 0; round < 4; ++round) {  // the table's length decides where the sections begin
    manifest =
        manifest_with(table(start, hash64(std::as_bytes(std::span(first))), hash64(std::as_bytes(std::span(second)))));
    start = (48 + manifest.size() + 63) / 64 * 64;
  }
  return signed_plan(manifest,
                     std::string(start - 48 - manifest.size(), '\0') + first + std::string(48, '\0') + second);
}

TEST(PlanSections, LieBehindEachOtherInsideTheFile) {
  const auto file = [](const char* form) {
    return plan_with([&](size_t at, uint64_t a, uint64_t b) {
      return fmt::format(fmt::runtime(form), fmt::arg("at", at), fmt::arg("next", at + 64), fmt::arg("a", a),
                         fmt::arg("b", b));
    });
  };
  EXPECT_EQ(refusal(file("[[{at},16,{a}],[{next},4,{b}]]")), "");
  for (const char* form :
       {"[[{at},16,{a}],[{at},16,{a}]]", "[[{next},4,{b}],[{at},16,{a}]]", "[[{at},80,{a}],[{next},4,{b}]]",
        "[[{at},16,{a}],[{next},5,{b}]]", "[[{at},16,{a}],[{next},18446744073709551615,{b}]]",
        "[[18446744073709551552,16,{a}],[{next},4,{b}]]", "[[0,16,{a}],[{next},4,{b}]]", "[[{at},16,{a}]]", "[]",
        "[[{at},16,{b}],[{next},4,{b}]]", "[[{at},-1,{a}],[{next},4,{b}]]", "[[{at},1.5,{a}],[{next},4,{b}]]",
        "[[{at}],[{next}]]", "{{}}", "null"})
    EXPECT_THAT(refusal(file(form)), testing::AllOf(testing::HasSubstr("hint"), Not(testing::HasSubstr("INTERNAL"))))
        << form;
}

TEST(PlanSections, AManifestThatIsNoneIsRefused) {
  for (const std::string& manifest :
       {std::string(), std::string("{}"), std::string("[]"), std::string(100'000, '['), std::string("\xff\xff")})
    EXPECT_THAT(refusal(signed_plan(manifest)),
                testing::AllOf(Not(testing::IsEmpty()), Not(testing::HasSubstr("INTERNAL"))));
}

TEST(PlanFile, HoldsNoWeightsWhenTheyAreToBeLeftOut) {
  Plan plan = sample();
  plan.refit = RefitPart{"input x\n", "hash", false, "{}", "times", {{"a", "Kernel"}}};
  plan.weights = WeightStorage::not_in_file;
  const Plan bare = load_plan(blob_of(save_plan(plan)));
  EXPECT_EQ(bare.weights, WeightStorage::nowhere);
  EXPECT_EQ(bare.constants.at(0).size(), 0);
  EXPECT_EQ(bare.blobs.at(0).size(), 0u);
  EXPECT_EQ(plan.constants.at(0).size(), 4);
  ASSERT_TRUE(bare.refit.has_value());
  EXPECT_EQ(bare.refit->timings, "times");
  EXPECT_EQ(bare.refit->list.at(0).role, "Kernel");
  EXPECT_FALSE(bare.refit->other_weights);
  plan.refit.reset();
  EXPECT_THROW(verify(plan), Error);
}

TEST(PlanVerify, RefusesNetworkTensorsThatAreOthersInside) {
  const auto refused = [](auto&& damage) {
    Plan plan = sample();
    damage(plan, plan.profiles[0]);
    EXPECT_THROW(verify(plan), Error);
  };
  EXPECT_NO_THROW(verify(sample()));
  refused([](Plan& plan, Profile&) { plan.io[0].type.dtype = DType::f16; });
  refused([](Plan& plan, Profile&) { plan.io[1].type.layout = Layout::channels_last; });
  refused([](Plan& plan, Profile&) { plan.io[1].type.shape.push_back(Dim(2)); });
  refused([](Plan& plan, Profile&) { plan.io[1].name = "x"; });
  refused([](Plan& plan, Profile&) { plan.io.pop_back(); });
  refused([](Plan&, Profile& p) { p.buffers.push_back({"more", p.buffers[0].type, BufferKind::input, -1}); });
  refused([](Plan& plan, Profile& p) { plan.io[0].type.layout = p.buffers[0].type.layout = Layout::blocked8; });
}

void expect_refused(Plan plan, void (*damage)(Profile&)) {
  damage(plan.profiles[0]);
  EXPECT_THROW(verify(plan), Error);
}

TEST(PlanVerify, RefusesReferencesToNothing) {
  const auto refused = [](void (*damage)(Profile&)) { expect_refused(sample(), damage); };
  refused([](Profile& p) { p.steps[0].inputs = {7}; });
  refused([](Profile& p) { p.steps[0].inputs = {1}; });
  refused([](Profile& p) { p.steps[0].outputs = {0}; });
  refused([](Profile& p) { p.steps[0].constants = {1}; });
  refused([](Profile& p) { p.steps[0].code = 5; });
  refused([](Profile& p) { p.buffers[0].alias = 0; });
  refused([](Profile& p) { p.ranges[0].max = {1, 4}; });
  refused([](Profile& p) { p.buffers.pop_back(); });
  refused([](Profile& p) { p.buffers.push_back({"t", p.buffers[0].type, BufferKind::arena, -1, false, true}); });
  refused([](Profile& p) { p.buffers[0].debug = p.buffers[1].debug = true, p.buffers[0].name = p.buffers[1].name; });
}

/// The sample with a step in front whose result has as many rows as it finds.
Plan measured_sample() {
  Plan plan = sample();
  Profile& profile = plan.profiles[0];
  const Shape most{Dim::symbol("N") * Dim(4), 1}, found{Dim::symbol("found"), 1};
  profile.buffers.push_back({.name = "rows", .type = {DType::i64, found}, .most = most, .sizes = 3});
  profile.buffers.push_back({.name = "rows (sizes)", .type = {DType::i64, Shape{2}}});
  profile.steps.insert(
      profile.steps.begin(),
      {.name = "find", .source = "cpu", .tactic = "find", .inputs = {0}, .outputs = {2, 3}, .code = 0});
  return plan;
}

TEST(PlanFile, KeepsTheRoomOfMeasuredBuffers) {
  const std::vector<std::byte> bytes = save_plan(measured_sample());
  const Plan plan = load_plan(blob_of(bytes));
  EXPECT_EQ(save_plan(plan), bytes);
  EXPECT_EQ(plan.profiles[0].buffers[2].most->text(), (Shape{Dim::symbol("N") * Dim(4), 1}.text()));
  EXPECT_EQ(plan.profiles[0].buffers[2].sizes, 3);
  EXPECT_EQ(plan.profiles[0].buffers[1].sizes, -1);
}

/// The sample with a step in front that works on the rows of x one after the other.
Plan sample_by_entry() {
  Plan plan = sample();
  Profile& profile = plan.profiles[0];
  TensorType row = profile.buffers[0].type;
  row.shape[0] = Dim(1);
  profile.buffers.push_back({.name = "rows", .type = profile.buffers[0].type});
  profile.buffers.push_back({.name = "x", .type = row, .alias = 0, .entry = true});
  profile.buffers.push_back({.name = "rows", .type = row, .alias = 2, .entry = true});
  profile.buffers.push_back({.name = "inner", .type = row});
  const Step step{
      .name = "first", .source = "cpu", .tactic = "row", .inputs = {3}, .outputs = {5}, .code = 0, .by_entry = true};
  profile.steps.insert(profile.steps.begin(), 2, step);
  profile.steps[1].name = "second", profile.steps[1].inputs = {5}, profile.steps[1].outputs = {4};
  return plan;
}

TEST(PlanFile, KeepsWhatGoesEntryByEntry) {
  const std::vector<std::byte> bytes = save_plan(sample_by_entry());
  const Plan plan = load_plan(blob_of(bytes));
  EXPECT_EQ(save_plan(plan), bytes);
  EXPECT_TRUE(plan.profiles[0].buffers[3].entry);
  EXPECT_TRUE(plan.profiles[0].steps[1].by_entry);
  EXPECT_FALSE(plan.profiles[0].steps[2].by_entry);
}

TEST(PlanVerify, RefusesEntriesThatNobodyTakesInTurn) {
  const auto refused = [](void (*damage)(Profile&)) { expect_refused(sample_by_entry(), damage); };
  EXPECT_NO_THROW(verify(sample_by_entry()));
  refused([](Profile& p) { p.steps[0].by_entry = p.steps[1].by_entry = false; });
  refused([](Profile& p) { p.steps[2].by_entry = true, p.steps[2].stage = 1; });
  refused([](Profile& p) { p.buffers[3].alias = -1; });
  refused([](Profile& p) { p.buffers[3].type.shape[0] = Dim(2); });
  refused([](Profile& p) { p.buffers[3].type.shape[1] = Dim(1000); });
  refused([](Profile& p) { p.buffers[3].debug = true; });
  refused([](Profile& p) { p.buffers[4].alias = 3; });
  refused([](Profile& p) { p.buffers[2].type.shape[0] = Dim(3); });
  refused([](Profile& p) { p.buffers[3].entry = p.buffers[4].entry = false; });
}

TEST(Memory, ABatchThatStepsTakeInTurnIsThereFromTheFirstToTheLast) {
  const Plan plan = sample_by_entry();
  const Lifetimes live = lifetimes(plan.profiles[0]);
  const MemoryRequest &batch = live.requests[static_cast<size_t>(live.request_of_buffer[2])],
                      &inner = live.requests[static_cast<size_t>(live.request_of_buffer[5])];
  EXPECT_EQ(batch.first, 0);
  EXPECT_EQ(inner.first, 0);
  EXPECT_EQ(inner.last, 1);
}

TEST(PlanVerify, RefusesSizesThatNobodyMeasures) {
  const auto refused = [](void (*damage)(Profile&)) { expect_refused(measured_sample(), damage); };
  EXPECT_NO_THROW(verify(measured_sample()));
  refused([](Profile& p) { p.buffers[2].sizes = 2; });
  refused([](Profile& p) { p.buffers[2].sizes = 4; });
  refused([](Profile& p) { p.buffers[2].sizes = 0; });
  refused([](Profile& p) { p.buffers[2].most->push_back(Dim(1)); });
  refused([](Profile& p) { p.buffers[2].managed = true; });
  refused([](Profile& p) { p.buffers[2].alias = 1; });
  refused([](Profile& p) { p.buffers[3].type.dtype = DType::i32; });
  refused([](Profile& p) { p.buffers[3].type.shape = Shape{1}; });
  refused([](Profile& p) { p.buffers[3].alias = 1; });
  refused([](Profile& p) { p.steps[0].outputs = {2}; });
  refused([](Profile& p) { p.steps[0].outputs = {3}; });
  refused([](Profile& p) { p.steps[1].outputs = {1, 2, 3}; });
  refused([](Profile& p) {
    p.buffers.push_back({.name = "more", .type = p.buffers[2].type, .most = p.buffers[2].most, .sizes = 3});
  });
}

}  // namespace
}  // namespace hone
