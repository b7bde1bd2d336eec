// SPDX-License-Identifier: Apache-2.0
//
// Random small graphs for tests: valid by construction, of operators that fuse, move and fold into each other, with some
// data-dependent shapes. The same seed gives the same graph.
#pragma once

#include <cstdint>
#include <random>

#include "ir/graph.h"

namespace hone {

class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed) : random_(seed) {}
  Graph make();

 private:
  int64_t up_to(int64_t last) { return std::uniform_int_distribution<int64_t>(0, last)(random_); }
  bool chance(int percent) { return up_to(99) < percent; }
  Value* any();
  Value* constant(const Dims& dims);
  void keep(Node* node);
  void add_one();
  void add_unary(Value* x);
  void add_binary(Value* x);
  void add_matmul(Value* x);
  void add_window(Value* x);
  void add_along_axis(Value* x);
  void add_movement(Value* x);
  void add_choice(Value* x);
  void add_by_data(Value* x);

  std::mt19937_64 random_;
  Graph graph_;
  std::vector<Value*> values_;  // f32
};

}  // namespace hone
