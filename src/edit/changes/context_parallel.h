// SPDX-License-Identifier: Apache-2.0
//
// A model for one device rewritten for several, each of which holds a part of the sequence: inputs are scattered, the keys and values of
// attention (or attention as one operator) gathered, and so are the outputs, by nodes called DistCollective. What is to be done is said by
// hints, which are found in a model and may be edited before they are followed. Words and rules are Polygraphy's.
#pragma once

#include "edit/values.h"

namespace hone::edit {

struct ShardedTensor {
  std::string name;
  int64_t axis = 0;  // of the sequence
  std::optional<int64_t> rank;
};

struct Collective {
  int64_t group_size = 0, root = -1, ranks = 1;
  std::vector<int64_t> groups;
  std::string reduce = "max";  // of what is scattered
};

struct FusedAttention {
  bool causal = false;
  std::vector<int64_t> q_shuffle, k_shuffle, v_shuffle;  // permutations; empty: none
  int64_t ranks = 1;
};

struct ShardedAttention {
  std::string q;
  bool gather_kv = true, gather_q = false;
  std::optional<FusedAttention> replace;
};

struct ShardHints {
  std::vector<ShardedAttention> layers;
  Collective collective;
  std::vector<ShardedTensor> inputs, outputs;
  int64_t k_axis = 0, v_axis = 0;
  std::optional<int64_t> kv_rank;
};

enum class AttentionForm {
  plain,
  scaled
};  // MatMul, Softmax, MatMul; the same behind scales computed of the shape of Q

/// What hints are made of, beside the model.
struct HintRequest {
  AttentionForm form = AttentionForm::plain;
  Collective collective;
  std::optional<FusedAttention> replace;
  bool suggests_ends = true;
  int64_t input_axis = 0, output_axis = 0, k_axis = 0, v_axis = 0;  // where no size is called sequence_length
  std::optional<int64_t> input_rank, output_rank, kv_rank;          // where it is not known
};

ShardHints shard_hints(const Model& model, const HintRequest& request);

/// How many layers of attention were rewritten. Throws UnknownName for tensors that the model does not have.
size_t shard(Model& model, const ShardHints& hints, AttentionForm form);

}  // namespace hone::edit
