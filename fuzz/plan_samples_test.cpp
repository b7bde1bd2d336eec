// SPDX-License-Identifier: Apache-2.0
//
// What the altered plans begin with: without a plan of a family nothing alters what its kernels are made from.
#include "plan_samples.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "backends/all.h"
#include "backends/cpu/run/device.h"
#include "backends/cpu/tactic_table.h"

namespace hone::fuzz {
namespace {

TEST(PlanSamples, AreOfEveryFamilyOfEverySource) {
  setenv("HONE_CPU_BF16", "emulated", 0);  // families that this machine may lack the instructions for
  cpu::CpuDevice device(cpu::DeviceOptions{.workers = 1});
  std::set<std::string> labels, sources;
  for (const PlanSample& sample : plan_samples(*find_backend("cpu"), device)) {
    labels.insert(sample.label);
    sources.insert(sample.label.substr(0, sample.label.find('.')));
  }
  for (const cpu::CpuTactic* family : cpu::cpu_tactics())
    EXPECT_TRUE(labels.contains("cpu." + std::string(family->name))) << "no sample is of cpu." << family->name;
  for (const TacticSource* source : find_backend("cpu")->sources)
    EXPECT_TRUE(sources.contains(std::string(source->name()))) << "no sample is of " << source->name();
  if (!sources.contains("onednn")) return;
  for (const std::string family : {"convolution", "linear", "matmul", "recurrent", "attention"})
    EXPECT_TRUE(labels.contains("onednn." + family)) << "no sample is of onednn." << family;
}

}  // namespace
}  // namespace hone::fuzz
