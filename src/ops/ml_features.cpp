// SPDX-License-Identifier: Apache-2.0
//
// ai.onnx.ml: preparing features - choosing, scaling, encoding and filling in values.
#include <cmath>
#include <map>

#include "base/checked.h"
#include "base/node_error.h"
#include "ops/expansions.h"
#include "ops/movement.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

constexpr std::string_view kDomain = "ai.onnx.ml";

std::vector<double> reals_or(const Attrs& attrs, std::string_view name) {
  return attrs.has(name) ? attrs.reals(name) : std::vector<double>();
}

// ---- ArrayFeatureExtractor(x, indices): along the last axis ----

void infer_extract(InferContext& context) {
  std::vector<Dim> dims = context.shape(0).dims();
  HONE_CHECK(!dims.empty(), "ArrayFeatureExtractor reads rank 1 or more");
  if (dims.size() == 1) dims.insert(dims.begin(), Dim(1));
  dims.back() = context.shape(1).elements();
  context.set(0, context.dtype(0), Shape(std::move(dims)));
}
void eval_extract(EvalContext& context) {
  const Tensor& x = context.input(0);
  Dims dims = x.dims().size() == 1 ? Dims{1, x.dims()[0]} : x.dims();
  const int64_t width = dims.back();
  std::vector<std::vector<int64_t>> indices;
  for (size_t i = 0; i + 1 < dims.size(); ++i) indices.push_back(iota(dims[i]));
  std::vector<int64_t> chosen;
  for (const int64_t index : context.input(1).integers()) chosen.push_back(checked_index(index, width));
  indices.push_back(std::move(chosen));
  context.set(0, pick(x.reshaped(dims), indices));
}

// ---- Element by element ----

template <typename Change>
void eval_each(EvalContext& context, DType dtype, const Change& change) {
  const Tensor& x = context.input(0);
  std::vector<double> values = read_doubles(x);
  const size_t width = x.dims().empty() ? 1 : static_cast<size_t>(x.dims().back());
  for (size_t i = 0; i < values.size(); ++i) values[i] = change(values[i], i % width);
  context.set(0, write_doubles(dtype, x.dims(), values));
}

void eval_binarizer(EvalContext& context) {
  const double threshold = context.attrs().real("threshold");
  eval_each(context, context.input(0).dtype(), [=](double x, size_t) { return x > threshold ? 1.0 : 0.0; });
}

void infer_f32(InferContext& context) { context.set(0, DType::f32, context.shape(0)); }

double of_column(const std::vector<double>& list, size_t column, double fallback) {
  if (list.empty()) return fallback;
  HONE_CHECK(list.size() == 1 || column < list.size(), "{} values are given for column {}", list.size(), column);
  return list[list.size() == 1 ? 0 : column];
}

void eval_scaler(EvalContext& context) {
  const std::vector<double> offset = reals_or(context.attrs(), "offset"), scale = reals_or(context.attrs(), "scale");
  eval_each(context, DType::f32,
            [&](double x, size_t column) { return (x - of_column(offset, column, 0)) * of_column(scale, column, 1); });
}

void eval_imputer(EvalContext& context) {
  const Attrs& attrs = context.attrs();
  const bool integers = !is_float(context.input(0).dtype());
  std::vector<double> values = reals_or(attrs, "imputed_value_floats");
  if (integers && attrs.has("imputed_value_int64s"))
    values.assign(attrs.integers("imputed_value_int64s").begin(), attrs.integers("imputed_value_int64s").end());
  const double replaced =
      integers ? static_cast<double>(attrs.integer("replaced_value_int64")) : attrs.real("replaced_value_float");
  const Dims& dims = context.input(0).dims();
  HONE_CHECK(values.size() == 1 || (!dims.empty() && static_cast<int64_t>(values.size()) == dims.back()),
             "Imputer has {} values for inputs [{}]", values.size(), join_dims(dims, ","));
  eval_each(context, context.input(0).dtype(), [&](double x, size_t column) {
    const bool missing = x == replaced || (std::isnan(x) && std::isnan(replaced));
    return missing ? of_column(values, column, 0) : x;
  });
}

