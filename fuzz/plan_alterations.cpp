// SPDX-License-Identifier: Apache-2.0
#include "plan_alterations.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "plan/plan_testing.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hone::fuzz {
namespace {

constexpr size_t kHeader = 48, kAlignment = 64;

/// Values of a document by what can be done with them.
struct Places {
  std::vector<Json*> numbers, texts, lists, objects;

  void collect(Json& json) {
    if (json.is_number()) numbers.push_back(&json);
    else if (json.is_string()) texts.push_back(&json);
    else if (json.is_structured()) {
      (json.is_array() ? lists : objects).push_back(&json);
      for (Json& item : json) collect(item);
    }
  }
};

template <typename T>
T& one_of(std::vector<T>& list, Choices& choices) {
  return list[choices.below(list.size())];
}

Json edge_number(const Json& old, const Places& places, Choices& choices) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  constexpr int64_t kEdges[] = {0,
                                -1,
                                1,
                                2,
                                3,
                                -2,
                                7,
                                8,
                                16,
                                100,
                                -100,
                                int64_t{1} << 31,
                                -(int64_t{1} << 31),
                                int64_t{1} << 32,
                                65536,
                                int64_t{1} << 62,
                                kMax,
                                -kMax - 1,
                                kMax - 63,
                                1 << 20};
  const bool real = old.is_number_float();
  const int64_t value = real ? 0 : old.get<int64_t>();
  switch (choices.below(7)) {
    case 0: return static_cast<int64_t>(static_cast<uint64_t>(value) + 1);
    case 1: return static_cast<int64_t>(static_cast<uint64_t>(value) - 1);
    case 2: return static_cast<int64_t>(static_cast<uint64_t>(value) * 2);
    case 3: return value / 2;
    case 4: return places.numbers.empty() ? old : Json(*places.numbers[choices.below(places.numbers.size())]);
    case 5: return static_cast<int64_t>(choices.below(64));
    default: return kEdges[choices.below(std::size(kEdges))];
  }
}

constexpr std::string_view kSizes[] = {"0",
                                       "-1",
                                       "1",
                                       "N",
                                       "2*N",
                                       "N + 1",
                                       "N - 1",
                                       "floordiv(N, 2)",
                                       "M",
                                       "1000000",
                                       "4611686018427387904",
                                       "N*N*N*N",
                                       "min(N, 0)",
                                       "floordiv(N, 0)",
                                       "mod(N, 0)"};

void alter_text(Json& text, const Places& places, Choices& choices) {
  const std::string old = text.get<std::string>();
  if (parse_dtype(old)) {
    text = std::string(name_of(static_cast<DType>(choices.below(static_cast<size_t>(DType::map) + 1))));
  } else if (parse_layout(old)) {
    constexpr Layout kLayouts[] = {Layout::linear, Layout::channels_last, Layout::blocked8, Layout::blocked16};
    text = std::string(name_of(kLayouts[choices.below(std::size(kLayouts))]));
  } else if (choices.one_in(3) || places.texts.empty()) {
    text = std::string(kSizes[choices.below(std::size(kSizes))]);
  } else {
    text = Json(*places.texts[choices.below(places.texts.size())]);
  }
}

void alter_list(Json& list, const Places& places, Choices& choices) {
  const size_t size = list.size(), at = choices.below(size);
  const auto place = list.begin() + static_cast<std::ptrdiff_t>(at);
  switch (choices.below(6)) {
    case 0:
      if (size > 0) list.erase(place);
      break;
    case 1:
      if (size > 0) list.insert(place, Json(list[at]));
      break;
    case 2: list.insert(place, edge_number(Json(0), places, choices)); break;
    case 3:
      if (size > 1) std::swap(list[at], list[choices.below(size)]);
      break;
    case 4:
      if (size > 0) list[at] = Json(list[choices.below(size)]);
      break;
    default: list = Json(*places.lists[choices.below(places.lists.size())]);
  }
}

