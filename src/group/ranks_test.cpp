// SPDX-License-Identifier: Apache-2.0
//
// Ranks as launchers tell them.
#include "group/ranks.h"

#include <gmock/gmock.h>

#include <map>

#include "base/error.h"

namespace hone {
namespace {

std::optional<Rank> told(std::map<std::string, std::string> variables) {
  return rank_of([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Ranks, AProcessThatIsStartedAloneHasNone) {
  EXPECT_FALSE(told({}));
  EXPECT_FALSE(told({{"RANK", "0"}})) << "of how many?";
  EXPECT_FALSE(told({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "7"}})) << "a batch script";
}

TEST(Ranks, EveryLauncherIsUnderstood) {
  const auto torchrun = told({{"RANK", "3"},
                              {"WORLD_SIZE", "4"},
                              {"LOCAL_RANK", "1"},
                              {"LOCAL_WORLD_SIZE", "2"},
                              {"MASTER_ADDR", "a"},
                              {"MASTER_PORT", "29500"},
                              {"HONE_MEETING", "/shared"}});
  EXPECT_EQ(torchrun->launcher, "torchrun");
  EXPECT_EQ(torchrun->rank, 3);
  EXPECT_EQ(torchrun->size, 4);
  EXPECT_EQ(torchrun->local, 1);
  EXPECT_EQ(torchrun->local_size, 2);
  EXPECT_EQ(torchrun->folder, "/shared");
  EXPECT_EQ(torchrun->job, "torchrun a 29500");

  const auto mpirun = told({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"PMIX_NAMESPACE", "9"}});
  EXPECT_EQ(mpirun->launcher, "mpirun");
  EXPECT_EQ(mpirun->rank, 1);

  const auto srun = told({{"SLURM_PROCID", "1"},
                          {"SLURM_STEP_NUM_TASKS", "2"},
                          {"SLURM_LOCALID", "1"},
                          {"SLURM_JOB_ID", "7"},
                          {"SLURM_STEP_ID", "0"}});
  EXPECT_EQ(srun->launcher, "srun");
  EXPECT_EQ(srun->job, "srun 7 0");

  const auto mpiexec = told({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}});
  EXPECT_EQ(mpiexec->size, 2);

  const auto tensorrt = told({{"TRT_MY_RANK", "1"}, {"TRT_WORLD_SIZE", "2"}, {"TRT_NCCL_ID_FILE", "/tmp/id"}});
  EXPECT_EQ(tensorrt->rank, 1);
  EXPECT_EQ(tensorrt->folder, "/tmp/id.hone");
}

TEST(Ranks, WhatCannotBeIsRefused) {
  EXPECT_THROW(told({{"RANK", "2"}, {"WORLD_SIZE", "2"}}), Error);
  EXPECT_THROW(told({{"RANK", "one"}, {"WORLD_SIZE", "2"}}), Error);
  EXPECT_THROW(told({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}), Error);
}

TEST(Ranks, OnSeveralMachinesAFolderIsAskedFor) {
  const std::map<std::string, std::string> apart{
      {"RANK", "0"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "2"}};
  EXPECT_THROW(told(apart), Error);
}

}  // namespace
}  // namespace hone
