// SPDX-License-Identifier: Apache-2.0
//
// Reading and building plans.
#include "triton/plan_file.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <sstream>

namespace hone::triton {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNote = "triton";
constexpr size_t kAlignment = 64;  // at which hone_plan_create_from_memory() copies nothing

std::unique_ptr<std::byte[], Free> memory(size_t bytes) {
  const size_t rounded = std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  auto* place = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
  if (place == nullptr) throw std::bad_alloc();
  return std::unique_ptr<std::byte[], Free>(place);
}

std::shared_ptr<const PlanInMemory> parse(std::unique_ptr<std::byte[], Free> bytes, size_t size) {
  Plan plan = Plan::parse({bytes.get(), size});
  return std::make_shared<const PlanInMemory>(PlanInMemory{std::move(bytes), std::move(plan)});
}

std::shared_ptr<const PlanInMemory> read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::error_code none;
  const uintmax_t size = fs::file_size(path, none);
  if (!file || none) throw Error(HONE_ERROR, path.string() + " cannot be read", "look at its permissions");
  auto bytes = memory(size);
  file.read(reinterpret_cast<char*>(bytes.get()), static_cast<std::streamsize>(size));
  try {
    return parse(std::move(bytes), static_cast<size_t>(file.gcount()));
  } catch (const Error& failure) {
    throw Error(failure.status(), path.string() + ": " + failure.message(), failure.hint());
  }
}

fs::path file_of(const PlanRequest& request) {
  std::vector<std::string> names = {"model.hone", "model.plan", "model.onnx"};
  if (!request.file.empty()) names = {request.file};
  for (const std::string& name : names)
    if (fs::path path = fs::path(request.folder) / name; fs::is_regular_file(path)) return path;
  throw Error(HONE_ERROR, request.folder + " holds no " + (request.file.empty() ? "model" : request.file),
              "put a plan there as model.plan (hone build MODEL.onnx), or the model as model.onnx");
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// One row, and as many as there may be, where rows are all that is not fixed.
void add_profiles(Options& options, const Model& model, int64_t most) {
  std::vector<Range> one, many;
  for (const Tensor& tensor : model.tensors()) {
    if (!tensor.is_input || std::ranges::count(tensor.dims, -1) == 0) continue;
    if (tensor.dims[0] != -1 || std::ranges::count(tensor.dims, -1) > 1) return;
    std::vector<int64_t> dims = tensor.dims;
    dims[0] = 1;
    one.push_back({tensor.name, dims, dims, dims});
    many.push_back(one.back());
    many.back().opt[0] = many.back().max[0] = most;
  }
  if (one.empty()) return;
  options.add_profile(one);
  if (most > 1) options.add_profile(many);
}

/// What a kept plan was made of.
std::string origin(const fs::path& onnx, const PlanRequest& request, const Device& device) {
  const hone_device_info info = device.info();
  const auto changed = fs::last_write_time(onnx).time_since_epoch().count();
  std::ostringstream text;
  text << hone_version() << '|' << info.name << '|' << info.architecture << '|' << info.workers << '|' << request.flags
       << '|' << request.most_rows << '|' << fs::file_size(onnx) << '|' << changed;
  return text.str();
}

std::shared_ptr<const PlanInMemory> kept_plan(const fs::path& path, const std::string& origin) {
  if (!fs::is_regular_file(path)) return nullptr;
  try {
    auto plan = read(path);
    const char* note = hone_plan_note(plan->plan.get(), kNote);
    return note != nullptr && note == origin ? plan : nullptr;
  } catch (const Error&) {
    return nullptr;  // damaged, or another version's: built anew
  }
}

std::shared_ptr<const PlanInMemory> build(const fs::path& onnx, const PlanRequest& request, const Log& log) {
  const Device device(request.device);
  const fs::path kept = onnx.string() + "." + device.info().kind + ".plan";
  const std::string note = origin(onnx, request, device);
  if (auto plan = kept_plan(kept, note)) return plan;
  hone::triton::log(TRITONSERVER_LOG_INFO, "building " + onnx.string() + " for " + request.device + "; it is kept as " +
                                               kept.filename().string());
  std::vector<std::string> flags = words_of(request.flags);
  const auto says = [&](std::string_view part) {
    return std::ranges::any_of(flags, [&](const std::string& flag) { return flag.find(part) != std::string::npos; });
  };
  const bool shapes = says("Shapes=");
  if (!says("--timingCacheFile")) flags.push_back("--timingCacheFile=" + (onnx.parent_path() / "hone.cache").string());
  if (!says("--versionCompatible")) flags.emplace_back("--versionCompatible");
  Options options(flags);
  check(hone_options_set_note(options.get(), kNote, note.c_str()));
  const Model model = Model::load(onnx.string(), log);
  if (!shapes) add_profiles(options, model, request.most_rows > 0 ? request.most_rows : 8);
  const Plan plan = Plan::build(model, device, options, log);
  try {
    plan.save(kept.string());
  } catch (const Error& failure) {
    hone::triton::log(TRITONSERVER_LOG_WARN, std::string("it is built anew at each start: ") + failure.what());
  }
  const std::span<const std::byte> bytes = plan.bytes();
  auto copy = memory(bytes.size());
  std::memcpy(copy.get(), bytes.data(), bytes.size());
  return parse(std::move(copy), bytes.size());
}

}  // namespace

void Free::operator()(std::byte* bytes) const noexcept { std::free(bytes); }

std::shared_ptr<const PlanInMemory> plan_of(const PlanRequest& request, const Log& log) {
  const fs::path path = file_of(request);
  return path.extension() == ".onnx" ? build(path, request, log) : read(path);
}

}  // namespace hone::triton
