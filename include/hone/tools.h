/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of Hone's C interface that tools ask for: what models, plans and devices say of themselves beyond what running takes, further
 * ways to steer a build, measuring and checking. The rules of hone.h hold.
 */
#ifndef HONE_TOOLS_H
#define HONE_TOOLS_H

#include "hone/hone.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- More that plans and models tell ---------------------------------------------------------------------------------- */

/* The kinds of devices that this library has kernels for: "cpu", "cuda". NULL where there is no such index. */
HONE_API size_t hone_device_kinds(void);
HONE_API const char* hone_device_kind(size_t index);

/* What there is to say of an input or output beside hone_tensor. Texts belong to the model or the plan. */
typedef struct hone_tensor_details {
  size_t size;
  const char* type;   /* "f32[n,3,224,224]": sizes that are not fixed by their names */
  const char* layout; /* how its bytes lie: "linear", "channels_last", "blocked8", "blocked16", ... */
  int has_range;      /* the network accepts integers from `low` to `high` alone */
  int64_t low, high;
} hone_tensor_details;

HONE_API hone_status hone_model_tensor_details(const hone_model* model, size_t index, hone_tensor_details* details);
/* How many inputs and outputs, in the model's order; 0 for NULL. */
HONE_API size_t hone_plan_tensors(const hone_plan* plan);
HONE_API hone_status hone_plan_tensor(const hone_plan* plan, size_t index, hone_tensor* tensor);
HONE_API hone_status hone_plan_tensor_details(const hone_plan* plan, size_t index, hone_tensor_details* details);

/* A profile of shapes. Texts belong to the plan. */
typedef struct hone_profile {
  size_t size;
  const char* precision; /* "FP32 in 20 of 21 layers (99.8 % of the tuned time), INT64 in 1 (0.2 %)" */
  int64_t memory_bytes;  /* for activations at the largest shapes */
  size_t ranges;         /* inputs whose sizes are not all fixed */
} hone_profile;

/* What an input's sizes may be, and what they were tuned for. */
typedef struct hone_range {
  size_t size;
  const char* input;
  int rank;
  int64_t min[HONE_MAX_RANK], opt[HONE_MAX_RANK], max[HONE_MAX_RANK];
} hone_range;

HONE_API hone_status hone_plan_profile(const hone_plan* plan, int profile, hone_profile* info);
HONE_API hone_status hone_plan_range(const hone_plan* plan, int profile, size_t index, hone_range* range);

/* What hone_options_set_note() left in the plan under this name; NULL where there is nothing. It belongs to the plan. */
HONE_API const char* hone_plan_note(const hone_plan* plan, const char* key);

/* The sizes of an input. */
typedef struct hone_shape {
  size_t size;
  const char* input;
  const int64_t* dims;
  int rank;
} hone_shape;

typedef enum hone_layers_form {
  HONE_LAYERS_JSON = 0,      /* as trtexec --exportLayerInfo writes them */
  HONE_LAYERS_JSON_DETAILED, /* the same, however little --profilingVerbosity left to be told */
  HONE_LAYERS_LINES          /* as --dumpLayerInfo prints them, a line each */
} hone_layers_form;

/* The layers with the sizes that they have at these shapes of inputs, one behind the other, each sizeof(hone_shape) of the caller's; what
 * does not follow from them is -1. */
HONE_API hone_status hone_plan_layers_text(const hone_plan* plan, int profile, const hone_shape* HONE_NULLABLE shapes,
                                           size_t count, hone_layers_form form, const char** text);
/* What was tried for the layers whose name contains `layer`, or for all: their candidates with times or refusals, a line each. HONE_ERROR:
 * no layer's name does. */
HONE_API hone_status hone_plan_explain(const hone_plan* plan, const char* HONE_NULLABLE layer, const char** text);
/* The plan as the engine runs it: another one than it was made of where tactics were chosen anew. */
HONE_API hone_status hone_plan_create_from_engine(const hone_engine* engine, hone_plan** plan);
/* The version of Hone that wrote the file, also where this one does not read its plans. The text is valid until the thread's next call.
 * HONE_ERROR: it is no plan. */
HONE_API hone_status hone_plan_file_version(const char* path, const char** version);

/* Takes this much memory for activations at once, so that larger shapes need no more later. */
HONE_API hone_status hone_context_reserve(hone_context* context, int64_t bytes);
/* What the context holds for activations. */
HONE_API hone_status hone_context_held_bytes(hone_context* context, int64_t* bytes);

/* ---- More that builds take -------------------------------------------------------------------------------------------- */

/* Something that a build can be told to do or to leave: its effort, a library of kernels, a pass over the graph. */
typedef struct hone_knob {
  size_t size;
  const char* name; /* "opt_level", "onednn", "fuse_epilogue" */
  const char* const* values;
  size_t value_count;
  const char* standard; /* the value that a build has */
  const char* help;
} hone_knob;

