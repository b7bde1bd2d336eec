// SPDX-License-Identifier: Apache-2.0
//
// Holds the families' versions: plans and timing caches know a kernel by its family's version, so what generate() gives may only
// change together with it. code_versions.txt has, of each family, the version and a hash of all source texts and codes that it
// gives for the region samples.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "backends/cuda/support/embedded.h"
#include "backends/cuda/tactic_table.h"
#include "base/hash.h"
#include "base/text.h"
#include "device/regions_testing.h"

namespace hone::cuda {
namespace {

constexpr const char* kFile = "src/backends/cuda/code_versions.txt";

/// Without comments and indents, which change no machine code.
std::string bare(std::string_view source) {
  std::string text;
  for (std::string_view line : split(source, '\n')) {
    line = trim(line.substr(0, line.find("//")));
    if (!line.empty()) text += std::string(line) + "\n";
  }
  return text;
}

/// Everything that the families give for the samples, for one card.
std::map<std::string, std::string, std::less<>> generated_texts() {
  std::map<std::string, std::string, std::less<>> texts;
  const DeviceInfo card{.name = "none", .architecture = "sm_90", .workers = 132};
  for (const RegionSample& sample : region_samples())
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
      for (const bool fixed : {false, true}) {
        const Graph symbolic = sample.graph(dtype);
        const Problem problem = sample_problem(fixed ? symbolic.specialize({{"N", 2}}) : symbolic.clone(), 2, card);
        for (const CudaTactic* family : cuda_tactics()) {
          Candidates candidates;
          family->propose(problem, candidates);
          for (const Tactic& tactic : candidates.offers()) {
            const Generated generated = family->generate(problem, card.architecture, tactic);
            texts[std::string(family->name)] +=
                tactic.text() + "\n" + generated.attrs.print() + "\n" + bare(generated.source);
          }
        }
      }
  return texts;
}

struct Row {
  int version = 0;
  std::string hash;
};

std::map<std::string, Row, std::less<>> read_rows() {
  std::map<std::string, Row, std::less<>> rows;
  std::ifstream file(kFile);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    Row row;
    if (words >> name >> row.version >> row.hash && !name.starts_with("#")) rows[name] = row;
  }
  return rows;
}

void write_rows(const std::map<std::string, Row, std::less<>>& rows) {
  std::ofstream file(kFile);
  file << "# Version of each family of CUDA kernels, and a hash of what it generates. versions_test.cpp says how to "
          "renew it.\n";
  for (const auto& [name, row] : rows) file << name << " " << row.version << " " << row.hash << "\n";
}

TEST(CudaVersions, GoUpWithWhatIsGenerated) {
  const std::string prelude = bare(kernels::prelude);
  const auto texts = generated_texts();
  std::map<std::string, Row, std::less<>> now, then = read_rows();
  for (const CudaTactic* family : cuda_tactics()) {
    const auto text = texts.find(family->name);
    ASSERT_NE(text, texts.end()) << "no sample is for " << family->name;
    now[std::string(family->name)] = {family->version, hash_hex(prelude + text->second).substr(0, 16)};
  }
  if (std::getenv("HONE_TEST_RENEW") != nullptr) return write_rows(now);
  constexpr const char* kRenew =
      "; then HONE_TEST_RENEW=1 hone_cuda_code_test --gtest_filter='CudaVersions.*' writes code_versions.txt anew";
  for (const auto& [name, row] : now) {
    const Row& known = then[name];
    EXPECT_FALSE(row.hash != known.hash && row.version == known.version)
        << "what " << name << " generates has changed, its version has not: raise its kVersion" << kRenew;
    EXPECT_EQ(row.version, known.version) << name << " is at another version than code_versions.txt has" << kRenew;
  }
  EXPECT_EQ(now.size(), then.size()) << "a family is gone" << kRenew;
}

}  // namespace
}  // namespace hone::cuda
