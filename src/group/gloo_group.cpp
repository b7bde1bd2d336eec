// SPDX-License-Identifier: Apache-2.0
#include "group/gloo_group.h"

#include <signal.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/text.h"
#include "group/elements.h"
#include "group/gloo_library.h"
#include "tensor/tensor.h"

namespace hone {
namespace {

std::string hello_of(const Rank& rank, const GlooOptions& options) {
  return fmt::format("{} of {} ranks", options.program, rank.size);
}

/// What a call of the library needs to say why it failed.
struct Failure {
  char text[1024] = {};
  HoneGlooError error() { return {text, sizeof text}; }
};

/// Gloo's words with the place in its source left out: "[./gloo/transport/tcp/pair.cc:598] Connection closed by peer [::1]:3".
std::string_view words_of(std::string_view text) {
  const size_t end = text.starts_with('[') ? text.find("] ") : std::string_view::npos;
  return end == std::string_view::npos ? text : text.substr(end + 2);
}

/// A rank that has ended closes its connections, and who writes there would be ended, too. What a program does of its own stays.
void outlive_others() {
  struct sigaction now = {};
  if (sigaction(SIGPIPE, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL) return;
  now.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &now, nullptr);
}

/// A mesh with work under way that nobody answers would wait for it when closed: it stays until the process ends.
void keep(HoneGlooMesh* mesh) {
  static std::mutex mutex;
  static auto& kept = *new std::vector<HoneGlooMesh*>();
  const std::lock_guard lock(mutex);
  kept.push_back(mesh);
}

}  // namespace

GlooGroup::GlooGroup(const Rank& rank, const GlooOptions& options)
    : rank_(rank), options_(options), meeting_(rank, hello_of(rank, options), options.timeout_ms) {
  outlive_others();
  std::vector<int> all(static_cast<size_t>(rank.size));
  std::iota(all.begin(), all.end(), 0);
  meshes_.emplace(std::vector<int>(), open_mesh(std::move(all)));
}

GlooGroup::~GlooGroup() {
  for (const auto& [ranks, mesh] : meshes_) {
    if (failure_) keep(mesh.mesh);
    else gloo_library().close(mesh.mesh);
  }
}

GlooGroup::Mesh GlooGroup::open_mesh(std::vector<int> ranks) {
  Mesh mesh{.ranks = std::move(ranks)};
  mesh.place = static_cast<int>(std::ranges::find(mesh.ranks, rank_.rank) - mesh.ranks.begin());
  const std::string folder =
      meeting_.folder(fmt::format("mesh-{}", join_dims(Dims(mesh.ranks.begin(), mesh.ranks.end()), "-")));
  const bool here = rank_.folder.empty() || rank_.local_size == rank_.size;
  const HoneGlooPlace place{.rank = mesh.place,
                            .size = static_cast<int>(mesh.ranks.size()),
                            .folder = folder.c_str(),
                            .host = here && options_.interface.empty() ? "127.0.0.1" : "",
                            .interface = options_.interface.c_str(),
                            .timeout_ms = options_.timeout_ms};
  Failure failure;
  mesh.mesh = gloo_library().open(&place, failure.error());
  if (mesh.mesh == nullptr) {
    fail(GroupError(
        fmt::format("rank {} of {} cannot reach the others: {}", rank_.rank, rank_.size, words_of(failure.text)),
        "a rank may have ended; across machines GLOO_SOCKET_IFNAME names the network's interface"));
    require_sound();
  }
  return mesh;
}

const GlooGroup::Mesh& GlooGroup::mesh_of(const std::vector<int>& ranks) {
  const auto found = meshes_.find(ranks);
  return found != meshes_.end() ? found->second : meshes_.emplace(ranks, open_mesh(ranks)).first->second;
}

void GlooGroup::fail(const GroupError& error) {
  std::vector<std::function<void()>> ends;
  {
    const std::lock_guard lock(failure_mutex_);
    if (failure_) return;
    failure_ = error;
    ends = std::exchange(ends_, {});
  }
  for (const std::function<void()>& end : ends) end();
}

void GlooGroup::on_failure(std::function<void()> function) {
  const std::lock_guard lock(failure_mutex_);
  ends_.push_back(std::move(function));
}

void GlooGroup::require_sound() const {
  const std::lock_guard lock(failure_mutex_);
  if (failure_) throw GroupError(*failure_);
}

template <typename Call>
void GlooGroup::call(std::string_view what, const Call& body) {
  Failure failure;
  if (body(gloo_library(), failure.error()) == 0) return;
  const std::string_view words = words_of(failure.text);
  const bool late = words.find("imed out") != std::string_view::npos || words.find("imeout") != std::string_view::npos;
  fail(GroupError(fmt::format("rank {} of {} lost the others in {}: {} ({})", rank_.rank, rank_.size, what,
                              late ? fmt::format("one has not answered within {:g} s", options_.timeout_ms / 1000.0)
                                   : std::string("one has ended"),
                              words),
                  "its own message says why it ended; HONE_RANK_TIMEOUT=SECONDS says how long to wait"));
  require_sound();
}

void GlooGroup::run(const CollectiveForm& form, const void* input, void* output) {
  const std::lock_guard lock(mutex_);
  require_sound();
  const Mesh& mesh = mesh_of(form.ranks);
  const auto elements = static_cast<size_t>(form.elements);
  const size_t element_bytes = size_of(form.dtype), bytes = elements * element_bytes;
  const size_t ranks = mesh.ranks.size();
  const bool is_root = mesh.place == form.root;
  const std::string_view name = kCollectiveNames[static_cast<size_t>(form.kind)];
  const auto average = [&](void* data, size_t count) {
    if (form.reduce == ReduceKind::avg) divide(data, count, form.dtype, static_cast<int>(ranks));
  };
  const auto all_reduce = [&](void* to) {
    const ReduceFunction function = reduce_function(form.reduce, form.dtype);
    call(name, [&](const HoneGlooTable& gloo, HoneGlooError error) {
      return gloo.all_reduce(mesh.mesh, input, to, elements, element_bytes, function, error);
    });
    average(to, elements);
  };
  switch (form.kind) {
    case CollectiveKind::all_reduce: return all_reduce(output);
    case CollectiveKind::reduce_scatter: {
      AlignedBuffer whole(bytes);
      all_reduce(whole.data());
      std::memcpy(output, whole.data() + static_cast<size_t>(mesh.place) * (bytes / ranks), bytes / ranks);
      return;
    }
    case CollectiveKind::reduce: {
      const ReduceFunction function = reduce_function(form.reduce, form.dtype);
      call(name, [&](const HoneGlooTable& gloo, HoneGlooError error) {
        return gloo.reduce(mesh.mesh, input, output, elements, element_bytes, function, form.root, error);
      });
      if (is_root) average(output, elements);
      else std::memset(output, 0, bytes);
      return;
    }
    case CollectiveKind::all_gather:
      return call(name, [&](const HoneGlooTable& gloo, HoneGlooError error) {
        return gloo.all_gather(mesh.mesh, input, output, bytes, error);
      });
    case CollectiveKind::gather:
      if (!is_root) std::memset(output, 0, bytes * ranks);
      return call(name, [&](const HoneGlooTable& gloo, HoneGlooError error) {
        return gloo.gather(mesh.mesh, input, output, bytes, form.root, error);
      });
    case CollectiveKind::scatter:
      return call(name, [&](const HoneGlooTable& gloo, HoneGlooError error) {
        return gloo.scatter(mesh.mesh, input, output, bytes / ranks, form.root, error);
      });
    case CollectiveKind::all_to_all:
      return call(name, [&](const HoneGlooTable& gloo, HoneGlooError error) {
        return gloo.all_to_all(mesh.mesh, input, output, bytes / ranks, error);
      });
    case CollectiveKind::broadcast:
      std::memcpy(output, input, bytes);
      return call(name, [&](const HoneGlooTable& gloo, HoneGlooError error) {
        return gloo.broadcast(mesh.mesh, output, bytes, form.root, error);
      });
  }
}

void GlooGroup::gather(const void* from, void* to, size_t bytes) {
  const Mesh& all = meshes_.at({});
  call("what they tell each other", [&](const HoneGlooTable& gloo, HoneGlooError error) {
    return gloo.all_gather(all.mesh, from, to, bytes, error);
  });
}

std::vector<uint64_t> GlooGroup::exchange(uint64_t number) {
  const std::lock_guard lock(mutex_);
  require_sound();
  std::vector<uint64_t> all(static_cast<size_t>(rank_.size));
  gather(&number, all.data(), sizeof number);
  return all;
}

std::vector<std::string> GlooGroup::exchange(std::string_view text) {
  const std::vector<uint64_t> sizes = exchange(uint64_t{text.size()});
  const std::lock_guard lock(mutex_);
  const size_t room = *std::ranges::max_element(sizes);
  std::string padded(text), all(room * sizes.size(), '\0');
  padded.resize(room);
  if (room != 0) gather(padded.data(), all.data(), room);
  std::vector<std::string> texts;
  for (size_t rank = 0; rank < sizes.size(); ++rank) texts.push_back(all.substr(rank * room, sizes[rank]));
  return texts;
}

}  // namespace hone
