// SPDX-License-Identifier: Apache-2.0
//
// Streams and events. Nothing is ever under way in them: what is put into a stream is done when the call returns. Handles are never
// NULL, which some programs take for "none". Capturing into CUDA graphs is refused.
#include <stdlib.h>
#include <time.h>

#include "cudart.h"

struct event {
  struct timespec at;
  int recorded;
};

int cudart_is_stream(const void* stream) { return (uintptr_t)stream <= 2 || cudart_kind_of(stream) == CUDART_STREAM; }
static int checked(const void* stream) {
  return cudart_is_stream(stream) ? CUDA_SUCCESS : cudart_failed(CUDA_INVALID_RESOURCE_HANDLE);
}

static int make(void** handle, size_t bytes, enum cudart_kind kind) {
  if (handle == NULL) return cudart_failed(CUDA_INVALID_VALUE);
  void* made = calloc(1, bytes);
  if (made == NULL || !cudart_keep(made, kind, 0)) {
    free(made);
    return cudart_failed(CUDA_MEMORY_ALLOCATION);
  }
  *handle = made;
  return CUDA_SUCCESS;
}
static int destroy(void* handle, enum cudart_kind kind) {
  if (!cudart_forget(handle, kind)) return cudart_failed(CUDA_INVALID_RESOURCE_HANDLE);
  free(handle);
  return CUDA_SUCCESS;
}

CUDART_API int cudaStreamCreate(void** stream) { return make(stream, 16, CUDART_STREAM); }
CUDART_API int cudaStreamCreateWithFlags(void** stream, unsigned flags) {
  return flags > 1 ? cudart_failed(CUDA_INVALID_VALUE) : cudaStreamCreate(stream);
}
CUDART_API int cudaStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  (void)priority;
  return cudaStreamCreateWithFlags(stream, flags);
}
CUDART_API int cudaStreamDestroy(void* stream) { return destroy(stream, CUDART_STREAM); }
CUDART_API int cudaStreamSynchronize(void* stream) { return checked(stream); }
CUDART_API int cudaStreamQuery(void* stream) { return checked(stream); }
CUDART_API int cudaStreamGetFlags(void* stream, unsigned* flags) {
  if (flags == NULL) return cudart_failed(CUDA_INVALID_VALUE);
  *flags = 0;
  return checked(stream);
}
CUDART_API int cudaStreamGetPriority(void* stream, int* priority) {
  if (priority == NULL) return cudart_failed(CUDA_INVALID_VALUE);
  *priority = 0;
  return checked(stream);
}

CUDART_API int cudaStreamBeginCapture(void* stream, int mode) {
  (void)stream, (void)mode;
  return cudart_failed(CUDA_NOT_SUPPORTED);
}
CUDART_API int cudaStreamEndCapture(void* stream, void** graph) {
  (void)stream, (void)graph;
  return cudart_failed(CUDA_NOT_SUPPORTED);
}
CUDART_API int cudaStreamIsCapturing(void* stream, int* status) {
  if (status == NULL) return cudart_failed(CUDA_INVALID_VALUE);
  *status = 0;
  return checked(stream);
}

CUDART_API int cudaLaunchHostFunc(void* stream, void (*function)(void*), void* user) {
  if (function == NULL) return cudart_failed(CUDA_INVALID_VALUE);
  const int error = checked(stream);
  if (error == CUDA_SUCCESS) function(user);
  return error;
}
CUDART_API int cudaStreamAddCallback(void* stream, void (*function)(void*, int, void*), void* user, unsigned flags) {
  if (function == NULL || flags != 0) return cudart_failed(CUDA_INVALID_VALUE);
  const int error = checked(stream);
  if (error == CUDA_SUCCESS) function(stream, CUDA_SUCCESS, user);
  return error;
}

CUDART_API int cudaEventCreate(void** event) { return make(event, sizeof(struct event), CUDART_EVENT); }
CUDART_API int cudaEventCreateWithFlags(void** event, unsigned flags) {
  return flags > 7 ? cudart_failed(CUDA_INVALID_VALUE) : cudaEventCreate(event);
}
static int is_event(const void* event) { return cudart_kind_of(event) == CUDART_EVENT; }
CUDART_API int cudaEventRecord(void* event, void* stream) {
  if (!is_event(event) || !cudart_is_stream(stream)) return cudart_failed(CUDA_INVALID_RESOURCE_HANDLE);
  struct event* known = event;
  clock_gettime(CLOCK_MONOTONIC, &known->at);
  known->recorded = 1;
  return CUDA_SUCCESS;
}
CUDART_API int cudaEventRecordWithFlags(void* event, void* stream, unsigned flags) {
  return flags > 1 ? cudart_failed(CUDA_INVALID_VALUE) : cudaEventRecord(event, stream);
}
CUDART_API int cudaEventSynchronize(void* event) {
  return is_event(event) ? CUDA_SUCCESS : cudart_failed(CUDA_INVALID_RESOURCE_HANDLE);
}
CUDART_API int cudaEventQuery(void* event) { return cudaEventSynchronize(event); }
CUDART_API int cudaEventDestroy(void* event) { return destroy(event, CUDART_EVENT); }
CUDART_API int cudaEventElapsedTime(float* milliseconds, void* begin, void* end) {
  if (milliseconds == NULL) return cudart_failed(CUDA_INVALID_VALUE);
  if (!is_event(begin) || !is_event(end)) return cudart_failed(CUDA_INVALID_RESOURCE_HANDLE);
  const struct event *first = begin, *last = end;
  if (!first->recorded || !last->recorded) return cudart_failed(CUDA_INVALID_RESOURCE_HANDLE);
  *milliseconds = (float)((double)(last->at.tv_sec - first->at.tv_sec) * 1e3 +
                          (double)(last->at.tv_nsec - first->at.tv_nsec) * 1e-6);
  return CUDA_SUCCESS;
}
CUDART_API int cudaStreamWaitEvent(void* stream, void* event, unsigned flags) {
  (void)flags;
  return is_event(event) ? checked(stream) : cudart_failed(CUDA_INVALID_RESOURCE_HANDLE);
}
