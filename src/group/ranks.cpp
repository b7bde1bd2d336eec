// SPDX-License-Identifier: Apache-2.0
#include "group/ranks.h"

#include <unistd.h>

#include <cstdlib>
#include <iterator>

#include "base/error.h"
#include "base/text.h"

namespace hone {
namespace {

/// The names of one launcher's variables; empty: it has none of that kind.
struct Launcher {
  const char* name;
  const char *rank, *size, *local, *local_size;
  const char* job[4];  // that together tell one start from another
};

// A batch script of SLURM has a rank, too, but no step: what runs there is alone.
constexpr Launcher kLaunchers[] = {
    {"TensorRT's variables", "TRT_MY_RANK", "TRT_WORLD_SIZE", "", "", {"TRT_NCCL_ID_FILE", "", "", ""}},
    {"torchrun",
     "RANK",
     "WORLD_SIZE",
     "LOCAL_RANK",
     "LOCAL_WORLD_SIZE",
     {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}},
    {"mpirun",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "", ""}},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "", {"SLURM_JOB_ID", "SLURM_STEP_ID", "", ""}},
    {"mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", {"PMI_ID", "", "", ""}},
};

class Reader {
 public:
  explicit Reader(const Variables& variables) : variables_(variables) {}
  const char* text(const char* name) const {
    const char* value = *name == '\0' ? nullptr : variables_(name);
    return value == nullptr || *value == '\0' ? nullptr : value;
  }
  std::optional<int> number(const char* name) const {
    const char* value = text(name);
    if (value == nullptr) return std::nullopt;
    const std::optional<int64_t> number = parse_integer(value);
    constexpr int64_t kMost = 1 << 16;
    if (!number || *number < 0 || *number > kMost)
      throw Error(fmt::format("the environment variable {} is '{}', not the number of a rank", name, value));
    return static_cast<int>(*number);
  }

 private:
  const Variables& variables_;
};

Rank read(const Launcher& launcher, const Reader& reader) {
  Rank rank{.rank = *reader.number(launcher.rank),
            .size = *reader.number(launcher.size),
            .launcher = launcher.name,
            .job = {}};
  if (rank.rank >= rank.size)
    throw Error(fmt::format("{} says that this is rank {} of {}", launcher.name, rank.rank, rank.size),
                fmt::format("ranks count from 0: see {} and {}", launcher.rank, launcher.size));
  rank.local = reader.number(launcher.local).value_or(rank.rank);
  rank.local_size = reader.number(launcher.local_size).value_or(rank.size);
  rank.job = launcher.name;
  for (const char* name : launcher.job)
    if (const char* value = reader.text(name)) rank.job += fmt::format(" {}", value);
  // Its processes have a parent in common, and no variable.
  if (std::string_view(launcher.name) == "mpiexec") rank.job += fmt::format(" {}", getppid());
  if (const char* folder = reader.text("HONE_MEETING")) rank.folder = folder;
  else if (const char* file = reader.text("TRT_NCCL_ID_FILE"); file != nullptr && launcher.rank == kLaunchers[0].rank)
    rank.folder = fmt::format("{}.hone", file);
  if (rank.folder.empty() && rank.local_size < rank.size)
    throw Error(fmt::format("the {} ranks are on several machines", rank.size),
                "name a folder that all of them see in the environment variable HONE_MEETING");
  return rank;
}

}  // namespace

std::optional<Rank> rank_of(const Variables& variables) {
  const Reader reader(variables);
  for (const Launcher& launcher : kLaunchers)
    if (reader.number(launcher.rank) && reader.number(launcher.size)) return read(launcher, reader);
  return std::nullopt;
}

std::optional<Rank> rank_of_process() {
  return rank_of([](const char* name) { return std::getenv(name); });
}

}  // namespace hone
