// SPDX-License-Identifier: Apache-2.0
//
// ai.onnx.ml: between tensors and maps. Maps live on the host, their keys ascending, so their operators run on the reference.
#include <algorithm>
#include <optional>

#include "base/node_error.h"
#include "base/text.h"
#include "ops/movement.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

constexpr std::string_view kDomain = "ai.onnx.ml";

/// The one of two lists that is given, as a tensor of rank 1.
Tensor list_of(const Attrs& attrs, std::string_view op, const char* integers, const char* texts) {
  const bool has_integers = attrs.has(integers) && !attrs.integers(integers).empty(),
             has_texts = attrs.has(texts) && !attrs.texts(texts).empty();
  HONE_CHECK_AS(AttributeError, has_integers != has_texts, "{} needs one of the attributes {} and {}", op, integers,
                texts);
  if (has_texts) return Tensor::of_strings({static_cast<int64_t>(attrs.texts(texts).size())}, attrs.texts(texts));
  const Dims& values = attrs.integers(integers);
  return Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, std::span<const int64_t>(values));
}

const TensorType& map_type(const InferContext& context) {
  HONE_CHECK_AS(TypeError, context.dtype(0) == DType::map, "{} reads a map, its operand is {}",
                context.node().op_name(), context.type(0).text());
  return context.type(0);
}

// ---- ZipMap: a row of scores becomes a map from the classes to them ----

Tensor classes_of(const Attrs& attrs) { return list_of(attrs, "ZipMap", "classlabels_int64s", "classlabels_strings"); }

void infer_zip_map(InferContext& context) {
  const size_t rank = context.rank(0);
  HONE_CHECK(rank == 1 || rank == 2, "ZipMap reads a row of scores or rows of them, its operand has rank {}", rank);
  HONE_CHECK_AS(TypeError, !is_object(context.dtype(0)), "ZipMap reads numbers, not {}", name_of(context.dtype(0)));
  const Tensor classes = classes_of(context.attrs());
  check_equal(context.shape(0)[rank - 1], Dim(classes.size()), "scores in a row and classes");
  context.set(0, container_of(DType::sequence, map_of(classes.dtype(), context.dtype(0))));
}

void eval_zip_map(EvalContext& context) {
  const Tensor &scores = context.input(0), classes = classes_of(context.attrs());
  const int64_t width = scores.dims().back(), rows = scores.dims().size() == 1 ? 1 : scores.dims()[0];
  HONE_CHECK(width == classes.size(), "there are {} classes and {} scores in a row", classes.size(), width);
  std::vector<Tensor> maps;
  for (int64_t row = 0; row < rows; ++row)
    maps.push_back(Tensor::of_map(classes, copy_strided(scores, {width}, row * width, {1})));
  context.set(0, Tensor::of_items(DType::sequence, std::move(maps)));
}

// ---- CastMap: the values of a map from integers, as one row ----

DType target_of(const Attrs& attrs) {
  const std::string& name = attrs.text("cast_to");
  if (name == "TO_FLOAT") return DType::f32;
  if (name == "TO_INT64") return DType::i64;
  HONE_CHECK_AS(AttributeError, name == "TO_STRING", "cast_to is '{}', known are TO_FLOAT, TO_INT64 and TO_STRING",
                name);
  return DType::string;
}

bool is_sparse(const Attrs& attrs) {
  const std::string& form = attrs.text("map_form");
  HONE_CHECK_AS(AttributeError, form == "DENSE" || form == "SPARSE", "map_form is '{}', known are DENSE and SPARSE",
                form);
  return form == "SPARSE";
}

void infer_cast_map(InferContext& context) {
  HONE_CHECK_AS(TypeError, map_type(context).key == DType::i64, "CastMap reads a map from integers, not {}",
                context.type(0).text());
  const bool sparse = is_sparse(context.attrs());
  const int64_t width = context.attrs().integer("max_map");
  HONE_CHECK(!sparse || width >= 0, "max_map is {}", width);
  context.set(0, target_of(context.attrs()), {Dim(1), sparse ? Dim(width) : context.data_dependent(0, 1)});
}

float real_in(const std::string& text) {
  const std::optional<double> value = parse_real(trim(text));
  HONE_CHECK(value, "the value '{}' is not a number", text);
  return static_cast<float>(*value);
}
int64_t integer_in(const std::string& text) {
  const std::optional<int64_t> value = parse_integer(trim(text));
  HONE_CHECK(value, "the value '{}' is not an integer", text);
  return *value;
}

/// Where each value goes in a row of `width`: in the order of the keys, or each at its key; -1 for keys beyond the row.
std::vector<int64_t> columns(const Tensor& keys, bool sparse, int64_t width) {
  if (!sparse) return iota(keys.size());
  std::vector<int64_t> places = keys.integers();
  for (int64_t& place : places) {
    HONE_CHECK(place >= 0, "the key {} is no place in a row", place);
    if (place >= width) place = -1;
  }
  return places;
}

