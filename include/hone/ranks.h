/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks: processes that run a divided network together, a device each. Which of them this process is, the program that started it says in
 * the environment: torchrun, mpirun, srun, or TensorRT's variables. Models and plans that do something with other ranks need them:
 * hone_plan_create_from_model() and hone_engine_create() then wait for the others, and inferences return HONE_ERROR where one of them ends
 * or does something else. The rules of hone.h hold. On GPUs of one machine kernels reach into the other ranks' memory; where one of them has
 * gone meanwhile nothing ends such a kernel but the end of the process: it says which rank it lost and exits with status 1. With
 * HONE_RANK_WINDOWS=0 in the environment they do not reach across, and HONE_ERROR is returned there, too.
 */
#ifndef HONE_RANKS_H
#define HONE_RANKS_H

#include "hone/hone.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hone_rank {
  size_t size;                 /* sizeof(hone_rank) */
  int rank, ranks;             /* 0 of 1: this process is alone */
  int local_rank, local_ranks; /* of those on this machine */
  const char* launcher;        /* "torchrun", "mpirun", ...; "" where there is none */
} hone_rank;

/* HONE_ERROR: the environment contradicts itself. */
HONE_API hone_status hone_rank_describe(hone_rank* rank);
/* Whether it does anything with other ranks. */
HONE_API hone_status hone_model_divided(const hone_model* model, int* divided);
HONE_API hone_status hone_plan_divided(const hone_plan* plan, int* divided);

#ifdef __cplusplus
}
#endif
#endif
