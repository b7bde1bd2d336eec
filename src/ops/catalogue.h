// SPDX-License-Identifier: Apache-2.0
//
// The operators that only models bring in: no pass, region or tactic asks for one of them by name, so they stand apart from
// ops.h. One line per operator, in the order of the files that define them.
#pragma once

#include "ir/op.h"

namespace hone::ops {

// cast.cpp
extern const OpDef bit_cast;

// onnx_attention.cpp
extern const OpDef flex_attention;

// linear_attention.cpp
extern const OpDef linear_attention;
extern const OpDef causal_conv_with_state;

// rotary.cpp
extern const OpDef rotary_embedding;
extern const OpDef tensor_scatter;

// loss.cpp
extern const OpDef negative_log_likelihood_loss;

// sampling.cpp
extern const OpDef grid_sample;
extern const OpDef affine_grid;
extern const OpDef deform_conv;
extern const OpDef max_roi_pool;

// patches.cpp
extern const OpDef col2im;
extern const OpDef center_crop_pad;
extern const OpDef max_unpool;

// image_decoder.cpp
extern const OpDef image_decoder;

// signal.cpp
extern const OpDef dft;
extern const OpDef stft;
extern const OpDef window;
extern const OpDef mel_weight_matrix;

// integer.cpp
extern const OpDef conv_integer;
extern const OpDef dynamic_quantize_linear;

// strings.cpp
extern const OpDef string_concat;
extern const OpDef string_split;
extern const OpDef string_normalizer;
extern const OpDef regex_full_match;
extern const OpDef tf_idf_vectorizer;

// sequence.cpp
extern const OpDef sequence_construct;
extern const OpDef sequence_empty;
extern const OpDef sequence_at;
extern const OpDef sequence_insert;
extern const OpDef sequence_erase;
extern const OpDef sequence_length;
extern const OpDef sequence_map;
extern const OpDef split_to_sequence;
extern const OpDef concat_from_sequence;
extern const OpDef optional;
extern const OpDef optional_has_element;
extern const OpDef optional_get_element;

// random.cpp
extern const OpDef random_uniform;
extern const OpDef random_normal;
extern const OpDef bernoulli;
extern const OpDef multinomial;
extern const OpDef dropout;

// norm.cpp
extern const OpDef batch_normalization_training;

// matrix.cpp
extern const OpDef det;

// arg_reduce.cpp
extern const OpDef cum_prod;

// activation.cpp
extern const OpDef swish;

// training.cpp
extern const OpDef adagrad;
extern const OpDef adam;
extern const OpDef momentum;

// ml_features.cpp
extern const OpDef array_feature_extractor;
extern const OpDef binarizer;
extern const OpDef feature_vectorizer;
extern const OpDef imputer;
extern const OpDef label_encoder;
extern const OpDef one_hot_encoder;
extern const OpDef ml_normalizer;
extern const OpDef scaler;

// ml_maps.cpp
extern const OpDef zip_map;
extern const OpDef cast_map;
extern const OpDef dict_vectorizer;

// ml_trees.cpp
extern const OpDef tree_ensemble;
extern const OpDef tree_ensemble_regressor;
extern const OpDef tree_ensemble_classifier;

// ml_models.cpp
extern const OpDef linear_regressor;
extern const OpDef linear_classifier;
extern const OpDef svm_regressor;
extern const OpDef svm_classifier;

}  // namespace hone::ops
