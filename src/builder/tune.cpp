// SPDX-License-Identifier: Apache-2.0
//
// Candidates and their times. At level 0 nothing is timed: estimates decide.
#include "builder/tune.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <limits>
#include <set>
#include <unordered_map>

#include "base/clock.h"
#include "base/text.h"
#include "builder/prepare/by_entry.h"
#include "builder/prepare/layer_types.h"
#include "builder/problem.h"
#include "builder/problems/candidate_times.h"
#include "builder/problems/offers.h"
#include "builder/region_nodes.h"
#include "ops/ops.h"
#include "ops/sparse_weights.h"
#include "ops/weight_codes.h"
#include "tuner/select.h"

namespace hone {
namespace {

/// All candidates rejected: the reference, which defines what is right, takes over.
void fall_back_to_reference(const BuildSession& session, Layer& layer) {
  const bool usable = std::any_of(layer.candidates.begin(), layer.candidates.end(),
                                  [](const Candidate& c) { return c.timing.ms >= 0; });
  if (usable) return;
  session.listeners.tell(&BuildListener::candidates_rejected, layer);
  const TacticSource* reference = session.backend.sources.back();
  Candidates offers;
  reference->propose(*layer.problem, offers);
  HONE_ASSERT(!offers.offers().empty(), "no source runs {}", layer.region.name());
  layer.candidates.push_back({.tactic = offers.offers()[0],
                              .source = reference,
                              .key = {},
                              .estimate_ms = 0,
                              .timing = {0, 0, 0, "not timed"},
                              .timed_now = false});
}

/// The region as a problem; only for the reference when nothing else may run it.
std::unique_ptr<Problem> problem_of(const BuildSession& session, const ProfilePoints& points, const Region& region,
                                    bool& host_only) {
  const bool wide = std::any_of(region.nodes.begin(), region.nodes.end(),
                                [&](const Node* node) { return layer_type(session.options, *node) == "fp32"; });
  const bool exact = !session.device.info().tf32_matmuls &&  // there TF32 stands for parts of bf16
                     std::any_of(region.nodes.begin(), region.nodes.end(),
                                 [&](const Node* node) { return session.gatings.many_behind(*node); });
  const Precision allowed{.f16 = session.options.fp16 && !wide,
                          .bf16 = session.options.bf16 && !wide,
                          .i8 = session.options.int8,
                          .tf32 = session.options.tf32 && !exact,
                          .sparse = session.options.sparse_weights && !session.options.refit &&  // others may have none
                                    have_sparse_weights(region.nodes)};
  const bool guessed =
      std::any_of(region.nodes.begin(), region.nodes.end(),
                  [&](const Node* node) { return session.sizes.sized_by_data(node->output()->type.shape); }) ||
      std::any_of(region.inputs.begin(), region.inputs.end(),
                  [&](const Value* value) { return session.sizes.sized_by_data(value->type.shape); });
  host_only = session.sizes.host_only(region);
  const auto make = [&](const SymbolValues& sizes) {
    auto problem = std::make_unique<Problem>(make_problem(region, sizes, session.device.info(), allowed));
    if (region.rounds > 1) *problem = of_one_entry(std::move(*problem), region);
    problem->targets = session.options.targets;
    return problem;
  };
  if (!host_only && guessed) {
    try {
      return make(points.opt);
    } catch (const Error&) {
      host_only = true;  // the sizes guessed for tuning contradict each other
    }
  }
  return make(host_only ? SymbolValues() : points.opt);
}

/// Numbers values and collects which layouts each could have and be wanted in.
class ValueTable {
 public:
  int id(const Value* value) { return ids_.try_emplace(value, static_cast<int>(ids_.size())).first->second; }
  void gives(const Value* value, Layout layout) { given_[value].insert(layout); }
  void wants(const Value* value, Layout layout) { wanted_[value].insert(layout); }
  /// Pairs in an order that does not depend on addresses.
  std::vector<LayoutChange> pairs() {
    std::vector<std::pair<int, const Value*>> order;
    for (const auto& [value, layouts] : wanted_) order.emplace_back(id(value), value);
    std::sort(order.begin(), order.end());
    std::vector<LayoutChange> result;
    for (const auto& [number, value] : order)
      for (const Layout from : given_[value])
        for (const Layout to : wanted_[value])
          if (from != to) result.emplace_back(value, from, to);
    return result;
  }

