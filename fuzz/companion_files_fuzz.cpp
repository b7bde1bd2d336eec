// SPDX-License-Identifier: Apache-2.0
//
// Small files that the companions leave for each other and for people's hands: answers of searches, patterns of operators and where they go,
// hints for several devices. Each is read or refused; what was read and can be written is read again as it was.
#include "harness.h"
#include "tools/debug/replay.h"
#include "tools/surgeon/plugins.h"
#include "tools/surgeon/shard_hints.h"
#include "written_file.h"

namespace hone::fuzz {
namespace {

edit::ShardHints sample_hints() {
  edit::ShardHints hints;
  hints.layers = {{"q", true, false, {}}, {"r", false, false, edit::FusedAttention{true, {0, 2, 1}, {}, {1, 0}, 2}}};
  hints.collective = {2, -1, 2, {0, 1}, "sum"};
  hints.inputs = {{"x", 1, 3}, {"z", 0, std::nullopt}};
  hints.outputs = {{"y", 0, 2}};
  hints.kv_rank = 4;
  return hints;
}

}  // namespace

std::vector<std::string> seed_inputs() {
  return {
      debug_replay_text({{"outputs a, b", true}, {"inputs c", false}}),
      R"({"name": "swish", "op": "Swish", "domain": "d", "inputs": ["x"], "attributes": {"beta": [1.5]},
"pattern": "$a, $b = Split[axis=1]($x); d::Mul($a, Sigmoid(#w)); $b"})",
      "name: swish\nop: Swish\ninstances:\n- inputs: [x]\n  outputs: [y]\n  attributes: {beta: 1.0, axes: [0, 1]}\n",
      hints_text(sample_hints())};
}

}  // namespace hone::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  static const fuzz::WrittenFile file("input.json"), second("again.json");
  const std::string path = file.of(fuzz::text_of(data, size));
  fuzz::accepted([&] {
    const DebugAnswers answers = read_debug_replay(path);
    const DebugAnswers again = read_debug_replay(second.of(debug_replay_text(answers)));
    HONE_ASSERT(again.size() == answers.size(), "{} answers become {}", answers.size(), again.size());
  });
  fuzz::accepted([&] { read_plugin(path); });
  fuzz::accepted([&] { read_plugin_config(path); });
  fuzz::accepted([&] {
    const std::string text = hints_text(read_hints(path));
    HONE_ASSERT(hints_text(read_hints(second.of(text))) == text, "hints become others");
  });
  return 0;
}
