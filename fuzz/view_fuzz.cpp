// SPDX-License-Identifier: Apache-2.0
//
// The bytes of an ONNX model, whatever they are, are refused or shown: as a page whose data nothing ends early, as SVG and as DOT.
#include "explore/drawing.h"
#include "explore/view_drawing.h"
#include "explore/view_page.h"
#include "harness.h"
#include "model_samples.h"
#include "page_check.h"
#include "tools/view/model_rows.h"

namespace hone::fuzz {

std::vector<std::string> seed_inputs() { return model_samples(); }

}  // namespace hone::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  const Blob bytes = Blob::copy(std::as_bytes(std::span(data, size)));
  fuzz::accepted([&] {
    const std::vector<ViewedModel> views{view_of(edit::read_model(bytes, ""), "model")};
    fuzz::check_page(view_page(views, ViewColour::type));
    const Drawing drawing = draw_view(views[0], ViewColour::precision);
    HONE_ASSERT(!drawing_svg(drawing, "model").empty() && !drawing_dot(drawing, "model").empty(),
                "a model has no picture");
  });
  return 0;
}