HONE_API size_t hone_knobs(void);
HONE_API hone_status hone_knob_describe(size_t index, hone_knob* knob);
/* HONE_ERROR: there is no such knob, or it has no such value. */
HONE_API hone_status hone_options_set_knob(hone_options* options, const char* knob, const char* value);
/* The tensor can be read after each run, see hone_value_create_from_debug_tensor. */
HONE_API hone_status hone_options_mark_debug(hone_options* options, const char* tensor);
/* A text for programs that load the plan, under a name of theirs (hone_plan_note()). Hone reads none of it; a refit keeps it. Invalid
 * UTF-8 is stored as U+FFFD. */
HONE_API hone_status hone_options_set_note(hone_options* options, const char* key, const char* text);
/* What an input holds where --best compares engines; inputs without get values drawn at random. */
HONE_API hone_status hone_options_set_sample(hone_options* options, const char* input, const hone_value* value);

/* What a tensor in f32 is brought to 8 bits with: real = (code - zero) * scale. From a calibration. */
typedef struct hone_scale {
  size_t size;
  const char* tensor;
  float scale;
  int zero;
  /* Codes are unsigned and have zero points; all scales of a build are alike. 0: signed, and `zero` is 0. */
  int asymmetric;
  /* --int8 does not compute with it; it is for inputs, outputs and results that are asked for in 8 bits. */
  int edge;
} hone_scale;
HONE_API hone_status hone_options_set_scale(hone_options* options, const hone_scale* scale);

/* The same of a file, where `skipped` lines were damaged or of another version. HONE_ERROR: it cannot be read. */
HONE_API hone_status hone_timing_cache_create_from_file(const char* path, size_t* HONE_NULLABLE skipped,
                                                        hone_timing_cache** cache);
/* Adds to the file what it lacks; other programs may do so at the same time. `bytes`: what it then has. HONE_ERROR: it cannot be
 * written. */
HONE_API hone_status hone_timing_cache_save(const hone_timing_cache* cache, const char* path,
                                            size_t* HONE_NULLABLE bytes);

/* ---- Time lines and profilers ------------------------------------------------------------------------------------------ */

/* When a worker of the device was busy with a layer, in ms from the beginning of the inference. */
typedef struct hone_layer_span {
  size_t size;
  const char* layer; /* belongs to the engine */
  int worker;        /* on a GPU 0, layer behind layer */
  double begin_ms, end_ms;
} hone_layer_span;

/* Receives all spans of an inference behind it, on the thread that runs it. */
typedef void (*hone_span_fn)(void* user, const hone_layer_span* spans, size_t count);

/* On a CPU runs go as always, while workers note what they are at; on a GPU layer by layer. It goes before a layer function. NULL: no
 * more. */
HONE_API hone_status hone_context_set_span_function(hone_context* context, hone_span_fn HONE_NULLABLE function,
                                                    void* HONE_NULLABLE user);
/* From now on code that this process generates for CPUs is named after its layer for Linux's perf: a line for each piece in
 * /tmp/perf-PID.map. `written`: the file; it belongs to the library. HONE_ERROR: it cannot be written. */
HONE_API hone_status hone_write_perf_map(const char** written);
/* The same with the code itself, in jit-PID.dump of a folder: `perf record -k 1`, then `perf inject --jit`. */
HONE_API hone_status hone_write_jit_dump(const char* folder, const char** written);

/* The best that a build has found so far. Texts live as long as the call. */
typedef struct hone_timed {
  size_t size;
  const char* layer;   /* NULL: a whole network, of several that are built */
  const char* fastest; /* its tactic; of a network the types that it computes in */
  double ms;
  size_t candidates; /* of the layer that have times */
} hone_timed;
typedef void (*hone_timed_fn)(void* user, const hone_timed* timed);
/* Called on the thread that builds when the tactics of a layer have their times, or a network has run; NULL: no more. */
HONE_API hone_status hone_options_set_timed_function(hone_options* options, hone_timed_fn HONE_NULLABLE function,
                                                     void* HONE_NULLABLE user);

/* A profiler of the device that was told to wait for this begins (1) or ends (0) its recording: cudaProfilerStart() and Stop(), as
 * `nsys profile -c cudaProfilerApi` waits for. Nothing happens on a processor. */
HONE_API hone_status hone_device_profile(hone_device* device, int on);

/* ---- Measuring -------------------------------------------------------------------------------------------------------- */

/* Contexts of an engine whose inferences are timed, one or several at a time, as trtexec does it: with memory of their own for all
 * inputs and outputs on the host and, where that is another, on the device. One thread at a time. */
typedef struct hone_benchmark hone_benchmark;

/* How long, and how. What is 0 is left out. */
typedef struct hone_benchmark_options {
  size_t size;
  int iterations;     /* at least so many turns of all streams behind the warm-up */
  double warm_up_ms;  /* queries from before count as warm-up */
  double duration_ms; /* and at least so long behind it; -1: without end */
  double sleep_ms;    /* before the first query */
  double idle_ms;     /* between turns */
  int threads;        /* each stream is fed by a thread of its own; on a CPU they are anyway */
  int one_at_a_time;  /* a stream's query begins when its last one has ended */
  int streams;        /* only the first ones take part; 0: all */
} hone_benchmark_options;

