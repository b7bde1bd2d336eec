// SPDX-License-Identifier: Apache-2.0
//
// A network is told by a text: a line for each input, node and output, values numbered in order of appearance, names behind a
// tab where they are not compared. Of constants the type counts; of sizes, indices and texts the contents count as well.
#include "builder/refit/refit.h"

#include <algorithm>
#include <unordered_map>

#include "base/hash.h"
#include "base/text.h"
#include "builder/build.h"
#include "builder/refit/network.h"
#include "ir/op.h"
#include "tensor/json.h"

namespace hone {
namespace {

class Teller {
 public:
  explicit Teller(RefitPart& part) : part_(part) {}

  void tell(const Graph& graph) {
    for (const Value* input : graph.inputs()) line(fmt::format("input {}", defined(input)), input->label());
    for (const Node* node : graph.nodes()) tell(*node);
    std::string outputs = "results";
    for (const Value* output : graph.outputs()) outputs += " " + operand(output);
    line(outputs, "the outputs");
  }
  std::string weights_hash() const { return hash_hex(hashes_); }

 private:
  void tell(const Node& node) {
    std::string text = fmt::format("{}(", node.op->name);
    for (const Value* input : node.inputs) text += operand(input) + ", ";
    text += ")";
    if (!node.attrs.empty()) text += " {" + node.attrs.print() + "}";
    for (const Value* output : node.outputs) text += " -> " + defined(output);
    line(text, node.name);
    for (const auto& body : node.bodies) tell(*body);
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (const Value* input = node.inputs[i]; input != nullptr && input->is_constant() && is_weight(*input))
        part_.list.push_back({node.name, std::string(weight_role(node, i))});
  }

  static bool is_weight(const Value& value) { return is_float(value.type.dtype); }

  std::string defined(const Value* value) {
    return fmt::format("%{}:{}", numbers_.try_emplace(value, numbers_.size()).first->second, value->type.text());
  }

  std::string operand(const Value* value) {
    if (value == nullptr) return "_";
    if (!value->is_constant()) return fmt::format("%{}", numbers_.try_emplace(value, numbers_.size()).first->second);
    const Tensor& tensor = *value->constant;
    if (!decides_structure(tensor.dtype())) {
      hashes_ += hash_hex(tensor.bytes());
      return "constant " + tensor.type().text();
    }
    if (tensor.dtype() == DType::string) return "constant string " + hash_hex(join(tensor.strings(), "\n"));
    return fmt::format("constant {} {}", tensor.type().text(), hash_hex(tensor.bytes()));
  }

  void line(std::string_view text, std::string_view name) { part_.network += fmt::format("{}\t{}\n", text, name); }

