// SPDX-License-Identifier: Apache-2.0
//
// Forming regions. Nodes are visited from the end of the graph, so that of two producers of an
// addition the later one, on the longer path, takes the addition into its epilogue.
#include "builder/regions.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_set>

#include "builder/region_nodes.h"
#include "ops/byte_scale.h"
#include "ops/channel_shuffle.h"
#include "ops/formula.h"
#include "ops/ops.h"

namespace hone {
namespace {

constexpr size_t kMaxParallel = 4;
constexpr size_t kMaxPointwiseNodes = 16, kMaxPointwiseInputs = 6;
constexpr size_t kMaxRoundings = 3, kMaxFormulas = 2, kMaxFormulaNodes = 12;  // of an epilogue
constexpr size_t kMaxAssembled = 16, kMaxTableNodes = 64;
const OpDef* const kRounding[] = {&ops::softmax,
                                  &ops::layer_normalization,
                                  &ops::rms_normalization,
                                  &ops::instance_normalization,
                                  &ops::group_normalization,
                                  &ops::scaled_dot_product_attention};

class Former {
 public:
  Former(const Graph& graph, bool bytes) : graph_(graph), bytes_(bytes), nodes_(graph.nodes()) {
    for (size_t i = 0; i < nodes_.size(); ++i) position_[nodes_[i]] = i;
    for (const auto& [symbol, node] : graph.size_deciders()) deciders_.insert(node);
    rounds_ = std::ranges::any_of(nodes_, [](const Node* node) { return rounds_to_codes(*node); });
  }

  std::vector<Region> run() {
    join_tables();
    join_byte_rows();
    join_parallel();
    join_excitations();
    join_caches();
    join_rounded();
    for (size_t i = nodes_.size(); i-- > 0;)
      if (!taken_.contains(nodes_[i]) && is_anchor(*nodes_[i])) add(epilogue_of(nodes_[i]));
    join_sums();
    join_cast_inputs();
    for (size_t i = nodes_.size(); i-- > 0;)
      if (!taken_.contains(nodes_[i]))
        add(nodes_[i]->op->is_pointwise() || scales(*nodes_[i]) ? with_concat(chain_into(nodes_[i]))
            : is_mean(*nodes_[i])                               ? mean_of(nodes_[i])
                                                                : assembly_into(shuffle_into(nodes_[i])));
    const auto place = [&](const Region& region) {
      // Matmuls of one input need nothing but that, and what reads the first may stand before the last.
      return position_.at(are_parallel(region.nodes) ? region.nodes.front() : region.nodes.back());
    };
    std::sort(regions_.begin(), regions_.end(), [&](const Region& a, const Region& b) { return place(a) < place(b); });
    drop_unread();
    return std::move(regions_);
  }

 private:
  void add(std::vector<Node*> nodes) {
    taken_.insert(nodes.begin(), nodes.end());
    regions_.push_back(region_of(std::move(nodes), graph_, position_));
  }

  /// Matmuls of one input with weights of the same sizes (in few bits: of the same blocks), and nothing behind them (queries, keys and values of an attention):
  /// a device that pays for every launch makes one of them. Each keeps the Decode of its own, where the input is codes. Where no source
  /// takes them together they are split again.
  void join_parallel() {
    for (Node* first : nodes_) {
      if (taken_.contains(first) || !is_bare_matmul(first)) continue;
      std::vector<Node*> group, decoders;
      for (const Use& use : reads_alike(*first)) {
        if (use.index != 0 || taken_.contains(use.node) || !is_bare_matmul(use.node) || !same_form(*use.node, *first))
          continue;
        group.push_back(use.node);
        if (Node* codes = decoder_of(*use.node->input(0)); codes != nullptr) decoders.push_back(codes);
      }
      if (group.size() < 2 || group.size() > kMaxParallel) continue;
      group.insert(group.end(), decoders.begin(), decoders.end());
      add(std::move(group));
    }
  }
  /// Of a matmul's operand, or of what is decoded like it from the same codes.
  std::vector<Use> reads_alike(const Node& matmul) const {
    const Node* decoder = decoder_of(*matmul.input(0));
    if (decoder == nullptr) return matmul.input(0)->uses;
    std::vector<Use> reads;
    for (const Use& use : decoder->input(0)->uses)
      if (same_decoding(*use.node, *decoder) && decoder_of(*use.node->output()) != nullptr)
        reads.push_back(use.node->output()->uses[0]);
    return reads;
  }

