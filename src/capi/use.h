// SPDX-License-Identifier: Apache-2.0
//
// What is done with a context of the C interface while it works.
#pragma once

#include "base/state_error.h"
#include "capi/handles.h"

namespace hone::capi {

/// A context serves one thread at a time.
class Use {
 public:
  explicit Use(hone_context& context) : context_(context) {
    if (context.in_use.exchange(true))
      throw StateError("the context is in use by another thread, or by a function that it has called",
                       "give each thread a context of its own");
  }
  ~Use() { context_.in_use = false; }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  hone_context& context_;
};

/// While it lives, the function that the caller gave the context is told of layers; nothing where there is none.
class LayerTimes : public Profiler {
 public:
  explicit LayerTimes(const hone_context& context) : context_(context) {
    if (context.layer != nullptr) context.context->set_profiler(this);
  }
  ~LayerTimes() override { context_.context->set_profiler(nullptr); }
  LayerTimes(const LayerTimes&) = delete;
  LayerTimes& operator=(const LayerTimes&) = delete;

  void layer(const Step& step, double milliseconds) override {
    context_.layer(context_.layer_user, step.name.c_str(), milliseconds);
  }

 private:
  const hone_context& context_;
};

/// While it lives, the function that the caller gave the context is told of spans; nothing where there is none.
class LayerSpans {
 public:
  explicit LayerSpans(const hone_context& context) : context_(context) {
    if (context.span != nullptr)
      context.context->set_span_observer([this](std::span<const LayerSpan> spans) { tell(spans); });
  }
  ~LayerSpans() { context_.context->set_span_observer({}); }
  LayerSpans(const LayerSpans&) = delete;
  LayerSpans& operator=(const LayerSpans&) = delete;

 private:
  void tell(std::span<const LayerSpan> spans) {
    told_.clear();
    for (const LayerSpan& span : spans)
      told_.push_back({sizeof(hone_layer_span), span.step->name.c_str(), span.worker, span.begin, span.end});
    context_.span(context_.span_user, told_.data(), told_.size());
  }

  const hone_context& context_;
  std::vector<hone_layer_span> told_;
};

}  // namespace hone::capi
