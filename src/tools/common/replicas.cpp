// SPDX-License-Identifier: Apache-2.0
#include "tools/common/replicas.h"

#include "base/error.h"

namespace hone {

Replicas::Replicas(const Session& first, Inference& inference, const Options& options, const Voices& voices) {
  std::vector<Inference*> others;
  for (const std::string& name : options.tool.replicas) {
    with_note([&] { return fmt::format("setting up the engine on the device {}", name); },
              [&] {
                Options& own = options_.emplace_back(options);
                own.tool.device = name;
                own.tool.replicas.clear();
                Session& session = sessions_.emplace_back(own, device_for_streams(own), voices);
                session.take(first);
                session.load();
                inferences_.emplace_back(session, own, voices).set_up();
              });
    others.push_back(&inferences_.back());
  }
  inference.run_beside(std::move(others));
}

}  // namespace hone
