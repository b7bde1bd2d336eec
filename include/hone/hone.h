/* SPDX-License-Identifier: Apache-2.0
 *
 * Hone's C interface: build an ONNX model into a plan, save and load plans, inspect them, run them.
 *
 * Objects. hone_X_create...() makes one and hone_X_destroy() frees it; destroying NULL does nothing. Objects keep what they need
 * of the ones that they were made of, so they may be destroyed in any order. A handle of another kind, or one that has been
 * destroyed and whose memory still reads as such, is refused.
 *
 * Failures. A function that can fail returns a hone_status, HONE_OK where it did not; what it would have written is then left as
 * it was. hone_last_error() says what is wrong and hone_last_hint() what to do, of the last failure in the calling thread. Every
 * function may return
 *   HONE_INVALID_ARGUMENT  a pointer is NULL that may not be, a handle is none, an index, a number or a name is out of range;
 *   HONE_OUT_OF_MEMORY     the host or the device has too little memory;
 *   HONE_INTERNAL          a defect of Hone;
 * what else a function returns is said beside it: HONE_ERROR for what is wrong with a model, a file or the machine,
 * HONE_INVALID_STATE for calls that come too early or too late, HONE_CANCELLED where somebody asked for the end.
 * Pointers marked HONE_NULLABLE may be NULL.
 *
 * Structs begin with their size: set it to sizeof before the call. Programs that were compiled with an older header go on
 * working: what their struct lacks is left as it is by default.
 *
 * Threads. Devices, models, plans, engines and values may be shared by threads. A context, a stream, an event, a buffer, a set of
 * options and a timing cache serve one thread at a time; hone_context_cancel() may be called from any.
 * Beside other busy processes start the program with GOMP_SPINCOUNT=1000 (or set it before this library is loaded): idle
 * threads then sleep early. Texts are UTF-8, end with a zero byte and belong to the object they were asked of.
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
#define HONE_NULLABLE

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when something is added. Nothing is taken away or changes its meaning while the first number of hone_version() stays. */
#define HONE_API_VERSION 1
#define HONE_MAX_RANK 32

