/* SPDX-License-Identifier: Apache-2.0
 *
 * Other weights for a plan, with no model at hand; a part of hone.h, which includes it and says what holds for all functions.
 *
 *   hone_model_create_from_plan(plan, &model);                               the network that the plan keeps
 *   hone_model_set_weight(model, "conv1.weight", data, bytes);               as often as there is something to exchange
 *   hone_plan_create_from_refit(plan, model, device, log, &refitted);        nothing is timed
 *
 * A plan that was built with --refit keeps its network with all weights, so that those that are not given stay; its file is larger by
 * them. One that was built with --stripWeights (or --stripAllWeights) keeps no weight in its file: all of them have to be given. Engines
 * and contexts that were made before stay as they are. */
#ifndef HONE_REFIT_H
#define HONE_REFIT_H

#include "hone/hone.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A weight of a model. Texts belong to the model. */
typedef struct hone_weight {
  size_t size; /* sizeof(hone_weight) */
  const char* name;
  const char* node; /* that reads it first */
  const char* role; /* what it is there: "Kernel", "Bias", "Scale", "Shift", "Constant" */
  hone_dtype dtype;
  int rank;
  int64_t dims[HONE_MAX_RANK];
  int64_t bytes;
  int missing;         /* its plan came without it: to be given before the model is of use */
  const char* refusal; /* why a refit does not take another one in its place; NULL: it does */
} hone_weight;

/* The network that a plan was built of, as the importer left it. A plan in memory has to stay as long as the model, too. HONE_ERROR: the
 * plan was built neither with --refit nor with --stripWeights; or its file left out a weight that the import computed with, so that
 * only hone_plan_create_from_refit() with the model gives it back. */
HONE_API hone_status hone_model_create_from_plan(const hone_plan* plan, hone_model** model);
/* What hone_model_weight() counts, with what a refit asks: of any model. */
HONE_API hone_status hone_model_weight_details(const hone_model* model, size_t index, hone_weight* weight);
/* How many weights are still to be given; 0 for NULL. While there are some, builds and refits return HONE_INVALID_STATE. */
HONE_API size_t hone_model_missing_weights(const hone_model* model);
/* The contents of a weight, linear. They belong to the model, until the weight is exchanged. HONE_ERROR: there is no such weight.
 * HONE_INVALID_STATE: it is missing. */
HONE_API hone_status hone_model_weight_data(const hone_model* model, const char* name, const void** data,
                                            size_t* bytes);

#ifdef __cplusplus
}
#endif
#endif
