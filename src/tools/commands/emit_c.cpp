// SPDX-License-Identifier: Apache-2.0
//
// The program is the text below with a table of the plan's inputs in it.
#include "tools/commands/emit_c.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "tools/common/plan_view.h"

namespace hone {
namespace {

constexpr std::string_view kHead =
    R"(/* Runs a plan through Hone's C interface: load, bind, run, measure. Written by `hone inspect --emit-c`; change it as you like.
 *
 *   cc -O2 -I <hone>/include run_plan.c -L <hone>/lib -lhone -Wl,-rpath,<hone>/lib -o run_plan
 *   ./run_plan plan.plan [queries]
 */
#define _POSIX_C_SOURCE 200112L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hone/hone.h"

#define MAX_TENSORS 64
#define MAX_QUERIES 100000

/* Shapes to run, and the integers that an input accepts: values are drawn from low to high. */
typedef struct input {
  const char* name;
  int rank;
  int64_t dims[HONE_MAX_RANK];
  int64_t low, high;
} input;

)";

constexpr std::string_view kBody = R"(
static void check(hone_status status) {
  if (status == HONE_OK) return;
  fprintf(stderr, "%s\n%s\n", hone_last_error(), hone_last_hint());
  exit(1);
}

static double now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static void* aligned(size_t bytes) {
  void* memory = NULL;
  if (posix_memalign(&memory, 64, bytes ? bytes : 1) != 0) abort();
  memset(memory, 0, bytes);
  return memory;
}

static double unit(void) { return (double)rand() / ((double)RAND_MAX + 1); }

/* Other types stay zero. */
static void fill(const hone_tensor* tensor, void* memory, size_t bytes, const input* from) {
  size_t i;
  int64_t low = from ? from->low : 0, high = from ? from->high : 1;
  switch (tensor->dtype) {
    case HONE_F32: for (i = 0; i < bytes / 4; ++i) ((float*)memory)[i] = (float)(2 * unit() - 1); break;
    case HONE_F64: for (i = 0; i < bytes / 8; ++i) ((double*)memory)[i] = 2 * unit() - 1; break;
    case HONE_I32: for (i = 0; i < bytes / 4; ++i) ((int32_t*)memory)[i] = (int32_t)(low + (int64_t)(unit() * (double)(high - low + 1))); break;
    case HONE_I64: for (i = 0; i < bytes / 8; ++i) ((int64_t*)memory)[i] = low + (int64_t)(unit() * (double)(high - low + 1)); break;
    default: break;
  }
}

static const input* input_named(const char* name) {
  size_t i;
  for (i = 0; i < input_count; ++i)
    if (strcmp(inputs[i].name, name) == 0) return &inputs[i];
  return NULL;
}

static int by_size(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  static double times[MAX_QUERIES];
  void *bound[MAX_TENSORS], *host[MAX_TENSORS];
  int64_t bytes[MAX_TENSORS];
  hone_tensor tensors[MAX_TENSORS];
  hone_device* device;
  hone_plan* plan;
  hone_engine* engine;
  hone_context* context;
  size_t i, count;
  long queries = argc > 2 ? atol(argv[2]) : 100, warm_up = 10, q;
  if (argc < 2 || queries < 1 || queries > MAX_QUERIES) {
    fprintf(stderr, "usage: %s PLAN [QUERIES]\n", argv[0]);
    return 1;
  }
  check(hone_plan_create_from_file(argv[1], &plan));
  check(hone_device_create("0", NULL, &device));
  check(hone_engine_create(plan, device, NULL, &engine));
  check(hone_context_create(engine, 0, &context));
  count = hone_engine_tensors(engine);
  if (count > MAX_TENSORS) return 1;

  for (i = 0; i < count; ++i) {
    const input* from;
    tensors[i].size = sizeof tensors[i];
    check(hone_engine_tensor(engine, i, &tensors[i]));
    from = input_named(tensors[i].name);
    if (tensors[i].is_input && from && from->rank >= 0) check(hone_context_set_shape(context, tensors[i].name, from->dims, from->rank));
  }
  for (i = 0; i < count; ++i) {
    check(hone_context_bytes(context, tensors[i].name, &bytes[i]));
    bound[i] = aligned((size_t)bytes[i]);
    host[i] = aligned((size_t)bytes[i]);
    if (tensors[i].is_input) fill(&tensors[i], host[i], (size_t)bytes[i], input_named(tensors[i].name));
    check(hone_context_bind(context, tensors[i].name, bound[i], HONE_MEMORY_HOST));
  }

  for (q = -warm_up; q < queries; ++q) {
    double start = now_ms();
    for (i = 0; i < count; ++i)
      if (tensors[i].is_input) memcpy(bound[i], host[i], (size_t)bytes[i]);
    check(hone_context_run(context));
    for (i = 0; i < count; ++i)
      if (!tensors[i].is_input) memcpy(host[i], bound[i], (size_t)bytes[i]);
    if (q >= 0) times[q] = now_ms() - start;
  }
  qsort(times, (size_t)queries, sizeof times[0], by_size);
  printf("median %.6f ms, fastest %.6f ms of %ld queries\n", times[queries / 2], times[0], queries);

  for (i = 0; i < count; ++i) {
    free(bound[i]);
    free(host[i]);
  }
  hone_context_destroy(context);
  hone_engine_destroy(engine);
  hone_device_destroy(device);
  hone_plan_destroy(plan);
  return 0;
}
)";

/// A C string literal.
std::string c_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += fmt::format("\\{}", c);
    else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f)
      result += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    else result += c;
  }
  return result + '"';
}

std::string table_of_inputs(const hone_plan* plan) {
  std::string rows;
  size_t count = 0;
  const std::vector<InputRange> ranges = profiles_of(plan).at(0).ranges;
  for (const NetworkTensor& io : tensors_of(plan)) {
    if (!io.is_input) continue;
    const auto range = std::ranges::find(ranges, io.name, &InputRange::input);
    std::string dims = "0";
    int rank = -1;  // nothing to set
    if (range != ranges.end()) {
      std::vector<std::string> sizes;
      for (const int64_t size : range->opt) sizes.push_back(std::to_string(size));
      rank = static_cast<int>(sizes.size());
      if (rank > 0) dims = join(sizes, ", ");
    }
    const RandomRange values = io.range.value_or(RandomRange{0, 1});
    rows += fmt::format("  {{{}, {}, {{{}}}, {}, {}}},\n", c_text(io.name), rank, dims, values.low, values.high);
    ++count;
  }
  if (count == 0) rows = "  {\"\", -1, {0}, 0, 0},\n";
  return fmt::format("static const input inputs[] = {{\n{}}};\nstatic const size_t input_count = {};\n", rows, count);
}

}  // namespace

std::string emit_c(const hone_plan* plan, const std::string& plan_path, const std::string& folder) {
  std::filesystem::create_directories(folder);
  std::string path = (std::filesystem::path(folder) / "run_plan.c").string();
  std::string text(kHead);
  text += fmt::format("/* Of {}. */\n", std::filesystem::path(plan_path).filename().string());
  text += table_of_inputs(plan);
  text += kBody;
  with_note([&] { return fmt::format("writing {}", path); }, [&] { write_file(path, text); });
  return path;
}

}  // namespace hone
