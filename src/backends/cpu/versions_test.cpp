// SPDX-License-Identifier: Apache-2.0
//
// What compile() of each family gives for the region samples: codes, and constants as they are packed. See
// device/versions_testing.h.
#include "backends/cpu/run/sources.h"
#include "backends/cpu/tactic_table.h"
#include "device/regions_testing.h"
#include "device/versions_testing.h"

namespace hone::cpu {
namespace {

/// For a processor with everything, whatever runs the test.
NamedRows compiled_samples() {
  NamedRows texts;
  setenv("HONE_CPU_BF16", "emulated", 1);
  const DeviceInfo device{
      .name = "none", .architecture = "avx512", .workers = 2, .bf16_matmuls = true, .byte_dots = true};
  for (const RegionSample& sample : region_samples())
    for (const auto& [dtype, rounds] : {std::pair(DType::f32, false), {DType::f32, true}, {DType::bf16, true}}) {
      Problem problem = sample_problem(sample.graph(dtype), 2, device);
      problem.allowed.bf16 = rounds;
      Candidates candidates;
      source().propose(problem, candidates);
      for (const Tactic& tactic : candidates.offers()) {
        const Compiled compiled = source().compile(problem, tactic);
        std::string& text = texts[tactic.name];
        text += tactic.text() + "\n";
        text += compiled.code.text();
        for (const Tensor& constant : compiled.constants) text += hash_hex(constant.bytes());
      }
    }
  unsetenv("HONE_CPU_BF16");
  return texts;
}

TEST(CpuVersions, GoUpWithWhatIsCompiled) {
  const auto texts = compiled_samples();
  NamedRows now;
  for (const CpuTactic* family : cpu_tactics()) {
    const auto text = texts.find(family->name);
    ASSERT_NE(text, texts.end()) << "no sample is for " << family->name;
    now[std::string(family->name)] = version_row(family->version, text->second);
  }
  expect_versions("src/backends/cpu/code_versions.txt", now, "hone_cpu_corpus_test --gtest_filter='CpuVersions.*'");
}

}  // namespace
}  // namespace hone::cpu
