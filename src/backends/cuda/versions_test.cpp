// SPDX-License-Identifier: Apache-2.0
//
// What generate() of each family gives for the region samples: all source texts and codes. See device/versions_testing.h.
#include "backends/cuda/support/source_text.h"
#include "backends/cuda/tactic_table.h"
#include "base/text.h"
#include "device/regions_testing.h"
#include "device/versions_testing.h"

namespace hone::cuda {
namespace {

/// Without comments and indents, which change no machine code.
std::string bare(std::string_view source) {
  std::string text;
  for (std::string_view line : split(source, '\n')) {
    line = trim(line.substr(0, line.find("//")));
    if (!line.empty()) text += std::string(line) + "\n";
  }
  return text;
}

/// Everything that the families give for the samples, for one GPU.
NamedRows generated_texts() {
  NamedRows texts;
  const DeviceInfo gpu{.name = "none", .architecture = "sm_90", .workers = 132};
  for (const RegionSample& sample : region_samples())
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
      for (const bool fixed : {false, true}) {
        const Graph symbolic = sample.graph(dtype);
        const Problem problem = sample_problem(fixed ? symbolic.specialize({{"N", 2}}) : symbolic.clone(), 2, gpu);
        for (const CudaTactic* family : cuda_tactics()) {
          Candidates candidates;
          family->propose(problem, candidates);
          for (const Tactic& tactic : candidates.offers()) {
            const Generated generated = family->generate(problem, gpu.architecture, tactic);
            texts[std::string(family->name)] +=
                tactic.text() + "\n" + generated.attrs.print() + "\n" + bare(generated.source);
          }
        }
      }
  return texts;
}

TEST(CudaVersions, GoUpWithWhatIsGenerated) {
  const auto texts = generated_texts();
  NamedRows now;
  for (const CudaTactic* family : cuda_tactics()) {
    const auto text = texts.find(family->name);
    ASSERT_NE(text, texts.end()) << "no sample is for " << family->name;
    now[std::string(family->name)] = version_row(family->version, bare(types_before(text->second)) + text->second);
  }
  expect_versions("src/backends/cuda/code_versions.txt", now, "hone_cuda_code_test --gtest_filter='CudaVersions.*'");
}

}  // namespace
}  // namespace hone::cuda
