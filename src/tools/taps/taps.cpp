// SPDX-License-Identifier: Apache-2.0
#include "tools/taps/taps.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "capi/operators/operators.h"
#include "tools/accuracy/paused_run.h"
#include "tools/compare/engine_build.h"
#include "tools/compare/run_flags.h"
#include "tools/model/handles.h"
#include "tools/taps/exact_stream.h"

namespace hone {
namespace {

struct TapRow {
  const Step* step = nullptr;
  std::string tensor;
  Verdict in_run, alone;
};

bool computes(const Step& step) { return step.code >= 0 && step.kind != "Reformat"; }

bool comparable(DType engine, DType exact) {
  if (is_object(engine) || is_object(exact)) return false;
  return is_float(engine) == is_float(exact) && (is_float(engine) || engine == exact);
}

/// Exact values in the engine's type.
Tensor rounded_to(const Tensor& exact, DType type) {
  if (exact.dtype() == type) return exact;
  const std::vector<double> numbers = doubles_of(exact);
  TensorBuilder builder(type, exact.dims());
  visit(type, [&]<typename T>() {
    for (size_t i = 0; i < numbers.size(); ++i) builder.data<T>()[i] = static_cast<T>(static_cast<float>(numbers[i]));
  });
  return builder.finish();
}

class TapRun {
 public:
  TapRun(const Arguments& arguments, const ModelFace& face, const TensorList& inputs, const Narrator& narrator)
      : arguments_(arguments), face_(face), inputs_(inputs), narrator_(narrator) {}

  ExitStatus run() {
    const std::string device_name = arguments_.has("--cuda")  ? "cuda:0"
                                    : arguments_.has("--trt") ? best_device()
                                                              : "cpu";
    const auto device = open_device_named(device_name);
    const auto handle = plan_of(*device);
    const Plan& plan = *handle->plan;
    Sample sample;
    for (const NamedTensor& each : inputs_) sample[each.name] = each.tensor;
    const auto load = [&] {
      return std::make_unique<RunningPlan>(plan, *device->backend, device->device, sample, nullptr,
                                           capi::program_operators());
    };
    const auto free = load(), led = arguments_.has("--isolate") ? load() : nullptr;
    if (plan_file_ != nullptr) plan_file_->give_back(plan_file_->bytes());
    ExactStream exact(face_, inputs_, narrator_);
    choose_taps(plan, exact);
    compare_layers(*free, led.get(), sample, exact);
    return report(plan);
  }

 private:
  Owned<hone_plan> plan_of(const hone_device& device) {
    if (is_onnx_file(arguments_.file()))
      return build_plan(face_, engine_request(arguments_, narrator_), device, {inputs_}, narrator_);
    plan_file_ = MappedFile::open(arguments_.file());
    const std::span<const std::byte> bytes = plan_file_->bytes();
    return make<hone_plan>(hone_plan_create_from_memory, static_cast<const void*>(bytes.data()), bytes.size());
  }

  void choose_taps(const Plan& plan, ExactStream& exact) {
    const std::vector<std::string> patterns = arguments_.values("--tap");
    const bool all = patterns == std::vector<std::string>{"mark", "all"};
    const Profile& profile = plan.profiles.at(0);
    for (const Step& step : profile.steps)
      for (const BufferId id : step.outputs) {
        const std::string& name = profile.buffers[static_cast<size_t>(id)].name;
        const bool wanted = all || std::ranges::any_of(patterns, [&](const std::string& pattern) {
                              return fits_shell_pattern(pattern, name);
                            });
        if (computes(step) && wanted && !name.empty() && exact.computes(name)) ++asked_[name];
      }
    if (asked_.empty())
      throw UsageError(fmt::format("--tap {}: the engine has no such tensor", join(patterns, " ")),
                       "fused tensors are gone; --tap '*' takes those that are left");
    exact.expect(asked_);
  }

  void compare_layers(RunningPlan& free_plan, RunningPlan* led_plan, const Sample& sample, ExactStream& exact) {
    const ComparisonRequest request =
        comparison_request(arguments_, {engine_request(arguments_, narrator_).precision}, narrator_);
    PausedRun free(free_plan, sample);
    std::unique_ptr<PausedRun> led;
    if (led_plan != nullptr) led = std::make_unique<PausedRun>(*led_plan, sample);
    const Profile& profile = free_plan.plan().profiles[0];
    while (const Step* step = free.next()) {
      if (led != nullptr) led->next();
      give_back_weights(free_plan.plan(), *step);
      if (!computes(*step)) continue;
      for (const BufferId id : step->outputs) {
        const std::string& name = profile.buffers[static_cast<size_t>(id)].name;
        if (!asked_.contains(name)) continue;
        const Tensor* expected = exact.find(name);
        const std::optional<Tensor> found = free.context().buffer_value(id);
        if (expected != nullptr && found && comparable(found->dtype(), expected->dtype())) {
          TapRow row{.step = step, .tensor = name, .in_run = judged(name, *found, *expected, request), .alone = {}};
          if (led != nullptr) {
            if (const std::optional<Tensor> alone = led->context().buffer_value(id))
              row.alone = judged(name, *alone, *expected, request);
            led->context().set_buffer_value(id, rounded_to(*expected, found->dtype()));
          }
          rows_.push_back(std::move(row));
        }
        exact.release(name);
      }
    }
    most_alive_ = exact.most_alive();
  }

