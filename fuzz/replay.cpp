// SPDX-License-Identifier: Apache-2.0
//
// Runs a fuzz target without libFuzzer: on its valid inputs and on each file named, then on damaged copies of them, drawn
// from a printed seed. So every build, with every compiler, runs the same harness as an ordinary test.
//
//   <target> [--write-seeds FOLDER | --only] [FILE|FOLDER...]        --only: what is named, as it is
//   environment: HONE_FUZZ_RUNS (default 2000), HONE_FUZZ_SEED (default 1), HONE_FUZZ_SECONDS (default 20, an upper bound),
//                HONE_FUZZ_KEEP: a file that holds the input at hand, for what ends the process
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>

#include "harness.h"

namespace {

using Bytes = std::vector<uint8_t>;

Bytes read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

std::vector<Bytes> read_seeds(int count, char** paths) {
  std::vector<Bytes> seeds{{}};
  for (const std::string& seed : hone::fuzz::seed_inputs()) seeds.emplace_back(seed.begin(), seed.end());
  for (int i = 1; i < count; ++i) {
    if (!std::filesystem::is_directory(paths[i])) seeds.push_back(read(paths[i]));
    else
      for (const auto& entry : std::filesystem::recursive_directory_iterator(paths[i]))
        if (entry.is_regular_file()) seeds.push_back(read(entry.path()));
  }
  return seeds;
}

void write_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const std::string& seed : hone::fuzz::seed_inputs())
    std::ofstream(folder / ("seed_" + std::to_string(number++)), std::ios::binary) << seed;
}

int environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  Bytes damage(Bytes bytes) {
    for (size_t changes = 1 + below(4); changes > 0 && !bytes.empty(); --changes) change(bytes);
    return bytes;
  }
  size_t below(size_t limit) { return std::uniform_int_distribution<size_t>(0, limit - 1)(random_); }

 private:
  void change(Bytes& bytes) {
    const size_t at = below(bytes.size());
    switch (below(5)) {
      case 0: bytes[at] ^= static_cast<uint8_t>(1u << below(8)); break;
      case 1: bytes[at] = static_cast<uint8_t>(below(2) == 0 ? 0xff : below(256)); break;
      case 2: bytes.resize(at); break;
      case 3: bytes.erase(bytes.begin() + static_cast<ptrdiff_t>(at)); break;
      case 4: {
        const Bytes piece(
            bytes.begin() + static_cast<ptrdiff_t>(at),
            bytes.begin() + static_cast<ptrdiff_t>(at + 1 + below(std::min<size_t>(bytes.size() - at, 64))));
        bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(below(bytes.size())), piece.begin(), piece.end());
        break;
      }
    }
  }

  std::mt19937 random_;
};

/// What asks for more memory than any input deserves gets an error instead of the machine's. Sanitizers need the addresses.
void limit_memory() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const rlimit limit{rlim_t{4} << 30, rlim_t{4} << 30};
  setrlimit(RLIMIT_AS, &limit);
#endif
}

/// What takes longer goes on without end: the alarm ends the process.
constexpr unsigned kMostSeconds = 60;

/// Counts failures and tells the first of each kind.
class Replay {
 public:
  void run(const Bytes& bytes, const char* kind, int number) {
    alarm(kMostSeconds);
    if (const char* path = std::getenv("HONE_FUZZ_KEEP"))
      std::ofstream(path, std::ios::binary) << std::string(bytes.begin(), bytes.end());
    try {
      LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    } catch (const std::exception& error) {
      const std::string text = error.what();
      if (told_.insert(text.substr(0, 80)).second) std::printf("%s %d: %s\n", kind, number, text.c_str());
    }
  }
  bool failed() const { return !told_.empty(); }

 private:
  std::set<std::string> told_;
};

int run_all(const std::vector<Bytes>& seeds) {
  const int seed = environment("HONE_FUZZ_SEED", 1), runs = environment("HONE_FUZZ_RUNS", 2000);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(environment("HONE_FUZZ_SECONDS", 20));
  std::printf("%zu inputs, %d damaged copies, seed %d\n", seeds.size(), runs, seed);
  std::fflush(stdout);
  Replay replay;
  for (size_t i = 0; i < seeds.size(); ++i) replay.run(seeds[i], "input", static_cast<int>(i));
  Mutator mutator(static_cast<unsigned>(seed));
  int number = 0;
  for (; number < runs && std::chrono::steady_clock::now() < end; ++number)
    replay.run(mutator.damage(seeds[mutator.below(seeds.size())]), "copy", number);
  std::printf("%d copies were run, %zu times nothing was refused\n", number, hone::fuzz::accepted_bodies);
  return replay.failed() ? 1 : 0;
}

int run_only(int count, char** paths) {
  Replay replay;
  for (int i = 1; i < count; ++i) replay.run(read(paths[i]), paths[i], i);
  return replay.failed() ? 1 : 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 3 && std::string(arguments[1]) == "--write-seeds") {
    write_seeds(arguments[2]);
    return 0;
  }
  limit_memory();
  if (count > 1 && std::string(arguments[1]) == "--only") return run_only(count - 1, arguments + 1);
  return run_all(read_seeds(count, arguments));
}
