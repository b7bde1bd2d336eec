/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators of one's own: how a program or a library describes one, and how Hone comes to know it. A part of hone.h, whose rules hold
 * here; a library of operators needs this header alone, and is not linked with Hone.
 */
#ifndef HONE_OPERATORS_H
#define HONE_OPERATORS_H

#include "hone/hone.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hone_layout {
  HONE_LAYOUT_LINEAR = 0,   /* n, c, h, w */
  HONE_LAYOUT_CHANNELS_LAST /* n, h, w, c; `dims` stay in the order n, c, h, w */
} hone_layout;

/* An operand or a result of an operator. */
typedef struct hone_operand {
  size_t size; /* sizeof(hone_operand) of the library that runs */
  hone_dtype dtype;
  hone_layout layout;
  int rank;
  int64_t dims[HONE_MAX_RANK];
  void* data; /* read of inputs, written of outputs; NULL where only sizes are asked for */
} hone_operand;

/* One call of an operator's function. All memory is Hone's, and the function's until it returns. */
typedef struct hone_call {
  size_t size; /* sizeof(hone_call) of the library that runs */
  void* user;  /* of the operator */
  const char* node;
  const hone_operand* const* inputs; /* NULL for one that is left out */
  size_t input_count;
  hone_operand* const* outputs;
  size_t output_count;
  const hone_attribute* const* attributes; /* of the node, and defaults; by name */
  size_t attribute_count;
  void* workspace; /* 256-byte aligned, contents undefined */
  size_t workspace_bytes;
  void* stream; /* a cudaStream_t for `run_on_device`; else NULL */
  int workers;  /* threads that the device has for it; OpenMP's default in the calling thread */
  char*
      message; /* what went wrong, where the function returns other than HONE_OK: at most message_size bytes, with the zero */
  size_t message_size;
} hone_call;

/* Functions of an operator may be called from several threads at a time. */
typedef hone_status (*hone_operator_fn)(const hone_call* call);
typedef hone_status (*hone_workspace_fn)(const hone_call* call, size_t* bytes);

enum {
  /* It may be called while an engine is built, for operands that are constants. Results of equal nodes are then shared, too. */
  HONE_OPERATOR_FOLDABLE = 1,
  /* `run_on_device` does nothing but to enqueue into the stream, so that it may be captured in a CUDA graph. */
  HONE_OPERATOR_CAPTURABLE = 2,
  /* Calls with the same operands may give other results: nodes are not merged, and results of tactics not compared. */
  HONE_OPERATOR_RANDOM = 4,
  /* Takes the place of Hone's own operator of that name. Of functions that a model defines it takes the place anyway. */
  HONE_OPERATOR_REPLACES = 8
};

/* For output_types: the type of an input. */
#define HONE_TYPE_OF_INPUT(input) (-1 - (input))

/* An operator that a program or a library brings. To run it needs `run`, `run_on_device` or `cuda_source`. Whatever is a pointer may be
 * NULL unless it is said otherwise; texts and lists are copied.
 *
 * Sizes are texts over x0, x1 ... (inputs), y0 ... (outputs; not in output_sizes) and the node's integer attributes: "x0" (as the first
 * input), "x0[0], x0[1] * scale", "x0[:-1], (x0[-1] + 1) / 2", with + - * / % (rounded down), min(), max(), count(x0) (its elements) and
 * rank(x0). They hold for every shape, so that networks with dynamic shapes stay one plan; where `sizes` says them instead, a dynamic
 * network runs the operator on the host, and asks it at every inference. */
