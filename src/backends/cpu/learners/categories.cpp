// SPDX-License-Identifier: Apache-2.0
//
// LabelEncoder and OneHotEncoder of integers: where an element stands in a list of keys, by a table where keys lie close together, else by
// halving the sorted list. What then is written is the label at that place, or a row with a one there.
#include <algorithm>
#include <limits>

#include "backends/cpu/support/node_code.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

struct CategoriesCode {
  NodeCode node;
  std::vector<int64_t> keys;
  std::optional<Tensor> labels = {}, otherwise = {};  // none: rows with a one
  static void fields(auto& self, auto& visit) {
    NodeCode::fields(self.node, visit);
    visit("keys", self.keys, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
    visit("labels", self.labels);
    visit("otherwise", self.otherwise);
  }
};

class Places {
 public:
  explicit Places(const std::vector<int64_t>& keys) {
    for (size_t i = 0; i < keys.size(); ++i) sorted_.push_back({keys[i], static_cast<int64_t>(i)});
    std::stable_sort(sorted_.begin(), sorted_.end(), [](const Entry& a, const Entry& b) { return a.key < b.key; });
    if (sorted_.empty()) return;
    first_ = sorted_.front().key;
    const uint64_t range = static_cast<uint64_t>(sorted_.back().key) - static_cast<uint64_t>(first_);
    if (range >= 4 * keys.size() + kSmallTable) return;
    table_.assign(range + 1, -1);
    for (size_t i = sorted_.size(); i-- > 0;)  // the first of equal keys is written last
      table_[static_cast<uint64_t>(sorted_[i].key) - static_cast<uint64_t>(first_)] = sorted_[i].place;
  }

  /// -1 where there is none.
  int64_t of(int64_t key) const {
    if (!table_.empty()) {
      const uint64_t at = static_cast<uint64_t>(key) - static_cast<uint64_t>(first_);
      return at < table_.size() ? table_[at] : -1;
    }
    const auto at = std::lower_bound(sorted_.begin(), sorted_.end(), key,
                                     [](const Entry& entry, int64_t wanted) { return entry.key < wanted; });
    return at == sorted_.end() || at->key != key ? -1 : at->place;
  }

 private:
  static constexpr size_t kSmallTable = 256;
  struct Entry {
    int64_t key, place;
  };
  std::vector<Entry> sorted_;
  int64_t first_ = 0;
  std::vector<int64_t> table_;
};

class Categories final : public ItemKernel {
 public:
  Categories(const CategoriesCode& code, const BoundNode& node)
      : ItemKernel(elements(node.operand(0).type.dims), elements(node.result().type.dims)),
        x_(node.operand(0)),
        y_(node.result()),
        places_(code.keys),
        count_(static_cast<int64_t>(code.keys.size())),
        labels_(code.labels),
        otherwise_(code.otherwise) {
    node.require((x_.type.dtype == DType::i64 || x_.type.dtype == DType::i32) &&
                 labels_.has_value() == otherwise_.has_value());
    const int64_t items = elements(x_.type.dims);
    if (labels_)
      node.require(labels_->dtype() == y_.type.dtype && otherwise_->dtype() == y_.type.dtype &&
                   labels_->size() == count_ && otherwise_->size() == 1 && elements(y_.type.dims) == items);
    else node.require(y_.type.dtype == DType::f32 && elements(y_.type.dims) == items * count_);
  }

 private:
  void run_items(int64_t begin, int64_t end, const Bindings& bindings) const override {
    const auto place = [&](int64_t i) {
      return places_.of(x_.type.dtype == DType::i64 ? x_.as<int64_t>(bindings)[i] : x_.as<int32_t>(bindings)[i]);
    };
    if (!labels_) {
      float* y = y_.as<float>(bindings);
      std::fill(y + begin * count_, y + end * count_, 0.0F);
      for (int64_t i = begin; i < end; ++i)
        if (const int64_t at = place(i); at >= 0) y[i * count_ + at] = 1;
      return;
    }
    visit(y_.type.dtype, [&]<typename T>() {
      const T *labels = labels_->data<T>().data(), otherwise = otherwise_->data<T>()[0];
      T* y = y_.as<T>(bindings);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = place(i);
        y[i] = at < 0 ? otherwise : labels[at];
      }
    });
  }

  NodeOperand x_;
  NodeResult y_;
  Places places_;
  int64_t count_;
  std::optional<Tensor> labels_, otherwise_;
};

std::string reason_against(const Node& node) {
  if (std::string reason = reason_not_numeric(node); !reason.empty()) return reason;
  const DType dtype = node.input(0)->type.dtype;
  if (dtype != DType::i64 && dtype != DType::i32) return fmt::format("its keys are {}", name_of(dtype));
  if (node.is(ops::label_encoder)) {
    const Tensor& keys = node.attrs.tensor("keys");
    return is_float(keys.dtype()) ? "its keys are not integers" : "";
  }
  if (node.attrs.integer("zeros") == 0) return "an element of no category is an error";
  std::vector<int64_t> sorted = node.attrs.integers("cats_int64s");
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end() ? "" : "a category is there twice";
}

struct CategoriesFamily : NodeFamily<CategoriesCode> {
  static constexpr std::string_view kName = "categories";

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = single_node(problem);
    if (node == nullptr || !(node->is(ops::label_encoder) || node->is(ops::one_hot_encoder))) return;
    if (std::string reason = reason_against(*node); !reason.empty()) return out.refuse(kName, std::move(reason));
    offer_linear(problem, kName, out);
  }
  static Built<Code> compile(const Problem& problem, const Params&, const Tactic&) {
    const Node& node = *single_node(problem);
    Built<Code> built;
    built.code.node = describe_node(problem, built.constants);
    if (node.is(ops::one_hot_encoder)) {
      built.code.keys = node.attrs.integers("cats_int64s");
    } else {
      built.code.keys = node.attrs.tensor("keys").integers();
      built.code.labels = node.attrs.tensor("to"), built.code.otherwise = node.attrs.tensor("otherwise");
    }
    return built;
  }
  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo&) {
    return std::make_shared<Categories>(code, BoundNode(code.node, shapes, kName));
  }
};

}  // namespace

const CpuTactic tactics::categories = describe<CategoriesFamily>();

}  // namespace hone::cpu
