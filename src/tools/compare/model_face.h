// SPDX-License-Identifier: Apache-2.0
//
// A model's file as runners need it: what it takes and gives, what its nodes compute, and the same file with other outputs marked.
// Read from the wire format alone, so that a model that one runner refuses can still be given to another.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/log.h"
#include "tools/compare/tensor_files.h"

namespace hone {

/// A tensor that a node computes.
struct Produced {
  std::string tensor, op, node;
};

struct ModelFace {
  std::string path, folder;                // the file, and where its external data lie
  Blob bytes;                              // of the model, with the outputs that were marked
  std::shared_ptr<const MappedFile> file;  // that the bytes were read from
  std::vector<KnownTensor> inputs;
  std::vector<std::vector<std::string>> symbols;  // of each input's sizes; "" where there is none
  std::vector<std::string> outputs;
  std::vector<Produced> produced;  // by all nodes of the graph, in the file's order
  bool marked = false;             // bytes are not the file's
};

/// Throws StatusError where the file is missing or is no ONNX model.
ModelFace read_face(const std::string& path, const std::string& data_folder = {});

/// Which tensors shall be outputs: patterns of names ("*" and "mark all": every one), or of operators; `excluded` are left out. Throws
/// UsageError for a pattern that fits nothing, naming the nearest.
struct OutputMarks {
  std::vector<std::string> names, excluded, operators;
  bool any() const { return !names.empty() || !excluded.empty() || !operators.empty(); }
};
void mark_outputs(ModelFace& face, const OutputMarks& marks);

/// The model in FP16, as far as it has a meaning there; weights in other files come into it.
void to_fp16(ModelFace& face, bool keeps_io, const Logger& log);

/// What fits a pattern of shells: *, ?, [abc].
bool fits_shell_pattern(const std::string& pattern, const std::string& text);

/// Whether a file is an ONNX model by its name or what it holds, rather than a plan.
bool is_onnx_file(const std::string& path);

}  // namespace hone
