// SPDX-License-Identifier: Apache-2.0
//
// What a context does with the other ranks of a divided network: it meets them before an inference, and has a watch over its end.
#include <cstdio>
#include <cstdlib>

#include "base/text.h"
#include "runtime/impl.h"
#include "runtime/ranks.h"

namespace hone {
namespace {

/// Kernels that reach into other ranks' memory wait there for as long as the process lives, and whoever frees anything waits for them. So a
/// rank that can neither go on nor give up ends, as those of other libraries do when their watch finds them waiting.
[[noreturn]] void end_process(const Group& group) {
  try {
    group.require_sound();
  } catch (const GroupError& error) {
    fmt::print(stderr, "hone: {}\n", error.what());
  }
  std::_Exit(1);
}

}  // namespace

void ExecutionContext::meet() {
  ContextStage& stage = impl_->stages[0];
  auto* across = dynamic_cast<ReachesAcross*>(stage.current->recording.get());
  const auto places = [&] {
    return across == nullptr || !stage.arena.shared ? std::string() : across->places_in(*stage.arena.shared);
  };
  if (require_same_shapes(*engine_, profile_, impl_->shapes, *engine_->impl_->group, impl_->told, places))
    across->reach_across(*stage.arena.shared);
}

void ExecutionContext::begin_inference() {
  Group* group = engine_->impl_->group.get();
  if (group == nullptr) return;
  if (!impl_->watch)
    impl_->watch = std::make_unique<HangWatch>(*group, [group, &device = dynamic_cast<HasGroup&>(engine_->device())] {
      if (device.ends_only_with_process()) end_process(*group);
    });
  impl_->watch->begin();
}

void ExecutionContext::end_inference(Stream& stream) {
  impl_->finished->record(stream);
  impl_->in_flight = true;
  if (impl_->watch) impl_->watch->end(*impl_->finished);
}

void ExecutionContext::try_to_end_inference(Stream& stream) {
  try {
    end_inference(stream);
  } catch (const Error&) {  // a device that fails works on nothing
  }
}

void ExecutionContext::wait() const {
  if (!impl_->in_flight) return;
  impl_->finished->wait();
  if (engine_->impl_->group) engine_->impl_->group->require_sound();
}

}  // namespace hone
