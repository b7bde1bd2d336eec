// SPDX-License-Identifier: Apache-2.0
//
// Models of a few nodes that fit the schema only roughly: any operator, operands of any type and rank, attributes of the
// right names with odd values and lengths. The input's bytes are the choices. What is imported runs through the passes and
// the reference, and comes out with the sizes that inference promised.
#include "harness.h"
#include "ir/op.h"
#include "onnx/importer.h"
#include "onnx/model_writer.h"
#include "ops/all.h"
#include "passes/pipeline.h"

namespace hone::fuzz {
namespace {

using W = onnx::ModelWriter;

/// The input as a stream of choices; 0 behind its end.
class Choices {
 public:
  Choices(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  size_t below(size_t limit) {
    if (limit <= 1) return 0;
    const size_t high = limit > 256 ? next() << 8 : 0;
    return (high + next()) % limit;
  }
  bool one_in(size_t count) { return below(count) == 0; }
  template <typename List>
  const auto& of(const List& list) {
    return *(std::begin(list) + static_cast<std::ptrdiff_t>(below(std::size(list))));
  }

 private:
  size_t next() { return at_ < size_ ? data_[at_++] : 0; }
  const uint8_t* data_;
  size_t size_, at_ = 0;
};

constexpr int64_t kNumbers[] = {0,  1,  2,  3,   4,    5,     7,         8,         16,        -1,
                                -2, -3, -5, 100, 1000, 65536, INT64_MAX, INT64_MIN, INT32_MAX, 1LL << 40};
constexpr float kReals[] = {0, 1, -1, 0.5f, 1e-5f, 2.5f, 1e30f, -1e30f, INFINITY, NAN};
constexpr const char* kTexts[] = {
    "",           "constant",      "reflect",    "edge",       "wrap",    "linear",  "nearest", "cubic",
    "half_pixel", "align_corners", "SAME_UPPER", "SAME_LOWER", "VALID",   "NOTSET",  "none",    "add",
    "mul",        "max",           "DCR",        "CRD",        "floor",   "forward", "reverse", "bidirectional",
    "Tanh",       "Relu",          "tanh",       "ij,jk->ik",  "...i->i", "ii->",    "NONE",    "SOFTMAX",
    "LOGISTIC",   "RBF",           "POLY",       "BRANCH_LEQ", "LEAF",    "SUM",     "MIN",     "WORD",
    "(a)b",       "mean",          "sum",        "L2",         "MAX"};
constexpr int kTypes[] = {1, 1, 1, 1, 7, 7, 6, 9, 10, 2, 3, 11, 8, 16, 22};

class Maker {
 public:
  explicit Maker(Choices& choose) : choose_(choose) {
    for (const OpDef* op : all_ops())
      for (const OnnxRule& rule : op->onnx) rules_.push_back({op, &rule});
  }

  Blob model() {
    version_ = 1 + static_cast<int64_t>(choose_.below(24));
    for (size_t i = 0, count = 1 + choose_.below(3); i < count; ++i) add_input();
    for (size_t i = 0, count = choose_.below(4); i < count; ++i) add_constant();
    for (size_t i = 0, count = 1 + choose_.below(3); i < count; ++i) add_node();
    parts_.outputs = {W::value(last_, 1, {})};
    return W::model_of(W::graph(parts_), {W::opset("", version_), W::opset("ai.onnx.ml", 1 + choose_.below(5)),
                                          W::opset("ai.onnx.preview.training", 1), W::opset("com.microsoft", 1)});
  }

 private:
  struct Row {
    const OpDef* op;
    const OnnxRule* rule;
  };

  std::vector<int64_t> sizes() {
    std::vector<int64_t> dims(choose_.below(6));
    for (int64_t& dim : dims) dim = static_cast<int64_t>(choose_.one_in(16) ? 0 : 1 + choose_.below(4));
    return dims;
  }

  void add_input() {
    std::vector<std::string> dims;
    for (const int64_t size : sizes())
      dims.push_back(choose_.one_in(8) ? W::dim(std::string(1, static_cast<char>('M' + choose_.below(2))))
                                       : W::dim(size));
    parts_.inputs.push_back(W::value(fresh(), choose_.of(kTypes), dims));
  }

  std::string tensor(const std::string& name) {
    if (!choose_.one_in(4)) {
      std::vector<int64_t> dims = sizes(), values;
      if (choose_.below(4) != 0) dims = {static_cast<int64_t>(choose_.below(6))};
      for (int64_t i = 0; i < elements(dims); ++i) values.push_back(choose_.of(kNumbers));
      return W::integers(name, dims, values);
    }
    const std::vector<int64_t> dims = sizes();
    std::string raw(static_cast<size_t>(4 * elements(dims)), '\0');
    for (char& byte : raw) byte = static_cast<char>(choose_.below(256));
    return W::raw_tensor(name, choose_.one_in(4) ? 6 : 1, dims, raw);
  }

