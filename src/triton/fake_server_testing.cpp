// SPDX-License-Identifier: Apache-2.0
//
// The functions of the server that tests bring.
#include "triton/fake_server_testing.h"

#include <algorithm>
#include <cstring>

namespace {

constexpr size_t kAlignment = 64;

TRITONSERVER_Error* failure(TRITONSERVER_Error_Code code, const std::string& text) {
  return new TRITONSERVER_Error{code, text};
}

/// A buffer's bytes as far off an aligned address as the input says, with nothing behind them.
const void* placed(TRITONBACKEND_Input& input, uint32_t index) {
  const std::string& bytes = input.buffers[index];
  std::vector<char>& room = input.placed.emplace_back(bytes.size() + kAlignment + input.offset);
  const auto at = reinterpret_cast<uintptr_t>(room.data());
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the vector's own address, moved
  char* begin = room.data() + ((at + kAlignment - 1) / kAlignment * kAlignment - at) + input.offset;
  std::memcpy(begin, bytes.data(), bytes.size());
  return begin;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming)
extern "C" {

TRITONSERVER_Error* TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code, const char* text) {
  return failure(code, text);
}
void TRITONSERVER_ErrorDelete(TRITONSERVER_Error* error) { delete error; }
TRITONSERVER_Error_Code TRITONSERVER_ErrorCode(TRITONSERVER_Error* error) { return error->code; }
const char* TRITONSERVER_ErrorMessage(TRITONSERVER_Error* error) { return error->text.c_str(); }
bool TRITONSERVER_LogIsEnabled(TRITONSERVER_LogLevel level) { return level != TRITONSERVER_LOG_VERBOSE; }
TRITONSERVER_Error* TRITONSERVER_LogMessage(TRITONSERVER_LogLevel, const char*, int, const char* text) {
  logged.emplace_back(text);
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_MessageNewFromSerializedJson(TRITONSERVER_Message** message, const char* text,
                                                              size_t bytes) {
  *message = new TRITONSERVER_Message{std::string(text, bytes)};
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_MessageSerializeToJson(TRITONSERVER_Message* message, const char** text,
                                                        size_t* bytes) {
  *text = message->text.data();
  *bytes = message->text.size();
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_MessageDelete(TRITONSERVER_Message* message) {
  delete message;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ApiVersion(uint32_t* major, uint32_t* minor) {
  *major = 1;
  *minor = 19;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_BackendState(TRITONBACKEND_Backend* backend, void** state) {
  *state = backend->state;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_BackendSetState(TRITONBACKEND_Backend* backend, void* state) {
  backend->state = state;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelBackend(TRITONBACKEND_Model* model, TRITONBACKEND_Backend** backend) {
  *backend = model->backend;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelName(TRITONBACKEND_Model* model, const char** name) {
  *name = model->name.c_str();
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelVersion(TRITONBACKEND_Model*, uint64_t* version) {
  *version = 1;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelRepository(TRITONBACKEND_Model* model, TRITONBACKEND_ArtifactType*,
                                                  const char** folder) {
  *folder = model->folder.c_str();
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelConfig(TRITONBACKEND_Model* model, uint32_t, TRITONSERVER_Message** config) {
  *config = new TRITONSERVER_Message{model->config};
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelAutoCompleteConfig(TRITONBACKEND_Model*, bool* wanted) {
  *wanted = true;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelSetConfig(TRITONBACKEND_Model* model, uint32_t, TRITONSERVER_Message* config) {
  model->config = config->text;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelState(TRITONBACKEND_Model* model, void** state) {
  *state = model->state;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelSetState(TRITONBACKEND_Model* model, void* state) {
  model->state = state;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceKind(TRITONBACKEND_ModelInstance* instance,
                                                    TRITONSERVER_InstanceGroupKind* kind) {
  *kind = instance->kind;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceDeviceId(TRITONBACKEND_ModelInstance*, int32_t* device) {
  *device = 0;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceHostPolicy(TRITONBACKEND_ModelInstance* instance,
                                                          TRITONSERVER_Message** policy) {
  *policy = &instance->policy;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceModel(TRITONBACKEND_ModelInstance* instance,
                                                     TRITONBACKEND_Model** model) {
  *model = instance->model;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceState(TRITONBACKEND_ModelInstance* instance, void** state) {
  *state = instance->state;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceSetState(TRITONBACKEND_ModelInstance* instance, void* state) {
  instance->state = state;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportStatistics(TRITONBACKEND_ModelInstance* instance,
                                                                TRITONBACKEND_Request* request, bool success,
                                                                uint64_t begin, uint64_t compute_begin,
                                                                uint64_t compute_end, uint64_t end) {
  if (request->releases != 0) return failure(TRITONSERVER_ERROR_INTERNAL, "reported behind the release");
  ++instance->reported;
  instance->failed += success ? 0 : 1;
  return begin <= compute_begin && compute_begin <= compute_end && compute_end <= end
             ? nullptr
             : failure(TRITONSERVER_ERROR_INTERNAL, "times do not ascend");
}
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportBatchStatistics(TRITONBACKEND_ModelInstance* instance,
                                                                     uint64_t rows, uint64_t, uint64_t, uint64_t,
                                                                     uint64_t) {
  ++instance->inferences;
  instance->rows += rows;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestInput(TRITONBACKEND_Request* request, const char* name,
                                               TRITONBACKEND_Input** input) {
  const auto found = request->inputs.find(name);
  if (found == request->inputs.end())
    return failure(TRITONSERVER_ERROR_INVALID_ARG, std::string("there is no input ") + name);
  *input = &found->second;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestOutputCount(TRITONBACKEND_Request* request, uint32_t* count) {
  *count = static_cast<uint32_t>(request->wanted.size());
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestOutputName(TRITONBACKEND_Request* request, uint32_t index, const char** name) {
  *name = request->wanted[index].c_str();
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestIsCancelled(TRITONBACKEND_Request* request, bool* cancelled) {
  *cancelled = request->cancelled;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestRelease(TRITONBACKEND_Request* request, uint32_t) {
  ++request->releases;
  for (auto& [name, input] : request->inputs) input.placed.clear();  // who reads on is seen by the sanitizers
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_InputProperties(TRITONBACKEND_Input* input, const char**, TRITONSERVER_DataType* type,
                                                  const int64_t** dims, uint32_t* rank, uint64_t* bytes,
                                                  uint32_t* buffers) {
  *type = input->type;
  *dims = input->dims.data();
  *rank = static_cast<uint32_t>(input->dims.size());
  *bytes = 0;
  for (const std::string& buffer : input->buffers) *bytes += buffer.size();
  *buffers = static_cast<uint32_t>(input->buffers.size());
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_InputBuffer(TRITONBACKEND_Input* input, uint32_t index, const void** memory,
                                              uint64_t* bytes, TRITONSERVER_MemoryType* kind, int64_t* device) {
  *memory = placed(*input, index);
  *bytes = input->buffers[index].size();
  *kind = input->kind;
  *device = 0;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseNew(TRITONBACKEND_Response** response, TRITONBACKEND_Request* request) {
  *response = new TRITONBACKEND_Response{request, {}};
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response* response, TRITONBACKEND_Output** output,
                                                 const char* name, TRITONSERVER_DataType type, const int64_t* dims,
                                                 uint32_t rank) {
  if (response->outputs.contains(name)) return failure(TRITONSERVER_ERROR_ALREADY_EXISTS, "an output is given twice");
  *output = &(response->outputs[name] = {type, {dims, dims + rank}, {}});
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output* output, void** memory, uint64_t bytes,
                                               TRITONSERVER_MemoryType* kind, int64_t* device) {
  output->bytes.assign(static_cast<size_t>(bytes), '\x5a');
  *memory = output->bytes.data();
  *kind = TRITONSERVER_MEMORY_CPU;
  *device = 0;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseSend(TRITONBACKEND_Response* response, uint32_t, TRITONSERVER_Error* error) {
  TRITONBACKEND_Request& request = *response->request;
  ++request.answers;
  if (error != nullptr) {
    request.error = error->text;
    request.code = error->code;
  } else {
    request.outputs = std::move(response->outputs);
  }
  delete response;
  return nullptr;
}
}
// NOLINTEND(readability-identifier-naming)
