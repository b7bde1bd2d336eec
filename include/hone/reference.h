/* SPDX-License-Identifier: Apache-2.0
 *
 * The golden values of a model; a part of hone.h, which includes it and says what holds for all functions.
 *
 *   hone_reference_create(model, &reference);
 *   hone_reference_set_input(reference, "x", value);                         for each input
 *   hone_reference_run(reference);                                           slow: nothing is fused, tuned or shared out
 *   hone_value_create_from_reference(reference, "y", &value);
 *
 * Every operator is computed by its plain meaning, one node behind the other, on the calling thread: what engines are held against. One
 * thread at a time. */
#ifndef HONE_REFERENCE_H
#define HONE_REFERENCE_H

#include "hone/hone.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hone_reference hone_reference;

/* Of the model as it is now: weights that are exchanged later do not change it. HONE_INVALID_STATE: weights are missing. */
HONE_API hone_status hone_reference_create(const hone_model* model, hone_reference** reference);
/* What an input holds from now on, and with that its sizes. HONE_ERROR: the model has no such input, or one of another type or shape. */
HONE_API hone_status hone_reference_set_input(hone_reference* reference, const char* input, const hone_value* value);
/* Computes all outputs. HONE_INVALID_STATE: an input has no value. HONE_ERROR: the values are wrong for the network. */
HONE_API hone_status hone_reference_run(hone_reference* reference);
/* What the last run gave. HONE_INVALID_STATE: there was none. HONE_ERROR: there is no such output. */
HONE_API hone_status hone_value_create_from_reference(const hone_reference* reference, const char* output,
                                                      hone_value** value);
HONE_API void hone_reference_destroy(hone_reference* HONE_NULLABLE reference);

#ifdef __cplusplus
}
#endif
#endif
