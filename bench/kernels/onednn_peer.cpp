// SPDX-License-Identifier: Apache-2.0

#include "kernels/onednn_peer.h"

#if HONE_WITH_ONEDNN
#include <omp.h>

#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>

double onednn_conv_seconds(const hone::cpu::ConvShape& s, int workers,
                           const std::function<double(const std::function<void()>&)>& time) {
  using namespace dnnl;
  omp_set_num_threads(workers);
  static engine cpu(engine::kind::cpu, 0);
  static stream queue(cpu);
  const auto f32 = memory::data_type::f32;
  const auto any = memory::format_tag::any;
  primitive_attr attr;
  post_ops ops;
  ops.append_eltwise(algorithm::eltwise_relu, 0, 0);
  attr.set_post_ops(ops);
  const auto filled = [](const memory::desc& d) {
    memory m(d, cpu);
    float* p = static_cast<float*>(m.get_data_handle());
    for (size_t i = 0; i < d.get_size() / 4; ++i) p[i] = 0.01f;
    return m;
  };
  if (s.kh == 1 && s.kw == 1 && s.ih == 1) {
    const memory::desc a({s.iw, s.ic}, f32, memory::format_tag::ab), b({s.ic, s.oc}, f32, any),
        bias({1, s.oc}, f32, memory::format_tag::ab), c({s.iw, s.oc}, f32, memory::format_tag::ab);
    const matmul::primitive_desc pd(cpu, a, b, bias, c, attr);
    matmul p(pd);
    memory ma = filled(pd.src_desc()), mb = filled(pd.weights_desc()), mbias = filled(pd.bias_desc()),
           mc = filled(pd.dst_desc());
    return time([&] {
      p.execute(queue, {{DNNL_ARG_SRC, ma}, {DNNL_ARG_WEIGHTS, mb}, {DNNL_ARG_BIAS, mbias}, {DNNL_ARG_DST, mc}});
      queue.wait();
    });
  }
  const memory::desc src({s.n, s.ic, s.ih, s.iw}, f32, any), bias({s.oc}, f32, memory::format_tag::a),
      dst({s.n, s.oc, s.oh(), s.ow()}, f32, any);
  const memory::desc weights = s.groups == 1
                                   ? memory::desc({s.oc, s.ic, s.kh, s.kw}, f32, any)
                                   : memory::desc({s.groups, s.group_oc(), s.group_ic(), s.kh, s.kw}, f32, any);
  const convolution_forward::primitive_desc pd(cpu, prop_kind::forward_inference, algorithm::convolution_direct, src,
                                               weights, bias, dst, {s.stride_h, s.stride_w},
                                               {s.dilation_h - 1, s.dilation_w - 1}, {s.pad_top, s.pad_left},
                                               {s.pad_bottom, s.pad_right}, attr);
  convolution_forward p(pd);
  memory ms = filled(pd.src_desc()), mw = filled(pd.weights_desc()), mb = filled(pd.bias_desc()),
         md = filled(pd.dst_desc());
  return time([&] {
    p.execute(queue, {{DNNL_ARG_SRC, ms}, {DNNL_ARG_WEIGHTS, mw}, {DNNL_ARG_BIAS, mb}, {DNNL_ARG_DST, md}});
    queue.wait();
  });
}
#else
double onednn_conv_seconds(const hone::cpu::ConvShape&, int,
                           const std::function<double(const std::function<void()>&)>&) {
  return 0;
}
#endif
