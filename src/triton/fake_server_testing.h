// SPDX-License-Identifier: Apache-2.0
//
// The server as a backend meets it, for tests that the real one is too large for: its functions over a few structs. What a backend
// forgets to free, free twice or answer twice is seen here.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "triton/triton_abi.h"

// The server's own, behind the names that the backend sees.
// NOLINTBEGIN(readability-identifier-naming)
struct TRITONSERVER_Error {
  TRITONSERVER_Error_Code code;
  std::string text;
};
struct TRITONSERVER_Message {
  std::string text;
};
struct TRITONBACKEND_Backend {
  void* state = nullptr;
};
struct TRITONBACKEND_Model {
  TRITONBACKEND_Backend* backend = nullptr;
  std::string name, folder, config;
  void* state = nullptr;
};
struct TRITONBACKEND_ModelInstance {
  TRITONBACKEND_Model* model = nullptr;
  TRITONSERVER_InstanceGroupKind kind = TRITONSERVER_INSTANCEGROUPKIND_CPU;
  TRITONSERVER_Message policy{R"({"cpu":{}})"};
  void* state = nullptr;
  uint64_t reported = 0, failed = 0, inferences = 0, rows = 0;
};
struct TRITONBACKEND_Input {
  TRITONSERVER_DataType type;
  std::vector<int64_t> dims;
  std::vector<std::string> buffers;
  size_t offset = 0;  // from an aligned address
  TRITONSERVER_MemoryType kind = TRITONSERVER_MEMORY_CPU;
  std::vector<std::vector<char>> placed;
};
struct TRITONBACKEND_Output {
  TRITONSERVER_DataType type;
  std::vector<int64_t> dims;
  std::string bytes;
};
struct TRITONBACKEND_Request {
  std::map<std::string, TRITONBACKEND_Input> inputs;
  std::vector<std::string> wanted;
  bool cancelled = false;
  // What the backend did.
  int answers = 0, releases = 0;
  std::string error;
  TRITONSERVER_Error_Code code = TRITONSERVER_ERROR_UNKNOWN;
  std::map<std::string, TRITONBACKEND_Output> outputs;
};
struct TRITONBACKEND_Response {
  TRITONBACKEND_Request* request;
  std::map<std::string, TRITONBACKEND_Output> outputs;
};

/// What the backend said, from one thread at a time.
inline std::vector<std::string> logged;

extern "C" {
TRITONSERVER_Error* TRITONBACKEND_Initialize(TRITONBACKEND_Backend* backend);
TRITONSERVER_Error* TRITONBACKEND_Finalize(TRITONBACKEND_Backend* backend);
TRITONSERVER_Error* TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model* model);
TRITONSERVER_Error* TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model* model);
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance* instance);
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance* instance);
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* instance,
                                                       TRITONBACKEND_Request** requests, uint32_t count);
}
// NOLINTEND(readability-identifier-naming)