typedef struct hone_operator {
  size_t size;        /* sizeof(hone_operator) */
  const char* domain; /* of its nodes in ONNX; NULL: ONNX's own */
  const char* name;   /* "Scale"; not NULL */
  int version;        /* plans ask for the same one again */
  unsigned flags;     /* HONE_OPERATOR_... */
  void* user;
  size_t min_inputs, max_inputs; /* the first so many may not be left out */
  size_t outputs;                /* at least 1 */
  /* For each input a bit 1 << dtype for each type that it reads; the last holds for all further ones. NULL: f32. */
  const uint32_t* input_types;
  size_t input_type_count;
  const int* output_types;         /* a hone_dtype or HONE_TYPE_OF_INPUT(i) for each output. NULL: that of input 0 */
  const char* const* output_sizes; /* a text for each output; a NULL among them, and NULL itself: `sizes` says them */
  hone_operator_fn sizes;          /* fills rank and dims of all outputs; reads no data */
  const hone_attribute*
      attributes; /* defaults, one behind the other; of another kind they are refused, further ones are handed on */
  size_t attribute_count;
  /* Bit 1 << hone_layout for each in which it takes and gives tensors with channels (rank 3 and more), constants apart; the fastest of
   * them is taken. 0: linear. */
  uint32_t layouts;
  const char* workspace_size;  /* a text: bytes to work in; or */
  hone_workspace_fn workspace; /* a function that says it; NULL, too: none */
  hone_operator_fn run;        /* on memory of the host */
  /* On memory of a GPU, in call->stream, without waiting. Without it, and without cuda_source, a GPU's network runs `run` on copies. */
  hone_operator_fn run_on_device;
  /* CUDA C++ of a kernel, compiled when an engine is built: extern "C" __global__ void cuda_kernel(pointers to inputs, to outputs, to the
   * workspace where there is one, hone_sizes sizes). Before the text stand hone_sizes, the types x0_t, y0_t ... and the node's numbers
   * as constants of the namespace `attribute`. */
  const char* cuda_source;
  const char* cuda_kernel;
  const char* cuda_blocks; /* sizes: the grid in x, y and z, "(count(y0) + 255) / 256" */
  int cuda_threads;        /* of a block; 0: 256 */
  const char* cuda_shared; /* sizes: bytes of dynamic shared memory; NULL: 0 */
  /* Called once, on any thread, when the operator is unregistered and no model or engine uses it any more; not where registering it
   * fails, nor at the end of the program. NULL: nobody is told. */
  void (*release)(void* user);
} hone_operator;

/* What is registered. Texts live until it is unregistered. */
typedef struct hone_operator_info {
  size_t size; /* sizeof(hone_operator_info) */
  const char* domain;
  const char* name;
  int version;
  const char* library; /* "" where the program itself brought it */
  const char* hash;    /* of the library's file; "" as well */
} hone_operator_info;

/* From now on models are read and plans loaded with the operator, in all threads. Copies what the struct names; functions and `user` have
 * to stay as long as a model or an engine uses them. HONE_ERROR: what it says of itself is contradictory, or there is one of that domain
 * and name. */
HONE_API hone_status hone_operator_register(const hone_operator* op);
/* Models and engines that are there keep it. HONE_ERROR: there is none. */
HONE_API hone_status hone_operator_unregister(const char* HONE_NULLABLE domain, const char* name);
/* Opens a library and registers its operators; it stays open. `flags` are added to theirs. Nothing happens where that file has been
 * opened. HONE_ERROR: it cannot be opened, has no hone_library_operators(), or an operator of it is refused. */
HONE_API hone_status hone_operator_library_open(const char* path, unsigned flags, const hone_log* HONE_NULLABLE log);
HONE_API size_t hone_operators(void);
HONE_API hone_status hone_operator_describe(size_t index, hone_operator_info* info);
/* What a library exports: a list that ends with NULL. `api_version` is hone_api_version() of who opens it; NULL refuses. The library
 * needs not be linked with this one. */
#define HONE_LIBRARY_OPERATORS "hone_library_operators"
typedef const hone_operator* const* (*hone_library_operators_fn)(int api_version);

/* The operators of programs that a plan needs, in hone_operator_register() or a library, before it is loaded. */
HONE_API size_t hone_plan_operators(const hone_plan* plan);
HONE_API hone_status hone_plan_operator(const hone_plan* plan, size_t index, hone_operator_info* info);

#ifdef __cplusplus
}
#endif
#endif
