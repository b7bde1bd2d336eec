/* SPDX-License-Identifier: Apache-2.0
 *
 * What is wrong with a model, node by node; a part of hone.h, which includes it and says what holds for all functions.
 *
 * hone_model_create_from_...() returns the first thing that is wrong. A diagnosis goes on behind it: a node that is refused is left out,
 * and what it would have made takes the type that the file gives for it. Nodes that read a result of a type that is not known are judged
 * by their operators alone. Nothing is built. */
#ifndef HONE_DIAGNOSIS_H
#define HONE_DIAGNOSIS_H

#include "hone/hone.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hone_diagnosis hone_diagnosis;

/* Of what kind an entry is. More kinds may be added. */
typedef enum hone_problem {
  HONE_PROBLEM_FILE = 0,  /* no ONNX model, or damaged */
  HONE_PROBLEM_GRAPH,     /* a tensor that nothing makes, two of one name, a cycle, a body that does not fit its node */
  HONE_PROBLEM_OPERATOR,  /* neither Hone, nor the program, nor a function of the model has it */
  HONE_PROBLEM_VERSION,   /* the operator, or the model, is of a version that is not read */
  HONE_PROBLEM_OPERAND,   /* of a node: missing, or of a shape that does not fit */
  HONE_PROBLEM_ATTRIBUTE, /* of a node: missing, unknown, or of a value that is not supported */
  HONE_PROBLEM_TYPE,      /* an element type that is not supported where it stands */
  HONE_PROBLEM_WEIGHT,    /* a constant whose data cannot be read */
  HONE_PROBLEM_UNJUDGED, /* the node reads what a refused node makes, and the file does not say its type; an error where it reads an
                             input or a constant that cannot be read */
  HONE_PROBLEM_NAME /* two nodes of one name */
} hone_problem;

/* An entry. Texts belong to the diagnosis; "" where there is nothing to say. */
typedef struct hone_diagnostic {
  size_t size; /* sizeof(hone_diagnostic) */
  hone_severity
      severity; /* HONE_LOG_ERROR: the model is refused for it; HONE_LOG_WARNING; HONE_LOG_INFO: a node that is not judged */
  hone_problem problem;
  int64_t node;       /* of hone_diagnosis_node(); -1: the entry is about the model */
  const char* name;   /* of the node, or of that inside its body or function that is wrong */
  const char* op;     /* "Conv" */
  const char* domain; /* "": ONNX's own */
  const char* text;   /* what is wrong */
  const char* hint;   /* what to do */
} hone_diagnostic;

/* A node of the model's graph, those of bodies and functions not counted. Texts belong to the diagnosis. */
typedef struct hone_diagnosed_node {
  size_t size;      /* sizeof(hone_diagnosed_node) */
  const char* name; /* "Conv_3" where the file gives none */
  const char* op;
  const char* domain;
  int supported; /* nothing in it is refused */
} hone_diagnosed_node;

/* HONE_ERROR: the file cannot be opened. What is wrong inside is in the diagnosis. */
HONE_API hone_status hone_diagnosis_create_from_file(const char* onnx_path, hone_diagnosis** diagnosis);
/* The same from memory; `folder` is where external data lie. */
HONE_API hone_status hone_diagnosis_create_from_memory(const void* bytes, size_t size, const char* HONE_NULLABLE folder,
                                                       hone_diagnosis** diagnosis);
HONE_API hone_status hone_diagnosis_create_from_network(const hone_network* network, hone_diagnosis** diagnosis);
/* How many entries; 0 for NULL, and where nothing is wrong. */
HONE_API size_t hone_diagnosis_entries(const hone_diagnosis* diagnosis);
HONE_API hone_status hone_diagnosis_entry(const hone_diagnosis* diagnosis, size_t index, hone_diagnostic* entry);
/* How many nodes, in the file's order; 0 for NULL, and where the file is no ONNX model. */
HONE_API size_t hone_diagnosis_nodes(const hone_diagnosis* diagnosis);
HONE_API hone_status hone_diagnosis_node(const hone_diagnosis* diagnosis, size_t index, hone_diagnosed_node* node);
/* How many runs of supported nodes: those that follow each other in an order where producers come first. One of all nodes, and no entry
 * that is an error: the model is taken as it is. */
HONE_API size_t hone_diagnosis_runs(const hone_diagnosis* diagnosis);
/* The nodes of a run, by index. They belong to the diagnosis. */
HONE_API hone_status hone_diagnosis_run(const hone_diagnosis* diagnosis, size_t index, const size_t** nodes,
                                        size_t* count);
HONE_API void hone_diagnosis_destroy(hone_diagnosis* HONE_NULLABLE diagnosis);

#ifdef __cplusplus
}
#endif
#endif