Tensor cast_values(const Tensor& values, DType target) {
  const auto count = static_cast<size_t>(values.size());
  if (target == DType::string) {
    std::vector<std::string> texts = values.dtype() == DType::string ? values.strings() : std::vector<std::string>();
    for (size_t i = texts.size(); i < count; ++i) texts.push_back(std::to_string(values.real(static_cast<int64_t>(i))));
    return Tensor::of_strings(values.dims(), std::move(texts));
  }
  if (values.dtype() != DType::string) return write_doubles(target, values.dims(), read_doubles(values));
  if (target == DType::f32) {
    std::vector<float> numbers;
    for (const std::string& text : values.strings()) numbers.push_back(real_in(text));
    return Tensor::of<float>(values.dims(), std::span<const float>(numbers));
  }
  std::vector<int64_t> numbers;
  for (const std::string& text : values.strings()) numbers.push_back(integer_in(text));
  return Tensor::of<int64_t>(values.dims(), std::span<const int64_t>(numbers));
}

/// `values[i]` at `places[i]` of a row; elsewhere zeros, or the text that ONNX Runtime writes there.
Tensor row_of(const Tensor& values, const std::vector<int64_t>& places, int64_t width, const std::string& missing) {
  std::vector<int64_t> chosen(static_cast<size_t>(width), -1);
  for (size_t i = 0; i < places.size(); ++i)
    if (places[i] >= 0) chosen[static_cast<size_t>(places[i])] = static_cast<int64_t>(i);
  const Tensor fill =
      values.dtype() == DType::string ? Tensor::of_strings({1}, {missing}) : scalar_of(values.dtype(), 0);
  return pick(values, {chosen}, &fill).reshaped({1, width});
}

void eval_cast_map(EvalContext& context) {
  const Tensor &keys = context.input(0).items()[0], &values = context.input(0).items()[1];
  const bool sparse = is_sparse(context.attrs());
  const int64_t width = sparse ? context.attrs().integer("max_map") : keys.size();
  context.set(0, row_of(cast_values(values, target_of(context.attrs())), columns(keys, sparse, width), width, "0.f"));
}

// ---- DictVectorizer: the values of the keys of a vocabulary, as one row ----

Tensor vocabulary_of(const Attrs& attrs) {
  return list_of(attrs, "DictVectorizer", "int64_vocabulary", "string_vocabulary");
}

void infer_dict_vectorizer(InferContext& context) {
  const TensorType& map = map_type(context);
  const Tensor vocabulary = vocabulary_of(context.attrs());
  HONE_CHECK_AS(TypeError, vocabulary.dtype() == map.key, "DictVectorizer's vocabulary is of {}, the keys of {}",
                name_of(vocabulary.dtype()), map.text());
  context.set(0, map.element->dtype, {Dim(1), Dim(vocabulary.size())});
}

template <typename Keys>
std::vector<int64_t> places_of(const Keys& wanted, const Keys& keys) {
  std::vector<int64_t> places;
  for (const auto& key : wanted) {
    const auto at = std::lower_bound(keys.begin(), keys.end(), key);
    places.push_back(at != keys.end() && *at == key ? at - keys.begin() : -1);
  }
  return places;
}

void eval_dict_vectorizer(EvalContext& context) {
  const Tensor &keys = context.input(0).items()[0], &values = context.input(0).items()[1];
  const Tensor vocabulary = vocabulary_of(context.attrs());
  const std::vector<int64_t> places = keys.dtype() == DType::string
                                          ? places_of(vocabulary.strings(), keys.strings())
                                          : places_of(vocabulary.data<int64_t>(), keys.data<int64_t>());
  const Tensor fill = values.dtype() == DType::string ? Tensor::of_strings({1}, {""}) : scalar_of(values.dtype(), 0);
  context.set(0, pick(values, {places}, &fill).reshaped({1, vocabulary.size()}));
}

AttrSpec texts_attr(std::string_view name) { return {name, AttrKind::texts, std::nullopt, false, {}}; }

}  // namespace

const OpDef ops::zip_map{.name = "ZipMap",
                         .attrs = {integers_attr("classlabels_int64s"), texts_attr("classlabels_strings")},
                         .infer = infer_zip_map,
                         .eval = eval_zip_map,
                         .onnx = {{"ZipMap", 1, kEveryLater, nullptr, kDomain}}};
const OpDef ops::cast_map{
    .name = "CastMap",
    .attrs = {text_attr("cast_to", "TO_FLOAT"), text_attr("map_form", "DENSE"), integer_attr("max_map", 1)},
    .infer = infer_cast_map,
    .eval = eval_cast_map,
    .onnx = {{"CastMap", 1, kEveryLater, nullptr, kDomain}},
    .traits = {.data_dependent = true}};
const OpDef ops::dict_vectorizer{.name = "DictVectorizer",
                                 .attrs = {integers_attr("int64_vocabulary"), texts_attr("string_vocabulary")},
                                 .infer = infer_dict_vectorizer,
                                 .eval = eval_dict_vectorizer,
                                 .onnx = {{"DictVectorizer", 1, kEveryLater, nullptr, kDomain}}};

}  // namespace hone