  void add_constant() {
    const std::string name = fresh();
    parts_.initializers.push_back(tensor(name));
  }

  std::vector<int64_t> integers() {
    std::vector<int64_t> list(choose_.below(6));
    for (int64_t& number : list)
      number = choose_.one_in(2) ? static_cast<int64_t>(choose_.below(4)) : choose_.of(kNumbers);
    return list;
  }

  std::string attribute(const AttrSpec& spec) {
    const std::string name(spec.name);
    switch (spec.kind) {
      case AttrKind::integer: return W::integer_attr(name, choose_.of(kNumbers));
      case AttrKind::real: return W::real_attr(name, choose_.of(kReals));
      case AttrKind::text: return W::text_attr(name, choose_.of(kTexts));
      case AttrKind::integers: return W::integers_attr(name, integers());
      case AttrKind::reals: {
        std::vector<float> list(choose_.below(6));
        for (float& number : list) number = choose_.of(kReals);
        return W::reals_attr(name, list);
      }
      case AttrKind::texts: {
        std::vector<std::string> list(choose_.below(6));
        for (std::string& text : list) text = choose_.of(kTexts);
        return W::texts_attr(name, list);
      }
      case AttrKind::tensor: return W::tensor_attr(name, tensor("t"));
    }
    return {};
  }

  void add_node() {
    const Row row = choose_.of(rules_);
    std::vector<std::string> inputs, outputs, attributes;
    const size_t most = std::min<size_t>(row.op->max_inputs, row.op->min_inputs + 4),
                 count = row.op->min_inputs + choose_.below(most - row.op->min_inputs + 1);
    for (size_t i = 0; i < count; ++i) inputs.push_back(choose_.one_in(16) ? "" : choose_.of(names_));
    for (const AttrSpec& spec : row.op->attrs)
      if (spec.required || choose_.one_in(3)) attributes.push_back(attribute(spec));
    for (const char* old : {"axes", "pads", "starts", "ends", "split", "scales", "kernel_shape", "to", "value"})
      if (choose_.one_in(24)) attributes.push_back(W::integers_attr(old, integers()));
    for (size_t i = 0, results = std::max<size_t>(row.op->outputs, 1) + choose_.below(2); i < results; ++i)
      outputs.push_back(fresh());
    last_ = outputs[0];
    parts_.nodes.push_back(
        W::node(std::string(row.rule->op_type), inputs, outputs, attributes, "", std::string(row.rule->domain)));
  }

  std::string fresh() { return names_.emplace_back("v" + std::to_string(names_.size())); }

  Choices& choose_;
  std::vector<Row> rules_;
  int64_t version_ = 1;
  std::vector<std::string> names_;
  std::string last_;
  W::GraphParts parts_;
};

/// Random values are made and sizes are compared only where they are small.
bool is_small(const Graph& graph) {
  constexpr int64_t kMost = 1 << 16;
  const auto small = [](const Value* value) {
    return value->type.ranked && value->type.shape.is_static() && elements(value->type.shape.values()) <= kMost;
  };
  for (const Value* input : graph.inputs())
    if (!small(input)) return false;
  for (const Node* node : graph.nodes())
    for (const Value* output : node->outputs)
      if (output->type.shape.is_static() && !small(output)) return false;
  return true;
}

void evaluate_and_compare(const Graph& graph) {
  if (!is_small(graph)) return;
  const std::vector<Tensor> results = evaluate(graph, random_inputs(graph, 1));
  for (size_t i = 0; i < results.size(); ++i) {
    const TensorType& type = graph.outputs()[i]->type;
    if (!type.ranked || type.element != nullptr) continue;
    HONE_ASSERT(results[i].dtype() == type.dtype, "{} gives {}, not {}", print(graph), name_of(results[i].dtype()),
                type.text());
    HONE_ASSERT(!type.shape.is_static() || results[i].dims() == type.shape.values(), "{} gives [{}], not {}",
                print(graph), join_dims(results[i].dims(), ","), type.text());
  }
}

}  // namespace

std::vector<std::string> seed_inputs() {
  std::vector<std::string> seeds;
  uint64_t state = 1;
  for (int i = 0; i < 200; ++i) {
    std::string seed;
    for (int byte = 0; byte < 120; ++byte) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      seed += static_cast<char>(state >> 56);
    }
    seeds.push_back(std::move(seed));
  }
  return seeds;
}

}  // namespace hone::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  fuzz::Choices choices(data, size);
  const Blob bytes = fuzz::Maker(choices).model();
  Graph graph;
  const bool imported = fuzz::accepted([&] { graph = import_onnx_bytes(bytes, silent_logger()).graph; });
  if (!imported) return 0;
  fuzz::accepted([&] {
    graph = graph.specialize({{"M", 2}, {"N", 3}});
    fuzz::evaluate_and_compare(graph);
  });
  fuzz::accepted([&] {
    run(graph, pipeline(), {.log = silent_logger()});
    fuzz::evaluate_and_compare(graph);
  });
  return 0;
}
