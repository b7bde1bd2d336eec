// SPDX-License-Identifier: Apache-2.0
//
// An instance at work. Requests that the server hands over together become one inference where their shapes allow it. Where one request
// is one buffer, the inference reads it and writes the response where they lie; else rows are gathered and scattered.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "triton/model.h"
#include "triton/watch.h"

namespace hone::triton {

/// A request as far as an inference needs it.
struct Query {
  TRITONBACKEND_Request* request = nullptr;
  TRITONBACKEND_Response* response = nullptr;
  int64_t rows = 1;
  std::vector<TRITONBACKEND_Input*> inputs;  // as the plan orders them
  std::vector<std::vector<int64_t>> dims;    // of the inputs
  std::vector<uint32_t> buffers;             // how many each input comes in
  std::vector<bool> wanted;                  // which outputs
};

class Instance {
 public:
  Instance(ServedModel& model, Watch& watch, TRITONBACKEND_ModelInstance* instance);
  /// Answers and releases every request.
  void execute(std::span<TRITONBACKEND_Request* const> requests) noexcept;

 private:
  /// When the parts of an inference ended, by the server's clock.
  struct Stamps {
    uint64_t begin = 0, compute_begin = 0, compute_end = 0;
  };
  /// Where an output lies before the inference, where it does.
  struct Place {
    std::byte* memory = nullptr;     // of the response
    const std::byte* own = nullptr;  // where the inference writes instead
    std::vector<int64_t> dims;
    size_t bytes = 0;
  };

  Query read(TRITONBACKEND_Request* request) const;
  void serve(std::span<Query> batch) noexcept;
  void infer(std::span<Query> batch, Stamps& stamps);
  void answer(std::span<Query> batch, const Stamps& stamps, const Error* failure) noexcept;
  void refuse(Query& query, uint64_t begin) noexcept;

  std::vector<std::vector<int64_t>> shapes_of(std::span<const Query> batch) const;
  int profile_for(const std::vector<std::vector<int64_t>>& shapes) const;
  Context& context(int profile);
  void warm_up();
  void give_input(Context& context, size_t index, std::span<const Query> batch, const std::vector<int64_t>& dims);
  void give_texts(Context& context, size_t index, std::span<const Query> batch, const std::vector<int64_t>& dims);
  std::vector<Place> place_outputs(Context& context, std::span<Query> batch);
  void give_outputs(Context& context, std::span<Query> batch, const std::vector<Place>& places);
  void give_value(Context& context, size_t index, std::span<Query> batch);
  std::byte* respond(Query& query, const Io& io, const std::vector<int64_t>& dims, size_t bytes,
                     TRITONSERVER_MemoryType& kind) const;
  std::byte* room(size_t tensor, size_t bytes);
  bool can_use(const void* memory, TRITONSERVER_MemoryType kind, int64_t gpu) const;
  void copy(void* to, const void* from, size_t bytes, bool from_gpu);
  hone_memory own_memory() const { return stream_ ? HONE_MEMORY_DEVICE : HONE_MEMORY_HOST; }

  ServedModel& model_;
  Watch& watch_;
  TRITONBACKEND_ModelInstance* self_;
  int32_t gpu_ = 0;
  std::shared_ptr<const Loaded> loaded_;
  std::optional<Stream> stream_;                    // of a GPU
  std::vector<std::unique_ptr<Context>> contexts_;  // one a profile
  std::vector<std::optional<Buffer>> rooms_;        // one a tensor, inputs first
};

}  // namespace hone::triton
