// SPDX-License-Identifier: Apache-2.0
//
// Values of the command line: shapes, named files, pools, formats, signed lists, numbers. The first byte chooses which.
#include "harness.h"
#include "options/grammar.h"

namespace hone::fuzz {

std::vector<std::string> seed_inputs() {
  return {"\1input:1x3x224x224,'a:b,c':scalar,n:",
          "\2x:file.raw,'y z':other",
          "\3workspace:1024MiB,tacticSharedMem:1.5",
          "\4fp16:chw+hwc8,int8:chw32",
          "\5+CUDNN,-CUBLAS",
          "\6"
          "90,95.5,99",
          "\7"
          "12"};
}

}  // namespace hone::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  if (size == 0) return 0;
  const Argument argument{"--flag", std::string(fuzz::text_of(data + 1, size - 1)), 1, false};
  const Release release = data[0] < 128 ? Release::v10 : Release::v11;
  fuzz::accepted([&] {
    switch (data[0] % 8) {
      case 1: read_shapes(argument); break;
      case 2: read_named(argument); break;
      case 3: read_pools(argument, release); break;
      case 4: read_io_formats(argument, release); break;
      case 5: read_signed(argument, "Tactic source", {"CUBLAS", "CUDNN"}); break;
      case 6: read_percentiles(argument); break;
      case 7: read_integer(argument); break;
      default: read_real(argument); read_list(argument);
    }
    caret_under_shape({{argument.flag, argument.value}}, "input", 1);
  });
  return 0;
}
