// SPDX-License-Identifier: Apache-2.0
//
// NonMaxSuppression, whose kernels say themselves how many boxes they kept.
#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "base/checked.h"
#include "ops/ops.h"
#include "regions/region_match.h"

namespace hone::cuda {
namespace {

constexpr int64_t kChunk = 64;  // boxes that are decided together

struct Task {
  static constexpr std::string_view kName = "Task";
  int32_t boxes = 0, classes = 0, chunks = 0;
  int32_t most = 0;  // kept of a class
  int32_t centered = 0, thresholded = 0;
  float limit = 0, least = 0;
  static void fields(auto& self, auto& visit) {
    visit("boxes", self.boxes);
    visit("classes", self.classes);
    visit("chunks", self.chunks);
    visit("most", self.most);
    visit("centered", self.centered);
    visit("thresholded", self.thresholded);
    visit("limit", self.limit);
    visit("least", self.least);
  }
};

struct OrderParameters {
  static constexpr std::string_view kKernel = "non_max_suppression_order";
  Reads boxes, scores;
  Writes order, sorted, alive, candidates, kept_before;
  Task task;
  static void fields(auto& self, auto& visit) {
    visit("boxes", self.boxes, "float");
    visit("scores", self.scores, "float");
    visit("order", self.order, "int");
    visit("sorted", self.sorted, "float4");
    visit("alive", self.alive, "unsigned char");
    visit("candidates", self.candidates, "int");
    visit("kept_before", self.kept_before, "int");
    visit("task", self.task);
  }
};

struct ChunkParameters {
  static constexpr std::string_view kKernel = "non_max_suppression_chunk";
  Reads sorted, candidates;
  Writes alive, kept, kept_before;
  Task task;
  int32_t chunk = 0;
  static void fields(auto& self, auto& visit) {
    visit("sorted", self.sorted, "float4");
    visit("candidates", self.candidates, "int");
    visit("alive", self.alive, "unsigned char");
    visit("kept", self.kept, "unsigned long long");
    visit("kept_before", self.kept_before, "int");
    visit("task", self.task);
    visit("chunk", self.chunk);
  }
};

struct WriteParameters {
  static constexpr std::string_view kKernel = "non_max_suppression_write";
  Reads order, kept, kept_before;
  Writes selected, sizes;
  Task task;
  static void fields(auto& self, auto& visit) {
    visit("order", self.order, "int");
    visit("kept", self.kept, "unsigned long long");
    visit("kept_before", self.kept_before, "int");
    visit("selected", self.selected, "i64");
    visit("sizes", self.sizes, "i64");
    visit("task", self.task);
  }
};

struct SuppressionCode {
  int64_t boxes = 0, scores = 1;  // which inputs
  int64_t most = 0;               // kept of a class
  double limit = 0;               // overlap
  bool thresholded = false, centered = false;
  double least = 0;  // score
  static void fields(auto& self, auto& visit) {
    visit("boxes", self.boxes, 0, 1);
    visit("scores", self.scores, 0, 1);
    visit("most", self.most, 0, kMostSize);
    visit("limit", self.limit);
    visit("thresholded", self.thresholded);
    visit("centered", self.centered);
    visit("least", self.least);
  }
};

std::string reason_against(const Problem& problem, const Node& node) {
  for (size_t i = 0; i < 2; ++i)
    if (input_index(problem.region, node.input(i)) < 0) return "an operand is constant";
  for (size_t i = 2; i < 5; ++i)
    if (node.input(i) != nullptr && !node.input(i)->is_constant()) return "a limit is not known";
  return {};
}

/// An operand of one number, where it is given.
std::optional<double> number(const Node& node, size_t operand) {
  const Value* value = node.input(operand);
  if (value == nullptr || value->constant->size() == 0) return std::nullopt;
  return value->constant->real(0);
}

/// Parts of the workspace, one behind the other.
class Parts {
 public:
  template <typename T>
  Pointer add(int64_t count) {
    const Pointer part{Pointer::From::workspace, 0, end_};
    end_ = round_up(end_ + count * static_cast<int64_t>(sizeof(T)), 16);
    return part;
  }
  size_t bytes() const { return static_cast<size_t>(end_); }

 private:
  int64_t end_ = 0;
};

struct NonMaxSuppressionFamily {
  static constexpr std::string_view kName = "non_max_suppression";
  static constexpr int kVersion = 1;
  using Params = NoParams;
  using Code = SuppressionCode;

