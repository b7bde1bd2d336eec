// SPDX-License-Identifier: Apache-2.0
//
// Configurations from plans.
#include "triton/config.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

namespace hone::triton {
namespace {

using Json = nlohmann::ordered_json;

struct TypeRow {
  hone_dtype dtype;
  TRITONSERVER_DataType type;
  size_t bytes;
  const char* name;  // in configurations
};

constexpr TypeRow kTypes[] = {
    {HONE_BOOL, TRITONSERVER_TYPE_BOOL, 1, "TYPE_BOOL"},      {HONE_U8, TRITONSERVER_TYPE_UINT8, 1, "TYPE_UINT8"},
    {HONE_U16, TRITONSERVER_TYPE_UINT16, 2, "TYPE_UINT16"},   {HONE_U32, TRITONSERVER_TYPE_UINT32, 4, "TYPE_UINT32"},
    {HONE_U64, TRITONSERVER_TYPE_UINT64, 8, "TYPE_UINT64"},   {HONE_I8, TRITONSERVER_TYPE_INT8, 1, "TYPE_INT8"},
    {HONE_I16, TRITONSERVER_TYPE_INT16, 2, "TYPE_INT16"},     {HONE_I32, TRITONSERVER_TYPE_INT32, 4, "TYPE_INT32"},
    {HONE_I64, TRITONSERVER_TYPE_INT64, 8, "TYPE_INT64"},     {HONE_F16, TRITONSERVER_TYPE_FP16, 2, "TYPE_FP16"},
    {HONE_F32, TRITONSERVER_TYPE_FP32, 4, "TYPE_FP32"},       {HONE_F64, TRITONSERVER_TYPE_FP64, 8, "TYPE_FP64"},
    {HONE_STRING, TRITONSERVER_TYPE_BYTES, 0, "TYPE_STRING"}, {HONE_BF16, TRITONSERVER_TYPE_BF16, 2, "TYPE_BF16"}};

Error refusal(const std::string& text, const std::string& hint) { return {HONE_ERROR, text, hint}; }

const TypeRow& row_of(hone_dtype dtype, const std::string& tensor) {
  for (const TypeRow& row : kTypes)
    if (row.dtype == dtype) return row;
  throw refusal(tensor + " holds elements that Triton has no type for", "serve tensors of numbers, bool or strings");
}

const char* name_of(TRITONSERVER_DataType type) {
  for (const TypeRow& row : kTypes)
    if (row.type == type) return row.name;
  return "TYPE_INVALID";
}

/// The sizes in "f32[n,3,2*(n+1)]".
std::vector<std::string> sizes_of(std::string_view type) {
  const size_t open = type.find('[');
  std::vector<std::string> sizes;
  if (open == std::string_view::npos) return sizes;
  type = type.substr(open + 1, type.rfind(']') - open - 1);
  if (type.empty()) return sizes;
  sizes.emplace_back();
  for (int depth = 0; const char c : type) {
    depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    if (c == ',' && depth == 0) sizes.emplace_back();
    else if (c != ' ') sizes.back() += c;
  }
  return sizes;
}

bool is_name(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.'; });
}

/// Whether a size contains a name.
bool mentions(std::string_view size, std::string_view name) {
  for (size_t at = 0; at < size.size();) {
    size_t end = at;
    while (end < size.size() && is_name(size.substr(at, end - at + 1))) ++end;
    if (end > at && size.substr(at, end - at) == name) return true;
    at = std::max(end, at + 1);
  }
  return false;
}

/// The first size of every tensor is one name that nothing else depends on.
bool have_rows(const std::vector<std::vector<std::string>>& tensors) {
  const std::string rows = tensors.empty() || tensors[0].empty() ? "" : tensors[0][0];
  if (!is_name(rows)) return false;
  return std::ranges::all_of(tensors, [&](const std::vector<std::string>& sizes) {
    return !sizes.empty() && sizes[0] == rows &&
           std::none_of(sizes.begin() + 1, sizes.end(), [&](const std::string& size) { return mentions(size, rows); });
  });
}

std::vector<ShapeProfile> profiles_of(const Plan& plan, const std::vector<Io>& inputs) {
  std::vector<ShapeProfile> profiles(plan.info().profiles);
  for (size_t p = 0; p < profiles.size(); ++p) {
    const int number = static_cast<int>(p);
    for (const Io& io : inputs) profiles[p].inputs.push_back({io.name, io.dims, io.dims, io.dims});
    auto profile = detail::sized<hone_profile>();
    check(hone_plan_profile(plan.get(), number, &profile));
    for (size_t i = 0; i < profile.ranges; ++i) {
      auto range = detail::sized<hone_range>();
      check(hone_plan_range(plan.get(), number, i, &range));
      for (Range& known : profiles[p].inputs) {
        if (known.input != range.input) continue;
        known.min.assign(range.min, range.min + range.rank);
        known.opt.assign(range.opt, range.opt + range.rank);
        known.max.assign(range.max, range.max + range.rank);
      }
    }
  }
  return profiles;
}

/// The sizes that profiles were tuned for, and the largest.
std::set<int64_t> preferred_rows(const Interface& interface, int64_t most) {
  std::set<int64_t> rows = {most};
  for (const ShapeProfile& profile : interface.profiles)
    if (const int64_t opt = profile.inputs[0].opt[0]; opt > 1 && opt <= most) rows.insert(opt);
  return rows;
}

/// An entry's type and sizes, where it does not say them. Triton has no tensors without sizes: those are [1], reshaped.
void complete_entry(Json& entry, const Io& io, bool batched) {
  if (entry.value("data_type", "TYPE_INVALID") == "TYPE_INVALID") entry["data_type"] = name_of(io.type);
  if (entry.contains("dims") && !entry["dims"].empty()) return;
  const std::vector<int64_t> dims(io.dims.begin() + (batched ? 1 : 0), io.dims.end());
  entry["dims"] = dims.empty() ? std::vector<int64_t>{1} : dims;
  if (dims.empty()) entry["reshape"] = {{"shape", Json::array()}};
}

void complete_entries(Json& config, const char* list, const std::vector<Io>& tensors, bool batched) {
  Json& entries = config[list];
  if (!entries.is_array()) entries = Json::array();
  for (const Io& io : tensors) {
    const auto found =
        std::ranges::find_if(entries, [&](const Json& entry) { return entry.value("name", "") == io.name; });
    if (found == entries.end()) complete_entry(entries.emplace_back(Json{{"name", io.name}}), io, batched);
    else complete_entry(*found, io, batched);
  }
}

std::string text_of(const std::vector<int64_t>& dims) { return Json(dims).dump(); }

void check_entry(const Json& entry, const std::vector<Io>& tensors, const std::string& list, bool batched) {
  const std::string name = entry.value("name", "");
  const auto io = std::ranges::find(tensors, name, &Io::name);
  if (io == tensors.end())
    throw refusal("the configuration has an " + list + " '" + name + "', the plan has none of that name",
                  "hone inspect shows the plan's; without config.pbtxt they are taken from it");
  if (const std::string type = entry.value("data_type", ""); type != name_of(io->type))
    throw refusal(name + " is " + name_of(io->type) + " in the plan, " + type + " in the configuration",
                  "change data_type, or leave it out");
  const Json& given = entry.contains("reshape") ? entry["reshape"]["shape"] : entry["dims"];
  std::vector<int64_t> dims = given.is_array() ? given.get<std::vector<int64_t>>() : std::vector<int64_t>();
  if (batched) dims.insert(dims.begin(), -1);
  bool fits = dims.size() == io->dims.size();
  for (size_t i = 0; fits && i < dims.size(); ++i) fits = dims[i] == io->dims[i] || dims[i] == -1 || io->dims[i] == -1;
  if (!fits)
    throw refusal(name + " has the sizes " + text_of(io->dims) + " in the plan, " + text_of(dims) +
                      " in the configuration, the batch included",
                  "change dims, or leave them out");
}

bool has_entries(const Json& config, const char* list) { return config.contains(list) && !config[list].empty(); }

}  // namespace

Interface interface_of(const Plan& plan) {
  Interface found;
  std::vector<std::vector<std::string>> sizes;
  for (size_t i = 0; i < hone_plan_tensors(plan.get()); ++i) {
    auto tensor = detail::sized<hone_tensor>();
    auto details = detail::sized<hone_tensor_details>();
    check(hone_plan_tensor(plan.get(), i, &tensor));
    check(hone_plan_tensor_details(plan.get(), i, &details));
    const std::string name = tensor.name;
    const TypeRow& row = row_of(tensor.dtype, name);
    if (std::string_view(details.layout) != "linear")
      throw refusal(name + " lies in the layout " + details.layout, "build with linear inputs and outputs");
    Io io{name, row.dtype, row.type, row.bytes, tensor.by_value != 0 || row.bytes == 0, {-1}};
    if (tensor.rank >= 0) io.dims.assign(tensor.dims, tensor.dims + tensor.rank);
    (tensor.is_input != 0 ? found.inputs : found.outputs).push_back(std::move(io));
    sizes.push_back(tensor.rank < 0 ? std::vector<std::string>() : sizes_of(details.type));
  }
  found.profiles = profiles_of(plan, found.inputs);
  found.has_rows = !found.inputs.empty() && have_rows(sizes);
  if (found.has_rows)
    for (const ShapeProfile& profile : found.profiles)
      found.most_rows = std::max(found.most_rows, profile.inputs[0].max[0]);
  return found;
}

std::string completed(const std::string& config, const Interface& interface) {
  Json json = Json::parse(config);
  if (interface.has_rows && json.value("max_batch_size", 0) == 0 && !has_entries(json, "input") &&
      !has_entries(json, "output"))
    json["max_batch_size"] = interface.most_rows;
  const int64_t most = json.value("max_batch_size", 0);
  complete_entries(json, "input", interface.inputs, most > 0);
  complete_entries(json, "output", interface.outputs, most > 0);
  if (interface.has_rows && most > 1 && !json.contains("dynamic_batching") && !json.contains("sequence_batching"))
    json["dynamic_batching"] = {{"preferred_batch_size", preferred_rows(interface, most)}};
  return json.dump();
}

int64_t checked_batch(const std::string& config, const Interface& interface) {
  const Json json = Json::parse(config);
  const int64_t most = json.value("max_batch_size", 0);
  if (most > 0 && !interface.has_rows)
    throw refusal("max_batch_size is " + std::to_string(most) +
                      ", but the first size of the plan's inputs and outputs is not one size of their own",
                  "set max_batch_size to 0 and give dims in full, or leave the configuration out");
  if (most > interface.most_rows && interface.has_rows)
    throw refusal(
        "max_batch_size is " + std::to_string(most) + ", the plan takes at most " + std::to_string(interface.most_rows),
        "build it with larger --maxShapes, or set max_batch_size to what it takes");
  for (const Json& entry : json.value("input", Json::array())) check_entry(entry, interface.inputs, "input", most > 0);
  for (const Json& entry : json.value("output", Json::array()))
    check_entry(entry, interface.outputs, "output", most > 0);
  for (const Io& io : interface.inputs)
    if (std::ranges::none_of(json.value("input", Json::array()),
                             [&](const Json& entry) { return entry.value("name", "") == io.name; }))
      throw refusal("the configuration lacks the plan's input '" + io.name + "'", "name every input, or none");
  return most;
}

}  // namespace hone::triton
