// SPDX-License-Identifier: Apache-2.0
//
// A group over Gloo: all ranks in a mesh, and a mesh more for each smaller set of ranks that something is done in.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "device/group.h"
#include "gloo/gloo_table.h"
#include "group/meeting.h"

namespace hone {

struct GlooOptions {
  std::string program;  // and version; the same on all ranks
  int timeout_ms = 60'000;
  std::string interface;  // of the network; empty: the one that this machine's name names
};

class GlooGroup final : public Group {
 public:
  /// Waits for the others. Throws GroupError where they do not come.
  GlooGroup(const Rank& rank, const GlooOptions& options);
  ~GlooGroup() override;
  GlooGroup(const GlooGroup&) = delete;
  GlooGroup& operator=(const GlooGroup&) = delete;

  int rank() const override { return rank_.rank; }
  int size() const override { return rank_.size; }
  int timeout_ms() const override { return options_.timeout_ms; }
  void run(const CollectiveForm& form, const void* input, void* output) override;
  std::vector<std::string> exchange(std::string_view text) override;
  std::vector<uint64_t> exchange(uint64_t number) override;
  void fail(const GroupError& error) override;
  void on_failure(std::function<void()> function) override;
  void require_sound() const override;

 private:
  struct Mesh {
    HoneGlooMesh* mesh = nullptr;
    std::vector<int> ranks;  // by place in the mesh
    int place = 0;
  };
  Mesh open_mesh(std::vector<int> ranks);
  const Mesh& mesh_of(const std::vector<int>& ranks);
  template <typename Call>
  void call(std::string_view what, const Call& body);
  void gather(const void* from, void* to, size_t bytes);

  Rank rank_;
  GlooOptions options_;
  Meeting meeting_;
  std::mutex mutex_;  // one call at a time
  std::map<std::vector<int>, Mesh> meshes_;
  mutable std::mutex failure_mutex_;
  std::optional<GroupError> failure_;
  std::vector<std::function<void()>> ends_;
};

}  // namespace hone