void eval_normalizer(EvalContext& context) {
  const Tensor& x = context.input(0);
  const std::string& norm = context.attrs().text("norm");
  HONE_CHECK_AS(AttributeError, norm == "MAX" || norm == "L1" || norm == "L2", "unknown norm '{}'", norm);
  std::vector<double> values = read_doubles(x);
  const size_t width = x.dims().empty() ? 1 : static_cast<size_t>(x.dims().back());
  for (size_t begin = 0; begin < values.size(); begin += width) {
    double size = 0;
    for (size_t i = begin; i < begin + width; ++i) {
      if (norm == "MAX") size = i == begin ? values[i] : std::max(size, values[i]);
      else if (norm == "L1") size += std::abs(values[i]);
      else size += values[i] * values[i];
    }
    if (norm == "L2") size = std::sqrt(size);
    for (size_t i = begin; i < begin + width && size != 0; ++i) values[i] /= size;
  }
  context.set(0, write_doubles(DType::f32, x.dims(), values));
}

// ---- FeatureVectorizer: columns behind each other ----

void infer_vectorizer(InferContext& context) {
  const Dims& widths = context.attrs().integers("inputdimensions");
  HONE_CHECK(widths.size() == context.inputs(), "inputdimensions has {} numbers for {} operands", widths.size(),
             context.inputs());
  int64_t total = 0;
  for (const int64_t width : widths) {
    HONE_CHECK(width >= 0, "inputdimensions holds {}", width);
    total = checked_add(total, width);
  }
  context.set(0, DType::f32, {context.rank(0) == 2 ? context.shape(0)[0] : Dim(1), Dim(total)});
}
void eval_vectorizer(EvalContext& context) {
  const Dims& widths = context.attrs().integers("inputdimensions");
  const int64_t rows = context.input(0).dims().size() == 2 ? context.input(0).dims()[0] : 1;
  std::vector<double> out;
  std::vector<std::vector<double>> data;
  for (size_t i = 0; i < context.inputs(); ++i) data.push_back(read_doubles(context.input(i)));
  int64_t total = 0;
  for (int64_t r = 0; r < rows; ++r)
    for (size_t i = 0; i < data.size(); ++i) {
      const size_t width = data[i].size() / static_cast<size_t>(std::max<int64_t>(rows, 1));
      for (size_t c = 0; c < static_cast<size_t>(widths[i]); ++c)
        out.push_back(c < width ? data[i][static_cast<size_t>(r) * width + c] : 0);
    }
  for (const int64_t width : widths) total += width;
  context.set(0, write_doubles(DType::f32, {rows, total}, out));
}

// ---- OneHotEncoder ----

/// Those of the operand's type count; a node may have the others too.
size_t category_count(const Attrs& attrs, bool strings) {
  if (!attrs.has(strings ? "cats_strings" : "cats_int64s")) return 0;
  return strings ? attrs.texts("cats_strings").size() : attrs.integers("cats_int64s").size();
}

void infer_one_hot(InferContext& context) {
  const size_t count = category_count(context.attrs(), context.dtype(0) == DType::string);
  HONE_CHECK(count > 0, "OneHotEncoder has no categories");
  std::vector<Dim> dims = context.shape(0).dims();
  dims.emplace_back(static_cast<int64_t>(count));
  context.set(0, DType::f32, Shape(std::move(dims)));
}
void eval_one_hot(EvalContext& context) {
  const Attrs& attrs = context.attrs();
  const Tensor& x = context.input(0);
  const bool strings = x.dtype() == DType::string;
  const size_t count = category_count(attrs, strings);
  std::vector<double> out;
  for (int64_t i = 0; i < x.size(); ++i) {
    bool found = false;
    for (size_t c = 0; c < count; ++c) {
      const bool same = strings ? x.strings()[static_cast<size_t>(i)] == attrs.texts("cats_strings")[c]
                                : x.integer(i) == attrs.integers("cats_int64s")[c];
      out.push_back(same ? 1 : 0);
      found |= same;
    }
    HONE_CHECK(found || attrs.integer("zeros") != 0, "element {} is in no category", i);
  }
  Dims dims = x.dims();
  dims.push_back(static_cast<int64_t>(count));
  context.set(0, write_doubles(DType::f32, std::move(dims), out));
}

// ---- LabelEncoder: keys and values as tensors, whatever attributes they came in ----

Tensor first_of(const Attrs& attrs, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const AttrValue* value = attrs.find(name);
    if (value == nullptr) continue;
    if (const auto* tensor = std::get_if<Tensor>(value)) return *tensor;
    if (const auto* texts = std::get_if<std::vector<std::string>>(value))
      return Tensor::of_strings({static_cast<int64_t>(texts->size())}, *texts);
    if (const auto* integers = std::get_if<std::vector<int64_t>>(value))
      return Tensor::of<int64_t>({static_cast<int64_t>(integers->size())}, std::span<const int64_t>(*integers));
    const std::vector<double>& reals = std::get<std::vector<double>>(*value);
    const std::vector<float> floats(reals.begin(), reals.end());
    return Tensor::of<float>({static_cast<int64_t>(floats.size())}, std::span<const float>(floats));
  }
  throw Error("LabelEncoder has no keys or no values");
}

