/* SPDX-License-Identifier: Apache-2.0
 *
 * A profiler for NVTX that writes down what it is told: `NVTX_INJECTION64_PATH=libnvtx_recorder.so NVTX_RECORD=FILE program`. A line for
 * each range that begins, "push DOMAIN|NAME" with "|BYTES FLOPS TACTIC" behind it where there is a payload, and "pop" for each that ends.
 */
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
enum { kSchema = 77 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static FILE* record;

static nvtxDomainHandle_t create_domain(const char* name) { return (nvtxDomainHandle_t)strdup(name); }
static nvtxStringHandle_t register_string(nvtxDomainHandle_t domain, const char* text) {
  (void)domain;
  return (nvtxStringHandle_t)strdup(text);
}

static int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* range) {
  pthread_mutex_lock(&mutex);
  fprintf(record, "push %s|%s", (const char*)domain, (const char*)range->message.registered);
  if (range->payloadType == NVTX_PAYLOAD_TYPE_EXT) {
    const nvtxPayloadData_t* data = (const nvtxPayloadData_t*)(uintptr_t)range->payload.ullValue;
    const unsigned long long* values = data->payload;
    if (data->schemaId == kSchema && data->size == 3 * sizeof *values)
      fprintf(record, "|%llu %llu %llu", values[0], values[1], values[2]);
  }
  fputc('\n', record);
  pthread_mutex_unlock(&mutex);
  return 0;
}

static int pop(nvtxDomainHandle_t domain) {
  (void)domain;
  pthread_mutex_lock(&mutex);
  fputs("pop\n", record);
  pthread_mutex_unlock(&mutex);
  return 0;
}

static uint64_t register_schema(nvtxDomainHandle_t domain, const nvtxPayloadSchemaAttr_t* schema) {
  (void)domain;
  return schema->numEntries == 3 && strcmp(schema->entries[2].name, "tactic") == 0 ? kSchema : 0;
}

EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t tables) {
  const NvtxExportTableCallbacks* callbacks = (const NvtxExportTableCallbacks*)tables(NVTX_ETID_CALLBACKS);
  NvtxFunctionTable functions = NULL;
  unsigned int count = 0;
  const char* path = getenv("NVTX_RECORD");
  record = path == NULL ? NULL : fopen(path, "w");
  if (record == NULL || callbacks == NULL ||
      !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &functions, &count) || count < NVTX_CBID_CORE2_SIZE)
    return 0;
  *functions[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create_domain;
  *functions[NVTX_CBID_CORE2_DomainRegisterStringA] = (NvtxFunctionPointer)register_string;
  *functions[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push;
  *functions[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop;
  return 1;
}

EXPORT int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t* module) {
  if (module->moduleId != NVTX_EXT_PAYLOAD_MODULEID) return 0;
  for (size_t i = 0; i < module->segmentsCount; ++i)
    if (module->segments[i].slotCount > NVTX3EXT_CBID_nvtxPayloadSchemaRegister)
      module->segments[i].functionSlots[NVTX3EXT_CBID_nvtxPayloadSchemaRegister] = (intptr_t)register_schema;
  return 1;
}
