// SPDX-License-Identifier: Apache-2.0
//
// The functions of libhone_gloo.so. Each that may fail returns 0, or writes into `error` what went wrong; a mesh that has failed once is
// of no more use. All ranks of a mesh call the same functions in the same order.
#pragma once

#include <cstddef>

extern "C" {

struct HoneGlooMesh;

/// The ranks of a mesh, and the folder that they find each other in.
struct HoneGlooPlace {
  int rank, size;
  const char* folder;     // that all ranks see, for this mesh alone
  const char* host;       // name or address that others reach this process by; empty: this machine's name
  const char* interface;  // of the network; empty: the one that `host` names
  int timeout_ms;
};

struct HoneGlooError {
  char* text;
  size_t bytes;
};

/// to[i] = a[i] op b[i]
using HoneGlooReduce = void (*)(void* to, const void* a, const void* b, size_t elements);

struct HoneGlooTable {
  int version;
  HoneGlooMesh* (*open)(const HoneGlooPlace* place, HoneGlooError error);  // null: it failed
  void (*close)(HoneGlooMesh* mesh);
  int (*all_reduce)(HoneGlooMesh* mesh, const void* from, void* to, size_t elements, size_t element_bytes,
                    HoneGlooReduce reduce, HoneGlooError error);
  int (*reduce)(HoneGlooMesh* mesh, const void* from, void* to, size_t elements, size_t element_bytes,
                HoneGlooReduce reduce, int root, HoneGlooError error);
  // `bytes` of one rank's block
  int (*all_gather)(HoneGlooMesh* mesh, const void* from, void* to, size_t bytes, HoneGlooError error);
  int (*gather)(HoneGlooMesh* mesh, const void* from, void* to, size_t bytes, int root, HoneGlooError error);
  int (*scatter)(HoneGlooMesh* mesh, const void* from, void* to, size_t bytes, int root, HoneGlooError error);
  int (*all_to_all)(HoneGlooMesh* mesh, const void* from, void* to, size_t bytes, HoneGlooError error);
  int (*broadcast)(HoneGlooMesh* mesh, void* data, size_t bytes, int root, HoneGlooError error);
};

inline constexpr int kHoneGlooVersion = 1;
/// The library's one function.
inline constexpr char kHoneGlooFunction[] = "hone_gloo_table";
}
