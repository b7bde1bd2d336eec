/* SPDX-License-Identifier: Apache-2.0
 *
 * ONNX models as graphs that a program edits and writes again; a part of hone.h's interface, which says what holds for all functions.
 *
 * A graph is the main graph of a model, the body of an If, Loop or Scan, or a function: the same functions serve all three. Bodies and
 * functions are values: asked for, they are copies; hone_graph_set_attribute() and hone_graph_put_function() put them (back).
 * Tensors are known by their names, nodes by their position, which moves when a node before them is put or removed. What nobody edits
 * (documentation, metadata, fields that Hone does not know) goes from file to file as it stands. Weights are never copied before
 * something changes them; those in other files stay there until the model is saved into another folder.
 *
 * A graph serves one thread at a time. What its functions point to stays until the graph is changed, destroyed, or the same function is
 * called again. Errors about contents (a name that is not there, a message that is damaged) are HONE_ERROR. */
#ifndef HONE_GRAPH_H
#define HONE_GRAPH_H

#include "hone/hone.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hone_graph hone_graph;

/* Where a tensor is listed. Results of nodes are listed among the values where something is declared of them. */
typedef enum hone_graph_list {
  HONE_GRAPH_INPUTS = 0,
  HONE_GRAPH_OUTPUTS,
  HONE_GRAPH_VALUES,
  HONE_GRAPH_WEIGHTS,
  HONE_GRAPH_SPARSE /* weights that list their elements which are not zero */
} hone_graph_list;

/* What is said in words. "" where nothing is. */
typedef enum hone_graph_word {
  HONE_GRAPH_NAME = 0, /* of the graph, or of the function */
  HONE_GRAPH_DOC,      /* of the graph, or of the function */
  HONE_GRAPH_DOMAIN,   /* of the model, or of the function */
  HONE_GRAPH_OVERLOAD, /* of a function */
  HONE_GRAPH_PRODUCER, /* of the model, as are the others */
  HONE_GRAPH_PRODUCER_VERSION,
  HONE_GRAPH_MODEL_DOC
} hone_graph_word;

/* A tensor as it is declared, or a weight. Where one is given: `encoded`, if it is not NULL, is taken as it stands, under the name that is
 * given; `type` or a rank beside it replace what it says of these. */
typedef struct hone_graph_tensor {
  size_t size; /* sizeof(hone_graph_tensor) */
  const char* name;
  int type;                                 /* ONNX's number of the element type; 0: none is declared */
  int rank;                                 /* -1: none is declared */
  const int64_t* HONE_NULLABLE dims;        /* -1: not fixed */
  const char* const* HONE_NULLABLE symbols; /* what sizes are called; NULL where one has no name */
  const char* HONE_NULLABLE location;       /* of a weight whose elements lie in another file; where, in bytes: */
  int64_t offset, length;                   /* length -1: to the file's end */
  const void* HONE_NULLABLE encoded;        /* ValueInfoProto, TensorProto, SparseTensorProto */
  size_t encoded_size;
  const hone_graph* HONE_NULLABLE owner; /* given: `encoded` lies in this graph, and is kept instead of copied */
  const void* HONE_NULLABLE data;        /* given, of a weight without `encoded`: elements as files pack them */
  size_t data_size;
  int sparse; /* `encoded` is a SparseTensorProto */
  const hone_value* HONE_NULLABLE
      value; /* given, of a weight without `encoded` and `data`: its elements, type and sizes */
} hone_graph_tensor;

/* An attribute of a node, or a parameter of a function. Where one is given: `encoded`, if it is not NULL, is taken as it stands, under
 * the name that is given; else what belongs to the kind. */
typedef struct hone_graph_attribute {
  size_t size; /* sizeof(hone_graph_attribute) */
  const char* name;
  int kind; /* ONNX's number: 1 FLOAT, 2 INT, 3 STRING, 4 TENSOR, 5 GRAPH, 6 FLOATS, 7 INTS, 8 STRINGS, 10 GRAPHS; 0: a parameter
               without a default */
  const char* HONE_NULLABLE reference; /* the function's parameter whose value it takes */
  int64_t integer;
  float real;
  size_t count; /* of a list; of bodies; 1 for a text */
  const int64_t* HONE_NULLABLE integers;
  const float* HONE_NULLABLE reals;
  const char* const* HONE_NULLABLE texts;
  const size_t* HONE_NULLABLE lengths; /* of the texts */
  const hone_graph_tensor* HONE_NULLABLE tensor;
  const hone_graph* const* HONE_NULLABLE bodies; /* given; hone_graph_create_from_body() reads them */
  const void* HONE_NULLABLE encoded;             /* AttributeProto, without its bodies */
  size_t encoded_size;
  const hone_graph* HONE_NULLABLE owner; /* as of a tensor */
} hone_graph_attribute;

