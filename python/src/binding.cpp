// SPDX-License-Identifier: Apache-2.0
//
// The compiled module, part by part.
#include "binding.h"

NB_MODULE(_hone, module) {
  using namespace hone::python;
  module.doc() = "hone.h as Python sees it; programs use the package hone.";
  const nb::exception<Error> error(module, "Error");
  nb::exception<Cancelled>(module, "Cancelled", error);
  module.def(
      "version", [] { return hone_version(); }, "The library's version.");
  module.def(
      "api_version", [] { return hone_api_version(); }, "The version of its interface.");
  add_devices(module);
  add_building(module);
  add_diagnosis(module);
  add_graph(module);
  add_values(module);
  add_operators(module);
  add_digest(module);
  add_running(module);
}
