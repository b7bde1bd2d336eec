// SPDX-License-Identifier: Apache-2.0
//
// The list of what was made and not freed: a hash table of addresses with linear probing, behind one lock.
#include <pthread.h>
#include <stdlib.h>

#include "cudart.h"

struct entry {
  const void* object;  // NULL: free; GONE: was there, so that probing goes on behind it
  size_t bytes;
  enum cudart_kind kind;
};

static const char gone;
#define GONE ((const void*)&gone)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry* table;
static size_t capacity, used;  // `used` counts entries that are not free

static size_t place_of(const void* object, size_t size) {
  return (size_t)(((uint64_t)(uintptr_t)object >> 4) * 0x9E3779B97F4A7C15u >> 20) & (size - 1);
}

static void put(struct entry* into, size_t size, struct entry entry) {
  size_t at = place_of(entry.object, size);
  while (into[at].object != NULL) at = (at + 1) & (size - 1);
  into[at] = entry;
}

static int grow(void) {
  const size_t size = capacity == 0 ? 256 : capacity * 2;
  struct entry* larger = calloc(size, sizeof *larger);
  if (larger == NULL) return 0;
  used = 0;
  for (size_t i = 0; i < capacity; ++i) {
    if (table[i].object == NULL || table[i].object == GONE) continue;
    put(larger, size, table[i]);
    ++used;
  }
  free(table);
  table = larger;
  capacity = size;
  return 1;
}

static struct entry* find(const void* object) {
  if (capacity == 0 || object == NULL) return NULL;
  for (size_t at = place_of(object, capacity); table[at].object != NULL; at = (at + 1) & (capacity - 1))
    if (table[at].object == object) return &table[at];
  return NULL;
}

int cudart_keep(void* object, enum cudart_kind kind, size_t bytes) {
  pthread_mutex_lock(&lock);
  const int kept = used * 2 < capacity || grow();
  if (kept) {
    put(table, capacity, (struct entry){object, bytes, kind});
    ++used;
  }
  pthread_mutex_unlock(&lock);
  return kept;
}

enum cudart_kind cudart_kind_of(const void* object) {
  pthread_mutex_lock(&lock);
  const struct entry* found = find(object);
  const enum cudart_kind kind = found == NULL ? 0 : found->kind;
  pthread_mutex_unlock(&lock);
  return kind;
}

int cudart_forget(const void* object, enum cudart_kind kind) {
  pthread_mutex_lock(&lock);
  struct entry* found = find(object);
  const int there = found != NULL && found->kind == kind;
  if (there) found->object = GONE;
  pthread_mutex_unlock(&lock);
  return there;
}

const void* cudart_allocation(const void* address, enum cudart_kind* kind) {
  const void* start = NULL;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < capacity && start == NULL; ++i) {
    const struct entry* each = &table[i];
    if (each->object == NULL || each->object == GONE || each->kind > CUDART_MANAGED) continue;
    const uintptr_t offset = (uintptr_t)address - (uintptr_t)each->object;
    if ((uintptr_t)address >= (uintptr_t)each->object && offset < each->bytes) start = each->object, *kind = each->kind;
  }
  pthread_mutex_unlock(&lock);
  return start;
}
