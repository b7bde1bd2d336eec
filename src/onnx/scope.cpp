// SPDX-License-Identifier: Apache-2.0
//
// Name lookup and capturing.
#include "onnx/scope.h"

#include "base/error.h"

namespace hone::onnx {

std::optional<Value*> Scope::find(std::string_view name) {
  if (const auto at = names_.find(name); at != names_.end()) return at->second;
  if (outer_ == nullptr) return std::nullopt;
  const std::optional<Value*> outside = outer_->find(name);
  if (!outside || *outside == nullptr || &outer_->graph_ == &graph_) return outside;
  const auto at = inside_.find(*outside);
  Value* inside = at != inside_.end() ? at->second : nullptr;
  if (inside == nullptr)
    inside =
        (*outside)->is_constant() ? graph_.add_constant(*(*outside)->constant, (*outside)->name) : capture(*outside);
  inside_.emplace(*outside, inside);
  names_.emplace(name, inside);
  return inside;
}

void Scope::define(std::string_view name, Value* value) {
  if (!names_.emplace(name, value).second)
    throw Error(fmt::format("'{}' is defined twice", name),
                "every input, initialiser and node output needs a name of its own");
}

void Scope::define_unread(std::string_view name, Unread why) {
  if (names_.emplace(name, nullptr).second) unread_.emplace(name, why);
}

Unread Scope::unread(std::string_view name) const {
  if (const auto at = unread_.find(name); at != unread_.end()) return at->second;
  return names_.contains(name) || outer_ == nullptr ? Unread::none : outer_->unread(name);
}

Value* Scope::capture(Value* outside) {
  Value* inside = graph_.add_input(outside->name, outside->type);
  inside->symbolic = outside->symbolic;
  captured_.push_back(outside);
  inside_.emplace(outside, inside);
  return inside;
}

}  // namespace hone::onnx
