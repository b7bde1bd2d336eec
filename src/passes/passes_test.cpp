// SPDX-License-Identifier: Apache-2.0
//
// Runs every tests/ir/*.test: the named pass must turn the first graph into the second (up to names of values and
// layers), must leave the second as it is, and both must compute the same from random inputs.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <random>
#include <regex>

#include "base/file.h"
#include "base/folder_testing.h"
#include "base/text.h"
#include "ir/op.h"
#include "ops/all.h"
#include "passes/passes.h"
#include "passes/pipeline.h"

namespace hone {
namespace {

// What a pass may change: the order of float sums, and with widened halves where a half is rounded.
double tolerance(DType type) {
  if (type == DType::bf16) return 0x1p-5;
  return type == DType::f16 ? 0x1p-8 : 2e-5;
}

/// "pass: select_precision f16" names a pass and the type that it brings floats to, "pass: lower_integers f32 floats" one of a
/// device without kernels for bytes, "pass: fuse_dequantize f16 halves" one of a device whose kernels for weights of few bits
/// read halves.
struct Case {
  std::string pass;
  DType precision;
  std::string kernels;  // for "bytes", "floats" or "halves"
  std::string before, after;
};

Case read_case(const std::string& path) {
  const std::string text = read_file(path);
  const size_t header = text.find("pass: "), line = text.find('\n', header), cut = text.find("\n----\n");
  HONE_CHECK(header != std::string::npos && cut != std::string::npos, "{} is not a pass test", path);
  std::istringstream words(text.substr(header + 6, line - header - 6));
  std::string pass, type = "f32", kernels = "bytes";
  words >> pass >> type >> kernels;
  return {pass, parse_dtype(type).value(), kernels, text.substr(line, cut - line), text.substr(cut + 6)};
}

/// The text with values numbered in order of appearance, without layer names and hashes of folded weights.
std::string canonical(const Graph& graph) {
  Graph copy = graph.clone();
  for (Node* node : copy.nodes()) {
    node->name.clear();
    node->origin.clear();
  }
  std::string text = print(copy), result;
  std::map<std::string, std::string> names;
  const std::regex token(R"(%("[^"]*"|[A-Za-z0-9_./]+)|![0-9a-f]{32})");
  std::string::const_iterator at = text.cbegin();
  for (std::sregex_iterator it(text.begin(), text.end(), token), end; it != end; ++it) {
    result.append(at, text.cbegin() + it->position());
    at = text.cbegin() + it->position() + it->length();
    if (it->str().front() == '!') continue;
    result += names.emplace(it->str(), fmt::format("%{}", names.size())).first->second;
  }
  result.append(at, text.cend());
  return result;
}

void run_pass(Graph& graph, const Pass& pass, DType precision, const std::string& kernels) {
  const PassContext context{.log = silent_logger(),
                            .widen_half = true,
                            .byte_matmuls = kernels == "bytes",
                            .code_products = kernels == "codes",
                            .float8_products = kernels == "codes",
                            .quantized_weights = kernels != "halves",
                            .half_quantized_weights = kernels == "halves",
                            .precision = precision,
                            .asked = [&](const Node&) { return AskedTypes{.computes = precision}; }};
  run(graph, std::span(&pass, 1), context);
}

void expect_same_meaning(const Graph& before, const Graph& after, DType precision, uint64_t seed) {
  SymbolValues symbols;
  std::set<std::string> names;
  for (const Value* input : before.inputs())
    for (const Dim& dim : input->type.shape) dim.collect_symbols(names);
  int64_t next = 2;
  for (const std::string& name : names) symbols[name] = next++;
  const Graph concrete = before.specialize(symbols), changed = after.specialize(symbols);
  const std::vector<Tensor> inputs = random_inputs(concrete, seed);
  const std::vector<Tensor> expected = evaluate(concrete, inputs), actual = evaluate(changed, inputs);
  ASSERT_EQ(expected.size(), actual.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(expected[i].dims(), actual[i].dims());
    const double allowed = std::max(tolerance(expected[i].dtype()), tolerance(precision));
    for (int64_t k = 0; k < expected[i].size(); ++k) {
      const double want = expected[i].real(k), got = actual[i].real(k);
      ASSERT_TRUE(want == got || std::abs(want - got) <= allowed * (1 + std::abs(want)) ||
                  (std::isnan(want) && std::isnan(got)))
          << "output " << i << " element " << k << ": " << want << " became " << got << " (seed " << seed << ")";
    }
  }
}

class PassFile : public testing::TestWithParam<std::string> {};

TEST_P(PassFile, GivesTheExpectedGraphAndKeepsItsMeaning) {
  const Case test = read_case(GetParam());
  const Pass* pass = find_pass(test.pass);
  ASSERT_NE(pass, nullptr) << "no pass is called " << test.pass;
  const Graph before = parse_graph(test.before, find_op), expected = parse_graph(test.after, find_op);
  Graph graph = before.clone();
  run_pass(graph, *pass, test.precision, test.kernels);
  EXPECT_EQ(canonical(graph), canonical(expected));
  Graph again = graph.clone();
  run_pass(again, *pass, test.precision, test.kernels);
  EXPECT_EQ(canonical(again), canonical(graph)) << "the pass is not idempotent";
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  expect_same_meaning(before, graph, test.precision, seed);
}

std::vector<std::string> files() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator("tests/ir"))
    if (entry.path().extension() == ".test") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = std::filesystem::path(info.param).stem().string();
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Ir, PassFile, testing::ValuesIn(files()), test_name);