  /// The mean of every channel and two convolutions of that one pixel (squeeze and excitation): three short layers are one where
  /// a source takes them together.
  void join_excitations() {
    for (Node* node : nodes_)
      if (!taken_.contains(node) && is_mean(*node))
        if (std::vector<Node*> group = excitation_of(node); !group.empty()) add(std::move(group));
  }

  /// An attention and the Concats that put new keys and values behind those of a cache: few queries read it as fast as it is copied.
  void join_caches() {
    for (Node* node : nodes_) {
      if (taken_.contains(node) || !node->is(ops::scaled_dot_product_attention)) continue;
      Node *keys = node->input(1)->producer, *values = node->input(2)->producer;
      if (keys != values && extends_cache(keys, node) && extends_cache(values, node)) add({keys, values, node});
    }
  }
  bool extends_cache(const Node* node, const Node* attention) const {
    if (node == nullptr || taken_.contains(node) || !node->is(ops::concat) || node->inputs.size() != 2) return false;
    const auto fits = [&](const Value* value) {
      return !value->is_constant() && !is_shape_data(*value) &&
             (value->producer == nullptr || !is_cut(*value->producer, {node}));
    };
    // Others may read it behind the attention alone, when the region has run.
    return std::ranges::all_of(node->inputs, fits) && std::ranges::all_of(node->output()->uses, [&](const Use& use) {
             return position_.at(use.node) >= position_.at(attention);
           });
  }

  /// Statistics of rows, or an attention, and the rounding of what is made of them: kernels round as they store, and store what others
  /// read of rows, too.
  void join_rounded() {
    for (Node* node : nodes_) {
      const bool rounds = std::ranges::any_of(kRounding, [node](const OpDef* op) { return node->is(*op); });
      if (!rounds || taken_.contains(node) || node->outputs.size() != 1) continue;
      Node* rounding = reader_of(*node);
      if (rounding == nullptr && works_on_rows(*node)) rounding = encoder_of(*node);
      if (rounding == nullptr) continue;
      if (rounding->is(ops::fake_quantize) || (makes_codes(*rounding) && !node->is(ops::softmax)))
        add({node, rounding});
    }
  }
  /// What is given to the network, rounded, and the Cast of that: one pass.
  void join_cast_inputs() {
    for (Node* node : nodes_) {
      if (!node->is(ops::fake_quantize) || taken_.contains(node) || node->input(0)->producer != nullptr) continue;
      if (Node* cast = reader_of(*node); cast != nullptr && cast->is(ops::cast)) add({node, cast});
    }
  }
  /// The first reader, where it makes codes.
  Node* encoder_of(const Node& node) const {
    const std::vector<Use>& uses = node.output()->uses;
    const auto first = std::ranges::min_element(uses, {}, [&](const Use& use) { return position_.at(use.node); });
    return first != uses.end() && makes_codes(*first->node) && !taken_.contains(first->node) ? first->node : nullptr;
  }
  /// A sum that stands alone, and the normalisation of its rows: where a source makes both, rows are read once.
  void join_sums() {
    for (Node* node : nodes_) {
      if (taken_.contains(node) || !works_on_rows(*node) || node->is(ops::softmax)) continue;
      Node* sum = node->input(0)->producer;
      if (sum == nullptr || taken_.contains(sum) || !sum->is(ops::add) || chain_into(sum).size() > 1) continue;
      const auto whole = [&](const Value* value) {
        return !value->is_constant() && value->type == sum->output()->type;
      };
      const auto behind = [&](const Use& use) {
        return use.node == node ? use.index == 0 : position_.at(use.node) > position_.at(node);
      };
      if (std::ranges::all_of(sum->inputs, whole) && std::ranges::all_of(sum->output()->uses, behind)) add({sum, node});
    }
  }
  std::vector<Node*> excitation_of(Node* pool) {
    std::vector<Node*> nodes{pool};
    for (int products = 0; products < 2; ++products) {
      if (Node* rounding = reader_of(*nodes.back()); rounding != nullptr && rounding->is(ops::fake_quantize))
        nodes.push_back(rounding);
      const Value* value = nodes.back()->output();
      if (value->uses.size() != 1 || graph_.is_output(value) || value->uses[0].index != 0) return {};
      Node* product = value->uses[0].node;
      if (taken_.contains(product) || !product->is(ops::conv) || !is_anchor(*product) || !is_one_pixel(*value) ||
          !computes_in(*pool, value->type.dtype))
        return {};
      for (Node* node : epilogue_of(product)) nodes.push_back(node);
    }
    return nodes;
  }

