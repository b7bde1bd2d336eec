// SPDX-License-Identifier: Apache-2.0
//
// Requests in, responses out.
#include "triton/instance.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>

namespace hone::triton {
namespace {

constexpr size_t kAlignment =
    16;  // of what malloc gives, and so of the server's buffers; kernels read from any address

uint64_t now() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

int64_t count_of(std::span<const int64_t> dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

std::string text_of(std::span<const int64_t> dims) {
  std::string text;
  for (const int64_t size : dims) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text.empty() ? "no sizes" : text;
}

Error wrong(const std::string& text, const std::string& hint) { return {HONE_ERROR, text, hint}; }

/// Requests whose rows can lie behind each other.
bool fit_together(const Query& a, const Query& b) {
  for (size_t i = 0; i < a.dims.size(); ++i)
    if (!std::equal(a.dims[i].begin() + 1, a.dims[i].end(), b.dims[i].begin() + 1, b.dims[i].end())) return false;
  return true;
}

TRITONSERVER_InstanceGroupKind kind_of(TRITONBACKEND_ModelInstance* instance) {
  auto kind = TRITONSERVER_INSTANCEGROUPKIND_CPU;
  ask(TRITONBACKEND_ModelInstanceKind(instance, &kind));
  return kind;
}

std::string policy_of(TRITONBACKEND_ModelInstance* instance) {
  TRITONSERVER_Message* message = nullptr;
  ask(TRITONBACKEND_ModelInstanceHostPolicy(instance, &message));
  // Unlike other messages this one stays the server's.
  const char* text = nullptr;
  size_t bytes = 0;
  ask(TRITONSERVER_MessageSerializeToJson(message, &text, &bytes));
  return {text, bytes};
}

/// Texts as the protocol sends them: their length in four bytes, then they themselves.
std::string packed(const Value& value, size_t begin, size_t end) {
  std::string bytes;
  for (size_t i = begin; i < end; ++i) {
    const std::string text = value.string(i);
    const auto length = static_cast<uint32_t>(text.size());
    bytes.append(reinterpret_cast<const char*>(&length), sizeof length).append(text);
  }
  return bytes;
}

void unpack(std::string_view bytes, const std::string& input, std::vector<std::string_view>& texts) {
  while (!bytes.empty()) {
    uint32_t length = 0;
    if (bytes.size() >= sizeof length) std::memcpy(&length, bytes.data(), sizeof length);
    if (bytes.size() < sizeof length || bytes.size() - sizeof length < length)
      throw wrong(input + " ends within a text", "send each text behind its length in four bytes");
    texts.push_back(bytes.substr(sizeof length, length));
    bytes.remove_prefix(sizeof length + length);
  }
}

}  // namespace

Instance::Instance(ServedModel& model, Watch& watch, TRITONBACKEND_ModelInstance* instance)
    : model_(model), watch_(watch), self_(instance) {
  ask(TRITONBACKEND_ModelInstanceDeviceId(instance, &gpu_));
  const bool on_gpu = kind_of(instance) == TRITONSERVER_INSTANCEGROUPKIND_GPU;
  const std::string device = model.device_of(on_gpu, gpu_, policy_of(instance));
  loaded_ = model.loaded(device);
  const hone_device_info info = loaded_->device.info();
  if (info.host_accessible == 0) stream_.emplace(loaded_->device);
  contexts_.resize(loaded_->engine.profiles());
  rooms_.resize(model.interface().inputs.size() + model.interface().outputs.size());
  warm_up();
  log(TRITONSERVER_LOG_INFO, model.name() + ": an instance on " + device + ", " + info.name + ", " +
                                 std::to_string(info.workers) + " workers");
}

void Instance::execute(std::span<TRITONBACKEND_Request* const> requests) noexcept {
  std::vector<Query> queries;
  for (TRITONBACKEND_Request* request : requests) {
    const uint64_t begin = now();
    Query query;
    query.request = request;
    try {
      queries.reserve(requests.size());
      if (is_cancelled(request)) throw Error(HONE_CANCELLED, "the request was cancelled", {});
      queries.push_back(read(request));
    } catch (...) {
      refuse(query, begin);
    }
  }
  for (size_t begin = 0, end = 0; begin < queries.size(); begin = end) {
    end = begin + 1;
    while (model_.has_rows() && end < queries.size() && fit_together(queries[begin], queries[end])) ++end;
    serve(std::span(queries).subspan(begin, end - begin));
  }
}

/// What is wrong with one request does not reach those beside it.
Query Instance::read(TRITONBACKEND_Request* request) const {
  const Interface& interface = model_.interface();
  Query query;
  query.request = request;
  for (const Io& io : interface.inputs) {
    TRITONBACKEND_Input* input = nullptr;
    ask(TRITONBACKEND_RequestInput(request, io.name.c_str(), &input));
    auto type = TRITONSERVER_TYPE_INVALID;
    const int64_t* dims = nullptr;
    uint32_t rank = 0, buffers = 0;
    uint64_t bytes = 0;
    ask(TRITONBACKEND_InputProperties(input, nullptr, &type, &dims, &rank, &bytes, &buffers));
    const std::span<const int64_t> sizes(dims, rank);
    if (type != io.type) throw wrong(io.name + " is of another type", "the model's metadata tell its types");
    if (rank != io.dims.size() || std::ranges::any_of(sizes, [](int64_t size) { return size < 0; }))
      throw wrong(io.name + " is " + text_of(sizes) + ", of other sizes than the model takes",
                  "the model's metadata tell its sizes");
    if (io.element_bytes != 0 && bytes != static_cast<uint64_t>(count_of(sizes)) * io.element_bytes)
      throw wrong(io.name + " is " + text_of(sizes) + " and has " + std::to_string(bytes) + " bytes",
                  "send as many as its sizes say");
    const int64_t rows = model_.has_rows() ? sizes[0] : 1;
    if (rows < 1) throw wrong(io.name + " has no rows", "send one at least");
    if (!query.inputs.empty() && rows != query.rows)
      throw wrong("inputs have " + std::to_string(query.rows) + " and " + std::to_string(rows) + " rows",
                  "send as many of each");
    query.rows = rows;
    query.inputs.push_back(input);
    query.dims.emplace_back(sizes.begin(), sizes.end());
    query.buffers.push_back(buffers);
  }
  query.wanted.resize(interface.outputs.size());
  uint32_t count = 0;
  ask(TRITONBACKEND_RequestOutputCount(request, &count));
  for (uint32_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    ask(TRITONBACKEND_RequestOutputName(request, i, &name));
    for (size_t o = 0; o < interface.outputs.size(); ++o)
      if (interface.outputs[o].name == name) query.wanted[o] = true;
  }
  return query;
}

/// Where an inference of several fails by its data, each is tried alone: one of them is to blame.
void Instance::serve(std::span<Query> batch) noexcept {
  Stamps stamps{now(), 0, 0};
  try {
    infer(batch, stamps);
    answer(batch, stamps, nullptr);
  } catch (const Error& failure) {
    if (batch.size() == 1 || failure.status() != HONE_ERROR) return answer(batch, stamps, &failure);
    for (Query& query : batch) serve({&query, 1});
  } catch (const std::exception& failure) {
    const Error error(HONE_INTERNAL, failure.what(), {});
    answer(batch, stamps, &error);
  }
}

void Instance::infer(std::span<Query> batch, Stamps& stamps) {
  const std::vector<std::vector<int64_t>> shapes = shapes_of(batch);
  Context& context = this->context(std::max(profile_for(shapes), 0));
  for (size_t i = 0; i < shapes.size(); ++i) give_input(context, i, batch, shapes[i]);
  const std::vector<Place> places = place_outputs(context, batch);
  stamps.compute_begin = now();
  {
    std::vector<TRITONBACKEND_Request*> requests;
    for (const Query& query : batch) requests.push_back(query.request);
    const Watch::Watched watched(watch_, {&context, requests});
    if (stream_) {
      context.enqueue(*stream_);
      stream_->synchronize();
      context.wait();
    } else {
      context.run();
    }
  }
  stamps.compute_end = now();
  give_outputs(context, batch, places);
}

void Instance::answer(std::span<Query> batch, const Stamps& stamps, const Error* failure) noexcept {
  const uint64_t end = now();
  const uint64_t begin = stamps.compute_begin != 0 ? stamps.compute_begin : end;
  const uint64_t finish = stamps.compute_end != 0 ? stamps.compute_end : end;
  uint64_t rows = 0;
  for (Query& query : batch) {
    TRITONSERVER_Error* error = failure == nullptr ? nullptr : error_of(*failure);
    if (query.response == nullptr) tell(TRITONBACKEND_ResponseNew(&query.response, query.request));
    if (query.response != nullptr)
      tell(TRITONBACKEND_ResponseSend(query.response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, error));
    if (error != nullptr) TRITONSERVER_ErrorDelete(error);
    tell(TRITONBACKEND_ModelInstanceReportStatistics(self_, query.request, failure == nullptr, stamps.begin, begin,
                                                     finish, end));
    tell(TRITONBACKEND_RequestRelease(query.request, TRITONSERVER_REQUEST_RELEASE_ALL));
    rows += static_cast<uint64_t>(query.rows);
  }
  if (failure == nullptr)
    tell(TRITONBACKEND_ModelInstanceReportBatchStatistics(self_, rows, stamps.begin, begin, finish, end));
}

/// Answers with what is being handled.
void Instance::refuse(Query& query, uint64_t begin) noexcept {
  TRITONSERVER_Error* error = current_error();
  const Error failure(TRITONSERVER_ErrorCode(error) == TRITONSERVER_ERROR_CANCELLED ? HONE_CANCELLED : HONE_ERROR,
                      TRITONSERVER_ErrorMessage(error), {});
  TRITONSERVER_ErrorDelete(error);
  answer({&query, 1}, {begin, 0, 0}, &failure);
}

std::vector<std::vector<int64_t>> Instance::shapes_of(std::span<const Query> batch) const {
  std::vector<std::vector<int64_t>> shapes = batch[0].dims;
  if (!model_.has_rows()) return shapes;
  int64_t rows = 0;
  for (const Query& query : batch) rows += query.rows;
  for (std::vector<int64_t>& dims : shapes) dims[0] = rows;
  return shapes;
}

/// The profile that was tuned nearest to the shapes, of those that take them; -1: none does.
int Instance::profile_for(const std::vector<std::vector<int64_t>>& shapes) const {
  int best = -1;
  int64_t nearest = 0;
  const std::vector<ShapeProfile>& profiles = model_.interface().profiles;
  for (size_t p = 0; p < profiles.size(); ++p) {
    int64_t distance = 0;
    bool fits = true;
    for (size_t i = 0; i < shapes.size(); ++i) {
      const Range& range = profiles[p].inputs[i];
      for (size_t d = 0; d < shapes[i].size(); ++d) {
        const int64_t size = shapes[i][d];
        fits &= range.min[d] <= size && size <= range.max[d];
        distance += std::abs(range.opt[d] - size);
      }
    }
    if (!fits || (best >= 0 && distance >= nearest)) continue;
    best = static_cast<int>(p);
    nearest = distance;
  }
  return best;
}

Context& Instance::context(int profile) {
  std::unique_ptr<Context>& place = contexts_[static_cast<size_t>(profile)];
  if (place == nullptr) place = std::make_unique<Context>(loaded_->engine, profile);
  return *place;
}

/// Kernels and memory for the sizes that profiles were tuned for, before the first request asks.
void Instance::warm_up() {
  const Interface& interface = model_.interface();
  for (size_t p = 0; p < contexts_.size(); ++p) {
    Context& context = this->context(static_cast<int>(p));
    if (std::ranges::any_of(interface.inputs, [](const Io& io) { return io.element_bytes == 0; })) return;
    for (size_t i = 0; i < interface.inputs.size(); ++i) {
      const std::vector<int64_t>& opt = interface.profiles[p].inputs[i].opt;
      context.set_shape(interface.inputs[i].name, opt);
      const size_t bytes = static_cast<size_t>(count_of(opt)) * interface.inputs[i].element_bytes;
      context.bind(interface.inputs[i].name, room(i, bytes), own_memory());
    }
    for (size_t o = 0; o < interface.outputs.size(); ++o) {
      const Io& io = interface.outputs[o];
      if (io.by_value) continue;
      context.bind(io.name, room(interface.inputs.size() + o, static_cast<size_t>(context.bytes(io.name))),
                   own_memory());
    }
    context.prepare();
  }
}

void Instance::give_input(Context& context, size_t index, std::span<const Query> batch,
                          const std::vector<int64_t>& dims) {
  const Io& io = model_.interface().inputs[index];
  if (io.element_bytes == 0) return give_texts(context, index, batch, dims);
  context.set_shape(io.name, dims);
  const size_t bytes = static_cast<size_t>(count_of(dims)) * io.element_bytes;
  std::byte* own = nullptr;
  for (const Query& query : batch) {
    size_t done = 0;
    for (uint32_t b = 0; b < query.buffers[index]; ++b) {
      const void* memory = nullptr;
      uint64_t size = 0;
      auto kind = stream_ ? TRITONSERVER_MEMORY_GPU : TRITONSERVER_MEMORY_CPU;
      int64_t gpu = stream_ ? gpu_ : 0;
      ask(TRITONBACKEND_InputBuffer(query.inputs[index], b, &memory, &size, &kind, &gpu));
      if (size == bytes && can_use(memory, kind, gpu))
        return context.bind(io.name, const_cast<void*>(memory), own_memory());
      if (own == nullptr) own = room(index, bytes);
      const size_t most =
          static_cast<size_t>(query.rows) * (bytes / static_cast<size_t>(model_.has_rows() ? dims[0] : 1));
      if (size > most - done) throw wrong(io.name + " has more bytes than its sizes say", "send as many");
      copy(own, memory, size, kind == TRITONSERVER_MEMORY_GPU);
      own += size;
      done += size;
    }
  }
  context.bind(io.name, room(index, bytes), own_memory());
}

void Instance::give_texts(Context& context, size_t index, std::span<const Query> batch,
                          const std::vector<int64_t>& dims) {
  const Io& io = model_.interface().inputs[index];
  std::vector<std::string> kept;
  std::vector<std::string_view> texts;
  for (const Query& query : batch) {
    std::string& all = kept.emplace_back();
    for (uint32_t b = 0; b < query.buffers[index]; ++b) {
      const void* memory = nullptr;
      uint64_t size = 0;
      auto kind = TRITONSERVER_MEMORY_CPU;
      int64_t gpu = 0;
      ask(TRITONBACKEND_InputBuffer(query.inputs[index], b, &memory, &size, &kind, &gpu));
      if (kind == TRITONSERVER_MEMORY_GPU)
        throw wrong(io.name + " holds texts in a GPU's memory", "send them from the host's");
      all.append(static_cast<const char*>(memory), size);
    }
  }
  for (size_t q = 0; q < batch.size(); ++q) {
    const size_t before = texts.size();
    unpack(kept[q], io.name, texts);
    if (static_cast<int64_t>(texts.size() - before) != count_of(batch[q].dims[index]))
      throw wrong(io.name + " is " + text_of(batch[q].dims[index]) + " and has " +
                      std::to_string(texts.size() - before) + " texts",
                  "send as many as its sizes say");
  }
  std::vector<const char*> pointers;
  std::vector<size_t> lengths;
  for (const std::string_view text : texts) {
    pointers.push_back(text.data());
    lengths.push_back(text.size());
  }
  hone_value* value = nullptr;
  check(hone_value_create_strings(dims.data(), static_cast<int>(dims.size()), pointers.data(), lengths.data(), &value));
  const hone_status status = hone_context_set_value(context.get(), io.name.c_str(), value);
  hone_value_destroy(value);
  check(status);
}

std::vector<Instance::Place> Instance::place_outputs(Context& context, std::span<Query> batch) {
  const Interface& interface = model_.interface();
  std::vector<Place> places(interface.outputs.size());
  for (size_t o = 0; o < places.size(); ++o) {
    const Io& io = interface.outputs[o];
    if (io.by_value) continue;
    Place& place = places[o];
    place.dims = context.shape(io.name);
    place.bytes = static_cast<size_t>(context.bytes(io.name));
    auto kind = stream_ ? TRITONSERVER_MEMORY_GPU : TRITONSERVER_MEMORY_CPU;
    if (batch.size() == 1 && batch[0].wanted[o]) place.memory = respond(batch[0], io, place.dims, place.bytes, kind);
    if (place.memory != nullptr && can_use(place.memory, kind, gpu_)) {
      context.bind(io.name, place.memory, own_memory());
      continue;
    }
    std::byte* own = room(interface.inputs.size() + o, place.bytes);
    place.own = own;
    context.bind(io.name, own, own_memory());
  }
  return places;
}

void Instance::give_outputs(Context& context, std::span<Query> batch, const std::vector<Place>& places) {
  const Interface& interface = model_.interface();
  for (size_t o = 0; o < places.size(); ++o) {
    const Place& place = places[o];
    if (interface.outputs[o].by_value) {
      give_value(context, o, batch);
      continue;
    }
    if (place.own == nullptr) continue;
    const std::byte* from = place.own;
    for (Query& query : batch) {
      std::vector<int64_t> dims = place.dims;
      size_t bytes = place.bytes;
      if (model_.has_rows() && dims[0] > 0) {
        bytes = place.bytes / static_cast<size_t>(dims[0]) * static_cast<size_t>(query.rows);
        dims[0] = query.rows;
      }
      auto kind = TRITONSERVER_MEMORY_CPU;
      std::byte* to = place.memory;
      if (to == nullptr && query.wanted[o]) to = respond(query, interface.outputs[o], dims, bytes, kind);
      if (to != nullptr) copy(to, from, bytes, stream_.has_value());
      from += bytes;
    }
  }
  if (stream_) stream_->synchronize();
}

/// An output that the inference decided itself: texts, or sizes that follow from the data.
void Instance::give_value(Context& context, size_t index, std::span<Query> batch) {
  const Io& io = model_.interface().outputs[index];
  const Value value = context.output(io.name);
  std::vector<int64_t> dims = value.describe().dims;
  const auto count = static_cast<size_t>(count_of(dims));
  const size_t rows = model_.has_rows() ? static_cast<size_t>(dims.at(0)) : 1;
  size_t begin = 0;
  for (Query& query : batch) {
    const size_t end = begin + (rows == 0 ? 0 : count / rows * static_cast<size_t>(query.rows));
    if (end > count) throw Error(HONE_INTERNAL, io.name + " has fewer rows than were asked for", {});
    if (model_.has_rows()) dims[0] = query.rows;
    const std::string texts = io.element_bytes == 0 ? packed(value, begin, end) : std::string();
    const size_t bytes = io.element_bytes == 0 ? texts.size() : (end - begin) * io.element_bytes;
    const void* from = io.element_bytes == 0
                           ? static_cast<const void*>(texts.data())
                           : static_cast<const std::byte*>(hone_value_data(value.get())) + begin * io.element_bytes;
    auto kind = TRITONSERVER_MEMORY_CPU;
    if (query.wanted[index])
      if (std::byte* to = respond(query, io, dims, bytes, kind); to != nullptr) {
        copy(to, from, bytes, false);
        if (stream_) stream_->synchronize();
      }
    begin = end;
  }
}

/// The response's memory for an output; `kind` is what is asked for, and what it turned out to be. NULL: it has no bytes.
std::byte* Instance::respond(Query& query, const Io& io, const std::vector<int64_t>& dims, size_t bytes,
                             TRITONSERVER_MemoryType& kind) const {
  if (query.response == nullptr) ask(TRITONBACKEND_ResponseNew(&query.response, query.request));
  TRITONBACKEND_Output* output = nullptr;
  ask(TRITONBACKEND_ResponseOutput(query.response, &output, io.name.c_str(), io.type, dims.data(),
                                   static_cast<uint32_t>(dims.size())));
  void* memory = nullptr;
  int64_t gpu = kind == TRITONSERVER_MEMORY_GPU ? gpu_ : 0;
  ask(TRITONBACKEND_OutputBuffer(output, &memory, bytes, &kind, &gpu));
  if (kind == TRITONSERVER_MEMORY_GPU && !stream_)
    throw wrong(io.name + " is asked for in the memory of GPU " + std::to_string(gpu) +
                    ", the instance computes on the processor",
                "ask for it in the host's, or serve the model with KIND_GPU");
  return bytes == 0 ? nullptr : static_cast<std::byte*>(memory);
}

/// Memory of this instance for a tensor; inputs first.
std::byte* Instance::room(size_t tensor, size_t bytes) {
  std::optional<Buffer>& place = rooms_[tensor];
  if (!place || place->bytes() < bytes) place.emplace(loaded_->device, std::max<size_t>(bytes, 1));
  return static_cast<std::byte*>(place->data());
}

/// Whether the inference can read or write there itself.
bool Instance::can_use(const void* memory, TRITONSERVER_MemoryType kind, int64_t gpu) const {
  if (stream_) return kind == TRITONSERVER_MEMORY_GPU && gpu == gpu_;
  return kind != TRITONSERVER_MEMORY_GPU && reinterpret_cast<uintptr_t>(memory) % kAlignment == 0;
}

void Instance::copy(void* to, const void* from, size_t bytes, bool from_gpu) {
  if (bytes == 0) return;
  if (stream_) return stream_->copy(to, from, bytes);
  if (from_gpu)
    throw wrong("an input lies in a GPU's memory, the instance computes on the processor",
                "send it from the host's, or serve the model with KIND_GPU");
  std::memcpy(to, from, bytes);
}

}  // namespace hone::triton
