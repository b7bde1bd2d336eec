// SPDX-License-Identifier: Apache-2.0
//
// NonMaxSuppression: each class of each image takes boxes by falling score from a heap, so that only those are put in order that are
// looked at, and holds them against the kept ones, whose edges lie behind each other. Every number is rounded as the reference does.
#include <algorithm>
#include <bit>
#include <numeric>

#include "backends/cpu/support/node_code.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

constexpr int64_t kTogether = 16;  // kept boxes that a box is held against at a time

struct Box {
  float y1, x1, y2, x2;
  float area() const { return (y2 - y1) * (x2 - x1); }
};

/// Kept boxes, each edge in a list of its own.
struct KeptBoxes {
  float *y1, *x1, *y2, *x2, *area;
  KeptBoxes(float* room, int64_t most)
      : y1(room), x1(room + most), y2(room + 2 * most), x2(room + 3 * most), area(room + 4 * most) {}
  static int64_t floats(int64_t most) { return 5 * most; }

  void put(int64_t i, const Box& box) const {
    y1[i] = box.y1, x1[i] = box.x1, y2[i] = box.y2, x2[i] = box.x2, area[i] = box.area();
  }
  bool overlaps(int64_t i, const Box& box, float own_area, float limit) const {
    const float height = std::min(box.y2, y2[i]) - std::max(box.y1, y1[i]),
                width = std::min(box.x2, x2[i]) - std::max(box.x1, x1[i]);
    const float shared = height * width, together = own_area + area[i] - shared;
    const bool none = (height <= 0) | (width <= 0) | (together <= 0);
    return (none ? 0 : shared / together) > limit;
  }
  bool suppress(int64_t count, const Box& box, float limit) const {
    const float own_area = box.area();
    int64_t i = 0;
    for (; i + kTogether <= count; i += kTogether) {
      int found = 0;
      for (int64_t k = i; k < i + kTogether; ++k) found |= overlaps(k, box, own_area, limit) ? 1 : 0;
      if (found != 0) return true;
    }
    for (; i < count; ++i)
      if (overlaps(i, box, own_area, limit)) return true;
    return false;
  }
};

/// Larger for a larger score, and among equals for the earlier box.
uint64_t key_of(float score, int64_t box) {
  const auto bits = std::bit_cast<uint32_t>(score + 0.0f);  // one zero
  const uint32_t rank = (bits >> 31) != 0 ? ~bits : bits | 0x80000000U;
  return uint64_t{rank} << 32 | (0xffffffffU - static_cast<uint32_t>(box));
}
int64_t box_of_key(uint64_t key) { return 0xffffffffU - static_cast<uint32_t>(key); }

struct SuppressionCode {
  NodeCode node;
  bool centered = false;  // boxes are centres and sizes
  static void fields(auto& self, auto& visit) {
    NodeCode::fields(self.node, visit);
    visit("centered", self.centered);
  }
};

/// An item is a class of an image. First each finds what it keeps, then all know where their boxes are written.
class Suppression final : public CpuKernel {
 public:
  Suppression(const SuppressionCode& code, const BoundNode& node, NodeResult sizes, int workers)
      : boxes_(node.operand(0)),
        scores_(node.operand(1)),
        selected_(node.result()),
        sizes_(std::move(sizes)),
        centered_(code.centered),
        workers_(workers) {
    for (size_t i = 2; i < 5; ++i)
      if (node.has(i) && elements(node.operand(i).type.dims) > 0) limits_[i - 2] = node.operand(i);
    const Dims &boxes = boxes_.type.dims, &scores = scores_.type.dims;
    node.require(boxes_.type.dtype == DType::f32 && scores_.type.dtype == DType::f32 && boxes.size() == 3 &&
                 scores.size() == 3 && boxes == Dims{scores[0], scores[2], 4} && scores[2] < INT32_MAX);
    node.require(!limits_[0] || limits_[0]->type.dtype == DType::i64);
    node.require((!limits_[1] || limits_[1]->type.dtype == DType::f32) &&
                 (!limits_[2] || limits_[2]->type.dtype == DType::f32));
    classes_ = scores[1], count_ = scores[2], items_ = scores[0] * scores[1];
    const Dims& room = selected_.type.dims;
    node.require(selected_.type.dtype == DType::i64 && room.size() == 2 && room[1] == 3 && room[0] <= items_ * count_ &&
                 (items_ == 0 || room[0] % items_ == 0) && sizes_.type == ConcreteType{DType::i64, {2}});
    most_ = items_ == 0 ? 0 : room[0] / items_;
  }