void alter_object(Json& object, Choices& choices) {
  if (object.empty()) return;
  auto at = object.begin();
  std::advance(at, static_cast<std::ptrdiff_t>(choices.below(object.size())));
  auto other = object.begin();
  std::advance(other, static_cast<std::ptrdiff_t>(choices.below(object.size())));
  if (choices.one_in(2)) object.erase(at);
  else *at = Json(*other);
}

void alter_json(Json& json, Choices& choices) {
  Places places;
  places.collect(json);
  const size_t kind = choices.below(16);
  if (kind < 10 && !places.numbers.empty()) {
    Json& number = *one_of(places.numbers, choices);
    number = edge_number(number, places, choices);
  } else if (kind < 12 && !places.texts.empty()) {
    alter_text(*one_of(places.texts, choices), places, choices);
  } else if (kind < 15 && !places.lists.empty()) {
    alter_list(*one_of(places.lists, choices), places, choices);
  } else if (!places.objects.empty()) {
    alter_object(*one_of(places.objects, choices), choices);
  }
}

/// What the reference keeps: one number in the text of a graph.
void alter_graph(std::string& text, Choices& choices) {
  std::vector<size_t> digits;
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] >= '0' && text[i] <= '9') digits.push_back(i);
  if (digits.empty()) return;
  const size_t at = one_of(digits, choices);
  if (choices.one_in(3)) text.insert(at, "9");
  else if (choices.one_in(3)) text.insert(at, "-");
  else text[at] = static_cast<char>('0' + choices.below(10));
}

/// A section that is named so, where an earlier change left one there.
std::string* section_of(PlanPieces& plan, const Json& number) {
  const bool known = number.is_number_integer() && number.get<uint64_t>() < plan.sections.size();
  return known ? &plan.sections[number.get<size_t>()] : nullptr;
}

/// One of the members of a list of the manifest; null where there is none.
Json* member_of(PlanPieces& plan, const char* list, Choices& choices) {
  Json& members = plan.manifest[list];
  return members.is_array() && !members.empty() ? &members[choices.below(members.size())] : nullptr;
}

/// A constant of fewer elements, which its type admits to.
void cut_constant(PlanPieces& plan, Choices& choices) {
  Json* constant = member_of(plan, "constants", choices);
  if (constant == nullptr || !constant->is_object() || !constant->contains("type")) return;
  Json& type = (*constant)["type"];
  const std::string* whole = section_of(plan, constant->value("section", Json()));
  const auto dtype = type.is_object() ? parse_dtype(type.value("dtype", "")) : std::nullopt;
  if (whole == nullptr || !dtype) return;
  const size_t element = size_of(*dtype), count = whole->size() / std::max<size_t>(element, 1);
  const size_t kept = choices.one_in(2) ? count - std::min<size_t>(count, 1) : choices.below(count + 1);
  type["dims"] = Json::array({kept});
  (*constant)["section"] = plan.sections.size();
  plan.sections.push_back(whole->substr(0, kept * element));
}

/// Contents of a constant: places and indices may be among them.
void alter_constant(PlanPieces& plan, Choices& choices) {
  const Json* constant = member_of(plan, "constants", choices);
  if (constant == nullptr || !constant->is_object()) return;
  std::string* bytes = section_of(plan, constant->value("section", Json()));
  if (bytes == nullptr) return;
  for (size_t changes = 1 + choices.below(8); changes > 0 && !bytes->empty(); --changes)
    (*bytes)[choices.below(bytes->size())] = static_cast<char>(choices.one_in(2) ? 0xff : choices.below(256));
}

