/* SPDX-License-Identifier: Apache-2.0
 *
 * A program in plain C that uses Hone through its C interface alone:
 *
 *   run_model MODEL.onnx PLAN ROWS [FLAG...]
 *
 * builds the model, saves the plan, reads it back from the file and from memory, runs both on ROWS rows of the values
 * 0, 1, 2, ... and prints every output value. The model has one float input [n,4] and one float output. Exit status 1 and the
 * library's message on stderr when a call fails; 2 when the library broke a promise of its header.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hone/hone.h"

static void must(hone_status status) {
  if (status == HONE_OK) return;
  fprintf(stderr, "%s\n%s\n", hone_last_error(), hone_last_hint());
  exit(1);
}

static void promise(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "broken promise: %s\n", what);
  exit(2);
}

/* Every function says which argument is NULL instead of crashing. */
static void check_null_arguments(void) {
  hone_model* model = NULL;
  hone_plan* plan = NULL;
  promise(hone_model_create_from_file(NULL, NULL, &model) == HONE_INVALID_ARGUMENT &&
              strstr(hone_last_error(), "onnx_path") != NULL,
          "a NULL path is an error");
  promise(hone_model_create_from_file("model.onnx", NULL, NULL) == HONE_INVALID_ARGUMENT, "a NULL result is an error");
  promise(hone_plan_create_from_model(NULL, NULL, NULL, NULL, &plan) == HONE_INVALID_ARGUMENT && plan == NULL,
          "a NULL model is an error");
  promise(hone_plan_create_from_memory("short", 5, &plan) == HONE_ERROR && plan == NULL, "five bytes are no plan");
  promise(hone_engine_tensors(NULL) == 0 && hone_model_tensors(NULL) == 0, "NULL has no tensors");
  hone_plan_destroy(NULL);
  hone_engine_destroy(NULL);
  hone_context_destroy(NULL);
  hone_model_destroy(NULL);
  hone_options_destroy(NULL);
  hone_device_destroy(NULL);
}

static void count_lines(void* user, hone_severity severity, const char* text) {
  promise(severity <= HONE_LOG_INFO && text[0] != '\0', "log lines stay below the threshold and are not empty");
  ++*(int*)user;
}

static void add_layer(void* user, const char* layer, double milliseconds) {
  promise(layer[0] != '\0' && milliseconds >= 0, "layers have names and durations");
  ++*(int*)user;
}

static float* run(const hone_plan* plan, const hone_device* device, int64_t rows, size_t* count) {
  hone_engine* engine = NULL;
  hone_context* context = NULL;
  hone_tensor in = {.size = sizeof in}, out = {.size = sizeof out};
  int64_t dims[HONE_MAX_RANK] = {rows, 4}, bytes = 0;
  int rank = 0, layers = 0;
  must(hone_engine_create(plan, device, NULL, &engine));
  promise(hone_engine_tensors(engine) == 2, "the engine has an input and an output");
  must(hone_engine_tensor(engine, 0, &in));
  must(hone_engine_tensor(engine, 1, &out));
  promise(in.is_input && in.dtype == HONE_F32 && in.rank == 2 && in.dims[1] == 4, "the input is [n,4]");
  promise(!out.is_input && hone_engine_tensor(engine, 2, &out) == HONE_INVALID_ARGUMENT, "there is no third tensor");
  must(hone_context_create(engine, 0, &context));
  must(hone_context_set_shape(context, in.name, dims, 2));
  must(hone_context_bytes(context, in.name, &bytes));
  promise(bytes == rows * 4 * (int64_t)sizeof(float), "the input takes rows x 4 floats");
  float* input = malloc((size_t)bytes);
  for (int64_t i = 0; i < rows * 4; ++i) input[i] = (float)i;
  must(hone_context_bind(context, in.name, input, HONE_MEMORY_HOST));
  must(hone_context_shape(context, out.name, dims, &rank));
  must(hone_context_bytes(context, out.name, &bytes));
  *count = (size_t)bytes / sizeof(float);
  float* output = malloc((size_t)bytes);
  must(hone_context_bind(context, out.name, output, HONE_MEMORY_HOST));
  must(hone_context_run(context));
  must(hone_context_set_layer_function(context, add_layer, &layers));
  must(hone_context_run(context));
  must(hone_context_set_layer_function(context, NULL, NULL));
  promise(layers > 0, "a profile has layers");
  hone_engine_destroy(engine); /* the context keeps what it needs */
  must(hone_context_run(context));
  hone_context_destroy(context);
  free(input);
  return output;
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  check_null_arguments();
  int lines = 0;
  promise(hone_api_version() == HONE_API_VERSION, "the library is the header's");
  const hone_log log = {sizeof log, HONE_LOG_INFO, count_lines, &lines};
  hone_device* device = NULL;
  hone_options* options = NULL;
  hone_model* model = NULL;
  hone_plan *built = NULL, *from_file = NULL, *from_memory = NULL;
  must(hone_device_create("cpu", NULL, &device));
  must(hone_options_create((const char* const*)argv + 4, (size_t)argc - 4, &options));
  must(hone_model_create_from_file(argv[1], &log, &model));
  promise(hone_model_tensors(model) == 2, "the model has an input and an output");
  must(hone_plan_create_from_model(model, device, options, &log, &built));
  promise(lines > 0, "a build logs");
  hone_model_destroy(model); /* the plan keeps what it needs */
  must(hone_plan_save(built, argv[2]));
  must(hone_plan_create_from_file(argv[2], &from_file));
  const void* bytes = NULL;
  size_t size = 0;
  must(hone_plan_bytes(built, &bytes, &size));
  must(hone_plan_create_from_memory(bytes, size, &from_memory));
  const char* json = NULL;
  must(hone_plan_json(from_file, &json));
  promise(json[0] == '{', "the manifest is a JSON object");
  size_t count = 0, again = 0;
  const int64_t rows = atoll(argv[3]);
  float* first = run(from_file, device, rows, &count);
  float* second = run(from_memory, device, rows, &again);
  promise(count == again && memcmp(first, second, count * sizeof(float)) == 0,
          "one plan gives one result, however it was read");
  for (size_t i = 0; i < count; ++i) printf("%.9g\n", first[i]);
  free(first);
  free(second);
  hone_plan_destroy(from_memory);
  hone_plan_destroy(from_file);
  hone_plan_destroy(built);
  hone_options_destroy(options);
  hone_device_destroy(device);
  return 0;
}
