// SPDX-License-Identifier: Apache-2.0
//
// The part of NCCL's C interface that is used, in our own words: names, signatures and numbers are those of its header since 2.19, which
// no package of Debian brings. Nothing of it is linked.
#pragma once

#include <climits>
#include <cstddef>

#include "backends/cuda/run/libraries.h"

namespace hone::cuda::nccl {

struct Communicator;  // opaque
using Handle = Communicator*;

struct UniqueId {
  char bytes[128];
};

enum Result : int { kSuccess = 0, kInProgress = 7 };  // all others: it failed

enum DataType : int {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kUint32 = 3,
  kInt64 = 4,
  kUint64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9
};

enum Operation : int { kSum = 0, kProd = 1, kMax = 2, kMin = 3, kAvg = 4 };

/// As far as version 2.17 knew it; newer libraries fill in the rest.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21700;
  int blocking = 0;  // calls return at once, and can be given up
  int cluster = INT_MIN;
  int least_blocks = INT_MIN, most_blocks = INT_MIN;  // of a kernel; INT_MIN: the library's own
  const char* network = nullptr;
};

/// Memory of a rank that all ranks of a communicator have registered together.
struct WindowMemory;  // opaque
using WindowHandle = WindowMemory*;

inline constexpr int kSymmetric = 1;  // the ranks' operands lie at the same places of their windows

struct Table {
  Result (*ncclGetVersion)(int* version) = nullptr;
  const char* (*ncclGetErrorString)(Result result) = nullptr;
  const char* (*ncclGetLastError)(Handle communicator) = nullptr;
  Result (*ncclGetUniqueId)(UniqueId* id) = nullptr;
  Result (*ncclCommInitRankConfig)(Handle* communicator, int ranks, UniqueId id, int rank, Config* config) = nullptr;
  Result (*ncclCommGetAsyncError)(Handle communicator, Result* error) = nullptr;
  Result (*ncclCommAbort)(Handle communicator) = nullptr;
  Result (*ncclAllReduce)(const void* from, void* to, size_t count, DataType type, Operation operation,
                          Handle communicator, CUstream stream) = nullptr;
  Result (*ncclReduce)(const void* from, void* to, size_t count, DataType type, Operation operation, int root,
                       Handle communicator, CUstream stream) = nullptr;
  Result (*ncclReduceScatter)(const void* from, void* to, size_t block, DataType type, Operation operation,
                              Handle communicator, CUstream stream) = nullptr;
  Result (*ncclAllGather)(const void* from, void* to, size_t block, DataType type, Handle communicator,
                          CUstream stream) = nullptr;
  Result (*ncclBroadcast)(const void* from, void* to, size_t count, DataType type, int root, Handle communicator,
                          CUstream stream) = nullptr;
  Result (*ncclSend)(const void* from, size_t count, DataType type, int peer, Handle communicator,
                     CUstream stream) = nullptr;
  Result (*ncclRecv)(void* to, size_t count, DataType type, int peer, Handle communicator, CUstream stream) = nullptr;
  Result (*ncclGroupStart)() = nullptr;
  Result (*ncclGroupEnd)() = nullptr;
  /// Since 2.27; null before.
  Result (*ncclCommWindowRegister)(Handle communicator, void* memory, size_t bytes, WindowHandle* window,
                                   int flags) = nullptr;
  Result (*ncclCommWindowDeregister)(Handle communicator, WindowHandle window) = nullptr;
};

/// Opened at the first call. Throws Error saying what is missing and what to do.
const Table& library();

}  // namespace hone::cuda::nccl
