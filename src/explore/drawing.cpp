// SPDX-License-Identifier: Apache-2.0
#include "explore/drawing.h"

#include <fmt/format.h>

#include <re2/re2.h>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "explore/colours.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kExpression = "#F0FFF0", kActivation = "#ADD8E6", kUser = "#D3D3D3";
constexpr size_t kNameRows = 8;

void add_stacked(std::vector<DrawnRow>& rows, const std::vector<std::string>& parts) {
  for (size_t i = 0; i < std::min(parts.size(), kNameRows); ++i) rows.push_back({shortened(parts[i])});
  if (parts.size() > kNameRows) rows.push_back({fmt::format("… {} more", parts.size() - kNameRows)});
}

/// "a + b" in rows.
std::vector<std::string> parts_of(std::string_view name) {
  std::vector<std::string> parts;
  for (const std::string_view part : split(name, '+')) parts.emplace_back(trim(part));
  return parts;
}

DrawnBox box_of(const LayerRow& layer, bool profiled, const DrawingOptions& options) {
  DrawnBox box{.rows = {{layer.type, {}, true}},
               .fill = std::string(colour_of_type(layer.type, layer.origin)),
               .tells = layer.name};
  if (profiled) box.rows.push_back({fmt::format("{:.4f} ms", layer.average_ms)});
  if (options.layer_names) add_stacked(box.rows, parts_of(layer.name));
  if (options.metadata) add_stacked(box.rows, layer.nodes);
  if (!layer.origin.empty()) box.rows.push_back({shortened(layer.origin)});
  const Json attributes = Json::parse(layer.attributes, nullptr, false);
  if (!attributes.is_object()) return box;
  if (const auto fused = attributes.find("Activation");
      fused != attributes.end() && fused->is_string() && *fused != "NONE" && *fused != "")
    box.rows.push_back({shortened(fused->get<std::string>()), kActivation});
  if (const auto operations = attributes.find("Operations"); operations != attributes.end() && operations->is_array())
    for (const Json& each : *operations)
      if (each.is_string()) box.rows.push_back({shortened(each.get<std::string>()), kExpression});
  for (const auto& [key, value] : attributes.items())
    if (key != "Name")
      box.tells += fmt::format(
          "\n{}: {}", key,
          value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, Json::error_handler_t::replace));
  return box;
}

std::string label_of(const TensorRow& tensor) {
  return fmt::format("[{}] {}", fmt::join(tensor.dims, ","), shortened(tensor.format));
}

/// A tensor between two writes of its name.
struct Region {
  const TensorRow* tensor;
  size_t generation = 0;
  const LayerRow* writer = nullptr;  // null: given from outside, or a constant
  std::vector<const LayerRow*> readers = {};
};

/// All regions in the order of their first use, and how often each name is written.
class Regions {
 public:
  explicit Regions(const EngineRows& engine) : engine_(engine) {
    for (const LayerRow& layer : engine.layers) {
      for (const TensorRow& tensor : layer.inputs) all_[current(tensor)].readers.push_back(&layer);
      for (const TensorRow& tensor : layer.outputs) {
        newest_[tensor.name] = all_.size();
        all_.push_back({&tensor, generations_[tensor.name]++, &layer});
      }
    }
  }

  const std::vector<Region>& all() const { return all_; }
  size_t generations(const Region& region) const {
    const auto found = generations_.find(region.tensor->name);
    return found == generations_.end() ? 1 : found->second;
  }

 private:
  /// What a tensor is another name of.
  const std::string& root(const std::string& name) const {
    const std::string* at = &name;
    for (size_t steps = 0; steps < engine_.views.size(); ++steps) {
      const auto view = engine_.views.find(*at);
      if (view == engine_.views.end()) break;
      at = &view->second;
    }
    return *at;
  }
  size_t current(const TensorRow& tensor) {
    const auto [at, fresh] = newest_.try_emplace(root(tensor.name), all_.size());
    if (fresh) all_.push_back({&tensor});
    return at->second;
  }

  const EngineRows& engine_;
  std::vector<Region> all_;
  std::map<std::string, size_t> newest_, generations_;
};

DrawnBox box_of(const Region& region, bool bound, size_t generations, const DrawingOptions& options) {
  const TensorRow& tensor = *region.tensor;
  const std::string name = generations > 1 ? fmt::format("{} (gen={})", tensor.name, region.generation) : tensor.name;
  DrawnBox box{.fill = bound ? std::string(kUser) : "#FFFFFF",
               .region = true,
               .dashed = !bound,
               .tells = fmt::format("{}\n{}", name, label_of(tensor))};
  if (bound || options.region_names) box.rows.push_back({shortened(name), {}, bound});
  box.rows.push_back({label_of(tensor)});
  return box;
}