  bool is_bare_matmul(Node* node) {
    const bool quantized = node->is(ops::quantized_linear);
    if ((!node->is(ops::linear) && !quantized) || !is_anchor(*node) || node->input(0)->is_constant()) return false;
    for (size_t i = 1; i < node->inputs.size(); ++i)
      if (node->input(i) != nullptr && !node->input(i)->is_constant()) return false;
    const std::vector<Node*> nodes = epilogue_of(node);
    const size_t decoders = decoder_of(*node->input(0)) == nullptr ? 0 : 1;
    return nodes.size() == 1 + decoders || (quantized && is_gate(nodes));
  }
  /// Whether an activation is all that follows before a product with another matmul of the same input: it goes there.
  bool is_gate(const std::vector<Node*>& nodes) const {
    for (size_t i = 1; i < nodes.size(); ++i)
      if (!is_activation(*nodes[i], nodes[i - 1]->output())) return false;
    const Value* gate = nodes.back()->output();
    const Node* product = reader_of(*nodes.back());
    if (product == nullptr || !product->is(ops::mul)) return false;
    const Node* other = (product->input(0) == gate ? product->input(1) : product->input(0))->producer;
    return other != nullptr && other->is(ops::quantized_linear) && other->input(0) == nodes[0]->input(0);
  }