  static void propose(const Problem& problem, Candidates& out) {
    const Node* node = problem.only();
    if (node == nullptr || !node->is(ops::non_max_suppression)) return;
    if (std::string reason = reason_against(problem, *node); !reason.empty())
      return out.refuse(kName, std::move(reason));
    out.offer({"cuda", std::string(kName), {}, {Layout::linear, Layout::linear}, {Layout::linear}});
  }

  static Built<Code> generate(const Problem& problem, const std::string&, const Params&, const Tactic&) {
    const Node* node = problem.only();
    const Value* most = node->input(2);
    const bool some = most != nullptr && most->constant->size() > 0;
    const Code code{.boxes = input_index(problem.region, node->input(0)),
                    .scores = input_index(problem.region, node->input(1)),
                    .most = some ? std::clamp<int64_t>(most->constant->integer(0), 0, kMostSize) : 0,
                    .limit = number(*node, 3).value_or(0),
                    .thresholded = number(*node, 4).has_value(),
                    .centered = node->attrs.integer("center_point_box") != 0,
                    .least = number(*node, 4).value_or(0)};
    return {code, fmt::format("#define CHUNK {}\n", kChunk) +
                      declare<OrderParameters, ChunkParameters, WriteParameters>() + kernels::non_max_suppression};
  }

  /// That the results have room for all that can be kept is what the kernel was made for (support/signature.h).
  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    const std::vector<ConcreteType>&inputs = context.shapes.inputs, &outputs = context.shapes.outputs;
    HONE_CHECK(inputs.size() == 2 && outputs.size() == 2 && code.boxes != code.scores,
               "a NonMaxSuppression in the plan has {} inputs", inputs.size());
    const Dims &scores = inputs[static_cast<size_t>(code.scores)].dims,
               &boxes = inputs[static_cast<size_t>(code.boxes)].dims;
    HONE_CHECK(scores.size() == 3 && (boxes == Dims{scores[0], scores[2], 4}),
               "a NonMaxSuppression in the plan has boxes {} for scores {}", join_dims(boxes), join_dims(scores));
    const int64_t lines = scores[0] * scores[1], count = scores[2], most = std::min(code.most, count);
    HONE_CHECK(lines > 0 && lines < 65536 && count > 0 && lines * count < int64_t{1} << 31 &&
                   outputs[0].dims == (Dims{lines * most, 3}),
               "a NonMaxSuppression in the plan has scores {} and keeps {}", join_dims(scores), most);
    const int64_t chunks = blocks_of(count, kChunk);
    const auto narrow = [](int64_t value) { return static_cast<int32_t>(value); };
    const Task task{.boxes = narrow(count),
                    .classes = narrow(scores[1]),
                    .chunks = narrow(chunks),
                    .most = narrow(most),
                    .centered = code.centered,
                    .thresholded = code.thresholded,
                    .limit = static_cast<float>(code.limit),
                    .least = static_cast<float>(code.least)};
    Parts parts;
    const Pointer order = parts.add<int32_t>(lines * count), sorted = parts.add<float[4]>(lines * count),
                  alive = parts.add<char>(lines * count), candidates = parts.add<int32_t>(lines),
                  kept = parts.add<uint64_t>(lines * chunks), before = parts.add<int32_t>(lines * (chunks + 1));
    const int64_t blocks = blocks_of(count, 256);
    const Module& module = *context.module;
    std::vector<GridLaunch> launches{
        launch_of(module,
                  OrderParameters{input(code.boxes), input(code.scores), Writes{order}, Writes{sorted}, Writes{alive},
                                  Writes{candidates}, Writes{before}, task},
                  {{blocks, lines}})};
    for (int64_t chunk = 0; chunk < chunks; ++chunk)
      launches.push_back(launch_of(module,
                                   ChunkParameters{Reads{sorted}, Reads{candidates}, Writes{alive}, Writes{kept},
                                                   Writes{before}, task, narrow(chunk)},
                                   {{std::max<int64_t>(blocks_of(count - (chunk + 1) * kChunk, 256), 1), lines}}));
    launches.push_back(launch_of(module,
                                 WriteParameters{Reads{order}, Reads{kept}, Reads{before}, output(0), output(1), task},
                                 {{blocks, lines}}));
    return std::make_shared<GridKernel>(context.module, std::move(launches), parts.bytes());
  }
};

}  // namespace

const CudaTactic tactics::non_max_suppression = describe<NonMaxSuppressionFamily>();

}  // namespace hone::cuda