/* A node. "" among inputs and outputs stands for one that is left out. */
typedef struct hone_graph_node {
  size_t size; /* sizeof(hone_graph_node) */
  const char* op;
  const char* HONE_NULLABLE name;
  const char* HONE_NULLABLE domain;
  const char* const* HONE_NULLABLE inputs;
  size_t input_count;
  const char* const* HONE_NULLABLE outputs;
  size_t output_count;
  size_t attribute_count;         /* read with hone_graph_attribute_at(), put with hone_graph_set_attribute() */
  const void* HONE_NULLABLE rest; /* fields that have no member here, encoded: documentation, metadata, ... */
  size_t rest_size;
} hone_graph_node;

/* What hone_graph_fold() folds. */
typedef struct hone_graph_fold_options {
  size_t size;        /* sizeof(hone_graph_fold_options) */
  int keep_shapes;    /* leave Shape and what follows from it */
  int64_t most_bytes; /* results that are larger stay as they are; 0: there is no limit */
  const char* const* HONE_NULLABLE
      excluded; /* results of nodes that stay; without it nodes that quantise and dequantise stay */
  size_t excluded_count;
} hone_graph_fold_options;

/* How hone_graph_save() writes. */
typedef struct hone_graph_save_options {
  size_t size;                         /* sizeof(hone_graph_save_options) */
  const char* HONE_NULLABLE data_file; /* weights go into this file beside the model; "": one named after the model */
  int64_t threshold;                   /* of fewer bytes they stay in the model */
} hone_graph_save_options;

/* An empty model of a version of ONNX's operators. */
HONE_API hone_status hone_graph_create(int64_t opset, hone_graph** graph);
HONE_API hone_status hone_graph_create_from_file(const char* onnx_path, hone_graph** graph);
/* From the bytes of a file, which are copied; `folder` is where external data lie. */
HONE_API hone_status hone_graph_create_from_memory(const void* bytes, size_t size, const char* HONE_NULLABLE folder,
                                                   hone_graph** graph);
/* Another of the same contents; `contents` 0: what is said of it alone, without nodes, tensors, functions and parameters. */
HONE_API hone_status hone_graph_create_copy(const hone_graph* graph, int contents, hone_graph** copy);
/* A body of a node's attribute. */
HONE_API hone_status hone_graph_create_from_body(const hone_graph* graph, size_t node, size_t attribute, size_t index,
                                                 hone_graph** body);
/* An empty function of a version of ONNX's operators. */
HONE_API hone_status hone_graph_create_function(const char* domain, const char* name, int64_t opset,
                                                hone_graph** function);
HONE_API hone_status hone_graph_create_from_function(const hone_graph* graph, size_t index, hone_graph** function);
HONE_API void hone_graph_destroy(hone_graph* HONE_NULLABLE graph);

/* The model as a file's bytes. HONE_ERROR: it has more than 2 GiB, or the graph is a function. */
HONE_API hone_status hone_graph_bytes(hone_graph* graph, const void** bytes, size_t* size);
/* Writes the model. Weights in other files are referred to where it goes into their folder, else copied. */
HONE_API hone_status hone_graph_save(const hone_graph* graph, const char* onnx_path,
                                     const hone_graph_save_options* HONE_NULLABLE options);

HONE_API hone_status hone_graph_text(const hone_graph* graph, hone_graph_word word, const char** text);
HONE_API hone_status hone_graph_set_text(hone_graph* graph, hone_graph_word word, const char* text);
HONE_API hone_status hone_graph_ir_version(const hone_graph* graph, int64_t* version);
HONE_API hone_status hone_graph_set_ir_version(hone_graph* graph, int64_t version);
HONE_API size_t hone_graph_opsets(const hone_graph* graph);
HONE_API hone_status hone_graph_opset(const hone_graph* graph, size_t index, const char** domain, int64_t* version);
/* A version of 0 takes the operator set out. */
HONE_API hone_status hone_graph_set_opset(hone_graph* graph, const char* domain, int64_t version);

HONE_API size_t hone_graph_nodes(const hone_graph* graph);
HONE_API hone_status hone_graph_node_at(const hone_graph* graph, size_t index, hone_graph_node* node);
/* Puts a node, without attributes, at a position: that behind the last appends it, another one exchanges the node there. */
HONE_API hone_status hone_graph_put_node(hone_graph* graph, size_t index, const hone_graph_node* node);
/* Takes a node out; nothing else is changed. */
HONE_API hone_status hone_graph_remove_node(hone_graph* graph, size_t index);
HONE_API hone_status hone_graph_attribute_at(const hone_graph* graph, size_t node, size_t index,
                                             hone_graph_attribute* attribute);