void alter_code(PlanPieces& plan, Choices& choices) {
  const Json* blob = member_of(plan, "blobs", choices);
  std::string* bytes = blob == nullptr ? nullptr : section_of(plan, *blob);
  if (bytes == nullptr) return;
  Json json = Json::parse(*bytes, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return alter_graph(*bytes, choices);
  alter_json(json, choices);
  *bytes = json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// The parts of the manifest that say what a network tensor is: the interface, the buffer, the range of its shapes.
std::vector<Json*> mentions_of(PlanPieces& plan, const std::string& name) {
  Places places;
  places.collect(plan.manifest);
  std::vector<Json*> found;
  for (Json* object : places.objects)
    for (const char* key : {"name", "tensor"})
      if (const auto at = object->find(key); at != object->end() && at->is_string() && *at == name)
        found.push_back(object);
  return found;
}

/// The same change wherever a network tensor is described: what gets past their comparison to kernels.
void alter_tensor(PlanPieces& plan, Choices& choices) {
  const Json* io = member_of(plan, "io", choices);
  if (io == nullptr || !io->is_object() || !io->contains("name") || !(*io)["name"].is_string()) return;
  const size_t axis = choices.below(5), kind = choices.below(8);
  const Json size = choices.one_in(3) ? edge_number(Json(0), {}, choices) : Json(choices.below(20));
  Json text(choices.one_in(2) ? "f32" : "linear");
  alter_text(text, {}, choices);
  const auto alter_dims = [&](Json& dims) {
    if (!dims.is_array() || dims.empty()) return;
    if (kind == 0) dims.erase(dims.begin());
    else if (kind == 1) dims.insert(dims.begin(), size);
    else dims[axis % dims.size()] = size;
  };
  const std::string name = (*io)["name"].get<std::string>();
  for (size_t i = 0; i < mentions_of(plan, name).size(); ++i) {
    Json* object = mentions_of(plan, name)[i];  // one change may take another's place away
    for (const char* list : {"min", "opt", "max"})
      if (object->contains(list)) alter_dims((*object)[list]);
    if (!object->contains("type") || !(*object)["type"].is_object()) continue;
    Json& type = (*object)["type"];
    if (kind < 6 && type.contains("dims")) alter_dims(type["dims"]);
    else if (kind >= 6) type[parse_dtype(text.get<std::string>()) ? "dtype" : "layout"] = text;
  }
}

void alter_manifest(PlanPieces& plan, Choices& choices) {
  if (choices.one_in(4) || !plan.manifest.contains("io") || !plan.manifest.contains("profiles"))
    return alter_json(plan.manifest, choices);
  alter_json(plan.manifest[choices.one_in(4) ? "io" : "profiles"], choices);
}

}  // namespace

PlanPieces take_apart(std::string_view file) {
  uint64_t bytes = 0;
  std::memcpy(&bytes, file.data() + 16, sizeof bytes);
  PlanPieces plan;
  plan.manifest = Json::parse(file.substr(kHeader, bytes));
  for (const Json& row : plan.manifest["sections"])
    plan.sections.emplace_back(file.substr(row[0].get<size_t>(), row[1].get<size_t>()));
  plan.manifest.erase("sections");
  return plan;
}

std::string PlanPieces::file() const {
  std::string head = manifest.dump(-1, ' ', false, Json::error_handler_t::replace);
  head.pop_back();
  head += manifest.empty() ? "\"sections\":[" : ",\"sections\":[";
  std::string text, rest;
  for (size_t size = 0; text.empty() || text.size() > size;) {  // the table's length decides where the sections begin
    size = text.size();
    rest.clear();
    text = head;
    for (const std::string& section : sections) {
      const size_t used = kHeader + size + rest.size();
      rest.append((used + kAlignment - 1) / kAlignment * kAlignment - used, '\0');
      text += fmt::format("{}[{},{},{}]", &section == sections.data() ? "" : ",", kHeader + size + rest.size(),
                          section.size(), hash64(section));
      rest += section;
    }
    text += "]}";
    if (text.size() < size) text.resize(size, ' ');
  }
  return signed_plan(text, rest);
}

void alter(PlanPieces& plan, Choices& choices) {
  for (size_t changes = 1 + (choices.one_in(2) ? 0 : choices.below(4)); changes > 0; --changes) {
    const size_t kind = choices.below(16);
    if (kind < 6) alter_code(plan, choices);
    else if (kind < 9) alter_manifest(plan, choices);
    else if (kind < 13) alter_tensor(plan, choices);
    else if (kind < 15) cut_constant(plan, choices);
    else alter_constant(plan, choices);
  }
}

}  // namespace hone::fuzz
