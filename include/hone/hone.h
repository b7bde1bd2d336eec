/* SPDX-License-Identifier: Apache-2.0
 *
 * Hone's C interface: build an ONNX model into a plan, save and load plans, inspect them, run them.
 *
 * Every function that can fail returns a hone_status; hone_last_error() then holds the reason of the last failure in the
 * calling thread, with a hint. Objects are made by hone_..._create-like functions and destroyed by hone_..._destroy, which
 * take NULL. Plans and engines may be shared by threads; a context serves one thread at a time. Beside other busy processes
 * start the program with GOMP_SPINCOUNT=1000 (or set it before this library is loaded): idle threads then sleep early.
 * Texts are UTF-8, end with a zero byte and belong to the object they were asked of.
 */
#ifndef HONE_HONE_H
#define HONE_HONE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define HONE_API __attribute__((visibility("default")))
#else
#define HONE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define HONE_MAX_RANK 32

typedef enum hone_status {
  HONE_OK = 0,
  HONE_ERROR = 1,   /* the model, a file, an argument or the machine: the message says what to do */
  HONE_INTERNAL = 2 /* a defect of Hone */
} hone_status;

typedef enum hone_dtype {
  HONE_F32 = 0,
  HONE_F16,
  HONE_BF16,
  HONE_F64,
  HONE_I8,
  HONE_U8,
  HONE_I16,
  HONE_U16,
  HONE_I32,
  HONE_U32,
  HONE_I64,
  HONE_U64,
  HONE_BOOL,
  HONE_STRING,
  /* One element per byte, its code in the low bits; signed integers extend their sign. */
  HONE_F8E4M3FN,
  HONE_F8E4M3FNUZ,
  HONE_F8E5M2,
  HONE_F8E5M2FNUZ,
  HONE_F8E8M0,
  HONE_F4E2M1,
  HONE_I4,
  HONE_U4,
  HONE_I2,
  HONE_U2,
  /* Their elements are values themselves, see hone_value. */
  HONE_SEQUENCE,
  HONE_OPTIONAL,
  HONE_MAP
} hone_dtype;

typedef enum hone_severity {
  HONE_LOG_INTERNAL = 0,
  HONE_LOG_ERROR,
  HONE_LOG_WARNING,
  HONE_LOG_INFO,
  HONE_LOG_VERBOSE
} hone_severity;

typedef struct hone_device hone_device;
typedef struct hone_options hone_options;
typedef struct hone_model hone_model;
typedef struct hone_plan hone_plan;
typedef struct hone_engine hone_engine;
typedef struct hone_context hone_context;
/* A tensor, a sequence, an optional or a map that stands for itself. Immutable; free to be shared by threads. */
typedef struct hone_value hone_value;

/* A network input or output. Sizes that are not fixed are -1; so is the rank where only a run tells it. */
typedef struct hone_tensor {
  const char* name;
  hone_dtype dtype;
  int is_input;
  int rank;
  int64_t dims[HONE_MAX_RANK];
  /* Nothing can be bound: this output's shape is data-dependent, or its elements are strings or values. Inputs of this kind
   * are given with hone_context_set_value, outputs are read with hone_context_value after each run. */
  int by_value;
  /* Of sequences, optionals and maps: the element type of the tensors inside, of maps that of the values. Else `dtype`. */
  hone_dtype element;
  /* Of maps, or of those inside: HONE_I64 or HONE_STRING. */
  hone_dtype key;
} hone_tensor;

/* Where log lines go; those above the threshold are not made. `write` may be called from several threads. */
typedef struct hone_log {
  void (*write)(void* user, hone_severity severity, const char* text);
  void* user;
  hone_severity threshold;
} hone_log;

/* Receives the duration of one layer, in execution order. */
typedef void (*hone_layer_fn)(void* user, const char* layer, double milliseconds);

HONE_API const char* hone_version(void);
HONE_API const char* hone_last_error(void);

/* "cpu", "cuda:1"; "0" is the first GPU where this build has GPUs, else the CPU. */
HONE_API hone_status hone_device_open(const char* name, hone_device** device);
HONE_API void hone_device_destroy(hone_device* device);

/* `arguments` are flags as on trtexec's command line ("--minShapes=x:1x3x224x224", "--timingCacheFile=c"); those that
 * shape the build count. */
HONE_API hone_status hone_options_create(const char* const* arguments, size_t count, hone_options** options);
HONE_API void hone_options_destroy(hone_options* options);

/* Reads an ONNX file; its external data stay mapped as long as the model or a plan of it lives. `log` may be NULL. */
HONE_API hone_status hone_model_import(const char* onnx_path, const hone_log* log, hone_model** model);
/* The same from memory, which is copied; `folder`, or NULL, is where external data lie. */
HONE_API hone_status hone_model_parse(const void* bytes, size_t size, const char* folder, const hone_log* log,
                                      hone_model** model);
HONE_API size_t hone_model_tensors(const hone_model* model);
HONE_API hone_status hone_model_tensor(const hone_model* model, size_t index, hone_tensor* tensor);
HONE_API void hone_model_destroy(hone_model* model);

/* Builds a plan for the device. Reads the timing cache that the options name and writes it when done.
 * `options` and `log` may be NULL. */
HONE_API hone_status hone_build(const hone_model* model, const hone_device* device, const hone_options* options,
                                const hone_log* log, hone_plan** plan);