/* Sets or adds an attribute of a node. */
HONE_API hone_status hone_graph_set_attribute(hone_graph* graph, size_t node, const hone_graph_attribute* attribute);
HONE_API hone_status hone_graph_remove_attribute(hone_graph* graph, size_t node, const char* name);

HONE_API size_t hone_graph_tensors(const hone_graph* graph, hone_graph_list list);
HONE_API hone_status hone_graph_tensor_at(const hone_graph* graph, hone_graph_list list, size_t index,
                                          hone_graph_tensor* tensor);
/* Puts a tensor into a list: in the place of the one of its name, or behind the last. */
HONE_API hone_status hone_graph_put_tensor(hone_graph* graph, hone_graph_list list, const hone_graph_tensor* tensor);
/* The same behind the last, without looking whether the list has one of its name. */
HONE_API hone_status hone_graph_append_tensor(hone_graph* graph, hone_graph_list list, const hone_graph_tensor* tensor);
/* A weight with these elements, which are copied. */
HONE_API hone_status hone_graph_put_weight(hone_graph* graph, const char* name, const hone_value* value);
HONE_API hone_status hone_graph_remove_tensor(hone_graph* graph, hone_graph_list list, const char* name);
/* The elements of a weight, or of an attribute's tensor, that this graph has told of. */
HONE_API hone_status hone_graph_elements(const hone_graph* graph, const hone_graph_tensor* tensor, hone_value** value);

HONE_API size_t hone_graph_functions(const hone_graph* graph);
/* Adds a function, or exchanges that of the same domain, name and overload. Its weights become Constant nodes. */
HONE_API hone_status hone_graph_put_function(hone_graph* graph, const hone_graph* function);
HONE_API hone_status hone_graph_remove_function(hone_graph* graph, size_t index);
/* Parameters of a function: attributes that its nodes' attributes may refer to. HONE_ERROR: the graph is no function. */
HONE_API size_t hone_graph_parameters(const hone_graph* graph);
HONE_API hone_status hone_graph_parameter(const hone_graph* graph, size_t index, hone_graph_attribute* parameter);
HONE_API hone_status hone_graph_put_parameter(hone_graph* graph, const hone_graph_attribute* parameter);

/* Names a tensor anew. HONE_ERROR: the new name is taken, or no tensor has the old one. */
HONE_API hone_status hone_graph_rename(hone_graph* graph, const char* from, const char* to);
/* Who reads a tensor, bodies included, reads another one; an output of the graph keeps its name. */
HONE_API hone_status hone_graph_replace_uses(hone_graph* graph, const char* from, const char* to);
/* Removes what no output depends on. How many nodes. */
HONE_API hone_status hone_graph_cleanup(hone_graph* graph, size_t* removed);
/* Sorts nodes so that producers come first. HONE_ERROR names the nodes of a cycle. */
HONE_API hone_status hone_graph_sort(hone_graph* graph);
/* Nodes whose results follow from the model alone become weights. How many; until it is 0 there is more to fold. */
HONE_API hone_status hone_graph_fold(hone_graph* graph, const hone_graph_fold_options* HONE_NULLABLE options,
                                     size_t* folded);
/* Declares the types of outputs, and where `values` is not 0 of all results, as they follow from the inputs'. How many changed. */
HONE_API hone_status hone_graph_infer_shapes(hone_graph* graph, int values, size_t* changed);
/* Finds subgraphs by example, "Max(Min($x, $hi), $lo)" (docs/graph-api.md), that do not overlap. How many. */
HONE_API hone_status hone_graph_match(hone_graph* graph, const char* pattern, size_t* count);
/* Of a match that was found last: its nodes, by position, the one that makes the result first. */
HONE_API hone_status hone_graph_match_nodes(const hone_graph* graph, size_t match, const size_t** nodes, size_t* count);
/* Which tensor a name of the pattern stands for. */
HONE_API hone_status hone_graph_match_tensor(const hone_graph* graph, size_t match, const char* name,
                                             const char** tensor);
/* Puts something else in the place of each subgraph that a pattern finds. How many. */
HONE_API hone_status hone_graph_replace(hone_graph* graph, const char* pattern, const char* by, size_t* count);

#ifdef __cplusplus
}
#endif
#endif
