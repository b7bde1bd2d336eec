// SPDX-License-Identifier: Apache-2.0
//
// The list of all operators, explicit so that a reader sees it and the linker keeps it.
#include "ops/all.h"

#include <string>
#include <unordered_map>

#include "ops/catalogue.h"
#include "ops/ops.h"

namespace hone {
namespace {

const OpDef* const kOps[] = {
    // arithmetic.cpp
    &ops::add,
    &ops::sub,
    &ops::mul,
    &ops::div,
    &ops::pow,
    &ops::mod,
    &ops::fmod,
    &ops::max,
    &ops::min,
    &ops::neg,
    &ops::abs,
    &ops::exp,
    &ops::log,
    &ops::sqrt,
    &ops::reciprocal,
    &ops::floor,
    &ops::ceil,
    &ops::round,
    &ops::sign,
    &ops::erf,
    &ops::sin,
    &ops::cos,
    &ops::tan,
    &ops::asin,
    &ops::acos,
    &ops::atan,
    &ops::sinh,
    &ops::cosh,
    &ops::asinh,
    &ops::acosh,
    &ops::atanh,
    // activation.cpp
    &ops::relu,
    &ops::leaky_relu,
    &ops::p_relu,
    &ops::elu,
    &ops::selu,
    &ops::celu,
    &ops::sigmoid,
    &ops::hard_sigmoid,
    &ops::hard_swish,
    &ops::tanh,
    &ops::softplus,
    &ops::softsign,
    &ops::mish,
    &ops::thresholded_relu,
    &ops::shrink,
    &ops::clip,
    &ops::gelu,
    // logic.cpp
    &ops::equal,
    &ops::less,
    &ops::less_or_equal,
    &ops::greater,
    &ops::greater_or_equal,
    &ops::and_,
    &ops::or_,
    &ops::xor_,
    &ops::not_,
    &ops::where,
    &ops::is_nan,
    &ops::is_inf,
    &ops::bit_shift,
    &ops::bitwise_and,
    &ops::bitwise_or,
    &ops::bitwise_xor,
    &ops::bitwise_not,
    // cast.cpp
    &ops::cast,
    &ops::bit_cast,
    // internal.cpp
    &ops::linear,
    &ops::clamp,
    &ops::silu,
    &ops::gelu_tanh,
    &ops::scaled_dot_product_attention,
    &ops::view,
    &ops::symbolic_constant,
    &ops::reformat,
    // matmul.cpp
    &ops::mat_mul,
    &ops::gemm,
    // einsum.cpp
    &ops::einsum,
    // conv.cpp
    &ops::conv,
    // conv_transpose.cpp
    &ops::conv_transpose,
    // pool.cpp
    &ops::max_pool,
    &ops::average_pool,
    &ops::lp_pool,
    &ops::global_average_pool,
    &ops::global_max_pool,
    &ops::global_lp_pool,
    // norm.cpp
    &ops::batch_normalization,
    &ops::instance_normalization,
    &ops::group_normalization,
    &ops::layer_normalization,
    &ops::rms_normalization,
    &ops::lp_normalization,
    &ops::lrn,
    // softmax.cpp
    &ops::softmax,
    &ops::log_softmax,
    &ops::hardmax,
    // reduce.cpp
    &ops::reduce_sum,
    &ops::reduce_mean,
    &ops::reduce_max,
    &ops::reduce_min,
    &ops::reduce_prod,
    &ops::reduce_l1,
    &ops::reduce_l2,
    &ops::reduce_log_sum,
    &ops::reduce_log_sum_exp,
    &ops::reduce_sum_square,
    // arg_reduce.cpp
    &ops::arg_max,
    &ops::arg_min,
    &ops::cum_sum,
    // rnn.cpp
    &ops::lstm,
    &ops::gru,
    &ops::rnn,
    // resize.cpp
    &ops::resize,
    // quantize.cpp
    &ops::quantize_linear,
    &ops::dequantize_linear,
    // matrix.cpp
    &ops::trilu,
    &ops::eye_like,
    // reshape.cpp
    &ops::identity,
    &ops::reshape,
    &ops::flatten,
    &ops::squeeze,
    &ops::unsqueeze,
    // shape.cpp
    &ops::shape,
    &ops::size,
    &ops::constant,
    &ops::constant_of_shape,
    &ops::range,
    // transpose.cpp
    &ops::transpose,
    &ops::depth_to_space,
    &ops::space_to_depth,
    // concat.cpp
    &ops::concat,
    &ops::split,
    // slice.cpp
    &ops::slice,
    // gather.cpp
    &ops::gather,
    &ops::gather_elements,
    &ops::gather_nd,
    &ops::compress,
    // scatter.cpp
    &ops::scatter_elements,
    &ops::scatter_nd,
    // expand.cpp
    &ops::expand,
    &ops::tile,
    // pad.cpp
    &ops::pad,
    // choose.cpp
    &ops::one_hot,
    &ops::top_k,
    &ops::non_zero,
    &ops::unique,
    // detection.cpp
    &ops::non_max_suppression,
    &ops::roi_align,
    &ops::reverse_sequence,
    // control.cpp
    &ops::if_,
    &ops::loop,
    &ops::scan,
    // onnx_attention.cpp
    &ops::attention,
    &ops::flex_attention,
    // linear_attention.cpp
    &ops::linear_attention,
    &ops::causal_conv_with_state,
    // rotary.cpp
    &ops::rotary_embedding,
    &ops::tensor_scatter,
    // loss.cpp
    &ops::negative_log_likelihood_loss,
    // sampling.cpp
    &ops::grid_sample,
    &ops::affine_grid,
    &ops::deform_conv,
    &ops::max_roi_pool,
    // patches.cpp
    &ops::col2im,
    &ops::center_crop_pad,
    &ops::max_unpool,
    // signal.cpp
    &ops::dft,
    &ops::stft,
    &ops::window,
    &ops::mel_weight_matrix,
    // integer.cpp
    &ops::conv_integer,
    &ops::dynamic_quantize_linear,
    // strings.cpp
    &ops::string_concat,
    &ops::string_split,
    &ops::string_normalizer,
    &ops::regex_full_match,
    &ops::tf_idf_vectorizer,
    // sequence.cpp
    &ops::sequence_construct,
    &ops::sequence_empty,
    &ops::sequence_at,
    &ops::sequence_insert,
    &ops::sequence_erase,
    &ops::sequence_length,
    &ops::sequence_map,
    &ops::split_to_sequence,
    &ops::concat_from_sequence,
    &ops::optional,
    &ops::optional_has_element,
    &ops::optional_get_element,
    // random.cpp
    &ops::random_uniform,
    &ops::random_normal,
    &ops::bernoulli,
    &ops::multinomial,
    &ops::dropout,
    // training.cpp
    &ops::adagrad,
    &ops::adam,
    &ops::momentum,
    // ml_features.cpp
    &ops::array_feature_extractor,
    &ops::binarizer,
    &ops::feature_vectorizer,
    &ops::imputer,
    &ops::label_encoder,
    &ops::one_hot_encoder,
    &ops::ml_normalizer,
    &ops::scaler,
    // ml_maps.cpp
    &ops::zip_map,
    &ops::cast_map,
    &ops::dict_vectorizer,
    // ml_trees.cpp
    &ops::tree_ensemble,
    &ops::tree_ensemble_regressor,
    &ops::tree_ensemble_classifier,
    // ml_models.cpp
    &ops::linear_regressor,
    &ops::linear_classifier,
    &ops::svm_regressor,
    &ops::svm_classifier,
    // image_decoder.cpp
    &ops::image_decoder,
    // others
    &ops::batch_normalization_training,
    &ops::det,
    &ops::cum_prod,
    &ops::swish,
};

}  // namespace

std::span<const OpDef* const> all_ops() { return kOps; }

const OpDef* find_op(std::string_view name) {
  static const auto index = [] {
    std::unordered_map<std::string_view, const OpDef*> by_name;
    for (const OpDef* op : kOps) by_name.emplace(op->name, op);
    return by_name;
  }();
  const auto found = index.find(name);
  return found == index.end() ? nullptr : found->second;
}

}  // namespace hone
