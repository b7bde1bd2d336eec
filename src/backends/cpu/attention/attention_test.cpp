// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <functional>
#include <limits>

#include "backends/cpu/support/tactic_testing.h"

namespace hone::cpu {
namespace {

/// `operands` are the shapes of q, k, v and possibly a mask.
int check_attention(const std::vector<std::string>& shapes, std::string_view layout, const CheckOptions& options) {
  constexpr const char* kNames[] = {"%q", "%k", "%v", "%mask"};
  std::string inputs, operands;
  for (size_t i = 0; i < shapes.size(); ++i) {
    inputs += fmt::format("{}{}: f32[{}]", i ? ", " : "", kNames[i], shapes[i]);
    operands += fmt::format("{}{}", i ? ", " : "", kNames[i]);
  }
  const std::string text =
      fmt::format("({}) {{\n %y = ScaledDotProductAttention({}) {{scale=0.35, layout=\"{}\"}}\n return %y\n}}", inputs,
                  operands, layout);
  CheckOptions rounding = options;
  rounding.rounds = true;
  rounding.tolerance = 0.02;
  EXPECT_EQ(check_tactics(text, "tile_attention", rounding) > 0, machine_isa() == Isa::avx512);
  return check_tactics(text, "attention", options);
}

const CheckOptions kLengths{
    .tolerance = 1e-4, .seed = 3, .tuned = {{"S", 12}}, .run = {{{"S", 12}}, {{"S", 1}}, {{"S", 37}}, {{"S", 130}}}};

TEST(AttentionTactic, AgreesWithTheReferenceInBothLayouts) {
  EXPECT_GT(check_attention({"2,3,S,16", "2,3,S,16", "2,3,S,16"}, "bhsd", kLengths), 0);
  EXPECT_GT(check_attention({"2,S,3,16", "2,S,3,16", "2,S,3,24"}, "bshd", kLengths), 0);
}

TEST(AttentionTactic, AddsMasksThatBroadcastOnAnyAxis) {
  for (const char* mask : {"2,3,S,S", "1,1,S,S", "2,1,1,S", "S,S", "S", "1", "2,3,S,1"})
    EXPECT_GT(check_attention({"2,3,S,8", "2,3,S,8", "2,3,S,8", mask}, "bhsd", kLengths), 0) << mask;
}

TEST(AttentionTactic, SharesHeadsOfKeysAndValuesAmongQueries) {
  EXPECT_GT(check_attention({"1,6,S,8", "1,2,S,8", "1,2,S,8"}, "bhsd", kLengths), 0);
  EXPECT_GT(check_attention({"1,S,6,8", "1,S,2,8", "1,S,2,8"}, "bshd", kLengths), 0);
}

TEST(AttentionTactic, AttendsToMoreKeysThanQueries) {
  EXPECT_GT(check_attention({"1,2,5,8", "1,2,S,8", "1,2,S,8"}, "bhsd", kLengths), 0);
}

TEST(AttentionTactic, CutsLongSequencesIntoBlocks) {
  const CheckOptions options{.tolerance = 1e-4, .seed = 3, .tuned = {{"S", 100}}, .run = {{{"S", 100}}, {{"S", 401}}}};
  for (const char* keys : {"1,1,256,8", "1,1,257,8", "1,1,300,8", "1,1,2100,8"})
    EXPECT_GT(check_attention({"1,1,S,8", keys, keys}, "bhsd", options), 0) << keys;
  EXPECT_GT(check_attention({"1,S,2,72", "1,700,2,72", "1,700,2,72"}, "bshd", options), 0);
}

/// `operands` are the shapes of q, past keys, new keys, past values, new values, and possibly a mask; `results` which of y, keys and
/// values are read.
int check_cached(const std::vector<std::string>& shapes, const std::string& results, const CheckOptions& options) {
  constexpr const char* kNames[] = {"%q", "%pk", "%nk", "%pv", "%nv", "%mask"};
  std::string inputs;
  for (size_t i = 0; i < shapes.size(); ++i)
    inputs += fmt::format("{}{}: f32[{}]", i ? ", " : "", kNames[i], shapes[i]);
  return check_tactics(fmt::format("({}) {{\n %k = Concat(%pk, %nk) {{axis=2}}\n %v = Concat(%pv, %nv) {{axis=2}}\n"
                                   " %y = ScaledDotProductAttention(%q, %k, %v{}) {{scale=0.35}}\n return {}\n}}",
                                   inputs, shapes.size() == 6 ? ", %mask" : "", results),
                       "cached_attention", options);
}

TEST(CachedAttentionTactic, KeepsWhatItAttendsTo) {
  for (const std::string results : {"%k, %v, %y", "%v, %y", "%k, %y", "%y"})
    EXPECT_GT(check_cached({"1,6,1,64", "1,2,S,64", "1,2,1,64", "1,2,S,64", "1,2,1,64"}, results, kLengths), 0);
}

TEST(CachedAttentionTactic, TakesDepthsHeadsAndTokensOfAnySize) {
  EXPECT_GT(check_cached({"2,3,S,20", "2,3,5,20", "2,3,S,20", "2,3,5,33", "2,3,S,33"}, "%k, %v, %y", kLengths), 0);
  EXPECT_GT(check_cached({"1,8,2,7", "1,2,S,7", "1,2,2,7", "1,2,S,150", "1,2,2,150"}, "%k, %v, %y", kLengths), 0);
  EXPECT_GT(check_cached({"1,2,3,8", "1,2,0,8", "1,2,S,8", "1,2,0,8", "1,2,S,8"}, "%k, %v, %y", kLengths), 0);
}

TEST(CachedAttentionTactic, AddsMasksThatBroadcastOnAnyAxis) {
  for (const char* mask : {"1,4,3,S+3", "1,1,1,S+3", "1,1,3,1", "S+3", "3,1", "1"})
    EXPECT_GT(check_cached({"1,4,3,8", "1,2,S,8", "1,2,3,8", "1,2,S,8", "1,2,3,8", mask}, "%k, %v, %y", kLengths), 0)
        << mask;
}

constexpr float kInf = std::numeric_limits<float>::infinity(), kLowest = std::numeric_limits<float>::lowest();

/// Random operands, but the mask (the last one, [.., queries, keys]) is mask(query, key).
CheckOptions with_mask(const std::function<float(int64_t, int64_t)>& mask) {
  CheckOptions options{.tolerance = 1e-4, .seed = 5, .tuned = {{"S", 700}}, .run = {{{"S", 700}}, {{"S", 140}}}};
  options.inputs = [mask](const Graph& region) {
    std::vector<Tensor> tensors = random_inputs(region, 5);
    const Dims dims = tensors.back().dims();
    TensorBuilder builder(DType::f32, dims);
    auto* values = reinterpret_cast<float*>(builder.bytes());
    for (int64_t query = 0; query < dims[2]; ++query)
      for (int64_t key = 0; key < dims[3]; ++key) *values++ = mask(query, key);
    tensors.back() = builder.finish();
    return tensors;
  };
  return options;
}

const std::vector<std::string> kMasked = {"1,1,50,8", "1,1,S,8", "1,1,S,24", "1,1,50,S"};

TEST(AttentionTactic, FollowsScoresThatRiseFromBlockToBlock) {
  for (const float slope : {0.02f, 0.5f, -0.5f, 1e4f})
    EXPECT_GT(check_attention(kMasked, "bhsd",
                              with_mask([&](int64_t query, int64_t key) { return slope * float(query * key % 997); })),
              0)
        << slope;
}

TEST(AttentionTactic, LeavesOutMaskedKeysWhereverTheyLie) {
  for (const float nothing : {-kInf, kLowest}) {
    const auto check = [&](const std::function<bool(int64_t, int64_t)>& visible) {
      const auto mask = [&](int64_t query, int64_t key) { return visible(query, key) ? 0.0f : nothing; };
      EXPECT_GT(check_attention(kMasked, "bhsd", with_mask(mask)), 0) << nothing;
    };
    check([](int64_t query, int64_t key) { return key <= query; });               // none in later blocks
    check([](int64_t query, int64_t key) { return key >= 130 - query; });         // none in the first block
    check([](int64_t query, int64_t key) { return query % 3 != 0 && key % 2; });  // some rows see nothing at all
    const auto check_cache = [&](const std::function<bool(int64_t, int64_t)>& visible) {
      const auto mask = [&](int64_t query, int64_t key) { return visible(query, key) ? 0.0f : nothing; };
      EXPECT_GT(
          check_cached({"1,2,3,8", "1,2,S,8", "1,2,3,8", "1,2,S,8", "1,2,3,8", "1,1,3,S+3"}, "%y", with_mask(mask)), 0);
    };
    check_cache([](int64_t query, int64_t key) { return key >= 130 - query; });  // none in the first blocks
    check_cache([](int64_t query, int64_t key) { return query % 3 != 0 && key % 2; });
  }
}

}  // namespace
}  // namespace hone::cpu
