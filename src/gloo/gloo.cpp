// SPDX-License-Identifier: Apache-2.0
#include "gloo/gloo_table.h"

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>

struct HoneGlooMesh {
  std::shared_ptr<gloo::rendezvous::Context> context;
  uint32_t calls = 0;  // a tag for each, so that what is left of a call that failed is not taken for the next
};

namespace {

/// Gloo takes pointers that it only reads without `const`.
template <typename T>
T* readable(const void* data) {
  return static_cast<T*>(const_cast<void*>(data));
}

template <typename Body>
int guarded(HoneGlooError error, const Body& body) {
  try {
    body();
    return 0;
  } catch (const std::exception& failure) {
    std::snprintf(error.text, error.bytes, "%s", failure.what());
    return 1;
  }
}

/// Calls body.operator()<T>() with a type of so many bytes.
template <typename Body>
void with_size(size_t bytes, const Body& body) {
  switch (bytes) {
    case 1: return body.template operator()<uint8_t>();
    case 2: return body.template operator()<uint16_t>();
    case 4: return body.template operator()<uint32_t>();
    case 8: return body.template operator()<uint64_t>();
    default: throw std::invalid_argument("no element has so many bytes");
  }
}

HoneGlooMesh* open_mesh(const HoneGlooPlace* place, HoneGlooError error) {
  HoneGlooMesh* mesh = nullptr;
  guarded(error, [&] {
    gloo::transport::tcp::attr attr;
    attr.hostname = place->host;
    attr.iface = place->interface;
    auto device = gloo::transport::tcp::CreateDevice(attr);
    auto made = std::make_unique<HoneGlooMesh>();
    made->context = std::make_shared<gloo::rendezvous::Context>(place->rank, place->size);
    made->context->setTimeout(std::chrono::milliseconds(place->timeout_ms));
    gloo::rendezvous::FileStore store(place->folder);
    made->context->connectFullMesh(store, device);
    mesh = made.release();
  });
  return mesh;
}

void close_mesh(HoneGlooMesh* mesh) { delete mesh; }

int all_reduce(HoneGlooMesh* mesh, const void* from, void* to, size_t elements, size_t element_bytes,
               HoneGlooReduce reduce, HoneGlooError error) {
  return guarded(error, [&] {
    with_size(element_bytes, [&]<typename T>() {
      gloo::AllreduceOptions options(mesh->context);
      options.setTag(mesh->calls++);
      options.setInput(readable<T>(from), elements);
      options.setOutput(static_cast<T*>(to), elements);
      options.setReduceFunction(reduce);
      gloo::allreduce(options);
    });
  });
}

int reduce_to_root(HoneGlooMesh* mesh, const void* from, void* to, size_t elements, size_t element_bytes,
                   HoneGlooReduce reduce, int root, HoneGlooError error) {
  return guarded(error, [&] {
    with_size(element_bytes, [&]<typename T>() {
      gloo::ReduceOptions options(mesh->context);
      options.setTag(mesh->calls++);
      options.setRoot(root);
      options.setInput(readable<T>(from), elements);
      options.setOutput(static_cast<T*>(to), elements);
      options.setReduceFunction(reduce);
      gloo::reduce(options);
    });
  });
}

int all_gather(HoneGlooMesh* mesh, const void* from, void* to, size_t bytes, HoneGlooError error) {
  return guarded(error, [&] {
    gloo::AllgatherOptions options(mesh->context);
    options.setTag(mesh->calls++);
    options.setInput(readable<uint8_t>(from), bytes);
    options.setOutput(static_cast<uint8_t*>(to), bytes * static_cast<size_t>(mesh->context->size));
    gloo::allgather(options);
  });
}

int gather(HoneGlooMesh* mesh, const void* from, void* to, size_t bytes, int root, HoneGlooError error) {
  return guarded(error, [&] {
    gloo::GatherOptions options(mesh->context);
    options.setTag(mesh->calls++);
    options.setRoot(root);
    options.setInput(readable<uint8_t>(from), bytes);
    if (mesh->context->rank == root)
      options.setOutput(static_cast<uint8_t*>(to), bytes * static_cast<size_t>(mesh->context->size));
    gloo::gather(options);
  });
}

int scatter(HoneGlooMesh* mesh, const void* from, void* to, size_t bytes, int root, HoneGlooError error) {
  return guarded(error, [&] {
    gloo::ScatterOptions options(mesh->context);
    options.setTag(mesh->calls++);
    options.setRoot(root);
    options.setOutput(static_cast<uint8_t*>(to), bytes);
    if (mesh->context->rank == root) {
      std::vector<uint8_t*> blocks;
      for (int rank = 0; rank < mesh->context->size; ++rank)
        blocks.push_back(readable<uint8_t>(from) + static_cast<size_t>(rank) * bytes);
      options.setInputs(blocks, bytes);
    }
    gloo::scatter(options);
  });
}

int all_to_all(HoneGlooMesh* mesh, const void* from, void* to, size_t bytes, HoneGlooError error) {
  return guarded(error, [&] {
    const size_t all = bytes * static_cast<size_t>(mesh->context->size);
    gloo::AlltoallOptions options(mesh->context);
    options.setTag(mesh->calls++);
    options.setInput(readable<uint8_t>(from), all);
    options.setOutput(static_cast<uint8_t*>(to), all);
    gloo::alltoall(options);
  });
}

int broadcast(HoneGlooMesh* mesh, void* data, size_t bytes, int root, HoneGlooError error) {
  return guarded(error, [&] {
    gloo::BroadcastOptions options(mesh->context);
    options.setTag(mesh->calls++);
    options.setRoot(root);
    options.setOutput(static_cast<uint8_t*>(data), bytes);
    gloo::broadcast(options);
  });
}

constexpr HoneGlooTable kTable{kHoneGlooVersion, open_mesh, close_mesh, all_reduce, reduce_to_root,
                               all_gather,       gather,    scatter,    all_to_all, broadcast};

}  // namespace

extern "C" __attribute__((visibility("default"))) const HoneGlooTable* hone_gloo_table() { return &kTable; }