  int phases() const override { return 2; }
  bool serial() const override { return items_ < 2; }
  size_t workspace_bytes() const override {
    return static_cast<size_t>(workers_ * (count_ * 8 + KeptBoxes::floats(most_) * 4) + items_ * 8 +
                               items_ * most_ * 4);
  }

  void run(int phase, int worker, int workers, const Bindings& bindings) const override {
    auto* keys = static_cast<uint64_t*>(bindings.workspace);
    auto* found = reinterpret_cast<int64_t*>(keys + workers_ * count_);
    auto* edges = reinterpret_cast<float*>(found + items_);
    auto* kept = reinterpret_cast<int32_t*>(edges + workers_ * KeptBoxes::floats(most_));
    const Share share = share_of(items_, worker, workers);
    if (phase == 1) return write(share, worker, std::span(found, static_cast<size_t>(items_)), kept, bindings);
    const KeptBoxes own(edges + worker * KeptBoxes::floats(most_), most_);
    for (int64_t item = share.begin; item < share.end; ++item)
      found[item] = keep(item, keys + worker * count_, own, kept + item * most_, bindings);
  }

 private:
  template <typename T>
  std::optional<T> limit(size_t i, const Bindings& bindings) const {
    return limits_[i] ? std::optional(*limits_[i]->as<T>(bindings)) : std::nullopt;
  }

  Box box_at(const float* b) const {
    if (centered_) return {b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2};
    return {std::min(b[0], b[2]), std::min(b[1], b[3]), std::max(b[0], b[2]), std::max(b[1], b[3])};
  }

  int64_t keep(int64_t item, uint64_t* keys, const KeptBoxes& own, int32_t* kept, const Bindings& bindings) const {
    const int64_t most = std::min(most_, limit<int64_t>(0, bindings).value_or(0));
    const float overlap = limit<float>(1, bindings).value_or(0.0f);
    const std::optional<float> least = limit<float>(2, bindings);
    const float* scores = scores_.as<float>(bindings) + item * count_;
    const float* boxes = boxes_.as<float>(bindings) + item / classes_ * count_ * 4;
    uint64_t* end = keys;
    for (int64_t i = 0; i < count_; ++i)
      if (!least || scores[i] > *least) *end++ = key_of(scores[i], i);
    std::make_heap(keys, end);
    int64_t count = 0;
    while (count < most && end != keys) {
      std::pop_heap(keys, end);
      const int64_t i = box_of_key(*--end);
      const Box box = box_at(boxes + i * 4);
      if (own.suppress(count, box, overlap)) continue;
      own.put(count, box);
      kept[count++] = static_cast<int32_t>(i);
    }
    return count;
  }

  void write(const Share& share, int worker, std::span<const int64_t> found, const int32_t* kept,
             const Bindings& bindings) const {
    int64_t* to =
        selected_.as<int64_t>(bindings) + 3 * std::accumulate(found.begin(), found.begin() + share.begin, int64_t{0});
    for (int64_t item = share.begin; item < share.end; ++item)
      for (int64_t i = 0; i < found[static_cast<size_t>(item)]; ++i, to += 3)
        to[0] = item / classes_, to[1] = item % classes_, to[2] = kept[item * most_ + i];
    if (worker != 0) return;
    auto* sizes = sizes_.as<int64_t>(bindings);
    sizes[0] = std::accumulate(found.begin(), found.end(), int64_t{0});
    sizes[1] = 3;
  }

  NodeOperand boxes_, scores_;
  std::array<std::optional<NodeOperand>, 3> limits_;  // kept of a class, overlap, score
  NodeResult selected_, sizes_;
  bool centered_;
  int64_t workers_, classes_ = 1, count_ = 0, items_ = 0, most_ = 0;
};

struct SuppressionFamily : NodeFamily<SuppressionCode> {
  static constexpr std::string_view kName = "non_max_suppression";

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = single_node(problem);
    if (node == nullptr || !node->is(ops::non_max_suppression)) return;
    offer_linear(problem, kName, out);
  }
  static Built<Code> compile(const Problem& problem, const Params&, const Tactic&) {
    const Node& node = *single_node(problem);
    Built<Code> built;
    built.code = {describe_node(problem, built.constants), node.attrs.integer("center_point_box") != 0};
    return built;
  }
  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    const BoundNode node(code.node, shapes, kName);
    node.require(shapes.outputs.size() == 2 && code.node.results == Dims{0});
    return std::make_shared<Suppression>(code, node, NodeResult{shapes.outputs[1], 1}, info.workers);
  }
};

}  // namespace

const CpuTactic tactics::non_max_suppression = describe<SuppressionFamily>();

}  // namespace hone::cpu