Tensor default_of(const Attrs& attrs, DType dtype) {
  if (attrs.has("default_tensor")) return attrs.tensor("default_tensor");
  if (dtype == DType::string)
    return Tensor::of_strings({1}, {attrs.has("default_string") ? attrs.text("default_string") : "_Unused"});
  if (is_float(dtype)) return scalar_of(dtype, attrs.has("default_float") ? attrs.real("default_float") : -0.0);
  return scalar_of(dtype, static_cast<double>(attrs.integer_or("default_int64", -1)));
}

void import_label_encoder(ImportContext& context) {
  const Attrs& attrs = context.attrs();
  const Tensor values = first_of(attrs, {"values_tensor", "values_strings", "values_int64s", "values_floats"});
  Attrs own{{"keys", first_of(attrs, {"keys_tensor", "keys_strings", "keys_int64s", "keys_floats"})},
            {"to", values},
            {"otherwise", default_of(attrs, values.dtype())}};
  context.set_output(0, context.add("LabelEncoder", {context.input(0)}, std::move(own))->output());
}

/// Before version 2: strings become their places in a list, integers the strings there.
void import_class_list(ImportContext& context) {
  const std::vector<std::string>& classes = context.attrs().texts("classes_strings");
  const auto count = static_cast<int64_t>(classes.size());
  const std::vector<int64_t> places = iota(count);
  const Tensor names = Tensor::of_strings({count}, classes),
               numbers = Tensor::of<int64_t>({count}, std::span<const int64_t>(places));
  const bool from_names = context.input(0)->type.dtype == DType::string;
  const Tensor& values = from_names ? numbers : names;
  Attrs own{{"keys", from_names ? names : numbers},
            {"to", values},
            {"otherwise", default_of(context.attrs(), values.dtype())}};
  context.set_output(0, context.add("LabelEncoder", {context.input(0)}, std::move(own))->output());
}

/// CategoryMapper: two lists, used in the direction that the operand's type asks for.
void import_category_mapper(ImportContext& context) {
  const bool from_names = context.input(0)->type.dtype == DType::string;
  const Tensor names = first_of(context.attrs(), {"cats_strings"}),
               numbers = first_of(context.attrs(), {"cats_int64s"});
  const Tensor& values = from_names ? numbers : names;
  Attrs own{{"keys", from_names ? names : numbers},
            {"to", values},
            {"otherwise", default_of(context.attrs(), values.dtype())}};
  context.set_output(0, context.add("LabelEncoder", {context.input(0)}, std::move(own))->output());
}

void infer_label_encoder(InferContext& context) {
  const Tensor &keys = context.attrs().tensor("keys"), &values = context.attrs().tensor("to");
  HONE_CHECK(keys.size() == values.size(), "LabelEncoder has {} keys and {} values", keys.size(), values.size());
  HONE_CHECK_AS(TypeError, (keys.dtype() == DType::string) == (context.dtype(0) == DType::string),
                "LabelEncoder's keys are {}, its operand {}", name_of(keys.dtype()), name_of(context.dtype(0)));
  context.set(0, values.dtype(), context.shape(0));
}

/// NaN equals NaN here.
std::string key_of(const Tensor& tensor, int64_t i) {
  if (tensor.dtype() == DType::string) return tensor.strings()[static_cast<size_t>(i)];
  const double value = tensor.real(i);
  return std::isnan(value) ? "nan" : fmt::format("{}", value);
}

void eval_label_encoder(EvalContext& context) {
  const Tensor &x = context.input(0), &keys = context.attrs().tensor("keys"), &values = context.attrs().tensor("to"),
               &otherwise = context.attrs().tensor("otherwise");
  std::map<std::string, int64_t> places;
  for (int64_t i = 0; i < keys.size(); ++i) places.emplace(key_of(keys, i), i);
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < x.size(); ++i) {
    const auto at = places.find(key_of(x, i));
    chosen.push_back(at == places.end() ? -1 : at->second);
  }
  const int64_t count = x.size();
  const Tensor flat = pick(values.reshaped({values.size()}), {chosen}, &otherwise);
  HONE_ASSERT(flat.size() == count, "{} labels for {} elements", flat.size(), count);
  context.set(0, flat.reshaped(x.dims()));
}

