// SPDX-License-Identifier: Apache-2.0
//
// Layers of known networks at batch 1, with how often each occurs.
#pragma once

#include <string>
#include <vector>

#include "backends/cpu/conv/conv_kernel.h"

struct NamedShape {
  std::string name;
  hone::cpu::ConvShape shape;
  int count = 1;
};

inline NamedShape conv_layer(const std::string& net, int64_t ic, int64_t hw, int64_t oc, int64_t k, int64_t stride = 1,
                             int count = 1) {
  hone::cpu::ConvShape s;
  s.ic = ic, s.ih = s.iw = hw, s.oc = oc, s.kh = s.kw = k, s.stride_h = s.stride_w = stride;
  s.pad_top = s.pad_left = s.pad_bottom = s.pad_right = k / 2;
  if (ic <= 4) s.src_layout = hone::cpu::SrcLayout::nchw;
  return {net + " " + std::to_string(k) + "x" + std::to_string(k) + "/" + std::to_string(stride) + " " +
              std::to_string(ic) + "->" + std::to_string(oc) + " @" + std::to_string(hw),
          s, count};
}

inline NamedShape gemm_layer(const std::string& net, int64_t m, int64_t k, int64_t n, int count = 1) {
  hone::cpu::ConvShape s;
  s.ic = k, s.iw = m, s.oc = n;
  return {net + " gemm " + std::to_string(m) + "x" + std::to_string(k) + "x" + std::to_string(n), s, count};
}

inline std::vector<NamedShape> known_layers() {
  std::vector<NamedShape> v;
  v.push_back(conv_layer("resnet50", 3, 224, 64, 7, 2));
  v.push_back(conv_layer("resnet50", 64, 56, 64, 1));
  v.push_back(conv_layer("resnet50", 64, 56, 64, 3, 1, 3));
  v.push_back(conv_layer("resnet50", 64, 56, 256, 1, 1, 4));
  v.push_back(conv_layer("resnet50", 256, 56, 64, 1, 1, 2));
  v.push_back(conv_layer("resnet50", 256, 56, 128, 1));
  v.push_back(conv_layer("resnet50", 128, 56, 128, 3, 2));
  v.push_back(conv_layer("resnet50", 256, 56, 512, 1, 2));
  v.push_back(conv_layer("resnet50", 128, 28, 512, 1, 1, 4));
  v.push_back(conv_layer("resnet50", 512, 28, 128, 1, 1, 3));
  v.push_back(conv_layer("resnet50", 128, 28, 128, 3, 1, 3));
  v.push_back(conv_layer("resnet50", 512, 28, 256, 1));
  v.push_back(conv_layer("resnet50", 256, 28, 256, 3, 2));
  v.push_back(conv_layer("resnet50", 512, 28, 1024, 1, 2));
  v.push_back(conv_layer("resnet50", 256, 14, 1024, 1, 1, 6));
  v.push_back(conv_layer("resnet50", 1024, 14, 256, 1, 1, 5));
  v.push_back(conv_layer("resnet50", 256, 14, 256, 3, 1, 5));
  v.push_back(conv_layer("resnet50", 1024, 14, 512, 1));
  v.push_back(conv_layer("resnet50", 512, 14, 512, 3, 2));
  v.push_back(conv_layer("resnet50", 1024, 14, 2048, 1, 2));
  v.push_back(conv_layer("resnet50", 512, 7, 2048, 1, 1, 3));
  v.push_back(conv_layer("resnet50", 2048, 7, 512, 1, 1, 2));
  v.push_back(conv_layer("resnet50", 512, 7, 512, 3, 1, 2));
  v.push_back(gemm_layer("resnet50", 1, 2048, 1000));
  v.push_back(gemm_layer("bert", 128, 768, 768, 48));
  v.push_back(gemm_layer("bert", 128, 768, 2304));
  v.push_back(gemm_layer("bert", 128, 768, 3072, 12));
  v.push_back(gemm_layer("bert", 128, 3072, 768, 12));
  v.push_back(gemm_layer("vit", 197, 768, 2304, 12));
  v.push_back(gemm_layer("vit", 197, 768, 3072, 12));
  v.push_back(gemm_layer("vit", 197, 3072, 768, 12));
  v.push_back(gemm_layer("gpt2", 1, 768, 3072));
  v.push_back(gemm_layer("gpt2", 4, 768, 3072));
  v.push_back(conv_layer("vgg16", 64, 224, 64, 3));
  v.push_back(conv_layer("vgg16", 256, 56, 256, 3, 1, 2));
  v.push_back(conv_layer("vgg16", 512, 28, 512, 3, 1, 2));
  v.push_back(gemm_layer("vgg16", 1, 25088, 4096));
  v.push_back(conv_layer("mobilenet", 3, 224, 16, 3, 2));
  v.push_back(conv_layer("mobilenet", 16, 112, 64, 1));
  v.push_back(conv_layer("mobilenet", 64, 56, 24, 1));
  v.push_back(conv_layer("mobilenet", 24, 56, 72, 1, 1, 2));
  v.push_back(conv_layer("mobilenet", 40, 28, 120, 1, 1, 2));
  v.push_back(conv_layer("mobilenet", 80, 14, 200, 1, 1, 2));
  v.push_back(conv_layer("mobilenet", 672, 14, 112, 1));
  v.push_back(conv_layer("mobilenet", 160, 7, 960, 1, 1, 3));
  v.push_back(conv_layer("mobilenet", 960, 7, 160, 1, 1, 2));
  v.push_back(conv_layer("yolov8n", 3, 640, 16, 3, 2));
  v.push_back(conv_layer("yolov8n", 16, 320, 32, 3, 2));
  v.push_back(conv_layer("yolov8n", 32, 160, 32, 1));
  v.push_back(conv_layer("yolov8n", 16, 160, 16, 3, 1, 2));
  v.push_back(conv_layer("yolov8n", 64, 80, 64, 3));
  v.push_back(conv_layer("yolov8n", 128, 40, 128, 3));
  v.push_back(conv_layer("unet", 64, 256, 64, 3));
  v.push_back(conv_layer("unet", 512, 32, 512, 3));
  return v;
}