/// Boxes so numbered that arrows go from lower to higher ones, as far as the engine's order allows.
class Draughtsman {
 public:
  Draughtsman(const EngineRows& engine, const DrawingOptions& options)
      : engine_(engine), options_(options), regions_(engine) {
    for (const TensorRow& binding : engine.bindings) bound_.insert(binding.name);
    std::map<const LayerRow*, std::vector<const Region*>> written;
    for (const Region& region : regions_.all()) written[region.writer].push_back(&region);
    for (const Region* region : written[nullptr]) add_region(*region);
    for (const LayerRow& layer : engine.layers) {
      box_of_layer_[&layer] = drawing_.boxes.size();
      drawing_.boxes.push_back(box_of(layer, engine.profiled, options));
      layers_.push_back(&layer);
      for (const Region* region : written[&layer]) add_region(*region);
    }
    for (const Region& region : regions_.all()) add_arrows(region);
  }

  Drawing take() {
    if (!options_.beam.empty()) keep(within(found(options_.beam), options_.radius));
    if (!options_.query.empty()) keep(within(matching(), 1));
    return std::move(drawing_);
  }

 private:
  bool is_bound(const Region& region) const { return bound_.contains(region.tensor->name); }
  bool is_constant(const Region& region) const { return region.writer == nullptr && !is_bound(region); }
  bool has_box(const Region& region) const {
    if (is_constant(region)) return options_.constants;
    return options_.regions || is_bound(region) || regions_.generations(region) > 1 || region.readers.size() > 1;
  }
  void add_region(const Region& region) {
    if (!has_box(region)) return;
    box_of_region_[&region] = drawing_.boxes.size();
    drawing_.boxes.push_back(box_of(region, is_bound(region), regions_.generations(region), options_));
    layers_.push_back(nullptr);
  }
  void arrow(size_t from, size_t to, const TensorRow& tensor, bool labelled) {
    drawing_.arrows.push_back(
        {from, to, labelled ? label_of(tensor) : std::string(), colour_of_precision(tensor.element.name)});
  }
  /// A box of a tensor says what the arrows at it would.
  void add_arrows(const Region& region) {
    if (is_constant(region) && !options_.constants) return;
    const auto box = box_of_region_.find(&region);
    const bool boxed = box != box_of_region_.end();
    if (region.writer != nullptr && boxed) arrow(box_of_layer_[region.writer], box->second, *region.tensor, false);
    for (const LayerRow* reader : region.readers)
      arrow(boxed ? box->second : box_of_layer_[region.writer], box_of_layer_[reader], *region.tensor, !boxed);
  }

  std::vector<size_t> found(const std::string& name) {
    for (size_t i = 0; i < layers_.size(); ++i)
      if (layers_[i] != nullptr && layers_[i]->name == name) {
        drawing_.boxes[i].marked = true;
        return {i};
      }
    std::vector<std::string_view> names;
    for (const LayerRow& layer : engine_.layers) names.push_back(layer.name);
    throw Error(fmt::format("--beam: there is no layer {}", name),
                fmt::format("did you mean {}?", nearest(name, names)));
  }
  std::vector<size_t> matching() const {
    std::vector<size_t> result;
    const re2::RE2 wanted(options_.query, re2::RE2::Quiet);
    if (!wanted.ok())
      throw Error(fmt::format("--query={} is no regular expression: {}", options_.query, wanted.error()),
                  "for example conv|pool, a dot as \\.");
    for (size_t i = 0; i < layers_.size(); ++i)
      if (layers_[i] != nullptr &&
          re2::RE2::PartialMatch(layers_[i]->name + " " + join(layers_[i]->nodes, " "), wanted))
        result.push_back(i);
    if (result.empty()) throw Error(fmt::format("--query={} finds no layer", options_.query));
    return result;
  }
  std::set<size_t> within(const std::vector<size_t>& centres, int radius) const {
    std::set<size_t> kept(centres.begin(), centres.end());
    for (int step = 0; step < radius; ++step) {
      const std::set<size_t> inner = kept;
      for (const DrawnArrow& each : drawing_.arrows) {
        if (inner.contains(each.from)) kept.insert(each.to);
        if (inner.contains(each.to)) kept.insert(each.from);
      }
      if (kept.size() == inner.size()) break;
    }
    return kept;
  }
  void keep(const std::set<size_t>& kept) {
    std::map<size_t, size_t> number;
    Drawing part;
    std::vector<const LayerRow*> layers;
    for (const size_t box : kept) {
      number[box] = part.boxes.size();
      part.boxes.push_back(std::move(drawing_.boxes[box]));
      layers.push_back(layers_[box]);
    }
    for (DrawnArrow& each : drawing_.arrows)
      if (kept.contains(each.from) && kept.contains(each.to))
        part.arrows.push_back({number[each.from], number[each.to], std::move(each.label), each.colour});
    drawing_ = std::move(part);
    layers_ = std::move(layers);
  }

  const EngineRows& engine_;
  const DrawingOptions& options_;
  Regions regions_;
  std::set<std::string> bound_;
  Drawing drawing_;
  std::vector<const LayerRow*> layers_;  // by box; null: a region
  std::map<const LayerRow*, size_t> box_of_layer_;
  std::map<const Region*, size_t> box_of_region_;
};

}  // namespace

std::string shortened(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  size_t end = most - 1;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // a letter of several bytes
  return std::string(text.substr(0, end)) + "…";
}

Drawing draw_engine(const EngineRows& engine, const DrawingOptions& options) {
  return Draughtsman(engine, options).take();
}

}  // namespace hone
