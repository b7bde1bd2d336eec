// SPDX-License-Identifier: Apache-2.0
//
// Two ranks in one process: the other one has what this one has, and says what this one says. It reads and writes every byte that a call
// stands for, and adds nothing up.
#pragma once

#include <cstring>

#include "device/group.h"
#include "tensor/dtype.h"

namespace hone::fuzz {

class EchoGroup final : public Group {
 public:
  int rank() const override { return 0; }
  int size() const override { return kRanks; }
  int timeout_ms() const override { return 1000; }
  void run(const CollectiveForm& form, const void* input, void* output) override {
    const size_t bytes = static_cast<size_t>(form.elements) * size_of(form.dtype);
    if (bytes == 0) return;
    const bool shrinks = form.kind == CollectiveKind::reduce_scatter || form.kind == CollectiveKind::scatter;
    std::memcpy(output, input, shrinks ? bytes / kRanks : bytes);
    if (form.kind == CollectiveKind::all_gather || form.kind == CollectiveKind::gather)
      std::memcpy(static_cast<std::byte*>(output) + bytes, input, bytes);
  }
  std::vector<std::string> exchange(std::string_view text) override { return {kRanks, std::string(text)}; }
  std::vector<uint64_t> exchange(uint64_t number) override { return {number, number}; }
  void fail(const GroupError&) override {}
  void on_failure(std::function<void()>) override {}
  void require_sound() const override {}

 private:
  static constexpr int kRanks = 2;
};

}  // namespace hone::fuzz