/* When a query's parts began and ended, in ms from the start of the measurement; copies that are not made take no time. */
typedef struct hone_query_times {
  size_t size;
  float enqueue_start, enqueue_end; /* by the host's clock */
  float input_start, input_end;     /* copying inputs to the device */
  float compute_start, compute_end;
  float output_start, output_end; /* copying outputs to the host */
} hone_query_times;

/* `data_transfers` 0: inputs and outputs are not copied for each query. */
HONE_API hone_status hone_benchmark_create(const hone_engine* engine, int profile, int streams, int data_transfers,
                                           hone_benchmark** benchmark);
/* A stream's context, for its shapes, functions and outputs. It belongs to the benchmark, which binds its memory; hone_context_destroy
 * does nothing to it. NULL where there is no such stream. */
HONE_API hone_context* hone_benchmark_context(const hone_benchmark* benchmark, int stream);
/* Memory for the present shapes of the stream's context, zeroed. HONE_ERROR: an input has no bytes to bind. HONE_INVALID_STATE: a shape is
 * missing. */
HONE_API hone_status hone_benchmark_allocate(hone_benchmark* benchmark, int stream);
/* Host memory of an input, to be filled, or of an output as the last query left it; where the data decide its sizes until the next
 * query. HONE_INVALID_STATE: none has been allocated, or there has been no query. */
HONE_API hone_status hone_benchmark_memory(hone_benchmark* benchmark, int stream, const char* tensor, void** memory,
                                           int64_t* bytes);
/* One query on what the memory holds. HONE_INVALID_STATE: no memory has been allocated. HONE_ERROR: the data are wrong for the network. */
HONE_API hone_status hone_benchmark_run_once(hone_benchmark* benchmark, int stream);
/* Queries all the time. Nothing is allocated between them but room for their times. NULL: ten of them. A function that the first
 * stream's context tells of layers is told of all that run there. HONE_INVALID_STATE and HONE_ERROR as above. */
HONE_API hone_status hone_benchmark_run(hone_benchmark* benchmark, const hone_benchmark_options* HONE_NULLABLE options);
/* Called when a query has ended, between queries, on the thread that feeds its stream: on several at a time where there are several.
 * NULL: no more. */
typedef void (*hone_query_fn)(void* user, const hone_query_times* times);
HONE_API hone_status hone_benchmark_set_query_function(hone_benchmark* benchmark, hone_query_fn HONE_NULLABLE function,
                                                       void* HONE_NULLABLE user);
/* Of the last measurement: its queries, warm-up included, in the order in which they began. */
HONE_API size_t hone_benchmark_queries(const hone_benchmark* benchmark);
HONE_API hone_status hone_benchmark_query(const hone_benchmark* benchmark, size_t index, hone_query_times* times);
HONE_API void hone_benchmark_destroy(hone_benchmark* HONE_NULLABLE benchmark);

/* ---- Checking --------------------------------------------------------------------------------------------------------- */

/* Whether an engine gives the same results however programs run it: again and again, on other values, on memory that held something
 * else, with other bindings, layer by layer, in two contexts at once, after other shapes. One thread at a time. */
typedef struct hone_check hone_check;

/* Inferences that were run in one way, each held against the first one on the same inputs. Texts belong to the check. */
typedef struct hone_situation {
  size_t size;
  const char* name;
  int inferences, different; /* not the same bytes */
  double largest;     /* norm of a difference over the norm of what the first inference gave; infinite for NaNs */
  const char* tensor; /* where that is */
} hone_situation;

/* HONE_ERROR: an input holds what has no bytes. */
HONE_API hone_status hone_check_create(const hone_engine* engine, int profile, hone_check** check);
/* What an input holds, and with that its shape, in one of the two sets of values, 0 and 1, which take turns; `shapes` counts the shapes
 * that are run, from 0, which is run most. Both sets of the same shapes need all inputs that can be bound. HONE_ERROR: the value is of
 * another type. */
HONE_API hone_status hone_check_set_input(hone_check* check, int shapes, int set, const char* input,
                                          const hone_value* value);
/* So many inferences in each of the quick ways, 2 at least, and a tenth in the others. HONE_INVALID_STATE: an input is missing. HONE_ERROR:
 * a shape or the data are wrong for the network. */
HONE_API hone_status hone_check_run(hone_check* check, int inferences);
HONE_API size_t hone_check_situations(const hone_check* check);
HONE_API hone_status hone_check_situation(const hone_check* check, size_t index, hone_situation* situation);
/* What the first inference on a set of values gave, linear. HONE_INVALID_STATE: nothing has been run. HONE_ERROR: there is no such output,
 * or it holds what has no bytes. */
HONE_API hone_status hone_value_create_from_check(const hone_check* check, int set, const char* output,
                                                  hone_value** value);
HONE_API void hone_check_destroy(hone_check* HONE_NULLABLE check);

#ifdef __cplusplus
}
#endif
#endif
