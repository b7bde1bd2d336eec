// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/cudnn/attention_graph.h"

namespace hone::cuda {
namespace {

TensorForm form_of(const HeadTensor& tensor, DType dtype) {
  return {dtype,
          {tensor.batch, tensor.heads, tensor.rows, tensor.columns},
          {tensor.batch_stride, tensor.head_stride, tensor.row_stride, 1}};
}

}  // namespace

OperationGraph graph_of(const AttentionSizes& sizes, DType dtype, cudnnHandle_t handle) {
  OperationGraph graph;
  Descriptor attention(CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR);
  attention.set(CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, graph.tensor(Operand::queries, form_of(sizes.q, dtype)))
      .set(CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, graph.tensor(Operand::keys, form_of(sizes.k, dtype)))
      .set(CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, graph.tensor(Operand::values, form_of(sizes.v, dtype)));
  attention.set(CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, graph.tensor(Operand::output, form_of(sizes.y, dtype)))
      .set(CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC, graph.number(Operand::scale, 4))
      .finalize("describing an attention");
  graph.add(std::move(attention));
  graph.finish(handle);
  return graph;
}

}  // namespace hone::cuda