TEST(PassFile, EachPassHasOneOfItsName) {
  const std::vector<std::string> paths = files();
  const auto is_tested = [&](std::string_view pass) {
    return std::any_of(paths.begin(), paths.end(), [&](const std::string& path) {
      return std::filesystem::path(path).stem().string().starts_with(pass);
    });
  };
  size_t passes = 0;
  const auto look = [&](const auto& self, std::span<const Pass> list) -> void {
    for (const Pass& pass : list) {
      self(self, pass.group);
      if (!pass.group.empty()) continue;
      ++passes;
      EXPECT_TRUE(is_tested(pass.name)) << "there is no tests/ir/" << pass.name << ".test";
    }
  };
  look(look, pipeline());
  EXPECT_GE(passes, 38u);
}

TEST(Runner, LogsLayersAtMilestonesAndTheTime) {
  std::vector<std::string> lines;
  Logger log([&](Severity, std::string_view text) { lines.emplace_back(text); });
  log.set_threshold(Severity::verbose);
  Graph graph = parse_graph("(%x: f32[4]) { %a = Identity(%x) %s = Sigmoid(%a) %y = Mul(%a, %s) }", find_op);
  run(graph, pipeline(), {.log = log});
  EXPECT_EQ(lines.front(), "Original: 3 layers");
  EXPECT_TRUE(lines.back().starts_with("Graph optimization time: "));
  EXPECT_NE(std::find(lines.begin(), lines.end(), "After concat removal: 1 layers"), lines.end());
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "After final dead-layer removal: 1 layers"), 2);
}

TEST(Runner, SkipsDisabledPassesAlsoInGroups) {
  Graph graph = parse_graph("(%x: f32[4]) { %s = Sigmoid(%x) %y = Mul(%x, %s) }", find_op);
  run(graph, pipeline(), {.log = silent_logger(), .disabled = {"fuse_silu"}});
  EXPECT_EQ(graph.node_count(), 2u);
}

TEST(Runner, WritesTheGraphAfterPassesThatChangedIt) {
  const TestFolder test;
  const std::string folder = test.file("dump");
  Graph graph = parse_graph("(%x: f32[4]) { %s = Sigmoid(%x) %y = Mul(%x, %s) }", find_op);
  run(graph, pipeline(), {.log = silent_logger(), .dump_directory = folder});
  EXPECT_TRUE(std::filesystem::exists(folder + "/00_original.ir"));
  EXPECT_TRUE(std::filesystem::exists(folder + "/01_fuse_silu.ir"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/02_fuse_mish.ir"));
  EXPECT_NE(read_file(folder + "/passes.txt").find("fuse_mish"), std::string::npos);
}

TEST(Runner, NamesThePassInAnErrorAndKeepsTheGraphBefore) {
  const TestFolder test;
  const std::string folder = test.file("dump");
  const Pass broken{.name = "break_something", .run = [](Graph&, const PassContext&) { throw Error("no"); }};
  Graph graph = parse_graph("(%x: f32[4]) { %y = Relu(%x) }", find_op);
  try {
    run(graph, std::span(&broken, 1), {.log = silent_logger(), .dump_directory = folder});
    FAIL() << "the error was lost";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("break_something"), std::string::npos);
    EXPECT_TRUE(std::filesystem::exists(folder + "/before_break_something.ir"));
  }
}

TEST(Document, HoldsGraphsThatAreReadAndPrintedAgain) {
  const std::string text = read_file("docs/ir.md"), begin = "```graph\n";
  size_t found = 0;
  for (size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at + 1), ++found) {
    const size_t start = at + begin.size();
    const Graph graph = parse_graph(text.substr(start, text.find("```", start) - start), find_op);
    EXPECT_EQ(print(parse_graph(print(graph), find_op)), print(graph));
  }
  EXPECT_GE(found, 1u);
}

}  // namespace
}  // namespace hone
