// SPDX-License-Identifier: Apache-2.0
//
// JSON forms of attributes and types.
#include "tensor/json.h"

#include <algorithm>
#include <cmath>

#include "base/limits.h"
#include "base/text.h"

namespace hone {
namespace {

Json real_json(double value) { return std::isfinite(value) ? Json(value) : Json{{"real", exact(value)}}; }

double real_value(const Json& json) {
  if (json.is_number()) return json.get<double>();
  const std::optional<double> value = parse_real(text_member(json, "real"));
  HONE_CHECK(value.has_value(), "'{}' is not a number", json.dump());
  return *value;
}

template <typename T, typename Convert>
Json list(const std::vector<T>& values, const Convert& convert) {
  Json result = Json::array();
  for (const T& value : values) result.push_back(convert(value));
  return result;
}

/// Lists say what they hold, so that empty ones and whole-numbered reals come back as they were.
Json value_json(const AttrValue& value) {
  struct Writer {
    Json operator()(int64_t v) const { return v; }
    Json operator()(double v) const { return {{"real", exact(v)}}; }
    Json operator()(const std::string& v) const { return v; }
    Json operator()(const std::vector<int64_t>& v) const {
      return list(v, [](int64_t x) { return Json(x); });
    }
    Json operator()(const std::vector<double>& v) const { return {{"reals", list(v, real_json)}}; }
    Json operator()(const std::vector<std::string>& v) const {
      return {{"texts", list(v, [](const std::string& x) { return Json(x); })}};
    }
    Json operator()(const Tensor&) const { throw InternalError("a tensor attribute cannot be stored as JSON"); }
  };
  return std::visit(Writer(), value);
}

AttrValue value_from_json(const Json& json) {
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_string()) return json.get<std::string>();
  if (json.is_array()) {
    std::vector<int64_t> values;
    for (const Json& item : json) {
      HONE_CHECK(item.is_number_integer(), "a list of integers holds {}", item.dump());
      values.push_back(item.get<int64_t>());
    }
    return values;
  }
  HONE_CHECK(json.is_object() && json.size() == 1, "'{}' is not an attribute value", json.dump());
  if (json.contains("reals")) {
    std::vector<double> values;
    for (const Json& item : list_member(json, "reals")) values.push_back(real_value(item));
    return values;
  }
  if (json.contains("texts")) {
    std::vector<std::string> values;
    for (const Json& item : list_member(json, "texts")) {
      HONE_CHECK(item.is_string(), "a list of texts holds {}", item.dump());
      values.push_back(item.get<std::string>());
    }
    return values;
  }
  return real_value(json);
}

TensorType map_from_json(const Json& json) {
  const std::optional<DType> key = parse_dtype(text_member(json, "key")),
                             value = parse_dtype(text_member(json, "value"));
  HONE_CHECK(key == DType::i64 || key == DType::string, "keys of maps are i64 or string, not {}",
             text_member(json, "key"));
  HONE_CHECK(value && !is_container(*value), "'{}' is no element type of a map's values", text_member(json, "value"));
  return map_of(*key, *value);
}

}  // namespace

Json to_json(const Attrs& attrs) {
  Json result = Json::object();
  for (const auto& [name, value] : attrs) result[name] = value_json(value);
  return result;
}

Attrs attrs_from_json(const Json& json) {
  HONE_CHECK(json.is_object(), "'{}' is not a list of attributes", json.dump());
  Attrs attrs;
  for (const auto& [name, value] : json.items()) attrs.set(name, value_from_json(value));
  return attrs;
}

Json to_json(const TensorType& type) {
  if (type.dtype == DType::map && type.element != nullptr)
    return {{"dtype", name_of(type.dtype)}, {"key", name_of(type.key)}, {"value", name_of(type.element->dtype)}};
  if (type.element != nullptr) return {{"dtype", name_of(type.dtype)}, {"element", to_json(*type.element)}};
  if (!type.ranked) return {{"dtype", name_of(type.dtype)}};
  Json dims = Json::array();
  for (const Dim& dim : type.shape) dims.push_back(dim.is_constant() ? Json(dim.value()) : Json(dim.text()));
  return {{"dtype", name_of(type.dtype)}, {"dims", std::move(dims)}, {"layout", name_of(type.layout)}};
}

TensorType type_from_json(const Json& json, int nesting) {
  HONE_CHECK(nesting < static_cast<int>(kMaxTypeNesting), "a type is nested too deeply");
  const std::optional<DType> dtype = parse_dtype(text_member(json, "dtype"));
  HONE_CHECK(dtype.has_value(), "unknown element type {}", text_member(json, "dtype"));
  if (*dtype == DType::sequence || *dtype == DType::optional)
    return container_of(*dtype, type_from_json(member(json, "element"), nesting + 1));
  if (*dtype == DType::map) return map_from_json(json);
  if (!json.contains("dims")) return unranked(*dtype);
  const std::optional<Layout> layout = parse_layout(text_member(json, "layout"));
  HONE_CHECK(layout.has_value(), "unknown layout {}", text_member(json, "layout"));
  Shape shape;
  for (const Json& dim : list_member(json, "dims")) {
    HONE_CHECK(dim.is_number_integer() || dim.is_string(), "'{}' is not a size", dim.dump());
    shape.push_back(dim.is_string() ? Dim::parse(dim.get<std::string>()) : Dim(dim.get<int64_t>()));
    HONE_CHECK(!shape[shape.rank() - 1].is_constant() || shape[shape.rank() - 1].value() >= 0, "a size is negative: {}",
               dim.dump());
  }
  return {*dtype, std::move(shape), *layout};
}

Json parse_json(std::string_view text, std::string_view what) {
  HONE_CHECK(nesting_of(text) <= kMaxNesting, "{} is nested more than {} deep", what, kMaxNesting);
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    throw Error(fmt::format("{} is not valid JSON: {}", what, error.what()));
  }
}

const Json& member(const Json& object, std::string_view name) {
  HONE_CHECK(object.is_object(), "an object with '{}' is expected", name);
  const auto at = object.find(name);
  HONE_CHECK(at != object.end(), "'{}' is missing", name);
  return *at;
}

int64_t integer_member(const Json& object, std::string_view name) {
  const Json& value = member(object, name);
  HONE_CHECK(value.is_number_integer(), "'{}' is not an integer", name);
  return value.get<int64_t>();
}

double real_member(const Json& object, std::string_view name) {
  const Json& value = member(object, name);
  HONE_CHECK(value.is_number(), "'{}' is not a number", name);
  return value.get<double>();
}

std::string text_member(const Json& object, std::string_view name) {
  const Json& value = member(object, name);
  HONE_CHECK(value.is_string(), "'{}' is not a text", name);
  return value.get<std::string>();
}

const Json& list_member(const Json& object, std::string_view name) {
  const Json& value = member(object, name);
  HONE_CHECK(value.is_array(), "'{}' is not a list", name);
  return value;
}

}  // namespace hone
