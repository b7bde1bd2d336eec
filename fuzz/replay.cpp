// SPDX-License-Identifier: Apache-2.0
//
// Runs a fuzz target without libFuzzer: on each seed file, then on damaged copies of them, drawn from a printed seed.
// So every build, with every compiler, runs the same harness as an ordinary test.
//
//   <target> FILE|FOLDER...      environment: HONE_FUZZ_RUNS (default 2000), HONE_FUZZ_SEED (default 1)
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Bytes = std::vector<uint8_t>;

Bytes read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

std::vector<Bytes> read_seeds(int count, char** paths) {
  std::vector<Bytes> seeds{{}};
  for (int i = 1; i < count; ++i) {
    if (!std::filesystem::is_directory(paths[i])) seeds.push_back(read(paths[i]));
    else
      for (const auto& entry : std::filesystem::directory_iterator(paths[i])) seeds.push_back(read(entry.path()));
  }
  return seeds;
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

}  // namespace

int main(int count, char** arguments) {
  const std::vector<Bytes> seeds = read_seeds(count, arguments);
  for (const Bytes& seed : seeds) LLVMFuzzerTestOneInput(seed.data(), seed.size());

  const int seed = environment("HONE_FUZZ_SEED", 1), runs = environment("HONE_FUZZ_RUNS", 2000);
  std::printf("%zu files, %d damaged copies, seed %d\n", seeds.size(), runs, seed);
  Mutator mutator(static_cast<unsigned>(seed));
  for (int run = 0; run < runs; ++run) {
    const Bytes bytes = mutator.damage(seeds[mutator.below(seeds.size())]);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  return 0;
}