  RefitPart& part_;
  std::unordered_map<const Value*, size_t> numbers_;
  std::string hashes_;
};

/// Throws Error at the first line in which two networks differ.
void require_same_network(std::string_view engine, std::string_view model) {
  const std::vector<std::string_view> ours = split(engine, '\n'), theirs = split(model, '\n');
  const auto text = [](std::string_view line) { return line.substr(0, line.find('\t')); };
  const auto name = [](std::string_view line) { return line.substr(std::min(line.find('\t') + 1, line.size())); };
  for (size_t i = 0; i < std::max(ours.size(), theirs.size()); ++i) {
    const std::string_view a = i < ours.size() ? ours[i] : "", b = i < theirs.size() ? theirs[i] : "";
    if (text(a) == text(b)) continue;
    throw Error(fmt::format("the model is another network than the engine's: at {} the engine has {}, the model {}",
                            a.empty() ? name(b) : name(a), a.empty() ? "nothing more" : text(a),
                            b.empty() ? "nothing more" : text(b)),
                "an engine takes the weights of the network that it was built from; build another one for this model");
  }
}

Json ranges_json(const ProfileOptions& profile) {
  Json json = Json::object();
  for (const auto& [name, range] : profile) json[name] = {range.min, range.opt, range.max};
  return json;
}
ProfileOptions read_ranges(const Json& json) {
  ProfileOptions profile;
  for (const auto& [name, range] : json.items())
    profile[name] = {range.at(0).get<Dims>(), range.at(1).get<Dims>(), range.at(2).get<Dims>()};
  return profile;
}

Json scales_json(const TensorScales& scales) {
  Json json = Json::object();
  for (const auto& [tensor, scale] : scales) json[tensor] = {scale.scale, scale.zero};
  return json;
}
TensorScales read_scales_json(const Json& json) {
  TensorScales scales;
  for (const auto& [tensor, scale] : json.items()) scales[tensor] = {scale.at(0).get<float>(), scale.at(1).get<int>()};
  return scales;
}

Json formats_json(const std::vector<IoFormat>& formats) {
  Json json = Json::array();
  for (const IoFormat& format : formats)
    json.push_back({format.dtype ? std::string(name_of(*format.dtype)) : "", std::string(name_of(format.layout))});
  return json;
}
std::vector<IoFormat> read_formats(const Json& json) {
  std::vector<IoFormat> formats;
  for (const Json& item : json) {
    const auto type = item.at(0).get<std::string>(), layout = item.at(1).get<std::string>();
    const std::optional<Layout> known = parse_layout(layout);
    HONE_CHECK(known && (type.empty() || parse_dtype(type)), "unknown I/O format {}:{}", type, layout);
    formats.push_back({parse_dtype(type), *known});
  }
  return formats;
}

}  // namespace

std::string options_text(const BuildOptions& o) {
  Json profiles = Json::array();
  for (const ProfileOptions& profile : o.profiles) profiles.push_back(ranges_json(profile));
  return Json{{"profiles", std::move(profiles)},
              {"fp16", o.fp16},
              {"bf16", o.bf16},
              {"int8", o.int8},
              {"scales", scales_json(o.scales)},
              {"other_scales", scales_json(o.other_scales)},
              {"asymmetric", o.codes == Codes::asymmetric},
              {"tf32", o.tf32},
              {"sparse_weights", o.sparse_weights},
              {"layer_types", o.layer_types},
              {"required_types", o.required_types},
              {"result_types", o.result_types},
              {"level", o.optimization_level},
              {"repeats", o.timing_repeats},
              {"min_timing", o.min_timing},
              {"max_tactics", o.max_tactics},
              {"workspace", o.workspace_bytes},
              {"verbosity", o.profiling_verbosity},
              {"disabled_sources", o.disabled_sources},
              {"disabled_passes", o.disabled_passes},
              {"input_formats", formats_json(o.input_formats)},
              {"output_formats", formats_json(o.output_formats)},
              {"portable", o.portable},
              {"deterministic", o.deterministic},
              {"debug_tensors", o.debug_tensors},
              {"debug_unfused", o.debug_unfused},
              {"refit", o.refit},
              {"strip_weights", o.strip_weights},
              {"workers", o.workers}}
      .dump();
}

BuildOptions parse_options_text(std::string_view text) {
  const Json json = parse_json(text, "the plan's build options");
  BuildOptions o;
  try {
    for (const Json& profile : json.at("profiles")) o.profiles.push_back(read_ranges(profile));
    json.at("fp16").get_to(o.fp16);
    json.at("bf16").get_to(o.bf16);
    json.at("int8").get_to(o.int8);
    o.scales = read_scales_json(json.at("scales"));
    o.other_scales = read_scales_json(json.at("other_scales"));
    o.codes = json.at("asymmetric").get<bool>() ? Codes::asymmetric : Codes::symmetric;
    json.at("tf32").get_to(o.tf32);
    o.sparse_weights = json.value("sparse_weights", false);  // plans of older versions have none
    json.at("layer_types").get_to(o.layer_types);
    json.at("required_types").get_to(o.required_types);
    json.at("result_types").get_to(o.result_types);
    json.at("level").get_to(o.optimization_level);
    json.at("repeats").get_to(o.timing_repeats);
    json.at("min_timing").get_to(o.min_timing);
    json.at("max_tactics").get_to(o.max_tactics);
    json.at("workspace").get_to(o.workspace_bytes);
    json.at("verbosity").get_to(o.profiling_verbosity);
    json.at("disabled_sources").get_to(o.disabled_sources);
    json.at("disabled_passes").get_to(o.disabled_passes);
    o.input_formats = read_formats(json.at("input_formats"));
    o.output_formats = read_formats(json.at("output_formats"));
    json.at("portable").get_to(o.portable);
    json.at("deterministic").get_to(o.deterministic);
    json.at("debug_tensors").get_to(o.debug_tensors);
    json.at("debug_unfused").get_to(o.debug_unfused);
    json.at("refit").get_to(o.refit);
    json.at("strip_weights").get_to(o.strip_weights);
    json.at("workers").get_to(o.workers);
  } catch (const Json::exception& error) {
    throw Error(fmt::format("the plan's build options cannot be read: {}", error.what()), "build the plan again");
  }
  return o;
}

static void tell_network(const Graph& graph, RefitPart& part) {
  Teller teller(part);
  teller.tell(graph);
  part.weights = teller.weights_hash();
}

RefitPart refit_part(const Graph& graph, const BuildOptions& options) {
  RefitPart part;
  tell_network(graph, part);
  part.other_weights = options.refit;
  part.options = options_text(options);
  keep_network(graph, part);
  return part;
}

Plan refit(const Plan& plan, Graph graph, std::vector<std::string> folded_by_import, const Backend& backend,
           Device& device, const Listeners& listeners) {
  if (!plan.refit)
    throw Error("the engine was built with fixed weights", "build it with --refit to make its weights replaceable");
  BuildOptions options = parse_options_text(plan.refit->options);
  RefitPart part;
  tell_network(graph, part);
  require_same_network(plan.refit->network, part.network);
  if (!plan.refit->other_weights && part.weights != plan.refit->weights)
    throw Error("the model has other weights than the engine, which takes its own back only",
                "it was built with --stripWeights; build it with --stripAllWeights to refit it with any weights");
  options.folded_by_import = std::move(folded_by_import);
  TimingCache cache = TimingCache::parse(plan.refit->timings);
  const size_t known = cache.entries();
  Plan result = build(std::move(graph), options, backend, device, cache, listeners);
  if (const size_t timed = cache.entries() - known; timed > 0) listeners.tell(&BuildListener::timed_anew, timed);
  return result;
}

}  // namespace hone