typedef enum hone_status {
  HONE_OK = 0,
  HONE_ERROR = 1,    /* the model, a file, a value or the machine: the message says what, the hint what to do */
  HONE_INTERNAL = 2, /* a defect of Hone */
  HONE_INVALID_ARGUMENT = 3,
  HONE_INVALID_STATE = 4,
  HONE_OUT_OF_MEMORY = 5,
  HONE_CANCELLED = 6
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

/* Where memory lies. A CPU reads all three kinds alike. */
typedef enum hone_memory {
  HONE_MEMORY_HOST = 0,
  HONE_MEMORY_PINNED, /* host memory that a GPU copies from and to fastest */
  HONE_MEMORY_DEVICE
} hone_memory;

typedef struct hone_device hone_device;
typedef struct hone_options hone_options;
/* Times of tactics, so that none is measured twice. */
typedef struct hone_timing_cache hone_timing_cache;
typedef struct hone_model hone_model;
/* A network that a program puts together. */
typedef struct hone_network hone_network;
typedef struct hone_plan hone_plan;
typedef struct hone_engine hone_engine;
typedef struct hone_context hone_context;
typedef struct hone_buffer hone_buffer;
typedef struct hone_stream hone_stream;
typedef struct hone_event hone_event;
/* A tensor, a sequence, an optional or a map that stands for itself. Immutable. */
typedef struct hone_value hone_value;

/* A network input or output. Sizes that are not fixed are -1; so is the rank where only a run tells it. */
typedef struct hone_tensor {
  size_t size; /* sizeof(hone_tensor) */
  const char* name;
  hone_dtype dtype;
  int is_input;
  int rank;
  /* Nothing can be bound: this output's shape is data-dependent, or its elements are strings or values. Inputs of this kind
   * are given with hone_context_set_value, outputs are read with hone_value_create_from_output after each run. */
  int by_value;
  /* Of sequences, optionals and maps: the element type of the tensors inside, of maps that of the values. Else `dtype`. */
  hone_dtype element;
  /* Of maps, or of those inside: HONE_I64 or HONE_STRING. */
  hone_dtype key;
  int64_t dims[HONE_MAX_RANK];
} hone_tensor;

/* Where log lines go; those above the threshold are not made. `write` may be called from several threads. */
typedef struct hone_log {
  size_t size; /* sizeof(hone_log) */
  hone_severity threshold;
  void (*write)(void* user, hone_severity severity, const char* text);
  void* user;
} hone_log;

/* ---- The library ------------------------------------------------------------------------------------------------------ */

/* "0.1.0" */
HONE_API const char* hone_version(void);
/* HONE_API_VERSION of the library that runs. */
HONE_API int hone_api_version(void);
/* What was wrong, with what was going on, a line each ("  while ..."); "" before the first failure of this thread. */
HONE_API const char* hone_last_error(void);
/* What to do about it; "" where there is no advice. */
HONE_API const char* hone_last_hint(void);

/* ---- Devices ---------------------------------------------------------------------------------------------------------- */

/* How much of a processor, where its name does not say it. 0 and NULL: what the environment says (HONE_THREADS, HONE_CPU_ISA), else
 * all there is. */
typedef struct hone_device_options {
  size_t size; /* sizeof(hone_device_options) */
  int workers; /* threads that an inference computes on, the calling one among them */
  /* Logical processors that those threads, and a build's, are bound to. Large buffers come from the memory nearest to them. */
  const int* cores;
  size_t core_count;
  const char* instruction_set; /* the most that is used: "scalar", "avx2", "avx512" */
} hone_device_options;

/* What a device is. Texts belong to the device. */
typedef struct hone_device_info {
  size_t size;              /* sizeof(hone_device_info) */
  const char* kind;         /* "cpu", "cuda" */
  const char* name;         /* "AMD EPYC 9V74", "NVIDIA H200" */
  const char* architecture; /* "avx512", "sm_90" */
  int workers;              /* threads, or multiprocessors */
  int host_accessible;      /* reads host memory as it is: nothing is copied for an inference */
  int64_t memory_bytes;
  int64_t cache_bytes; /* L2 of one core, or of the GPU */
  int64_t core_bytes;  /* fast memory of one core: its L2, or a multiprocessor's shared memory */
  double clock_ghz;    /* 0: not known */
  /* Bit 1 << dtype for each type that its kernels multiply faster than by way of f32. */
  uint32_t multiplied_types;
  double memory_clock_ghz; /* 0: not known */
  const char* libraries;   /* what its kernels come from, with versions */
  int memory_bus_bits;     /* 0: not known */
  int error_correction;    /* of the memory: 1, 0, or -1 where it is not known */
  int whole_networks;      /* gains by computing all of a network in f16 or bf16, not convolutions alone */
} hone_device_info;

/* What a device has been seen to do at best; 0: not known. */
typedef struct hone_ceilings {
  size_t size;             /* sizeof(hone_ceilings) */
  double bytes_per_second; /* of a large copy, bytes read and bytes written */
  double f16_flops, f32_flops;
  double i8_flops; /* of bytes into sums of 32 bits */
} hone_ceilings;

/* "cpu", "cpu/4" (so many workers), "cpu@8-11,14" (these cores), "cpu@8-11/2", "cuda:1"; "0" is the first GPU where this build has
 * GPUs, else the CPU. HONE_ERROR: there is no such device, or this process may not use those cores. */
HONE_API hone_status hone_device_create(const char* name, const hone_device_options* HONE_NULLABLE options,
                                        hone_device** device);
HONE_API hone_status hone_device_describe(const hone_device* device, hone_device_info* info);
/* Measured at the first call, which takes a moment. */
HONE_API hone_status hone_device_measure(hone_device* device, hone_ceilings* ceilings);
HONE_API void hone_device_destroy(hone_device* HONE_NULLABLE device);

/* ---- Memory, streams, events ------------------------------------------------------------------------------------------ */

/* `bytes` of memory, 64-byte aligned at least. */
HONE_API hone_status hone_buffer_create(const hone_device* device, hone_memory kind, size_t bytes,
                                        hone_buffer** buffer);
/* NULL for NULL and for what is no buffer. */
HONE_API void* hone_buffer_data(const hone_buffer* buffer);
HONE_API size_t hone_buffer_bytes(const hone_buffer* buffer);
HONE_API void hone_buffer_destroy(hone_buffer* HONE_NULLABLE buffer);

/* A queue of work: what is enqueued is done in order, behind the back of the caller. A CPU's has a thread of its own, which
 * computes; it holds 1024 pieces of work, and enqueueing more waits. */
HONE_API hone_status hone_stream_create(const hone_device* device, hone_stream** stream);
/* A stream of the caller's, who destroys it after this object: a cudaStream_t. HONE_ERROR: the device has no such streams. */
HONE_API hone_status hone_stream_create_from_native(const hone_device* device, void* HONE_NULLABLE native,
                                                    hone_stream** stream);
/* Between any two kinds of memory. Both stay as they are until the copy has been made. */
HONE_API hone_status hone_stream_copy(hone_stream* stream, void* destination, const void* source, size_t bytes);
/* What is enqueued from here on starts when the event's last record has been passed. Waits for nothing itself. HONE_INVALID_STATE:
 * the event is of another device. */
HONE_API hone_status hone_stream_wait(hone_stream* stream, hone_event* event);
/* Waits until all work is done. Returns the status of the first inference that failed since the last call, if any did. */
HONE_API hone_status hone_stream_synchronize(hone_stream* stream);
/* Behind the end of its work, which is not waited for where the stream is being captured. */
HONE_API void hone_stream_destroy(hone_stream* HONE_NULLABLE stream);

/* A place in a stream's work. */
HONE_API hone_status hone_event_create(const hone_device* device, hone_event** event);
/* HONE_INVALID_STATE: the stream is of another device. */
HONE_API hone_status hone_event_record(hone_event* event, hone_stream* stream);
/* Waits until the stream has passed the event; at once where it has not been recorded. */
HONE_API hone_status hone_event_synchronize(hone_event* event);
/* Whether the stream has passed it; 1 where it has not been recorded. */
HONE_API hone_status hone_event_query(hone_event* event, int* passed);
/* By the device's clock. HONE_INVALID_STATE: one has not been recorded or not been passed. */
HONE_API hone_status hone_event_elapsed(hone_event* begin, hone_event* end, double* milliseconds);
HONE_API void hone_event_destroy(hone_event* HONE_NULLABLE event);

/* ---- Being told when a stream is done ---------------------------------------------------------------------------------- */

/* Called once, on a thread of the stream's. `status` is what hone_stream_synchronize() would have returned there; where it is not HONE_OK,
 * hone_last_error() and hone_last_hint() say why. The stream's later work waits on a CPU until the function returns: it may enqueue,
 * and may wait for nothing. */
typedef void (*hone_done_fn)(void* user, hone_status status);
/* Calls `function` when all work is done that the stream holds now; waits for nothing itself. Not while the stream is captured. */
HONE_API hone_status hone_stream_call(hone_stream* stream, hone_done_fn function, void* HONE_NULLABLE user);

/* ---- Models and plans ------------------------------------------------------------------------------------------------- */

/* `arguments` are flags as on trtexec's command line ("--minShapes=x:1x3x224x224", "--timingCacheFile=c"); those that
 * shape the build count. HONE_ERROR: a flag is not known or contradicts another. */
HONE_API hone_status hone_options_create(const char* const* HONE_NULLABLE arguments, size_t count,
                                         hone_options** options);
/* One more profile of shapes, whose number is returned. The first takes the place of those that flags gave. */
HONE_API hone_status hone_options_add_profile(hone_options* options, int* profile);
/* The shapes of an input in such a profile. HONE_ERROR: the sizes do not ascend. */
HONE_API hone_status hone_options_set_range(hone_options* options, int profile, const char* input, const int64_t* min,
                                            const int64_t* opt, const int64_t* max, int rank);
/* The type that a node of the model, or all whose names a pattern with '*' fits, computes in: "fp32", "fp16", "bf16", "int8". "fp32"
 * keeps it out of what the flags allow. HONE_ERROR: there is no such type. */
HONE_API hone_status hone_options_set_layer_type(hone_options* options, const char* node, const char* type);
/* How an input or output of this name lies, in trtexec's words: "fp16:hwc", "fp32:chw8". It goes before what flags say. HONE_ERROR: there
 * is no such format; of a name that the model lacks hone_plan_create_from_model() says so. */
HONE_API hone_status hone_options_set_format(hone_options* options, const char* tensor, const char* format);
/* Times are looked up in the cache, and those that are measured are added, beside the file that a flag names. NULL: none. The cache may
 * be destroyed before the options. */
HONE_API hone_status hone_options_set_timing_cache(hone_options* options, hone_timing_cache* HONE_NULLABLE cache);

/* How far a build is: a tree of phases, each with so many steps. All members but `size` may be NULL. They are called on the thread
 * that builds, and not behind the end of hone_plan_create_from_model(). */
typedef struct hone_progress {
  size_t size; /* sizeof(hone_progress) */
  void* user;
  /* `parent` is NULL for the root. Phases of one parent follow each other. */
  void (*begin)(void* user, const char* phase, const char* parent, int steps);
  /* So many steps are done, from 1; the last one is the number of steps. Other than 0 ends the build as `stop` does. */
  int (*step)(void* user, const char* phase, int done);
  void (*end)(void* user, const char* phase);
  /* Asked again and again, also within steps. Other than 0 ends the measuring: what has no time yet is chosen by rule, and the build
   * goes on to a plan that is right and runs. */
  int (*stop)(void* user);
} hone_progress;
/* Copies the struct; NULL: nobody is told. */
HONE_API hone_status hone_options_set_progress(hone_options* options, const hone_progress* HONE_NULLABLE progress);
HONE_API void hone_options_destroy(hone_options* HONE_NULLABLE options);

/* An empty one, or what hone_timing_cache_bytes() gave; of a file as --timingCacheFile writes it. What is damaged or of another version
 * is left out. */
HONE_API hone_status hone_timing_cache_create(const void* HONE_NULLABLE bytes, size_t size, hone_timing_cache** cache);
/* Adds what is missing. Of two entries for the same a measurement stays rather than a rejection, then that of more samples, of less
 * spread, the smaller text: caches come to the same in whatever order they are merged. */
HONE_API hone_status hone_timing_cache_merge(hone_timing_cache* cache, const hone_timing_cache* other);
/* How many times it holds; 0 for NULL. */
HONE_API size_t hone_timing_cache_entries(const hone_timing_cache* cache);
/* As a file would hold it. The memory belongs to the cache, until the next call for it. */
HONE_API hone_status hone_timing_cache_bytes(hone_timing_cache* cache, const void** bytes, size_t* size);
HONE_API void hone_timing_cache_destroy(hone_timing_cache* HONE_NULLABLE cache);

/* Reads an ONNX file; its external data stay mapped as long as the model or a plan of it lives. HONE_ERROR: the file cannot be
 * read or is no valid model. */
HONE_API hone_status hone_model_create_from_file(const char* onnx_path, const hone_log* HONE_NULLABLE log,
                                                 hone_model** model);
/* The same from memory, which is copied; `folder` is where external data lie. */
HONE_API hone_status hone_model_create_from_memory(const void* bytes, size_t size, const char* HONE_NULLABLE folder,
                                                   const hone_log* HONE_NULLABLE log, hone_model** model);
/* How many inputs and outputs, inputs first; 0 for NULL. */
HONE_API size_t hone_model_tensors(const hone_model* model);
HONE_API hone_status hone_model_tensor(const hone_model* model, size_t index, hone_tensor* tensor);
HONE_API void hone_model_destroy(hone_model* HONE_NULLABLE model);

/* The weights of a model, by name, as initialisers of the file are called: what hone_model_set_weight() can exchange. */
HONE_API size_t hone_model_weights(const hone_model* model);
HONE_API hone_status hone_model_weight(const hone_model* model, size_t index, hone_tensor* tensor);
/* Other contents for a weight, of its type and sizes, copied; for hone_plan_create_from_refit() or a build. While nobody else uses the
 * model. HONE_ERROR: the import has computed with the weight, so that it is no longer there by itself; sizes depend on it; two tensors
 * have the name; or the model is a plan's network, and the weight a part of it (hone_weight.refusal). */
HONE_API hone_status hone_model_set_weight(hone_model* model, const char* name, const void* data, size_t bytes);

typedef enum hone_attribute_kind {
  HONE_ATTRIBUTE_INTEGER = 0,
  HONE_ATTRIBUTE_REAL,
  HONE_ATTRIBUTE_TEXT,
  HONE_ATTRIBUTE_INTEGERS,
  HONE_ATTRIBUTE_REALS,
  HONE_ATTRIBUTE_TEXTS,
  HONE_ATTRIBUTE_TENSOR,
  HONE_ATTRIBUTE_NETWORK
} hone_attribute_kind;

/* An attribute of a node; `kind` says which member counts. Lists have `count` entries. */
typedef struct hone_attribute {
  size_t size; /* sizeof(hone_attribute) */
  const char* name;
  hone_attribute_kind kind;
  int64_t integer;
  float real;
  const char* text;
  const int64_t* integers;
  const float* reals;
  const char* const* texts;
  size_t count;
  const hone_value* tensor;
  /* A body of If, Loop or Scan, as it is now: its inputs, constants, nodes and outputs. Names that it lacks are those around it, and
   * so is the version of its operators. */
  const hone_network* network;
} hone_attribute;

/* An operator of ONNX at work. A tensor has the name that it is given as an output; "" among the inputs stands for one that is left
 * out. */
typedef struct hone_node {
  size_t size;        /* sizeof(hone_node) */
  const char* op;     /* "Conv" */
  const char* domain; /* NULL: ONNX's own */
  const char* name;   /* for messages and layers; NULL: one is made up */
  const char* const* inputs;
  size_t input_count;
  const char* const* outputs;
  size_t output_count;
  const hone_attribute* attributes; /* one behind the other, each sizeof(hone_attribute) of the caller's */
  size_t attribute_count;
} hone_node;

/* `opset` is the version of ONNX's operators that nodes are of, 7 to the newest one that this library reads. */
HONE_API hone_status hone_network_create(int opset, hone_network** network);
/* A size of -1 is dynamic; `symbols` says what it is called (sizes of one name are equal), entry by entry, NULL for those that have no
 * name. */
HONE_API hone_status hone_network_add_input(hone_network* network, const char* name, hone_dtype dtype,
                                            const int64_t* HONE_NULLABLE dims, int rank,
                                            const char* const* HONE_NULLABLE symbols);
/* A tensor of numbers, copied. */
HONE_API hone_status hone_network_add_constant(hone_network* network, const char* name, const hone_value* value);
/* Copies what the struct names. What the operator makes of it is checked by hone_model_create_from_network(). */
HONE_API hone_status hone_network_add_node(hone_network* network, const hone_node* node);
HONE_API hone_status hone_network_mark_output(hone_network* network, const char* tensor);
/* The network as an ONNX file. The memory belongs to the network, until the next call for it. */
HONE_API hone_status hone_network_bytes(hone_network* network, const void** bytes, size_t* size);
HONE_API void hone_network_destroy(hone_network* HONE_NULLABLE network);
/* HONE_ERROR: a node is wrong, with its name; or a tensor is used that nothing makes. */
HONE_API hone_status hone_model_create_from_network(const hone_network* network, const hone_log* HONE_NULLABLE log,
                                                    hone_model** model);

/* Builds for the device. Reads the timing cache that the options name and writes it when done. HONE_ERROR: options do not fit the
 * model, or it has a node that nothing runs. HONE_INVALID_STATE: weights are missing (refit.h). */
HONE_API hone_status hone_plan_create_from_model(const hone_model* model, const hone_device* device,
                                                 const hone_options* HONE_NULLABLE options,
                                                 const hone_log* HONE_NULLABLE log, hone_plan** plan);
/* The same engine with the weights of `model`, the same network as the plan's. Nothing is timed. HONE_ERROR: the plan was built
 * neither with --refit, nor with --stripWeights, which takes its own weights back; or the network is another one.
 * HONE_INVALID_STATE: weights are missing (refit.h, which has the way without a model). */
HONE_API hone_status hone_plan_create_from_refit(const hone_plan* plan, const hone_model* model,
                                                 const hone_device* device, const hone_log* HONE_NULLABLE log,
                                                 hone_plan** refitted);
/* HONE_ERROR: the file cannot be read, is damaged or of a version that this one does not read. */
HONE_API hone_status hone_plan_create_from_file(const char* path, hone_plan** plan);
/* A plan in memory, which must stay as it is while the plan lives, an engine of it, its network or a plan that was refitted of it;
 * it is copied unless it begins at a multiple of 64 bytes. HONE_ERROR as above. */
HONE_API hone_status hone_plan_create_from_memory(const void* bytes, size_t size, hone_plan** plan);
/* Writes beside `path`, syncs and renames: the file is whole or not there. HONE_ERROR: it cannot be written. */
HONE_API hone_status hone_plan_save(const hone_plan* plan, const char* path);
/* What hone_plan_save writes. The memory belongs to the plan. */
HONE_API hone_status hone_plan_bytes(const hone_plan* plan, const void** bytes, size_t* size);
/* The plan without its weights, as JSON. */
HONE_API hone_status hone_plan_json(const hone_plan* plan, const char** json);

/* What a plan is. Texts belong to the plan. */
typedef struct hone_plan_info {
  size_t size;              /* sizeof(hone_plan_info) */
  const char* version;      /* of Hone that built it */
  const char* device_kind;  /* "cpu", "cuda" */
  const char* device;       /* "AMD EPYC 9V74" */
  const char* architecture; /* "avx512", "sm_90" */
  const char* model;
  const char* precision; /* the types that its build allowed beside FP32 */
  const char* options;   /* of the build, as flags */
  size_t profiles;
  int refittable;       /* takes other weights, or its own back */
  int has_weights;      /* else only hone_plan_create_from_refit makes an engine of it */
  int64_t weight_bytes; /* of packed weights and tables */
  int64_t file_bytes;   /* what hone_plan_save would write */
  int saves_weights;    /* hone_plan_save writes them, too */
  int portable;         /* another machine or version can choose its tactics anew */
} hone_plan_info;

/* A layer, in execution order. Texts belong to the plan. */
typedef struct hone_layer {
  size_t size;            /* sizeof(hone_layer) */
  const char* name;       /* fused parts joined by " + " */
  const char* kind;       /* "Convolution", "MatrixMultiply", "PointWise", "Reformat", ... */
  const char* source;     /* of its tactic: "cpu", "onednn", "cublaslt", "reference", ...; "" for a view */
  const char* tactic;     /* of the source: "conv_nhwc" */
  const char* parameters; /* of the tactic as it was tuned, as JSON */
  const char* details;    /* what the layer does: kernel sizes, strides, activation; as JSON */
  int is_view;            /* computes nothing */
  double tuned_ms;        /* when it was tuned; 0 where nothing was timed */
  size_t nodes;           /* of the model behind it */
  size_t inputs, outputs;
  size_t candidates;    /* tactics that were tried or refused; 0 where the plan does not keep them */
  int64_t flops, bytes; /* operations, and bytes read and written, at the shapes that it was tuned for; 0: not known */
} hone_layer;

/* A tactic that was tried for a layer, or refused. Texts belong to the plan. */
typedef struct hone_candidate {
  size_t size;        /* sizeof(hone_candidate) */
  const char* tactic; /* with its source, parameters and layouts */
  double ms;          /* -1: neither timed nor estimated */
  double spread;      /* of the samples, relative */
  const char* note;   /* why it was refused or rejected; "estimated"; "" for a time that was measured */
  int chosen;
} hone_candidate;

HONE_API hone_status hone_plan_describe(const hone_plan* plan, hone_plan_info* info);
/* 0 for NULL and where there is no such profile. */
HONE_API size_t hone_plan_layers(const hone_plan* plan, int profile);
HONE_API hone_status hone_plan_layer(const hone_plan* plan, int profile, size_t index, hone_layer* layer);
/* The name of a node of the model that the layer stands for. */
HONE_API hone_status hone_plan_layer_node(const hone_plan* plan, int profile, size_t layer, size_t index,
                                          const char** node);
/* What the layer reads and, behind it, what it writes. */
HONE_API hone_status hone_plan_layer_tensor(const hone_plan* plan, int profile, size_t layer, size_t index,
                                            hone_tensor* tensor);
HONE_API hone_status hone_plan_layer_candidate(const hone_plan* plan, int profile, size_t layer, size_t index,
                                               hone_candidate* candidate);
/* A node of the model that no layer stands for, and the pass that made it needless. */
HONE_API size_t hone_plan_folded_nodes(const hone_plan* plan);
HONE_API hone_status hone_plan_folded_node(const hone_plan* plan, size_t index, const char** node, const char** pass);
/* The layers as trtexec --exportLayerInfo writes them; how much is told was decided by --profilingVerbosity. */
HONE_API hone_status hone_plan_layers_json(const hone_plan* plan, int profile, const char** json);
/* A weight that another one can take the place of: the node that it belongs to, and what it is there ("Kernel", "Bias", ...). 0: the
 * plan was not built with --refit. */
HONE_API size_t hone_plan_weights(const hone_plan* plan);
HONE_API hone_status hone_plan_weight(const hone_plan* plan, size_t index, const char** node, const char** role);
HONE_API void hone_plan_destroy(hone_plan* HONE_NULLABLE plan);

/* ---- Engines and contexts --------------------------------------------------------------------------------------------- */

/* Loads a plan onto a device. A plan that does not fit the machine or this version gets its tactics chosen anew when it was built
 * with --versionCompatible; a warning to `log` says so. HONE_ERROR: it does not fit. */
HONE_API hone_status hone_engine_create(const hone_plan* plan, const hone_device* device,
                                        const hone_log* HONE_NULLABLE log, hone_engine** engine);
/* How many inputs and outputs, in the model's order; 0 for NULL. */
HONE_API size_t hone_engine_tensors(const hone_engine* engine);
HONE_API hone_status hone_engine_tensor(const hone_engine* engine, size_t index, hone_tensor* tensor);
HONE_API size_t hone_engine_profiles(const hone_engine* engine);
/* What a context needs for activations at a profile's largest shapes. */
HONE_API hone_status hone_engine_memory_bytes(const hone_engine* engine, int profile, int64_t* bytes);
HONE_API void hone_engine_destroy(hone_engine* HONE_NULLABLE engine);

/* Where an output shall lie: `bytes` of device memory, 64-byte aligned preferred. Called before the run, or where the data decide
 * the sizes behind it; the result is then copied there. Called on the thread that runs the inference. NULL fails the run. */
typedef void* (*hone_output_fn)(void* user, const char* tensor, const int64_t* dims, int rank, int64_t bytes);
/* Receives the duration of one layer, in execution order. */
typedef void (*hone_layer_fn)(void* user, const char* layer, double milliseconds);
/* Receives what a debug tensor holds at the end of a run; the value lives until the function returns. */
typedef void (*hone_debug_fn)(void* user, const char* tensor, const hone_value* value);

/* One inference at a time, with its own memory. While an inference that was enqueued is under way, every function here but
 * hone_context_enqueue and hone_context_cancel waits for it first where the device is a CPU. Functions that a context calls back may
 * not use it. All may return HONE_INVALID_STATE where another thread is using the context. */
HONE_API hone_status hone_context_create(const hone_engine* engine, int profile, hone_context** context);
/* Another profile: shapes are to be set again, memory stays bound. */
HONE_API hone_status hone_context_set_profile(hone_context* context, int profile);
/* HONE_ERROR: the shape does not fit the profile or other inputs. */
HONE_API hone_status hone_context_set_shape(hone_context* context, const char* input, const int64_t* dims, int rank);
/* Concrete sizes at the present input shapes. `dims` holds HONE_MAX_RANK values. HONE_INVALID_STATE: an input's shape is missing,
 * or the data decide and there has been no run. */
HONE_API hone_status hone_context_shape(hone_context* context, const char* tensor, int64_t* dims, int* rank);
HONE_API hone_status hone_context_bytes(hone_context* context, const char* tensor, int64_t* bytes);
/* Memory of a tensor, linear unless a format was asked for, of hone_context_bytes() bytes; 64-byte alignment is fastest: each
 * inference on a GPU copies what lies at no multiple of 16. Host memory is copied by hone_context_run() where the device does not read
 * it. HONE_ERROR: the tensor is by_value. */
HONE_API hone_status hone_context_bind(hone_context* context, const char* tensor, void* memory, hone_memory kind);
/* The contents of any input, and with them its shape; copied, so that nothing needs to be bound. */
HONE_API hone_status hone_context_set_value(hone_context* context, const char* input, const hone_value* value);
/* Memory for the output comes from `function` in every run; NULL: bound memory again. */
HONE_API hone_status hone_context_set_output_function(hone_context* context, const char* output,
                                                      hone_output_fn HONE_NULLABLE function, void* HONE_NULLABLE user);
/* Runs go layer by layer, each timed; NULL: as usual again. */
HONE_API hone_status hone_context_set_layer_function(hone_context* context, hone_layer_fn HONE_NULLABLE function,
                                                     void* HONE_NULLABLE user);
/* Called for each debug tensor behind each run, which is waited for; NULL: no more. */
HONE_API hone_status hone_context_set_debug_function(hone_context* context, hone_debug_fn HONE_NULLABLE function,
                                                     void* HONE_NULLABLE user);
/* What activations need at the present shapes. HONE_INVALID_STATE: an input's shape is missing. */
HONE_API hone_status hone_context_memory_bytes(hone_context* context, int64_t* bytes);
/* Device memory of the caller's for activations, 256-byte aligned, until the context is destroyed or it is called again; NULL: the
 * context's own. What data-dependent sizes need comes beside it. A run fails with HONE_INVALID_STATE where it is too small. */
HONE_API hone_status hone_context_set_memory(hone_context* context, void* HONE_NULLABLE memory, int64_t bytes);
/* Makes kernels and memory ready for the present shapes and bindings, as the first run at them does. HONE_INVALID_STATE: a shape or
 * memory is missing. */
HONE_API hone_status hone_context_prepare(hone_context* context);
/* Runs once and waits. Allocates nothing after the first run at a shape. HONE_INVALID_STATE: a shape or memory is missing.
 * HONE_ERROR: the data are wrong for the network. HONE_CANCELLED: hone_context_cancel() was called. */
HONE_API hone_status hone_context_run(hone_context* context);
/* Runs once, in the stream. Neither waits, allocates nor copies behind the first run at these shapes and bindings, unless the data
 * decide sizes. Bound memory has to be the device's. Where the stream is captured into a CUDA graph, its launches join the graph,
 * which needs the context as long as it lives; it must have run before. HONE_INVALID_STATE: the stream is of another device, a shape
 * or memory is missing, or the network cannot be captured. What goes wrong later, hone_stream_synchronize() and hone_context_wait()
 * return. */
HONE_API hone_status hone_context_enqueue(hone_context* context, hone_stream* stream);
/* Waits for what was enqueued. Returns the status of the first inference that failed since the last call, if any did. */
HONE_API hone_status hone_context_wait(hone_context* context);
/* Ends what is under way and what is enqueued, before its next kernel; from any thread. Nothing happens where nothing is. */
HONE_API hone_status hone_context_cancel(hone_context* context);
/* Tensors marked with --markDebug and --markUnfusedTensorsAsDebugTensors. A name is valid as long as the engine; NULL when
 * there is none. */
HONE_API size_t hone_context_debug_tensors(const hone_context* context);
HONE_API const char* hone_context_debug_tensor(const hone_context* context, size_t index);
HONE_API void hone_context_destroy(hone_context* HONE_NULLABLE context);

/* ---- Values ----------------------------------------------------------------------------------------------------------- */

/* Copies `data`, linear; both pointers may be NULL where there is nothing behind them. */
HONE_API hone_status hone_value_create_tensor(hone_dtype dtype, const int64_t* HONE_NULLABLE dims, int rank,
                                              const void* HONE_NULLABLE data, hone_value** value);
/* `texts` in row-major order, `lengths` in bytes. */
HONE_API hone_status hone_value_create_strings(const int64_t* HONE_NULLABLE dims, int rank,
                                               const char* const* HONE_NULLABLE texts,
                                               const size_t* HONE_NULLABLE lengths, hone_value** value);
/* HONE_ERROR: the items are of several types. */
HONE_API hone_status hone_value_create_sequence(const hone_value* const* HONE_NULLABLE items, size_t count,
                                                hone_value** value);
/* `item` NULL: nothing. */
HONE_API hone_status hone_value_create_optional(const hone_value* HONE_NULLABLE item, hone_value** value);
/* `keys` and `values` are lists of one length: the one of HONE_I64 or HONE_STRING, the other of any elements. */
HONE_API hone_status hone_value_create_map(const hone_value* keys, const hone_value* values, hone_value** value);
/* An item of a sequence or an optional, or of a map: the list of keys, in ascending order, and the list of values. */
HONE_API hone_status hone_value_create_from_item(const hone_value* value, size_t index, hone_value** item);
/* An output of the last run, of any kind. Of outputs of data-dependent shape the value views the context's memory: it holds until
 * the next run, and no longer than the context. HONE_INVALID_STATE: there has been no run. */
HONE_API hone_status hone_value_create_from_output(hone_context* context, const char* output, hone_value** value);
/* What a debug tensor held at the end of the last run, as a copy. HONE_INVALID_STATE as above. */
HONE_API hone_status hone_value_create_from_debug_tensor(hone_context* context, const char* tensor, hone_value** value);
/* Element type and sizes; the name is NULL. Sequences and optionals have rank 1: their number of items. So have maps, whose
 * two items are the lists of keys and of values. */
HONE_API hone_status hone_value_describe(const hone_value* value, hone_tensor* tensor);
/* The elements; NULL for strings, sequences, optionals and maps. */
HONE_API const void* hone_value_data(const hone_value* value);
HONE_API hone_status hone_value_string(const hone_value* value, size_t index, const char** text, size_t* length);
HONE_API void hone_value_destroy(hone_value* HONE_NULLABLE value);

#ifdef __cplusplus
}
#endif

#include "hone/diagnosis.h" /* what is wrong with a model */
#include "hone/operators.h" /* operators of one's own */
#include "hone/reference.h" /* the golden values of a model */
#include "hone/refit.h"     /* other weights for a plan */
#include "hone/tools.h"     /* what only tools ask for */
#endif
