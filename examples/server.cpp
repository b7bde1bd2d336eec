// SPDX-License-Identifier: Apache-2.0
//
// A server in small:  server MODEL.onnx [CONTEXTS] < requests
// One engine, a context for each thread. A request is a line of input values; the answer is its number and the output's values.
#include <hone/hone.hpp>

#include <cstdlib>
#include <iostream>
#include <mutex>
#include <sstream>
#include <thread>

void serve(const hone::Engine& engine) {
  static std::mutex in, out;
  static int count = 0;
  hone::Context context(engine);
  std::vector<float> values[2];  // of the input, of the output
  for (size_t i = 0; i < 2; ++i) {
    const std::string name = engine.tensors()[i].name;
    values[i].resize(static_cast<size_t>(context.bytes(name)) / sizeof(float));
    context.bind(name, std::span(values[i]));
  }
  for (std::string line;;) {
    int request;
    if (const std::lock_guard<std::mutex> reading(in); std::getline(std::cin, line)) request = count++;
    else return;
    std::istringstream words(line);
    for (float& value : values[0]) words >> value;
    context.run();  // of several threads at once
    const std::lock_guard<std::mutex> writing(out);
    std::cout << request;
    for (const float value : values[1]) std::cout << ' ' << value;
    std::cout << std::endl;
  }
}

int main(int argc, char** argv) {
  try {
    const hone::Device device("cpu");
    const hone::Engine engine(hone::Plan::build(hone::Model::load(argc > 1 ? argv[1] : "model.onnx"), device), device);
    std::vector<std::jthread> threads;
    for (int i = 0; i < (argc > 2 ? std::atoi(argv[2]) : 2); ++i) threads.emplace_back([&] { serve(engine); });
  } catch (const hone::Error& error) {
    std::cerr << "server: " << error.what() << '\n';
    return 1;
  }
}
