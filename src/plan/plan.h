// SPDX-License-Identifier: Apache-2.0
//
// Plan: a built engine as plain data. Everything that runs, is reported or explained stands here; nothing points to code.
// One plan holds one or more profiles (shape ranges); each has its own steps and buffers, all share the constants.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "tensor/attrs.h"
#include "tensor/tensor.h"

namespace hone {

using BufferId = int32_t;

enum class BufferKind : uint8_t { input, output, arena };

/// A tensor of the running engine. Sizes may be symbolic; `alias` shares the memory of another buffer (views).
/// A managed buffer is a host tensor whose writer decides its sizes, or whose elements are objects (strings, sequences).
/// A measured buffer is the device's own way to data-dependent sizes: it has room for `most`, and its writer puts the sizes that it
/// has into the buffer `sizes`. They are known when the stage has ended.
/// What a debug buffer holds stays there until the inference ends: nothing else gets its memory.
/// An entry buffer is one entry of the batch that `alias` is, along the first axis: in each round of its steps the next.
struct BufferSlot {
  std::string name;  // tensor name for inputs and outputs; also names of inner tensors, for reports
  TensorType type;
  BufferKind kind = BufferKind::arena;
  BufferId alias = -1;  // the buffer whose memory this one shares, or -1
  bool managed = false;
  bool debug = false;
  std::optional<Shape> most = {};
  BufferId sizes = -1;  // i64, one per axis; -1: the buffer is not measured
  bool entry = false;
};

/// One launch; where it goes by entry, one for each entry of the batch. Neighbours that do take turns: all of them for the first
/// entry, then all for the second, so that what they hand on stays in the caches.
struct Step {
  std::string name;                 // layer name; fused parts joined with " + "
  std::vector<std::string> origin;  // ONNX node names
  std::string kind;                 // what the layer is: "Convolution", "MatrixMultiply", "PointWise", "Reformat", …
  std::string source, tactic;       // "cpu", "conv_nhwc"
  Attrs tactic_params;              // as tuned
  Attrs details;                    // parameters for layer information: kernel, strides, activation, …
  std::vector<BufferId> inputs, outputs;
  std::vector<int32_t> constants;  // indices into Plan::constants
  int32_t code = -1;               // index into Plan::blobs; -1: nothing to launch (a view)
  double tuned_ms = 0;             // time of the chosen tactic when it was tuned; 0 when unknown
  int32_t stage = 0;               // steps of a stage need no size that this stage decides; ascending over the steps
  bool by_entry = false;
};

struct ProfileRange {
  std::string tensor;
  Dims min, opt, max;
};

struct Profile {
  std::vector<ProfileRange> ranges;  // one per input that has symbolic sizes
  std::vector<BufferSlot> buffers;
  std::vector<Step> steps;
  int64_t arena_bytes = 0;  // activation memory at the max point
};

/// Both ends included.
struct ValueRange {
  int64_t low = 0, high = 0;
};

/// A network input or output, in the model's order.
struct IoTensor {
  std::string name;
  TensorType type;  // symbolic sizes print as -1
  bool is_input = true;
  std::optional<ValueRange> range = {};  // integers that the network accepts here; none: any
};

/// A node of the model that no layer stands for: what became of it before anything runs.
struct FoldedNode {
  std::string node, pass;
};

/// The note of a time that nobody measured.
inline constexpr std::string_view kEstimated = "estimated";

/// What happened to one candidate while building; printed by --explain.
struct CandidateRecord {
  std::string tactic;          // Tactic::text()
  double ms = -1, spread = 0;  // -1: neither timed nor estimated
  std::string note;            // refusal or rejection, or kEstimated, empty otherwise
};
struct LayerRecord {
  std::string layer;
  std::vector<CandidateRecord> candidates;
  std::string chosen;
};

/// How the engine was found to answer the most rows a second (hone bench --throughput): so many streams at a time, each with so many
/// workers of its own, a query of so many rows. It changes nothing of what runs: programs that feed the engine may follow it.
struct PlanThroughput {
  int32_t streams = 1, workers = 0;  // 0 workers: the device has none
  int64_t rows = 1;
  double rows_per_second = 0, median_ms = 0, p99_ms = 0;
};

struct PlanMeta {
  std::string hone_version, backend, device, architecture, model;
  std::string options;  // build options that shaped the plan, as text
  std::string profiling_verbosity = "layer_names_only";
  std::string precision = "FP32";
  std::map<std::string, std::string> notes = {};  // what the program that built it wants to find again; Hone reads none
};

/// The network before anything was chosen for a device: enough to choose again on another one.
struct PortablePart {
  std::string graph;  // text of the graph; its large constants are in `constants`
  std::vector<Tensor> constants;
};

/// A weight that can be replaced, as --dumpRefit lists it.
struct RefitWeight {
  std::string layer, role;  // ONNX node; Kernel, Bias, Scale, Shift or Constant
};

/// An operator of a program that steps call: who loads the plan has to bring it again.
struct PlanOperator {
  std::string domain, name;
  int64_t version = 1;
  std::string library, hash;  // the library's file and a hash of what it holds; empty: the program's own
};

/// A constant of the network that a refit begins with.
struct RefitConstant {
  TensorType type;
  std::optional<Tensor> data;  // nothing in a plan without weights, where it has a name or is derived
  std::string name = {};       // of a weight that can be given by it; empty for all else
  bool derived = false;        // the import computed it, of weights perhaps
};

/// What it takes to make the same engine of other weights without timing anything.
struct RefitPart {
  std::string network;        // the imported graph without its weights, a line per tensor and node
  std::string weights;        // hash of the weights' contents
  bool other_weights = true;  // false: only these very weights are taken back
  std::string options;        // of the build, as JSON
  std::string timings;        // text of a timing cache: the times that the choices came from
  std::vector<RefitWeight> list;
  std::string graph =
      {};  // text of the imported network, whose constants are the next ones; empty in plans that do not keep it
  std::vector<RefitConstant> constants = {};
  std::vector<std::string> live = {}, folded = {};  // nodes of the model, as the importer tells them
  std::vector<std::string> consumed = {};  // weights that the import computed with: no constant bears their name
};

/// Where the data of constants and kernels are.
enum class WeightStorage { everywhere, not_in_file, nowhere };

struct Plan {
  PlanMeta meta;
  std::vector<IoTensor> io;
  std::vector<Profile> profiles;
  std::vector<Tensor> constants;  // packed weights and tables; mapped when loaded
  std::vector<Blob> blobs;        // code of the steps
  std::vector<LayerRecord> log;
  std::vector<FoldedNode> folded;        // with the layers' origins: exactly the nodes of the model that matter
  std::optional<PortablePart> portable;  // when it was asked for: the plan is about twice as large with it
  std::optional<RefitPart> refit;        // when it was asked for
  std::vector<PlanOperator> operators;   // of programs
  std::optional<PlanThroughput> throughput = {};      // where it was looked for
  WeightStorage weights = WeightStorage::everywhere;  // a file holds all of them or none; without them nothing runs
};

/// Checks every index, size and reference of a plan; throws Error saying what is wrong.
void verify(const Plan& plan);
/// The bytes of the file; the same plan gives the same bytes. See docs/plan-format.md.
std::vector<std::byte> save_plan(const Plan& plan);
void save_plan_file(const Plan& plan, const std::string& path);
/// Verifies magic, version, checksums and structure. Constants point into `bytes`, which they keep alive.
Plan load_plan(const Blob& bytes);
Plan load_plan_file(const std::string& path);
/// What a layer runs by, with its layouts where the plan has a log.
std::string tactic_text(const Plan& plan, const Step& step);
/// Reads only the header; the version that wrote the file.
std::string plan_version(const std::string& path);

}  // namespace hone