 private:
  std::unordered_map<const Value*, int> ids_;
  std::unordered_map<const Value*, std::set<Layout>> given_, wanted_;
};

/// The layouts that the network's inputs and outputs have.
ValueTable edge_table(const BuildSession& session) {
  ValueTable table;
  for (const Value* input : session.graph.inputs()) {
    table.id(input);
    table.gives(input, session.edges.of_input(input));
  }
  for (const Value* output : session.graph.outputs()) {
    table.id(output);
    table.wants(output, session.edges.of_output(output));
  }
  return table;
}

/// Those that a way to compute the region reads and writes.
void add_layouts(const Region& region, const std::vector<Layout>& in, const std::vector<Layout>& out,
                 ValueTable& table) {
  for (size_t i = 0; i < in.size(); ++i) table.wants(region.inputs[i], in[i]);
  for (size_t i = 0; i < out.size(); ++i) table.gives(region.outputs[i], out[i]);
}

/// A reformat that layers may need, and what is offered for it.
struct OfferedReformat {
  ReformatKey key;
  std::unique_ptr<Problem> problem;
  std::vector<Candidate> candidates;
};

OfferedReformat offer_reformat(const BuildSession& session, const ProfilePoints& points, const ReformatKey& key) {
  const auto& [value, from, to, by_entry] = key;
  const TensorType type = by_entry ? entry_type(value->type) : value->type;
  auto problem = std::make_unique<Problem>(make_reformat_problem(type, points.opt, session.device.info()));
  problem->targets = session.options.targets;
  std::vector<Candidate> candidates = reformat_offers(*problem, session.backend);
  std::erase_if(candidates, [from = from, to = to](const Candidate& candidate) {
    return candidate.tactic.in != std::vector{from} || candidate.tactic.out != std::vector{to};
  });
  return {key, std::move(problem), std::move(candidates)};
}

/// Those for changes of layout: each that goes entry by entry, the other, or both, as layers may need them.
std::vector<OfferedReformat> offer_reformats(const BuildSession& session, const ProfilePoints& points,
                                             const Turns& turns, std::span<const LayoutChange> changes) {
  std::vector<OfferedReformat> offered;
  for (const auto& [value, from, to] : changes)
    for (const bool by_entry : {false, true})
      if (by_entry ? turns.seen_inside(*value) : turns.seen_outside(*value))
        offered.push_back(offer_reformat(session, points, {value, from, to, by_entry}));
  return offered;
}

/// Makes each of the fastest that is offered for it; none where nothing is right.
void make_reformats(BuildSession& session, const ProfilePoints& points, std::vector<OfferedReformat> offered,
                    Choice& choice) {
  std::vector<Rivals> rivals;
  for (OfferedReformat& reformat : offered) rivals.push_back({reformat.problem.get(), reformat.candidates});
  CandidateTimes times(session, std::move(rivals));
  for (size_t i = 0; i < offered.size(); ++i) {
    auto& [key, problem, candidates] = offered[i];
    times.load(i);
    if (!candidates.empty()) times.find(i);
    std::erase_if(candidates, [](const Candidate& c) { return c.timing.ms < 0; });
    if (candidates.empty()) continue;
    const auto best = std::ranges::min_element(candidates, {}, [](const Candidate& c) { return c.timing.ms; });
    session.listeners.tell(&BuildListener::reformat_timed, *std::get<const Value*>(key), *best, points);
    choice.reformats.emplace(key, ReformatLayer{std::move(problem), std::move(*best)});
  }
}

/// How long a change of layout takes in an inference, in ms; nothing where it cannot be had.
std::optional<double> change_ms(const Choice& choice, const Turns& turns, const LayoutChange& change) {
  const auto& [value, from, to] = change;
  double ms = 0;
  for (const bool by_entry : {false, true}) {
    if (!(by_entry ? turns.seen_inside(*value) : turns.seen_outside(*value))) continue;
    const auto made = choice.reformats.find({value, from, to, by_entry});
    if (made == choice.reformats.end()) return std::nullopt;
    ms = made->second.candidate.timing.ms * static_cast<double>(by_entry ? turns.rounds() : 1);
  }
  return ms;
}

/// How much there is to gain by timing a layer, in about milliseconds.
double expected_ms(const Layer& layer) { return layer.candidates.empty() ? 0 : layer.candidates[0].estimate_ms; }

/// Times the layers, those with most to gain first.
void time_layers(BuildSession& session, const ProfilePoints& points, std::vector<Layer>& layers) {
  std::vector<Layer*> order;
  order.reserve(layers.size());
  for (Layer& layer : layers) order.push_back(&layer);
  std::ranges::stable_sort(order, std::greater(), [](const Layer* layer) { return expected_ms(*layer); });
  std::erase_if(order, [](const Layer* layer) { return layer->problem == nullptr; });
  std::vector<Rivals> rivals;
  for (Layer* layer : order) rivals.push_back({layer->problem.get(), layer->candidates});
  CandidateTimes times(session, std::move(rivals));
  size_t by_rule = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    Layer& layer = *order[i];
    times.load(i);
    by_rule += is_too_late_for(session, layer.candidates);
    with_note([&] { return "choosing tactics for " + layer.region.name(); },
              [&] {
                const double start = now_ms();
                times.find(i);
                session.listeners.tell(&BuildListener::layer_timed, layer, points, seconds_since(start));
                fall_back_to_reference(session, layer);
              });
    session.listeners.tell(&BuildListener::tuning_advanced, i + 1, layers.size());
  }
  for (size_t done = order.size(); done < layers.size(); ++done)  // views
    session.listeners.tell(&BuildListener::tuning_advanced, done + 1, layers.size());
  if (by_rule > 0 && session.options.optimization_level > 0)
    session.listeners.tell(&BuildListener::tuning_cut_short, by_rule, layers.size());
}

/// A layer of one region, with what sources offer for it.
Layer make_layer(BuildSession& session, const ProfilePoints& points, Region region) {
  Layer layer{.region = std::move(region), .problem = nullptr, .candidates = {}, .refusals = {}};
  if (layer.region.is_view) return layer;
  bool host_only = false;
  layer.problem = problem_of(session, points, layer.region, host_only);
  Offers offers = offers_for(*layer.problem, session.options, session.backend, host_only);
  layer.candidates = std::move(offers.candidates);
  layer.refusals = std::move(offers.refusals);
  return layer;
}

bool reference_only(const Layer& layer) {
  return !layer.candidates.empty() && layer.candidates[0].tactic.source == "reference";
}

/// A product of codes: no library makes it, and one of floats in its place costs twice as much.
bool is_product_of_codes(const Region& region) {
  const auto anchor = std::ranges::find_if_not(region.nodes, [](const Node* node) { return node->is(ops::decode); });
  if (anchor == region.nodes.begin() || anchor == region.nodes.end()) return false;
  const bool reads_codes = std::find(region.nodes.begin(), anchor, (*anchor)->input(0)->producer) != anchor;
  return reads_codes && multiplies_codes(**anchor, (*anchor)->input(0)->producer->input(0)->type.dtype);
}

/// Where an epilogue rounds, which no library knows: the same as what a library can make and what follows it.
std::vector<Layer> parts_instead(BuildSession& session, const ProfilePoints& points, const Layer& whole) {
  std::vector<Layer> parts;
  const auto rounds = [](const Node* node) { return rounds_to_codes(*node); };
  if (whole.problem == nullptr || std::ranges::none_of(whole.region.nodes, rounds) || is_product_of_codes(whole.region))
    return parts;
  std::vector<Region> pieces = split(whole.region, session.graph);
  if (pieces.size() != 2) return parts;
  for (Region& piece : pieces) parts.push_back(make_layer(session, points, std::move(piece)));
  return std::ranges::any_of(parts, reference_only) ? std::vector<Layer>() : std::move(parts);
}

/// Of the candidates that serve the fastest, in ms; infinite where none but the reference does.
double fastest_ms(const Layer& layer) {
  double best = std::numeric_limits<double>::infinity();
  for (const Candidate& c : layer.candidates)
    if (c.timing.ms >= 0 && c.source->name() != "reference") best = std::min(best, c.timing.ms + c.source->break_ms());
  return best;
}

/// Keeps of each layer and those that do the same the faster side.
void settle(std::vector<Layer>& layers) {
  std::vector<Layer> kept;
  for (size_t i = 0; i < layers.size(); ++i) {
    const size_t behind = i + 1 + layers[i].instead;
    double parts_ms = 0;
    for (size_t k = i + 1; k < behind; ++k) parts_ms += fastest_ms(layers[k]);
    if (behind == i + 1 || fastest_ms(layers[i]) <= parts_ms) kept.push_back(std::move(layers[i]));
    else
      std::move(layers.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                layers.begin() + static_cast<std::ptrdiff_t>(behind), std::back_inserter(kept));
    i = behind - 1;
  }
  layers = std::move(kept);
}

}  // namespace

