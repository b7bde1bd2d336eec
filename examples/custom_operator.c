/* SPDX-License-Identifier: Apache-2.0
 *
 * An operator of one's own, as a library:  trtexec --onnx=MODEL.onnx --staticPlugins=./libcustom_operator.so
 * MODEL has nodes SoftClip of the domain com.acme: y = limit tanh(x / limit), with the attribute `limit`. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "hone/hone.h"

static float limit_of(const hone_call* call) {
  for (size_t i = 0; i < call->attribute_count; ++i)
    if (strcmp(call->attributes[i]->name, "limit") == 0) return call->attributes[i]->real;
  return 1;
}

static hone_status run(const hone_call* call) {
  const float limit = limit_of(call);
  if (!(limit > 0)) {
    snprintf(call->message, call->message_size, "its limit is %g, which is not above 0", limit);
    return HONE_ERROR;
  }
  const float* x = call->inputs[0]->data;
  float* y = call->outputs[0]->data;
  int64_t count = 1;
  for (int axis = 0; axis < call->inputs[0]->rank; ++axis) count *= call->inputs[0]->dims[axis];
#pragma omp parallel for /* on as many threads as the device has */
  for (int64_t i = 0; i < count; ++i) y[i] = limit * tanhf(x[i] / limit);
  return HONE_OK;
}

/* The same for a GPU. Hone compiles it when an engine is built; attributes are constants there. */
static const char* const kernel =
    "extern \"C\" __global__ void soft_clip(const x0_t* x, y0_t* y, hone_sizes sizes) {\n"
    "  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < sizes.x0.count) y[i] = attribute::limit * tanhf(x[i] / attribute::limit);\n"
    "}\n";

static const char* const sizes[] = {"x0"}; /* the output is as large as the input, whatever that is */
static const hone_attribute limit = {.size = sizeof limit, .name = "limit", .kind = HONE_ATTRIBUTE_REAL, .real = 1};
static const hone_operator soft_clip = {.size = sizeof soft_clip,
                                        .domain = "com.acme",
                                        .name = "SoftClip",
                                        .version = 1,
                                        .min_inputs = 1,
                                        .max_inputs = 1,
                                        .outputs = 1,
                                        .output_sizes = sizes,
                                        .attributes = &limit,
                                        .attribute_count = 1,
                                        .layouts = 1u << HONE_LAYOUT_LINEAR | 1u << HONE_LAYOUT_CHANNELS_LAST,
                                        .run = run,
                                        .cuda_source = kernel,
                                        .cuda_kernel = "soft_clip",
                                        .cuda_blocks = "(count(y0) + 255) / 256"};

HONE_API const hone_operator* const* hone_library_operators(int api_version) {
  static const hone_operator* const list[] = {&soft_clip, NULL};
  return api_version >= HONE_API_VERSION ? list : NULL;
}
