// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/cublaslt/finish.h"

#include "backends/cuda/conv/filters.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/parameters.h"
#include "backends/cuda/support/source_text.h"

namespace hone::cuda {
namespace {

struct FinishParameters {
  static constexpr std::string_view kKernel = "finish_sums";
  Writes sums;
  Reads residual;
  StepNumbers numbers;
  int64_t count = 0;
  static void fields(auto& self, auto& visit) {
    visit("sums", self.sums, "T");
    visit("residual", self.residual, "Added");
    visit("numbers", self.numbers);
    visit("count", self.count);
  }
};

}  // namespace

std::string finish_source(const RegionMatch& match, const EpilogueCode& epilogue, DType dtype) {
  return fmt::format("typedef {} T;\n#define VECTOR {}\n", type_name(dtype), vector_width(dtype)) +
         declare<FinishParameters>() + epilogue_text(match, epilogue) + kernels::finish;
}

std::unique_ptr<const GridKernel> load_finish(const EpilogueCode& epilogue, const LoadContext& context) {
  constexpr int64_t kThreads = 256;
  EpilogueCode code = epilogue;
  code.bias = false;  // the library adds it
  const Reads residual = epilogue_reads(code, context, 0).residual;
  std::vector<GridLaunch> launches;
  for (size_t i = 0; i < context.shapes.outputs.size(); ++i) {
    const ConcreteType& result = context.shapes.outputs[i];
    const FinishParameters parameters{
        .sums = output(static_cast<int64_t>(i)), .residual = residual, .numbers = {}, .count = elements(result.dims)};
    const int64_t threads = blocks_of(parameters.count, vector_width(result.dtype));
    launches.push_back(launch_of(*context.module, parameters, {{blocks_of(threads, kThreads)}, kThreads}));
  }
  return std::make_unique<GridKernel>(context.module, std::move(launches));
}

}  // namespace hone::cuda