bool always_same_bytes(const Shape& shape, Layout a, Layout b) {
  if (a == b) return true;
  Dims dims;
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    if (!shape[axis].is_constant() && axis > 0) return false;
    dims.push_back(shape[axis].is_constant() ? shape[axis].value() : 2);
  }
  return same_bytes(dims, a, b);
}

std::vector<Layer> propose_layers(BuildSession& session, const ProfilePoints& points) {
  std::vector<Region> formed = form_regions(session.graph, session.device.info().byte_matmuls);
  mark_by_entry(session, points, formed);
  std::deque<Region> queue(std::make_move_iterator(formed.begin()), std::make_move_iterator(formed.end()));
  std::vector<Layer> layers;
  while (!queue.empty()) {
    Region region = std::move(queue.front());
    queue.pop_front();
    const std::string name = region.name();
    with_note([&] { return "choosing tactics for " + name; },
              [&] {
                Layer layer = make_layer(session, points, std::move(region));
                if (reference_only(layer))
                  if (std::vector<Region> pieces = split(layer.region, session.graph); !pieces.empty()) {
                    queue.insert(queue.begin(), std::make_move_iterator(pieces.begin()),
                                 std::make_move_iterator(pieces.end()));
                    return;
                  }
                std::vector<Layer> parts = parts_instead(session, points, layer);
                layer.instead = parts.size();
                layers.push_back(std::move(layer));
                std::ranges::move(parts, std::back_inserter(layers));
              });
  }
  return layers;
}

