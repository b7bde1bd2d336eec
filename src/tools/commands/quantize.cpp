// SPDX-License-Identifier: Apache-2.0
//
// `hone quantize`: a model in f32 becomes a standard one with QuantizeLinear and DequantizeLinear, after one pass over samples; or one
// in FP16 or BF16.
#include "base/clock.h"
#include "tools/commands/commands.h"
#include "tools/model/read.h"
#include "tools/quantize/report.h"
#include "tools/quantize/written_model.h"

namespace hone {
namespace {

const FriendlyCommand& command() {
  static const FriendlyCommand kCommand{
      "quantize",
      "MODEL.onnx",
      "Writes the model with its convolutions and matmuls in 8-bit integers: QuantizeLinear and DequantizeLinear with "
      "scales from samples, weights with a scale for each channel. Other programs run it, too.",
      {{"-o", "<file>", "", "where the quantised model goes"},
       {"--data", "<file>", "--calibData", "samples: an .npz archive with an array per input, or a folder of them"},
       {"--calib-data", "<file>", "--calibData", "the same"},
       {"--method", "<name>", "--calibMethod", "what is clipped: entropy (default), minmax, percentile[=99.99] or mse"},
       {"--calib-method", "<name>", "--calibMethod", "the same"},
       {"--calib-cache", "<file>", "--calib", "scales from a calibration cache instead of samples"},
       {"--write-cache", "<file>", "", "write the scales as a calibration cache, too"},
       {"--mode", "<mode>", "",
        "int8 (default); fp8: floats of 8 bits, E4M3; int4: weights of matmuls alone, by blocks; fp16 or bf16: all "
        "that can be, no scales"},
       {"--weights-only", "", "", "modes int8 and fp8: weights alone, which needs no data"},
       {"--keep-io-types", "", "", "modes fp16 and bf16: inputs and outputs stay in FP32"},
       {"--block", "<n>", "", "weights that share a scale in mode int4 (default 128)"},
       {"--awq", "<how>", "",
        "mode int4 with data: clip (default): weights are clipped where that lessens their products' error; lite: "
        "channels that matter are scaled up before; full: both; off"},
       {"--gptq", "", "",
        "with data: what rounding a weight costs is made good by those behind it; slow, most accurate"},
       {"--equalize", "", "", "bring ranges of weights together across layers first; needs no data"},
       {"--smooth", "<share>", "",
        "with data: move large channels of activations into the weights of matmuls first; 0.5 is usual"},
       {"--bias-correction", "", "", "with data: biases make good what rounding shifts on average"},
       {"--asymmetric", "", "", "unsigned codes with zero points: finer steps, but TensorRT does not read them"},
       {"--include-ops", "<types...>", "", "quantise these operators alone: Conv,MatMul"},
       {"--exclude-ops", "<types...>", "", "leave these operators in floating point"},
       {"--include-nodes", "<regex>", "", "quantise the nodes alone whose whole name fits"},
       {"--exclude-nodes", "<regex>", "", "leave the nodes in floating point whose whole name fits"},
       {"--sensitivity", "<of>", "",
        "node: rank the layers by what each costs when it is quantised alone (a build each)"},
       {"--budget", "<x>", "",
        "leave the worst layers in floating point until the outputs' relative error is x at most"},
       {"--keep-list", "<file>", "",
        "write the layers that the budget left out, as trtexec's --precisionFile reads them"},
       {"--verify", "", "", "with data: hold the written model against MODEL, layer by layer, worst first"},
       {"--compare", "<metric>", "", "of --verify: cosine_similarity (default), relative_error or max_error"},
       {"--threshold", "<x>", "", "of --verify: exit 1 where a layer is worse than this"}}};
  return kCommand;
}

struct Written {
  hone_model exact;  // what the written model is held against
  std::set<std::string> results;
  Json summary;
};

Written write(const FriendlyLine& line, const QuantizeRequest& request, const Logger& log) {
  ImportedModel imported = read_model(request.model, log);
  const KeepsFloats keeps = kept_nodes(line, imported, log);
  if (request.to_few_bits()) {
    hone_model model{std::move(imported.graph), {}, {}};
    const FewBitsModel done = write_few_bits(request, keeps, model, log);
    std::set<std::string> results = product_results(model.graph);
    return {std::move(model), std::move(results), summary_of(done, request)};
  }
  QuantizedModel prepared = quantized_model(request, keeps, std::move(imported.graph), log);
  const FileQuantization done = write_quantized(request, prepared, log);
  Json summary = summary_of(prepared, done, request);
  std::set<std::string> results = quantized_results(prepared);
  return {std::move(prepared.model), std::move(results), std::move(summary)};
}

int quantize(const FriendlyLine& line) {
  const Logger log = quiet_logger();
  for (const std::string& warning : line.warnings) log.warning("{}", warning);
  const double start = now_ms();
  const QuantizeRequest request(line);
  Written written = write(line, request, log);
  Json& summary = written.summary;
  bool good = true;
  if (request.verifies) {
    const std::vector<TensorError> errors = verified(request, written.exact, written.results, log);
    summary["verified"] = errors_json(errors);
    good = !fails(errors, request);
  }
  summary["seconds"] = seconds_since(start);
  if (line.json) fmt::print("{}\n", summary.dump(2, ' ', false, Json::error_handler_t::replace));
  else print_summary(summary, line.file);
  if (!good)
    log.error(
        "{}: the tensor {} is worse than the threshold of {} allows; keep its layer in floating point with "
        "--exclude-nodes, or let --budget choose",
        request.out, summary["verified"][0]["tensor"].get<std::string>(), *request.threshold);
  return good ? 0 : 1;
}

}  // namespace

const FriendlyCommand& describe_quantize() { return command(); }

int run_quantize(Words words) { return run_friendly(command(), words, {}, quantize); }

}  // namespace hone