/// A Gather along the last axis, of a row where there is no other.
void import_extract(ImportContext& context) {
  Value *x = context.input(0), *indices = context.input(1);
  if (!x->type.ranked || !indices->type.ranked || x->type.shape.rank() == 0)
    return context.set_output(0, context.add("ArrayFeatureExtractor", {x, indices})->output());
  if (x->type.shape.rank() == 1) x = context.add("Unsqueeze", {x, integer_constant(context, {0})})->output();
  if (indices->type.shape.rank() != 1)
    indices = context.add("Reshape", {indices, integer_constant(context, {-1})})->output();
  context.set_output(0, context.add("Gather", {x, indices}, {{"axis", int64_t{-1}}})->output());
}

bool is_f32(const Value* value) { return value->type.ranked && value->type.dtype == DType::f32; }

Value* f32_list(ImportContext& context, const std::vector<double>& list) {
  const Dims dims = list.size() == 1 ? Dims{} : Dims{static_cast<int64_t>(list.size())};
  return context.constant(write_doubles(DType::f32, dims, list));
}

void import_as_it_is(ImportContext& context, std::string_view op) {
  std::vector<Value*> inputs;
  for (size_t i = 0; i < context.inputs(); ++i) inputs.push_back(context.input(i));
  context.set_output(0, context.add(op, std::move(inputs), context.attrs())->output());
}

/// A difference and a product of floats, where the lists are one number or one for each column.
void import_scaler(ImportContext& context) {
  Value* x = context.input(0);
  const std::vector<double> offset = reals_or(context.attrs(), "offset"), scale = reals_or(context.attrs(), "scale");
  const Shape& shape = x->type.shape;
  const auto fits = [&](const std::vector<double>& list) {
    return list.size() < 2 || (shape.rank() > 0 && shape[shape.rank() - 1] == Dim(static_cast<int64_t>(list.size())));
  };
  const bool numeric = is_f32(x) || x->type.dtype == DType::i64 || x->type.dtype == DType::i32;
  if (!x->type.ranked || !numeric || !fits(offset) || !fits(scale)) return import_as_it_is(context, "Scaler");
  x = as_type(context, x, DType::f32);
  const auto apply = [&](std::string_view op, const std::vector<double>& list) {
    if (!list.empty()) x = made(context, op, {x, f32_list(context, list)});
  };
  apply("Sub", offset);
  apply("Mul", scale);
  context.set_output(0, x == context.input(0) ? context.add("Identity", {x})->output() : x);
}

/// Of floats whether each is larger, as a number.
void import_binarizer(ImportContext& context) {
  Value* x = context.input(0);
  if (!is_f32(x)) return import_as_it_is(context, "Binarizer");
  const AttrValue* threshold = context.attrs().find("threshold");
  Value* larger = made(context, "Greater", {x, f32_list(context, {threshold ? context.attrs().real("threshold") : 0})});
  context.set_output(0, as_type(context, larger, DType::f32));
}

/// Of floats a choice between them and the list, where that is one number or one for each column.
void import_imputer(ImportContext& context) {
  Value* x = context.input(0);
  const std::vector<double> list = reals_or(context.attrs(), "imputed_value_floats");
  const Shape& shape = x->type.shape;
  const bool fits = list.size() == 1 || (!list.empty() && x->type.ranked && shape.rank() > 0 &&
                                         shape[shape.rank() - 1] == Dim(static_cast<int64_t>(list.size())));
  if (!is_f32(x) || !fits) return import_as_it_is(context, "Imputer");
  const double replaced =
      context.attrs().has("replaced_value_float") ? context.attrs().real("replaced_value_float") : 0;
  Value* missing =
      std::isnan(replaced) ? made(context, "IsNaN", {x}) : made(context, "Equal", {x, f32_list(context, {replaced})});
  context.set_output(0, made(context, "Where", {missing, f32_list(context, list), x}));
}

/// Of floats an LpNormalization, or a quotient by the largest number where that is not 0.
void import_normalizer(ImportContext& context) {
  Value* x = context.input(0);
  const std::string norm = context.attrs().has("norm") ? context.attrs().text("norm") : "MAX";
  if (!is_f32(x) || x->type.shape.rank() == 0 || (norm != "MAX" && norm != "L1" && norm != "L2"))
    return import_as_it_is(context, "Normalizer");
  if (norm != "MAX")
    return context.set_output(
        0, made(context, "LpNormalization", {x}, {{"axis", int64_t{-1}}, {"p", int64_t{norm == "L1" ? 1 : 2}}}));
  Value* largest = made(context, "ReduceMax", {x, integer_constant(context, {-1})});
  Value *zero = f32_list(context, {0}), *one = f32_list(context, {1});
  Value* divisor = made(context, "Where", {made(context, "Equal", {largest, zero}), one, largest});
  context.set_output(0, made(context, "Div", {x, divisor}));
}