std::vector<Layer> make_layers(BuildSession& session, const ProfilePoints& points) {
  std::vector<Layer> layers = propose_layers(session, points);
  time_layers(session, points, layers);
  settle(layers);
  return layers;
}

std::vector<const Value*> reformatted_values(const BuildSession& session, const std::vector<Layer>& layers) {
  ValueTable table = edge_table(session);
  for (const Layer& layer : layers) {
    for (const Value* value : layer.region.inputs) table.id(value);
    for (const Value* value : layer.region.outputs) table.id(value);
    if (layer.region.is_view) add_layouts(layer.region, {Layout::linear}, {Layout::linear}, table);
    for (const Candidate& candidate : layer.candidates)
      add_layouts(layer.region, candidate.tactic.in, candidate.tactic.out, table);
  }
  std::vector<const Value*> values;
  for (const auto& [value, from, to] : table.pairs())
    if (!always_same_bytes(value->type.shape, from, to) && (values.empty() || values.back() != value))
      values.push_back(value);
  return values;
}

Choice choose(BuildSession& session, const ProfilePoints& points, std::vector<Layer> layers) {
  const double start = now_ms();
  ValueTable table = edge_table(session);
  SelectProblem problem;
  for (const Value* input : session.graph.inputs()) problem.given[table.id(input)] = session.edges.of_input(input);
  for (const Value* output : session.graph.outputs())
    problem.wanted[table.id(output)] = session.edges.of_output(output);
  for (Layer& layer : layers) {
    SelectRegion region;
    for (const Value* value : layer.region.inputs) region.inputs.push_back(table.id(value));
    for (const Value* value : layer.region.outputs) region.outputs.push_back(table.id(value));
    if (layer.region.is_view) region.options.push_back({{Layout::linear}, {Layout::linear}, 0, 0});
    const auto rounds = static_cast<double>(layer.region.rounds);
    for (size_t i = 0; i < layer.candidates.size(); ++i)
      if (const Candidate& c = layer.candidates[i]; c.timing.ms >= 0)
        region.options.push_back(
            {c.tactic.in, c.tactic.out, (c.timing.ms + c.source->break_ms()) * rounds, static_cast<int>(i)});
    for (const SelectOption& option : region.options) add_layouts(layer.region, option.in, option.out, table);
    problem.regions.push_back(std::move(region));
  }

  Choice choice;
  const Turns turns(session.graph, layers);
  session.listeners.tell(&BuildListener::reformats_begun);
  std::vector<LayoutChange> changes = table.pairs();
  const auto costs_nothing = [](const LayoutChange& change) {
    return always_same_bytes(std::get<const Value*>(change)->type.shape, std::get<1>(change), std::get<2>(change));
  };
  for (const auto& [value, from, to] : changes) problem.reformat_ms[{table.id(value), from, to}] = 0;
  std::erase_if(changes, costs_nothing);
  make_reformats(session, points, offer_reformats(session, points, turns, changes), choice);
  for (const LayoutChange& change : changes) {
    const auto& [value, from, to] = change;
    const std::tuple key(table.id(value), from, to);
    if (const std::optional<double> ms = change_ms(choice, turns, change)) problem.reformat_ms[key] = *ms;
    else problem.reformat_ms.erase(key);
  }

  const Selected selected = select(problem);
  for (size_t i = 0; i < layers.size(); ++i)
    layers[i].chosen =
        layers[i].region.is_view ? -1 : problem.regions[i].options[static_cast<size_t>(selected.option[i])].tactic;
  choice.layers = std::move(layers);
  session.listeners.tell(&BuildListener::tactics_chosen, choice, seconds_since(start));
  return choice;
}

}  // namespace hone
