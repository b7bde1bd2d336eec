/* SPDX-License-Identifier: Apache-2.0
 *
 * Classifies a picture:  classify MODEL.onnx PICTURE.ppm
 * The model takes [n,3,h,w] as torchvision's do; the picture has its size (convert in.jpg -resize 224x224! picture.ppm).
 */
#include <stdio.h>
#include <stdlib.h>

#include "hone/hone.h"

static void must(hone_status status) {
  if (status == HONE_OK) return;
  fprintf(stderr, "classify: %s\n%s\n", hone_last_error(), hone_last_hint());
  exit(1);
}

int main(int argc, char** argv) {
  const float mean[] = {0.485f, 0.456f, 0.406f}, deviation[] = {0.229f, 0.224f, 0.225f};
  int width = 0, height = 0;
  FILE* file = argc == 3 ? fopen(argv[2], "rb") : NULL;
  if (file == NULL || fscanf(file, "P6 %d %d 255", &width, &height) != 2 || fgetc(file) == EOF || width < 1 ||
      height < 1 || width > 8192 || height > 8192) {
    fprintf(stderr, "usage: classify MODEL.onnx PICTURE.ppm\n");
    return 1;
  }
  const size_t pixels = (size_t)width * (size_t)height;
  float* image = calloc(3 * pixels, sizeof(float));
  for (size_t i = 0; i < 3 * pixels; ++i) /* from rgbrgb... to rr...gg...bb... */
    image[i % 3 * pixels + i / 3] = ((float)fgetc(file) / 255 - mean[i % 3]) / deviation[i % 3];
  fclose(file);

  hone_device* device;
  hone_model* model;
  hone_plan* plan;
  hone_engine* engine;
  hone_context* context;
  hone_tensor in = {.size = sizeof in}, out = {.size = sizeof out};
  must(hone_device_create("cpu", NULL, &device));
  must(hone_model_create_from_file(argv[1], NULL, &model));
  must(hone_plan_create_from_model(model, device, NULL, NULL, &plan)); /* to keep: hone_plan_save(plan, "p") */
  must(hone_engine_create(plan, device, NULL, &engine));
  must(hone_context_create(engine, 0, &context));
  must(hone_engine_tensor(engine, 0, &in));
  must(hone_engine_tensor(engine, 1, &out));
  const int64_t sizes[] = {1, 3, height, width};
  must(hone_context_set_shape(context, in.name, sizes, 4));
  if (out.rank != 2 || out.dims[1] < 5) return 1; /* no classifier */
  float* score = calloc((size_t)out.dims[1], sizeof(float));
  must(hone_context_bind(context, in.name, image, HONE_MEMORY_HOST));
  must(hone_context_bind(context, out.name, score, HONE_MEMORY_HOST));
  must(hone_context_run(context));
  for (int place = 0; place < 5; ++place) {
    int best = 0;
    for (int i = 1; i < out.dims[1]; ++i) best = score[i] > score[best] ? i : best;
    printf("%d %.4f\n", best, score[best]);
    score[best] = -1e30f;
  }
  return 0; /* a program that goes on frees with hone_context_destroy, hone_engine_destroy, ... */
}
