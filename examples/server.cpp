// SPDX-License-Identifier: Apache-2.0
//
// A server in small:  server MODEL.onnx [CONTEXTS] < requests
// One engine, a context for each thread. A request is a line of input values; the answer is its number and the output's values.
#include <hone/hone.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <mutex>
#include <sstream>
#include <thread>
#include <vector>

void check(hone_status status) {
  if (status != HONE_OK) std::cerr << "server: " << hone_last_error() << '\n', std::_Exit(1);
}
template <typename T, typename Create, typename... Arguments>
std::unique_ptr<T, void (*)(T*)> make(void (*destroy)(T*), Create create, Arguments... arguments) {
  T* made = nullptr;
  check(create(arguments..., &made));
  return {made, destroy};
}

void serve(const hone_engine* engine) {
  static std::mutex in, out;
  static int count = 0;
  const auto context = make(hone_context_destroy, hone_context_create, engine, 0);
  std::vector<float> values[2];  // of the input, of the output
  for (size_t i = 0; i < 2; ++i) {
    hone_tensor tensor;
    int64_t bytes = 0;
    check(hone_engine_tensor(engine, i, &tensor));
    check(hone_context_bytes(context.get(), tensor.name, &bytes));
    values[i].resize(static_cast<size_t>(bytes) / sizeof(float));
    check(hone_context_bind(context.get(), tensor.name, values[i].data()));
  }
  for (std::string line;;) {
    int request;
    if (const std::lock_guard<std::mutex> reading(in); std::getline(std::cin, line)) request = count++;
    else return;
    std::istringstream words(line);
    for (float& value : values[0]) words >> value;
    check(hone_context_run(context.get()));  // of several threads at once
    const std::lock_guard<std::mutex> writing(out);
    std::cout << request;
    for (const float value : values[1]) std::cout << ' ' << value;
    std::cout << std::endl;
  }
}

int main(int argc, char** argv) {
  const auto device = make(hone_device_destroy, hone_device_open, "cpu");
  const auto model = make(hone_model_destroy, hone_model_import, argc > 1 ? argv[1] : "model.onnx", nullptr);
  const auto plan = make(hone_plan_destroy, hone_build, model.get(), device.get(), nullptr, nullptr);
  const auto engine = make(hone_engine_destroy, hone_engine_create, plan.get(), device.get(), nullptr);
  std::vector<std::thread> threads;
  for (int i = 0; i < (argc > 2 ? std::atoi(argv[2]) : 2); ++i) threads.emplace_back(serve, engine.get());
  for (std::thread& thread : threads) thread.join();
}