  /// Regions that compute shape data for others are no longer read by anyone.
  void drop_unread() {
    std::unordered_set<const Value*> read(graph_.outputs().begin(), graph_.outputs().end());
    const std::map<std::string, const Node*> deciders = graph_.size_deciders();
    std::unordered_set<const Node*> deciding;
    const auto use_sizes = [&](const Region& region) {
      for (const Node* node : region.nodes)
        for (const std::string& symbol : symbols_used(*node))
          if (const auto at = deciders.find(symbol); at != deciders.end()) deciding.insert(at->second);
    };
    for (size_t i = regions_.size(); i-- > 0;) {
      const bool wanted = std::any_of(regions_[i].outputs.begin(), regions_[i].outputs.end(),
                                      [&](const Value* value) { return read.contains(value); }) ||
                          std::any_of(regions_[i].nodes.begin(), regions_[i].nodes.end(),
                                      [&](const Node* node) { return deciding.contains(node); });
      if (wanted) read.insert(regions_[i].inputs.begin(), regions_[i].inputs.end());
      if (wanted && !deciders.empty()) use_sizes(regions_[i]);
      if (!wanted) regions_.erase(regions_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  /// The only node that reads what `node` gives, of the same shape; null where there is none or another region has it.
  Node* reader_of(const Node& node) const {
    const Value* value = node.output();
    if (value->uses.size() != 1 || graph_.is_output(value)) return nullptr;
    Node* reader = value->uses[0].node;
    const bool fits =
        !taken_.contains(reader) && reader->outputs.size() == 1 && reader->output()->type.shape == value->type.shape;
    return fits ? reader : nullptr;
  }

  /// Sums of integers as floats, times a scale, plus a bias.
  std::vector<Node*> scaled_sums(Node* anchor) const {
    std::vector<Node*> nodes{anchor};
    Node* next = reader_of(*anchor);
    if (next != nullptr && next->is(ops::add) && reads_constant(*next)) {
      nodes.push_back(next);
      next = reader_of(*next);
    }
    if (next == nullptr || !next->is(ops::cast) || next->output()->type.dtype != DType::f32) return nodes;
    Node* scale = reader_of(*next);
    if (scale == nullptr || !scale->is(ops::mul) || !computes_in(*scale, DType::f32)) return nodes;
    nodes.insert(nodes.end(), {next, scale});
    add_bias(nodes);
    return nodes;
  }

  /// Takes the addition of a constant to the last node's result in, which no weights of the anchor can.
  void add_bias(std::vector<Node*>& nodes) const {
    Node* next = reader_of(*nodes.back());
    if (next != nullptr && next->is(ops::add) && computes_in(*next, nodes.back()->output()->type.dtype) &&
        reads_constant(*next))
      nodes.push_back(next);
  }

  /// Scaled sums and what follows them, up to bytes where they become such.
  std::vector<Node*> integer_epilogue_of(Node* anchor) {
    std::vector<Node*> nodes = scaled_sums(anchor);
    if (!is_fusible(nodes.back()->output()->type.dtype)) return nodes;
    Epilogue has{.of_integers = true};
    grow_epilogue(nodes, has);
    Node* quantize = quantizer_of(*nodes.back());
    if (quantize == nullptr) return nodes;
    nodes.push_back(quantize);
    // Bytes may become floats again, for an addition or an activation.
    Node* back = reader_of(*quantize);
    if (back == nullptr || !undoes(*back, *quantize) || has.residual) return nodes;
    std::vector<Node*> longer = nodes;
    longer.push_back(back);
    grow_epilogue(longer, has);
    Node* last = quantizer_of(*longer.back());
    if (last == nullptr || longer.back() == back) return nodes;
    longer.push_back(last);
    return longer;
  }

  Node* quantizer_of(const Node& node) const {
    Node* reader = reader_of(node);
    return reader != nullptr && reader->is(ops::quantize_linear) && byte_scale(*reader) ? reader : nullptr;
  }

  /// The anchor, at most one addition of a tensor of the same shape and at most one activation, in any order, each perhaps rounded.
  std::vector<Node*> epilogue_of(Node* anchor) {
    if (sums_integers(*anchor)) return integer_epilogue_of(anchor);
    std::vector<Node*> nodes{anchor};
    if (anchor->is(ops::quantized_linear)) add_bias(nodes);
    Epilogue has;
    grow_epilogue(nodes, has);
    if (Node* last = reader_of(*nodes.back()); last != nullptr && makes_codes(*last)) nodes.push_back(last);
    if (Node* codes = decoder_of(*anchor->input(0)); codes != nullptr) nodes.push_back(codes);
    return nodes;
  }

  /// The Decode whose floats have one reader.
  Node* decoder_of(const Value& floats) const {
    Node* node = floats.producer;
    const bool fits = node != nullptr && node->is(ops::decode) && floats.uses.size() == 1 && !graph_.is_output(&floats);
    return fits && !taken_.contains(node) ? node : nullptr;
  }

  struct Epilogue {
    bool of_integers = false, residual = false, activation = false, bias = false;
    size_t roundings = 0, formulas = 0;
  };

  void grow_epilogue(std::vector<Node*>& nodes, Epilogue& has) const {
    grow_by_steps(nodes, has);
    if (!rounds_ || has.of_integers) return;
    while (has.formulas++ < kMaxFormulas) {
      const std::vector<Node*> formula = formula_from(nodes.back()->output());
      if (formula.empty()) return;
      nodes.insert(nodes.end(), formula.begin(), formula.end());
      grow_by_steps(nodes, has);
    }
  }

  /// In a network that rounds, an activation is spelled out between roundings.
  std::vector<Node*> formula_from(const Value* from) const {
    std::vector<Node*> nodes =
        formula_behind(graph_, std::span(nodes_).subspan(place_of(*from)), from, kMaxFormulaNodes);
    return std::ranges::none_of(nodes, [&](Node* node) { return taken_.contains(node); }) ? nodes
                                                                                          : std::vector<Node*>();
  }

  void grow_by_steps(std::vector<Node*>& nodes, Epilogue& has) const {
    const TensorType type = nodes.back()->output()->type;
    while (true) {
      const Value* value = nodes.back()->output();
      if (value->uses.size() != 1 || graph_.is_output(value)) return;
      Node* next = value->uses[0].node;
      if (taken_.contains(next) || !next->op->is_pointwise() || !computes_in(*next, type.dtype) ||
          next->output()->type.shape != type.shape)
        return;
      if (next->is(ops::fake_quantize)) {
        if (++has.roundings > kMaxRoundings) return;
      } else if (has.roundings > 0 && is_late_bias(*next, *nodes[0])) {
        if (std::exchange(has.bias, true)) return;
      } else if (is_residual(*next, value)) {
        if (std::exchange(has.residual, true)) return;
        Node* bytes = residual_bytes(*next, value, has.of_integers);
        if (bytes != nullptr) nodes.insert(nodes.end() - 1, bytes);
      } else if (is_activation(*next, value)) {
        if (std::exchange(has.activation, true)) return;
      } else {
        return;
      }
      nodes.push_back(next);
    }
  }

  /// The DequantizeLinear, or Decode, whose floats this addition alone reads.
  Node* residual_bytes(const Node& add, const Value* value, bool of_integers) const {
    const Value* other = add.input(0) == value ? add.input(1) : add.input(0);
    if (!of_integers) return decoder_of(*other);
    Node* node = other->producer;
    const bool fits = node != nullptr && node->is(ops::dequantize_linear) && byte_scale(*node) &&
                      other->uses.size() == 1 && !graph_.is_output(other) && !taken_.contains(node);
    return fits ? node : nullptr;
  }

  /// Between bytes and f32, with one scale that is known.
  bool scales(const Node& node) const { return bytes_ && byte_scale(node); }
  bool is_step(const Node& node, DType dtype) const {
    if (node.is(ops::decode)) return node.output()->type.dtype == dtype;
    if (makes_codes(node)) return node.input(0)->type.dtype == dtype;
    return node.op->is_pointwise() ? computes_in(node, dtype) : dtype == DType::f32 && scales(node);
  }

  /// What makes bytes of one tensor of bytes becomes one table, whatever it does with the numbers: from each QuantizeLinear upwards,
  /// as far as that holds.
  void join_tables() {
    for (size_t i = nodes_.size(); bytes_ && i-- > 0;)
      if (!taken_.contains(nodes_[i]) && nodes_[i]->is(ops::quantize_linear) && scales(*nodes_[i]))
        if (std::vector<Node*> group = table_into(nodes_[i]); !group.empty()) add(std::move(group));
  }

  /// A QuantizeLinear and all that computes its operand from bytes.
  struct Cone {
    std::set<const Node*> nodes;
    std::set<std::pair<size_t, const Value*>> sources;  // the last in the graph's order last
  };
  std::optional<Cone> cone_of(const Node* root) const {
    Cone cone;
    std::vector<const Node*> open{root};
    while (!open.empty()) {
      const Node* node = open.back();
      open.pop_back();
      if (!cone.nodes.insert(node).second) continue;
      if (taken_.contains(node) || !is_step(*node, DType::f32) || cone.nodes.size() > kMaxTableNodes ||
          node->output()->type.shape != root->output()->type.shape)
        return std::nullopt;
      for (const Value* value : node->inputs) {
        if (value == nullptr || is_scalar(*value)) continue;
        if (node->is(ops::dequantize_linear)) cone.sources.emplace(place_of(*value), value);
        else if (value->producer == nullptr) return std::nullopt;
        else open.push_back(value->producer);
      }
    }
    return cone;
  }
  size_t place_of(const Value& value) const { return value.producer == nullptr ? 0 : position_.at(value.producer) + 1; }

  /// No value on the way is read elsewhere.
  bool is_closed(const Cone& cone, const Node* root) const {
    return std::ranges::all_of(cone.nodes, [&](const Node* node) {
      return node == root ||
             (!graph_.is_output(node->output()) &&
              std::ranges::all_of(node->output()->uses, [&](const Use& use) { return cone.nodes.contains(use.node); }));
    });
  }

  std::vector<Node*> table_into(Node* root) const {
    std::optional<Cone> cone = cone_of(root);
    if (!cone || cone->sources.empty() || !is_closed(*cone, root)) return {};
    while (true) {
      const auto last = std::prev(cone->sources.end());
      const Node* before = last->second->producer;
      std::optional<Cone> wider =
          before != nullptr && before->is(ops::quantize_linear) ? cone_of(before) : std::nullopt;
      if (!wider) break;
      wider->nodes.insert(cone->nodes.begin(), cone->nodes.end());
      wider->sources.insert(cone->sources.begin(), last);
      if (!is_closed(*wider, root)) break;
      cone = std::move(wider);
    }
    if (cone->sources.size() != 1) return {};
    std::vector<Node*> nodes;
    for (Node* node : nodes_)
      if (cone->nodes.contains(node)) nodes.push_back(node);
    return nodes;
  }

  /// What works on rows of floats, with the bytes that its operand is made of and those that its result becomes.
  void join_byte_rows() {
    for (Node* node : nodes_) {
      if (!bytes_ || taken_.contains(node) || !works_on_rows(*node) || node->output()->type.dtype != DType::f32)
        continue;
      std::vector<Node*> nodes{node};
      if (Node* before = sole_dequantizer(*node->input(0)); before != nullptr) nodes.insert(nodes.begin(), before);
      if (Node* behind = quantizer_of(*node); behind != nullptr) nodes.push_back(behind);
      if (nodes.size() > 1) add(std::move(nodes));
    }
  }

  /// The DequantizeLinear whose floats have one reader.
  Node* sole_dequantizer(const Value& floats) const {
    Node* node = floats.producer;
    const bool fits = node != nullptr && !taken_.contains(node) && node->is(ops::dequantize_linear) && scales(*node) &&
                      floats.uses.size() == 1 && !graph_.is_output(&floats);
    return fits ? node : nullptr;
  }

  /// With the Concat whose result it alone reads, where no Slice or Concat would be copied with that.
  std::vector<Node*> with_concat(std::vector<Node*> chain) const {
    const auto computes = [](const Node* node) { return node->op->is_pointwise() && !makes_codes(*node); };
    if (!std::ranges::all_of(chain, computes)) return chain;
    const std::set<const Node*> inside(chain.begin(), chain.end());
    const Value* joined = nullptr;
    for (const Node* node : chain)
      for (const Value* value : node->inputs)
        if (value != nullptr && !value->is_constant() && !inside.contains(value->producer)) {
          if (joined != nullptr && value != joined) return chain;
          joined = value;
        }
    Node* concat = joined == nullptr ? nullptr : joined->producer;
    const auto reads = [&](const Use& use) { return inside.contains(use.node); };
    if (concat != nullptr && concat->is(ops::concat) && is_private(*concat) &&
        std::ranges::all_of(joined->uses, reads) && assembly_into({concat}).size() == 1)
      chain.push_back(concat);
    return chain;
  }

  /// Pointwise producers whose results are used nowhere else join their consumer.
  std::vector<Node*> chain_into(Node* root) {
    std::vector<Node*> nodes{root};
    const DType dtype = scales(*root)        ? DType::f32
                        : makes_codes(*root) ? root->input(0)->type.dtype
                                             : root->output()->type.dtype;
    if (!is_fusible(dtype) || !is_step(*root, dtype)) return nodes;
    std::set<Node*> inside{root};
    bool grown = true;
    while (grown && nodes.size() < kMaxPointwiseNodes) {
      grown = false;
      for (size_t i = 0; i < nodes.size() && nodes.size() < kMaxPointwiseNodes; ++i)
        for (const Value* value : nodes[i]->inputs) {
          Node* producer = value == nullptr ? nullptr : value->producer;
          if (producer == nullptr || inside.contains(producer) || !joins(*producer, *root, dtype, inside)) continue;
          inside.insert(producer);
          if (count_inputs(inside) > kMaxPointwiseInputs) {
            inside.erase(producer);
            continue;
          }
          nodes.push_back(producer);
          grown = true;
          break;
        }
    }
    return nodes;
  }

  /// With the DequantizeLinear that only it reads.
  std::vector<Node*> mean_of(Node* mean) const {
    if (Node* producer = sole_dequantizer(*mean->input(0)); producer != nullptr) return {mean, producer};
    return {mean};
  }

  /// The node, or all that shuffle channels where it is their last.
  std::vector<Node*> shuffle_into(Node* root) const {
    const std::optional<ChannelShuffle> shuffle = channel_shuffle(root);
    const auto other = [&](const Node* node) {
      return taken_.contains(node) || (node != root && graph_.is_output(node->output()));
    };
    return !shuffle || std::ranges::any_of(shuffle->nodes, other) ? std::vector{root} : shuffle->nodes;
  }

  /// Slices and Concats that only this Concat, or these nodes that shuffle, and each other read: copied once, each part to its place.
  std::vector<Node*> assembly_into(std::vector<Node*> nodes) const {
    std::set<const Node*> inside(nodes.begin(), nodes.end());
    for (bool grown = nodes.size() > 1 || nodes[0]->is(ops::concat); grown && nodes.size() < kMaxAssembled;) {
      grown = false;
      for (size_t i = 0; i < nodes.size() && nodes.size() < kMaxAssembled; ++i)
        for (size_t k = 0; k < (nodes[i]->is(ops::concat) ? nodes[i]->inputs.size() : 1); ++k) {
          Node* producer = nodes[i]->input(k)->producer;
          if (producer == nullptr || inside.contains(producer) || !is_cut(*producer, inside)) continue;
          inside.insert(producer), nodes.push_back(producer), grown = true;
        }
    }
    return nodes;
  }

  /// Whether nobody but its readers would miss the result.
  bool is_private(const Node& node) const {
    return !taken_.contains(&node) && !graph_.is_output(node.output()) && !is_object(node.output()->type.dtype) &&
           !is_shape_data(*node.output()) && !deciders_.contains(&node);
  }

  bool is_cut(const Node& node, const std::set<const Node*>& inside) const {
    if ((!node.is(ops::concat) && !node.is(ops::slice)) || !is_private(node)) return false;
    for (size_t i = 1; node.is(ops::slice) && i < node.inputs.size(); ++i)
      if (const Value* value = node.input(i); value != nullptr && !value->is_constant() && !is_shape_data(*value))
        return false;
    return std::ranges::all_of(node.output()->uses, [&](const Use& use) {
      return inside.contains(use.node) && (use.index == 0 || use.node->is(ops::concat));
    });
  }

  bool joins(const Node& producer, const Node& root, DType dtype, const std::set<Node*>& inside) const {
    if (taken_.contains(&producer) || !is_step(producer, dtype) || graph_.is_output(producer.output())) return false;
    // Bytes may be broadcast as they are read.
    if (!producer.is(ops::dequantize_linear) && producer.output()->type.shape != root.output()->type.shape)
      return false;
    const auto& uses = producer.output()->uses;
    return std::all_of(uses.begin(), uses.end(), [&](const Use& use) { return inside.contains(use.node); });
  }

  const Graph& graph_;
  const bool bytes_;
  bool rounds_ = false;
  std::vector<Node*> nodes_;
  Positions position_;
  std::unordered_set<const Node*> taken_, deciders_;
  std::vector<Region> regions_;
};

}  // namespace

std::vector<Region> form_regions(const Graph& graph, bool bytes) {
  std::vector<Region> regions = Former(graph, bytes).run();
  // What decides a size has to run: the size is read off its result.
  std::unordered_set<const Node*> deciders;
  for (const auto& [symbol, node] : graph.size_deciders()) deciders.insert(node);
  for (Region& region : regions)
    if (region.is_view && deciders.contains(region.nodes[0])) region.is_view = false;
  return regions;
}

}  // namespace hone