  /// The engine's weights of a layer that is done, where they lie in the plan's file: there is room for the exact ones then.
  void give_back_weights(const Plan& plan, const Step& step) const {
    if (plan_file_ == nullptr) return;
    for (const int32_t id : step.constants) plan_file_->give_back(plan.constants[static_cast<size_t>(id)].bytes());
  }

  static Verdict judged(const std::string& name, const Tensor& found, const Tensor& expected,
                        const ComparisonRequest& request) {
    Verdict verdict = compare("simple", name, found, expected, request.compare);
    verdict.drop_elements();
    return verdict;
  }

  ExitStatus report(const Plan& plan) const {
    const bool isolated = arguments_.has("--isolate");
    size_t layers = 0;
    for (const Step& step : plan.profiles[0].steps) layers += step.code >= 0;
    narrator_.info(
        "{} layers, of which {} tensors are compared; the plan is the same as without --tap; at most {} exact tensors "
        "were waiting",
        layers, rows_.size(), most_alive_);
    narrator_.info("{:>4} | {:<26} | {:<34} | {:<24} | {:<12} {:<12} | {}", "", "tensor", "nodes of the model",
                   "kernel", "max abs", "mean abs", isolated ? "from exact operands" : "verdict");
    Json table = Json::array();
    std::string first;
    double before = 0;
    bool good = true;
    for (size_t i = 0; i < rows_.size(); ++i) {
      const TapRow& row = rows_[i];
      const Verdict& judged = isolated ? row.alone : row.in_run;
      const std::string nodes = join(row.step->origin, " + "),
                        kernel = fmt::format("{}.{}", row.step->source, row.step->tactic);
      narrator_.info("{:>4} | {:<26} | {:<34} | {:<24} | {:<12.5g} {:<12.5g} | {}{}", i, row.tensor, nodes, kernel,
                     row.in_run.absolute.most, row.in_run.absolute.mean,
                     isolated ? fmt::format("max abs {:<11.5g} ", row.alone.absolute.most) : "",
                     judged.passed ? "PASSED" : "FAILED");
      Json entry{{"tensor", row.tensor},
                 {"layer", row.step->name},
                 {"nodes", row.step->origin},
                 {"kernel", kernel},
                 {"maxAbs", row.in_run.absolute.most},
                 {"meanAbs", row.in_run.absolute.mean},
                 {"passed", judged.passed}};
      if (isolated) entry["aloneMaxAbs"] = row.alone.absolute.most;
      table.push_back(std::move(entry));
      good &= judged.passed;
      if (!judged.passed && first.empty()) first = fmt::format("{} ({} {})", row.tensor, kernel, nodes);
      if (first.empty()) before = std::max(before, judged.absolute.most);
    }
    if (!first.empty()) narrator_.error("First divergence: {}, layers before it agree to {:.5g}", first, before);
    narrator_.write(
        good ? Narrator::Level::info : Narrator::Level::error,
        fmt::format(
            "{} | {} of {} tensors within tolerance", good ? "PASSED" : "FAILED",
            std::ranges::count_if(rows_, [&](const TapRow& row) { return (isolated ? row.alone : row.in_run).passed; }),
            rows_.size()));
    write_json_result(arguments_, Json{{"passed", good}, {"layers", layers}, {"taps", table}}.dump(
                                      2, ' ', false, Json::error_handler_t::replace));
    return good ? ExitStatus::passed : ExitStatus::failed;
  }

  const Arguments& arguments_;
  const ModelFace& face_;
  const TensorList& inputs_;
  const Narrator& narrator_;
  std::shared_ptr<const MappedFile> plan_file_;  // null where the plan was built here
  std::map<std::string, int> asked_;
  std::vector<TapRow> rows_;
  size_t most_alive_ = 0;
};

}  // namespace

ExitStatus compare_taps(const Arguments& arguments, const ModelFace& face, const TensorList& inputs,
                        const Narrator& narrator) {
  return TapRun(arguments, face, inputs, narrator).run();
}

}  // namespace hone