/* A new plan: the same engine with the weights of `model`, the same network as the plan's. Nothing is timed. The plan must
 * have been built with --refit, or with --stripWeights, which takes its own weights back. `log` may be NULL. */
HONE_API hone_status hone_plan_refit(const hone_plan* plan, const hone_model* model, const hone_device* device,
                                     const hone_log* log, hone_plan** refitted);
HONE_API hone_status hone_plan_load(const char* path, hone_plan** plan);
/* Reads a plan in memory, which must stay as it is while the plan or an engine of it lives; it is copied unless it begins
 * at a multiple of 64 bytes. */
HONE_API hone_status hone_plan_parse(const void* bytes, size_t size, hone_plan** plan);
/* Writes beside `path`, syncs and renames: the file is whole or not there. */
HONE_API hone_status hone_plan_save(const hone_plan* plan, const char* path);
/* What hone_plan_save writes. The memory belongs to the plan. */
HONE_API hone_status hone_plan_bytes(hone_plan* plan, const void** bytes, size_t* size);
/* The plan without its weights, as JSON. */
HONE_API hone_status hone_plan_json(hone_plan* plan, const char** json);
HONE_API void hone_plan_destroy(hone_plan* plan);

/* Loads a plan onto a device. The engine keeps what it needs of both. A plan that does not fit the machine or this version
 * gets its tactics chosen anew when it was built with --versionCompatible; a warning to `log`, which may be NULL, says so. */
HONE_API hone_status hone_engine_create(const hone_plan* plan, const hone_device* device, const hone_log* log,
                                        hone_engine** engine);
HONE_API size_t hone_engine_tensors(const hone_engine* engine);
HONE_API hone_status hone_engine_tensor(const hone_engine* engine, size_t index, hone_tensor* tensor);
HONE_API void hone_engine_destroy(hone_engine* engine);

HONE_API hone_status hone_context_create(const hone_engine* engine, int profile, hone_context** context);
HONE_API hone_status hone_context_set_shape(hone_context* context, const char* input, const int64_t* dims, int rank);
/* Concrete sizes at the present input shapes. `dims` holds HONE_MAX_RANK values. */
HONE_API hone_status hone_context_shape(hone_context* context, const char* tensor, int64_t* dims, int* rank);
HONE_API hone_status hone_context_bytes(hone_context* context, const char* tensor, int64_t* bytes);
/* Host memory, linear, of hone_context_bytes() bytes; 64-byte alignment is fastest. */
HONE_API hone_status hone_context_bind(hone_context* context, const char* tensor, void* memory);
/* Runs once and waits. Allocates nothing after the first run at a shape. */
HONE_API hone_status hone_context_run(hone_context* context);
/* Runs once, layer by layer, each timed. */
HONE_API hone_status hone_context_profile(hone_context* context, hone_layer_fn layer, void* user);
/* Tensors marked with --markDebug and --markUnfusedTensorsAsDebugTensors. A name is valid as long as the context; NULL when
 * there is none. */
HONE_API size_t hone_context_debug_tensors(const hone_context* context);
HONE_API const char* hone_context_debug_tensor(const hone_context* context, size_t index);
/* What such a tensor held at the end of the last run, as a copy. */
HONE_API hone_status hone_context_debug_value(const hone_context* context, const char* tensor, hone_value** value);
HONE_API void hone_context_destroy(hone_context* context);

/* An input of strings, a sequence, an optional or a map. */
HONE_API hone_status hone_context_set_value(hone_context* context, const char* input, const hone_value* value);
/* An output of the last run, of any kind. Of outputs of data-dependent shape the value views the context's memory: it
 * holds until the next run, and no longer than the context. */
HONE_API hone_status hone_context_value(hone_context* context, const char* output, hone_value** value);

/* Copies `data`, linear; `dims` may be NULL for rank 0. */
HONE_API hone_status hone_value_tensor(hone_dtype dtype, const int64_t* dims, int rank, const void* data,
                                       hone_value** value);
/* `texts` in row-major order, `lengths` in bytes. */
HONE_API hone_status hone_value_strings(const int64_t* dims, int rank, const char* const* texts, const size_t* lengths,
                                        hone_value** value);
HONE_API hone_status hone_value_sequence(const hone_value* const* items, size_t count, hone_value** value);
/* `item` may be NULL: nothing. */
HONE_API hone_status hone_value_optional(const hone_value* item, hone_value** value);
/* `keys` and `values` are lists of one length: the one of HONE_I64 or HONE_STRING, the other of any elements. */
HONE_API hone_status hone_value_map(const hone_value* keys, const hone_value* values, hone_value** value);
/* Element type and sizes; the name is NULL. Sequences and optionals have rank 1: their number of items. So have maps, whose
 * two items are the lists of keys, in ascending order, and of values. */
HONE_API hone_status hone_value_describe(const hone_value* value, hone_tensor* tensor);
/* The elements; NULL for strings, sequences, optionals and maps. */
HONE_API const void* hone_value_data(const hone_value* value);
HONE_API hone_status hone_value_string(const hone_value* value, size_t index, const char** text, size_t* length);
HONE_API hone_status hone_value_item(const hone_value* value, size_t index, hone_value** item);
HONE_API void hone_value_destroy(hone_value* value);

#ifdef __cplusplus
}
#endif
#endif
