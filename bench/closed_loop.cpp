// SPDX-License-Identifier: Apache-2.0
//
// A plan in closed loops, over hone.hpp alone: closed_loop PLAN DEVICE CONTEXTS SECONDS [INPUT=1x3x224x224...]
//
// Each context has a thread of its own, copies its inputs in and its outputs out as trtexec does, and starts an inference when the last
// one is done. Prints the median latency in milliseconds, the inferences per second of all, and how many threads the process had.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <hone/hone.hpp>
#include <map>
#include <thread>

using Clock = std::chrono::steady_clock;
using Shapes = std::map<std::string, std::vector<int64_t>>;

namespace {

struct Bound {
  bool is_input;
  hone::Buffer host, memory;
};

std::vector<double> loop(const hone::Device& device, const hone::Engine& engine, const Shapes& shapes,
                         std::atomic<int>& ready, double seconds) {
  hone::Context context(engine);
  for (const auto& [name, sizes] : shapes) context.set_shape(name, sizes);
  std::vector<Bound> tensors;
  for (const hone::Tensor& tensor : engine.tensors()) {
    const auto bytes = static_cast<size_t>(context.bytes(tensor.name));
    tensors.push_back({tensor.is_input, {device, bytes, HONE_MEMORY_HOST}, {device, bytes, HONE_MEMORY_HOST}});
    std::memset(tensors.back().host.data(), 0, bytes);
    if (tensor.dtype == HONE_F32) std::ranges::fill(tensors.back().host.as<float>(), 0.25F);
    context.bind(tensor.name, tensors.back().memory);
  }
  std::vector<double> times;
  const auto once = [&] {
    const Clock::time_point start = Clock::now();
    for (Bound& each : tensors)
      if (each.is_input) std::memcpy(each.memory.data(), each.host.data(), each.host.bytes());
    context.run();
    for (Bound& each : tensors)
      if (!each.is_input) std::memcpy(each.host.data(), each.memory.data(), each.host.bytes());
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  };
  for (int i = 0; i < 3; ++i) once();
  for (--ready; ready > 0;) std::this_thread::yield();
  times.clear();
  for (const auto until = Clock::now() + std::chrono::duration<double>(seconds); Clock::now() < until;) once();
  return times;
}

Shapes shapes_of(int count, char** words) {
  Shapes shapes;
  for (int i = 0; i < count; ++i) {
    const char* equals = std::strchr(words[i], '=');
    for (const char* at = equals; at != nullptr; at = std::strchr(at + 1, 'x'))
      shapes[std::string(static_cast<const char*>(words[i]), equals)].push_back(std::atol(at + 1));
  }
  return shapes;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 5) return std::fprintf(stderr, "usage: closed_loop PLAN DEVICE CONTEXTS SECONDS [INPUT=SIZES...]\n"), 1;
  const size_t contexts = static_cast<size_t>(std::atoi(argv[3]));
  const hone::Device device(argv[2]);
  const hone::Engine engine(hone::Plan::load(argv[1]), device);
  std::vector<std::vector<double>> times(contexts);
  std::atomic<int> ready = static_cast<int>(contexts);
  size_t most = 0;
  {
    std::vector<std::jthread> threads;
    for (auto& mine : times)
      threads.emplace_back(
          [&] { mine = loop(device, engine, shapes_of(argc - 5, argv + 5), ready, std::atof(argv[4])); });
    while (ready > 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    most = static_cast<size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
  }
  double rate = 0;
  std::vector<double> all;
  for (const auto& mine : times) {
    double sum = 0;
    for (const double each : mine) sum += each;
    rate += static_cast<double>(mine.size()) / sum * 1e3;
    all.insert(all.end(), mine.begin(), mine.end());
  }
  std::ranges::sort(all);
  std::printf("{\"median\": %.6f, \"rate\": %.6f, \"threads\": %zu}\n", all.at(all.size() / 2), rate, most);
} catch (const hone::Error& error) {
  return std::fprintf(stderr, "closed_loop: %s\n", error.what()), 1;
}