/// Of floats in columns a Concat, where none is cut or filled up.
void import_vectorizer(ImportContext& context) {
  const Dims widths = context.attrs().has("inputdimensions") ? context.attrs().integers("inputdimensions") : Dims{};
  std::vector<Value*> columns;
  for (size_t i = 0; i < context.inputs(); ++i) {
    Value* x = context.input(i);
    HONE_CHECK(x != nullptr, "its operand {} is missing", i);
    const bool whole = is_f32(x) && x->type.shape.rank() == 2 && i < widths.size() &&
                       x->type.shape[1] == Dim(widths[i]) && x->type.shape[0] == context.input(0)->type.shape[0];
    if (!whole || widths.size() != context.inputs()) return import_as_it_is(context, "FeatureVectorizer");
    columns.push_back(x);
  }
  context.set_output(0, made(context, "Concat", std::move(columns), {{"axis", int64_t{1}}}));
}

OpDef with_import(OpDef op, void (*import)(ImportContext&)) {
  for (OnnxRule& rule : op.onnx) rule.import = import;
  return op;
}

OpDef ml_op(std::string_view name, std::vector<AttrSpec> attrs, void (*infer)(InferContext&),
            void (*eval)(EvalContext&)) {
  OpDef op{.name = name};
  op.attrs = std::move(attrs);
  op.infer = infer;
  op.eval = eval;
  op.onnx = {{name, 1, kEveryLater, nullptr, kDomain}};
  return op;
}

AttrSpec optional_attr(std::string_view name, AttrKind kind) { return {name, kind, std::nullopt, false, {}}; }

OpDef with_inputs(OpDef op, size_t least, size_t most) {
  op.min_inputs = least;
  op.max_inputs = most;
  return op;
}

}  // namespace

const OpDef ops::array_feature_extractor =
    with_import(with_inputs(ml_op("ArrayFeatureExtractor", {}, infer_extract, eval_extract), 2, 2), import_extract);
const OpDef ops::binarizer =
    with_import(ml_op("Binarizer", {real_attr("threshold", 0)}, infer_same, eval_binarizer), import_binarizer);
const OpDef ops::feature_vectorizer =
    with_import(with_inputs(ml_op("FeatureVectorizer", {required_attr("inputdimensions", AttrKind::integers)},
                                  infer_vectorizer, eval_vectorizer),
                            1, 0xffff),
                import_vectorizer);
const OpDef ops::imputer =
    with_import(ml_op("Imputer",
                      {optional_attr("imputed_value_floats", AttrKind::reals), integers_attr("imputed_value_int64s"),
                       real_attr("replaced_value_float", 0), integer_attr("replaced_value_int64", 0)},
                      infer_same, eval_imputer),
                import_imputer);
const OpDef ops::one_hot_encoder =
    ml_op("OneHotEncoder",
          {integers_attr("cats_int64s"), optional_attr("cats_strings", AttrKind::texts), integer_attr("zeros", 1)},
          infer_one_hot, eval_one_hot);
const OpDef ops::ml_normalizer =
    with_import(ml_op("Normalizer", {text_attr("norm", "MAX")}, infer_f32, eval_normalizer), import_normalizer);
const OpDef ops::scaler =
    with_import(ml_op("Scaler", {optional_attr("offset", AttrKind::reals), optional_attr("scale", AttrKind::reals)},
                      infer_f32, eval_scaler),
                import_scaler);
const OpDef ops::label_encoder{.name = "LabelEncoder",
                               .attrs = {required_attr("keys", AttrKind::tensor), required_attr("to", AttrKind::tensor),
                                         required_attr("otherwise", AttrKind::tensor)},
                               .infer = infer_label_encoder,
                               .eval = eval_label_encoder,
                               .onnx = {{"LabelEncoder", 2, kEveryLater, import_label_encoder, kDomain},
                                        {"LabelEncoder", 1, 1, import_class_list, kDomain},
                                        {"CategoryMapper", 1, kEveryLater, import_category_mapper, kDomain}}};

}  // namespace hone
