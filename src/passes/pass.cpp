// SPDX-License-Identifier: Apache-2.0
//
// The runner. Whether a pass changed the graph is decided by a fingerprint of its structure (operators, attributes and
// which values feed which nodes; constants by identity), which costs little even when weights are large.
#include "passes/pass.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <unordered_map>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "ir/op.h"
#include "passes/rewrite.h"

namespace hone {
namespace {

/// Groups converge in two or three rounds; more would be two passes undoing each other.
constexpr int kMaxRounds = 8;

class Fingerprint {
 public:
  explicit Fingerprint(const Graph& graph) {
    for (const Node* node : graph.nodes()) {
      add(node->op);
      add(node->outputs.empty() ? nullptr : node->outputs.front());
      for (const Value* input : node->inputs) add(input);
      hash_ = mix(hash_, hash64(node->attrs.print()));
    }
    for (const Value* output : graph.outputs()) add(output);
  }
  uint64_t value() const { return hash_; }

 private:
  static uint64_t mix(uint64_t a, uint64_t b) { return (a ^ b) * 0x9e3779b97f4a7c15u + (a >> 29); }
  void add(const void* pointer) { hash_ = mix(hash_, reinterpret_cast<uintptr_t>(pointer)); }

  uint64_t hash_ = 0;
};

class Runner {
 public:
  Runner(Graph& graph, const PassContext& context) : graph_(graph), context_(context) {
    if (!dumping()) return;
    std::filesystem::create_directories(context.dump_directory);
    snapshot("original", print(graph));
  }

  void run_list(std::span<const Pass> passes) {
    for (const Pass& pass : passes) run_pass(pass);
  }

  /// The list of all passes that ran, with time and effect, beside the snapshots.
  void finish() const {
    if (dumping()) write_file(context_.dump_directory + "/passes.txt", summary_);
  }

 private:
  bool dumping() const { return !context_.dump_directory.empty(); }
  bool disabled(std::string_view name) const {
    return std::find(context_.disabled.begin(), context_.disabled.end(), name) != context_.disabled.end();
  }

  void run_pass(const Pass& pass) {
    if (!disabled(pass.name)) {
      if (pass.group.empty()) run_single(pass);
      else run_group(pass);
    }
    if (!pass.milestone.empty()) context_.log.verbose("After {}: {} layers", pass.milestone, graph_.node_count());
  }

  void run_group(const Pass& pass) {
    for (int round = 0; round < kMaxRounds; ++round) {
      const uint64_t before = Fingerprint(graph_).value();
      run_list(pass.group);
      if (Fingerprint(graph_).value() == before) return;
    }
    context_.log.verbose("{} still changed the graph after {} rounds", pass.name, kMaxRounds);
  }

  /// The ONNX nodes that the graph stands for.
  std::set<std::string> origins() const {
    std::set<std::string> names;
    for (const Node* node : graph_.nodes()) names.insert(node->origin.begin(), node->origin.end());
    return names;
  }

  void run_single(const Pass& pass) {
    const std::set<std::string> before = context_.folded == nullptr ? std::set<std::string>() : origins();
    apply_single(pass);
    if (context_.folded == nullptr) return;
    const std::set<std::string> after = origins();
    for (const std::string& name : before)
      if (!after.contains(name)) context_.folded->push_back({name, pass.name});
  }

  void apply_single(const Pass& pass) {
    const std::string text = dumping() ? print(graph_) : std::string();
    PassContext context = context_;
    context.pass = pass.name;
    const double start = now_ms();
    with_note([&] { return fmt::format("running pass {}", pass.name); },
              [&] {
                try {
                  if (pass.run != nullptr) pass.run(graph_, context);
                  if (pass.rewrites != nullptr) apply(graph_, pass.rewrites(), context);
                  graph_.erase_dead();
                  graph_.verify();
                } catch (Error& error) {
                  keep_for_replay(pass, text, error);
                  throw;
                }
              });
    if (!dumping()) return;
    const double ms = now_ms() - start;
    const std::string after = print(graph_);
    summary_ += fmt::format("{:24} {:9.3f} ms  {:5} layers  {}\n", pass.name, ms, graph_.node_count(),
                            after == text ? "unchanged" : "changed");
    if (after != text) snapshot(pass.name, after);
  }

  void keep_for_replay(const Pass& pass, const std::string& before, Error& error) const {
    if (!dumping()) return;
    const std::string path = fmt::format("{}/before_{}.ir", context_.dump_directory, pass.name);
    write_file(path, before);
    error.add_note(fmt::format("the graph before it is {}", path));
  }

  void snapshot(std::string_view name, std::string_view text) {
    write_file(fmt::format("{}/{:02}_{}.ir", context_.dump_directory, next_++, name), text);
  }

  Graph& graph_;
  const PassContext& context_;
  int next_ = 0;
  std::string summary_;
};

}  // namespace

std::string camel_case(std::string_view name) {
  std::string result;
  bool upper = true;
  for (const char c : name) {
    if (c != '_') result += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = c == '_';
  }
  return result;
}

void PassContext::report_fusion(std::string_view first, std::string_view second) const {
  if (!log.enabled(Severity::verbose)) return;
  const std::string name = camel_case(pass);
  log.verbose("Running: {} on {}", name, first);
  log.verbose("{}: Fusing {} with {}", name, first, second);
}

void PassContext::report_removal(std::string_view layer) const {
  if (!log.enabled(Severity::verbose)) return;
  log.verbose("Running: {} on {}", camel_case(pass), layer);
  log.verbose("Removing {}", layer);
}

void run(Graph& graph, std::span<const Pass> passes, const PassContext& context) {
  const double start = now_ms();
  context.log.verbose("Original: {} layers", graph.node_count());
  Runner runner(graph, context);
  runner.run_list(passes);
  runner.finish();
  context.log.verbose("Graph optimization time: {:.6g} seconds.", seconds_since(start));
}

}  // namespace hone
