// SPDX-License-Identifier: Apache-2.0
//
// Polygraphy's JSON, whatever it holds: inputs, results, accuracy or tactics, or a refusal. What was read as inputs, and can be written,
// is read from there again.
#include "harness.h"
#include "tools/compare/accuracy_file.h"
#include "tools/compare/tactics.h"
#include "tools/data/saved.h"
#include "written_file.h"

namespace hone::fuzz {
namespace {

Tensor sample() { return Tensor::of<float>({2, 2}, {1, -0.5f, 0, 3e38f}); }

/// Every byte is read, so that the sanitizer sees it.
void read_all(const std::vector<TensorList>& iterations) {
  for (const TensorList& iteration : iterations)
    for (const NamedTensor& each : iteration)
      HONE_ASSERT(Blob::copy(each.tensor.bytes()).size() ==
                      static_cast<size_t>(byte_size(each.tensor.dtype(), each.tensor.dims())),
                  "{} has {} bytes", each.name, each.tensor.bytes().size());
}

void expect_same(const std::vector<TensorList>& iterations, const WrittenFile& file) {
  Json list = Json::array();
  for (const TensorList& iteration : iterations) {
    Json feed = Json::object();
    for (const NamedTensor& each : iteration) feed[each.name] = array_json(each.tensor);
    list.push_back(std::move(feed));
  }
  const std::vector<TensorList> again =
      load_inputs({file.of(list.dump(-1, ' ', false, Json::error_handler_t::ignore))}, {});
  HONE_ASSERT(again.size() == iterations.size(), "{} iterations become {}", iterations.size(), again.size());
}

}  // namespace

std::vector<std::string> seed_inputs() {
  const Json array = array_json(sample());
  const Json outputs{{"y", {{"values", array}, {"polygraphy_class", "LazyArray"}}}};
  const Json iteration{
      {"outputs", outputs}, {"runtime", 0.1}, {"runner_name", "cpu-0"}, {"polygraphy_class", "IterationResult"}};
  RunPair pair;
  pair.first_name = "a", pair.second_name = "b";
  Verdict verdict = compare("simple", "y", sample(), Tensor::of<float>({2, 2}, {1, -0.25f, 0, 3e38f}), {});
  pair.iterations.push_back({{verdict}});
  return {
      Json::array({Json{{"x", array}}}).dump(),
      Json{{"lst", Json::array({Json::array({"cpu-0", Json::array({iteration})})})}, {"polygraphy_class", "RunResults"}}
          .dump(),
      accuracy_text({"simple"}, {pair}, false),
      R"({"replay": {"conv": {"implementation": 1, "tactic": 2, "inputs": [], "outputs": []}}})"};
}

}  // namespace hone::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  static const fuzz::WrittenFile file("input.json"), second("again.json");
  const std::string path = file.of(fuzz::text_of(data, size));
  fuzz::accepted([&] {
    const SavedData saved = read_saved(path);
    fuzz::read_all(saved.inputs);
    for (const RunResult& result : saved.results) fuzz::read_all(result.iterations);
    fuzz::accepted([&] { fuzz::expect_same(saved.inputs, second); });
  });
  fuzz::accepted([&] { fuzz::read_all(load_inputs({path}, {})); });
  fuzz::accepted([&] { load_results({path}); });
  fuzz::accepted([&] { read_accuracy(path); });
  fuzz::accepted([&] { read_replay(path); });
  fuzz::accepted([&] { replay_times(path); });
  return 0;
}
