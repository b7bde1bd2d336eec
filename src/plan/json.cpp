// SPDX-License-Identifier: Apache-2.0
//
// Plan structures to and from JSON, field by field. What the manifest leaves out cannot be in a plan.
#include "plan/json.h"

namespace hone {
namespace {

constexpr std::string_view kKinds[] = {"input", "output", "arena"};

template <typename T, typename Convert>
Json list_of(const std::vector<T>& items, const Convert& convert) {
  Json result = Json::array();
  for (const T& item : items) result.push_back(convert(item));
  return result;
}

template <typename Convert>
auto read_list(const Json& json, std::string_view name, const Convert& convert) {
  std::vector<decltype(convert(json))> result;
  for (const Json& item : list_member(json, name)) result.push_back(convert(item));
  return result;
}

int64_t integer(const Json& json) {
  HONE_CHECK(json.is_number_integer(), "'{}' is not an integer", json.dump());
  return json.get<int64_t>();
}
int32_t index(const Json& json) {
  const int64_t value = integer(json);
  HONE_CHECK(value >= -1 && value <= INT32_MAX, "index {} is out of range", value);
  return static_cast<int32_t>(value);
}
std::string text(const Json& json) {
  HONE_CHECK(json.is_string(), "'{}' is not a text", json.dump());
  return json.get<std::string>();
}

Json buffer_json(const BufferSlot& slot) {
  Json json{{"name", slot.name},
            {"type", to_json(slot.type)},
            {"kind", kKinds[static_cast<size_t>(slot.kind)]},
            {"alias", slot.alias}};
  if (slot.managed) json["managed"] = true;
  if (slot.debug) json["debug"] = true;
  if (slot.entry) json["entry"] = true;
  if (slot.most) json["most"] = to_json(TensorType{slot.type.dtype, *slot.most})["dims"], json["sizes"] = slot.sizes;
  return json;
}
BufferSlot read_buffer(const Json& json) {
  BufferSlot slot{.name = text_member(json, "name"),
                  .type = type_from_json(member(json, "type")),
                  .kind = BufferKind::arena,
                  .alias = index(member(json, "alias"))};
  const std::string kind = text_member(json, "kind");
  const auto at = std::find(std::begin(kKinds), std::end(kKinds), kind);
  HONE_CHECK(at != std::end(kKinds), "unknown kind of buffer '{}'", kind);
  slot.kind = static_cast<BufferKind>(at - std::begin(kKinds));
  slot.managed = json.contains("managed");
  slot.debug = json.contains("debug");
  slot.entry = json.contains("entry");
  if (!json.contains("most")) return slot;
  slot.most = type_from_json({{"dtype", "i64"}, {"dims", json["most"]}, {"layout", name_of(Layout::linear)}}).shape;
  slot.sizes = index(member(json, "sizes"));
  return slot;
}

Json step_json(const Step& step) {
  Json json{{"name", step.name},
            {"origin", step.origin},
            {"kind", step.kind},
            {"source", step.source},
            {"tactic", step.tactic},
            {"params", to_json(step.tactic_params)},
            {"details", to_json(step.details)},
            {"inputs", step.inputs},
            {"outputs", step.outputs},
            {"constants", step.constants},
            {"code", step.code},
            {"tuned_ms", step.tuned_ms}};
  if (step.stage != 0) json["stage"] = step.stage;
  if (step.by_entry) json["by_entry"] = true;
  return json;
}
Step read_step(const Json& json) {
  return {.name = text_member(json, "name"),
          .origin = read_list(json, "origin", text),
          .kind = text_member(json, "kind"),
          .source = text_member(json, "source"),
          .tactic = text_member(json, "tactic"),
          .tactic_params = attrs_from_json(member(json, "params")),
          .details = attrs_from_json(member(json, "details")),
          .inputs = read_list(json, "inputs", index),
          .outputs = read_list(json, "outputs", index),
          .constants = read_list(json, "constants", index),
          .code = index(member(json, "code")),
          .tuned_ms = real_member(json, "tuned_ms"),
          .stage = json.contains("stage") ? index(json["stage"]) : 0,
          .by_entry = json.contains("by_entry")};
}

Json profile_json(const Profile& profile) {
  return {{"ranges", list_of(profile.ranges,
                             [](const ProfileRange& r) {
                               return Json{{"tensor", r.tensor}, {"min", r.min}, {"opt", r.opt}, {"max", r.max}};
                             })},
          {"buffers", list_of(profile.buffers, buffer_json)},
          {"steps", list_of(profile.steps, step_json)},
          {"arena_bytes", profile.arena_bytes}};
}
ProfileRange read_range(const Json& json) {
  return {.tensor = text_member(json, "tensor"),
          .min = read_list(json, "min", integer),
          .opt = read_list(json, "opt", integer),
          .max = read_list(json, "max", integer)};
}
Profile read_profile(const Json& json) {
  return {.ranges = read_list(json, "ranges", read_range),
          .buffers = read_list(json, "buffers", read_buffer),
          .steps = read_list(json, "steps", read_step),
          .arena_bytes = integer_member(json, "arena_bytes")};
}

Json candidate_json(const CandidateRecord& c) {
  return {{"tactic", c.tactic}, {"ms", c.ms}, {"spread", c.spread}, {"note", c.note}};
}
CandidateRecord read_candidate(const Json& json) {
  return {.tactic = text_member(json, "tactic"),
          .ms = real_member(json, "ms"),
          .spread = real_member(json, "spread"),
          .note = text_member(json, "note")};
}
Json record_json(const LayerRecord& r) {
  return {{"layer", r.layer}, {"candidates", list_of(r.candidates, candidate_json)}, {"chosen", r.chosen}};
}
LayerRecord read_record(const Json& json) {
  return {.layer = text_member(json, "layer"),
          .candidates = read_list(json, "candidates", read_candidate),
          .chosen = text_member(json, "chosen")};
}

Json meta_json(const PlanMeta& m) {
  Json json{{"hone_version", m.hone_version},
            {"backend", m.backend},
            {"device", m.device},
            {"architecture", m.architecture},
            {"model", m.model},
            {"options", m.options},
            {"profiling_verbosity", m.profiling_verbosity},
            {"precision", m.precision}};
  for (const auto& [key, note] : m.notes) json["notes"][key] = note;
  return json;
}
/// Plans written before these members were there have neither ranges nor folded nodes.
std::optional<ValueRange> read_value_range(const Json& io) {
  if (!io.contains("range")) return std::nullopt;
  const std::vector<int64_t> ends = read_list(io, "range", integer);
  HONE_CHECK(ends.size() == 2 && ends[0] <= ends[1], "'range' is not a pair of rising integers");
  return ValueRange{ends[0], ends[1]};
}
FoldedNode read_folded(const Json& json) {
  return {.node = text_member(json, "node"), .pass = text_member(json, "pass")};
}

using Section = std::function<int64_t(const Blob&)>;
using SectionReader = std::function<Blob(int64_t)>;

Json refit_json(const RefitPart& refit, const Section& section) {
  const auto weight = [](const RefitWeight& w) { return Json{{"layer", w.layer}, {"role", w.role}}; };
  const auto stored = [&](const std::string& text) { return section(Blob::copy(text)); };
  const auto constant = [&](const RefitConstant& c) {
    Json json{{"type", to_json(c.type)}, {"section", c.data ? section(c.data->blob()) : -1}};
    if (!c.name.empty()) json["name"] = c.name;
    if (c.derived) json["derived"] = true;
    return json;
  };
  Json json{{"network", stored(refit.network)},     {"weights", refit.weights},
            {"other_weights", refit.other_weights}, {"options", stored(refit.options)},
            {"timings", stored(refit.timings)},     {"list", list_of(refit.list, weight)}};
  if (refit.graph.empty()) return json;
  json["graph"] = stored(refit.graph);
  json["constants"] = list_of(refit.constants, constant);
  json["live"] = refit.live;
  json["folded"] = refit.folded;
  json["consumed"] = refit.consumed;
  return json;
}
RefitConstant read_refit_constant(const Json& json, const SectionReader& section) {
  RefitConstant constant{.type = type_from_json(member(json, "type")), .data = {}};
  const TensorType& type = constant.type;
  HONE_CHECK(type.shape.is_static() && type.dtype != DType::string && !is_object(type.dtype),
             "a constant of the network has the type {}", type.text());
  if (json.contains("name")) constant.name = text_member(json, "name");
  constant.derived = json.contains("derived");
  if (const int64_t at = integer_member(json, "section"); at >= 0)
    constant.data = Tensor(type.dtype, type.shape.values(), section(at));
  return constant;
}
RefitPart read_refit(const Json& json, const SectionReader& section) {
  const auto weight = [](const Json& w) { return RefitWeight{text_member(w, "layer"), text_member(w, "role")}; };
  const auto stored = [&](std::string_view name) { return std::string(section(integer_member(json, name)).text()); };
  const Json& other = member(json, "other_weights");
  HONE_CHECK(other.is_boolean(), "'other_weights' is not true or false");
  RefitPart refit{.network = stored("network"),
                  .weights = text_member(json, "weights"),
                  .other_weights = other.get<bool>(),
                  .options = stored("options"),
                  .timings = stored("timings"),
                  .list = read_list(json, "list", weight)};
  if (!json.contains("graph")) return refit;
  refit.graph = stored("graph");
  refit.constants =
      read_list(json, "constants", [&](const Json& constant) { return read_refit_constant(constant, section); });
  refit.live = read_list(json, "live", text);
  refit.folded = read_list(json, "folded", text);
  refit.consumed = read_list(json, "consumed", text);
  return refit;
}

Json operator_json(const PlanOperator& op) {
  return {
      {"domain", op.domain}, {"name", op.name}, {"version", op.version}, {"library", op.library}, {"hash", op.hash}};
}
PlanOperator read_operator(const Json& json) {
  return {.domain = text_member(json, "domain"),
          .name = text_member(json, "name"),
          .version = integer_member(json, "version"),
          .library = text_member(json, "library"),
          .hash = text_member(json, "hash")};
}

constexpr int64_t kThroughputVersion = 1;

Json throughput_json(const PlanThroughput& found) {
  return {{"version", kThroughputVersion}, {"streams", found.streams},
          {"workers", found.workers},      {"rows", found.rows},
          {"median_ms", found.median_ms},  {"rows_per_second", found.rows_per_second},
          {"p99_ms", found.p99_ms}};
}
/// The engine is the same without it: what a later Hone writes otherwise is left alone.
std::optional<PlanThroughput> read_throughput(const Json& manifest) {
  if (!manifest.contains("throughput")) return std::nullopt;
  const Json& json = manifest["throughput"];
  if (integer_member(json, "version") != kThroughputVersion) return std::nullopt;
  return PlanThroughput{.streams = index(member(json, "streams")),
                        .workers = index(member(json, "workers")),
                        .rows = integer_member(json, "rows"),
                        .rows_per_second = real_member(json, "rows_per_second"),
                        .median_ms = real_member(json, "median_ms"),
                        .p99_ms = real_member(json, "p99_ms")};
}

std::map<std::string, std::string> read_notes(const Json& meta) {
  std::map<std::string, std::string> notes;
  if (!meta.contains("notes")) return notes;
  HONE_CHECK(meta["notes"].is_object(), "'notes' is not an object");
  for (const auto& [key, note] : meta["notes"].items()) notes.emplace(key, text(note));
  return notes;
}

PlanMeta read_meta(const Json& json) {
  return {.hone_version = text_member(json, "hone_version"),
          .backend = text_member(json, "backend"),
          .device = text_member(json, "device"),
          .architecture = text_member(json, "architecture"),
          .model = text_member(json, "model"),
          .options = text_member(json, "options"),
          .profiling_verbosity = text_member(json, "profiling_verbosity"),
          .precision = text_member(json, "precision"),
          .notes = read_notes(json)};
}

}  // namespace

Json manifest_of(const Plan& plan, const Section& section) {
  const auto io = [](const IoTensor& t) {
    Json json{{"name", t.name}, {"type", to_json(t.type)}, {"input", t.is_input}};
    if (t.range) json["range"] = {t.range->low, t.range->high};
    return json;
  };
  const auto folded = [](const FoldedNode& f) { return Json{{"node", f.node}, {"pass", f.pass}}; };
  const auto constant = [&](const Tensor& t) {
    return Json{{"type", to_json(t.type())}, {"section", section(t.blob())}};
  };
  Json portable = nullptr;
  if (plan.portable)
    portable = {{"graph", section(Blob::copy(plan.portable->graph))},
                {"constants", list_of(plan.portable->constants, constant)}};
  Json manifest{{"meta", meta_json(plan.meta)},
                {"io", list_of(plan.io, io)},
                {"profiles", list_of(plan.profiles, profile_json)},
                {"constants", list_of(plan.constants, constant)},
                {"blobs", list_of(plan.blobs, [&](const Blob& blob) { return Json(section(blob)); })},
                {"log", list_of(plan.log, record_json)},
                {"folded", list_of(plan.folded, folded)},
                {"portable", std::move(portable)}};
  if (plan.refit) manifest["refit"] = refit_json(*plan.refit, section);
  if (!plan.operators.empty()) manifest["operators"] = list_of(plan.operators, operator_json);
  if (plan.throughput) manifest["throughput"] = throughput_json(*plan.throughput);
  if (plan.weights == WeightStorage::nowhere) manifest["without_weights"] = true;
  return manifest;
}

Plan plan_of(const Json& manifest, const SectionReader& section) {
  const auto io = [](const Json& json) {
    const Json& input = member(json, "input");
    HONE_CHECK(input.is_boolean(), "'input' is not true or false");
    return IoTensor{.name = text_member(json, "name"),
                    .type = type_from_json(member(json, "type")),
                    .is_input = input.get<bool>(),
                    .range = read_value_range(json)};
  };
  const auto constant = [&](const Json& json) {
    const TensorType type = type_from_json(member(json, "type"));
    HONE_CHECK(type.shape.is_static() && type.dtype != DType::string, "a constant has the type {}", type.text());
    return Tensor(type.dtype, type.shape.values(), section(integer_member(json, "section")));
  };
  const auto portable = [&](const Json& json) -> std::optional<PortablePart> {
    if (json.is_null()) return std::nullopt;
    return PortablePart{std::string(section(integer_member(json, "graph")).text()),
                        read_list(json, "constants", constant)};
  };
  return {
      .meta = read_meta(member(manifest, "meta")),
      .io = read_list(manifest, "io", io),
      .profiles = read_list(manifest, "profiles", read_profile),
      .constants = read_list(manifest, "constants", constant),
      .blobs = read_list(manifest, "blobs", [&](const Json& json) { return section(integer(json)); }),
      .log = read_list(manifest, "log", read_record),
      .folded = manifest.contains("folded") ? read_list(manifest, "folded", read_folded) : std::vector<FoldedNode>(),
      .portable = portable(member(manifest, "portable")),
      .refit = manifest.contains("refit") ? std::optional(read_refit(manifest["refit"], section)) : std::nullopt,
      .operators = manifest.contains("operators") ? read_list(manifest, "operators", read_operator)
                                                  : std::vector<PlanOperator>(),
      .throughput = read_throughput(manifest),
      .weights = manifest.contains("without_weights") ? WeightStorage::nowhere : WeightStorage::everywhere};
}

}  // namespace hone
