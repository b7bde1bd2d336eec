// SPDX-License-Identifier: Apache-2.0
//
// What the server calls. An object of Hone's stands behind each of the server's, as its state.
#include <cstdlib>

#include "triton/instance.h"

using hone::triton::ask;
using hone::triton::guarded;
using hone::triton::Instance;
using hone::triton::ServedModel;
using hone::triton::Watch;

namespace {

template <typename State, typename Owner>
State* state_of(Owner* owner, TRITONSERVER_Error* (*get)(Owner*, void**)) {
  void* state = nullptr;
  ask(get(owner, &state));
  return static_cast<State*>(state);
}

void require_server() {
  uint32_t major = 0, minor = 0;
  ask(TRITONBACKEND_ApiVersion(&major, &minor));
  if (major != 1)
    throw hone::Error(HONE_ERROR,
                      "the server has version " + std::to_string(major) + " of the backends' interface, Hone 1",
                      "take a Hone that was made for it");
}

/// Only the environment can say it, and only before the library is loaded.
void warn_of_spinning() {
  if (std::getenv("GOMP_SPINCOUNT") == nullptr && std::getenv("OMP_WAIT_POLICY") == nullptr)
    hone::triton::log(
        TRITONSERVER_LOG_WARN,
        "idle threads of Hone spin for 10 ms, which those of the server lack: start it with GOMP_SPINCOUNT=1000");
}

}  // namespace

// The names are Triton's.
// NOLINTBEGIN(readability-identifier-naming)
#define HONE_EXPORTED extern "C" __attribute__((visibility("default"))) TRITONSERVER_Error*

HONE_EXPORTED TRITONBACKEND_Initialize(TRITONBACKEND_Backend* backend) {
  return guarded([&] {
    require_server();
    warn_of_spinning();
    ask(TRITONBACKEND_BackendSetState(backend, new Watch));
  });
}

HONE_EXPORTED TRITONBACKEND_Finalize(TRITONBACKEND_Backend* backend) {
  return guarded([&] { delete state_of<Watch>(backend, TRITONBACKEND_BackendState); });
}

HONE_EXPORTED TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model* model) {
  return guarded([&] {
    auto made = std::make_unique<ServedModel>(model);
    ask(TRITONBACKEND_ModelSetState(model, made.get()));
    (void)made.release();
  });
}

HONE_EXPORTED TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model* model) {
  return guarded([&] { delete state_of<ServedModel>(model, TRITONBACKEND_ModelState); });
}

HONE_EXPORTED TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance* instance) {
  return guarded([&] {
    TRITONBACKEND_Model* model = nullptr;
    TRITONBACKEND_Backend* backend = nullptr;
    ask(TRITONBACKEND_ModelInstanceModel(instance, &model));
    ask(TRITONBACKEND_ModelBackend(model, &backend));
    auto made = std::make_unique<Instance>(*state_of<ServedModel>(model, TRITONBACKEND_ModelState),
                                           *state_of<Watch>(backend, TRITONBACKEND_BackendState), instance);
    ask(TRITONBACKEND_ModelInstanceSetState(instance, made.get()));
    (void)made.release();
  });
}

HONE_EXPORTED TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance* instance) {
  return guarded([&] { delete state_of<Instance>(instance, TRITONBACKEND_ModelInstanceState); });
}

HONE_EXPORTED TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* instance,
                                                 TRITONBACKEND_Request** requests, uint32_t count) {
  return guarded([&] { state_of<Instance>(instance, TRITONBACKEND_ModelInstanceState)->execute({requests, count}); });
}
// NOLINTEND(readability-identifier-naming)
