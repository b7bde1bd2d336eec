// SPDX-License-Identifier: Apache-2.0
//
// ONNX Runtime's library, opened when it is asked for: Hone is built without it.
#pragma once

#include <string>

#include "base/error.h"
#include "hone/onnxruntime.hpp"

namespace hone::ort {

class Library {
 public:
  /// Opens it: `path` where it is given, else where $HONE_ONNXRUNTIME_LIB says, the loader, and the packages of a Python next to the
  /// program or in $VIRTUAL_ENV. Throws StatusError (no_backend) with the places that were searched.
  explicit Library(const std::string& path);

  /// Calls a function that returns a status; throws Error with its message.
  template <typename... Arguments>
  void call(Slot slot, Arguments... arguments) const {
    if (const std::string wrong = table_.attempt(slot, arguments...); !wrong.empty())
      throw Error("ONNX Runtime: " + wrong);
  }
  void release(Slot slot, Object* object) const { table_.release(slot, object); }
  const std::string& version() const { return table_.version(); }

 private:
  Table table_;
};

}  // namespace hone::ort
