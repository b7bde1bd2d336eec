// SPDX-License-Identifier: Apache-2.0
//
// The timing cache as JSON lines; the first line names the format.
#include "tuner/timing_cache.h"

#include <filesystem>

#include "base/file.h"
#include "base/limits.h"
#include "base/text.h"
#include "tensor/json.h"

namespace hone {
namespace {

constexpr std::string_view kHeader = R"({"hone_timing_cache":1})";

std::string line_of(const std::string& key, const Timing& t) {
  return Json{{"key", key}, {"ms", t.ms}, {"spread", t.spread}, {"samples", t.samples}, {"note", t.note}}.dump(
      -1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

bool is_preferred(const Timing& a, const Timing& b) {
  const bool rejected_a = a.ms < 0, rejected_b = b.ms < 0;
  if (rejected_a != rejected_b) return rejected_b;
  if (a.samples != b.samples) return a.samples > b.samples;
  if (a.spread != b.spread) return a.spread < b.spread;
  return line_of({}, a) < line_of({}, b);
}

const Timing* TimingCache::find(const std::string& key) const {
  const auto at = entries_.find(key);
  if (at == entries_.end()) {
    ++misses_;
    return nullptr;
  }
  ++hits_;
  return &at->second;
}

void TimingCache::put(const std::string& key, const Timing& timing) { entries_.try_emplace(key, timing); }

void TimingCache::merge(const TimingCache& other) {
  for (const auto& [key, timing] : other.entries_) keep_preferred(key, timing);
}

void TimingCache::keep_preferred(const std::string& key, const Timing& timing) {
  const auto [at, fresh] = entries_.try_emplace(key, timing);
  if (!fresh && is_preferred(timing, at->second)) at->second = timing;
}

std::string TimingCache::text() const {
  std::string result(kHeader);
  result += '\n';
  for (const auto& [key, timing] : entries_) result += line_of(key, timing) + "\n";
  return result;
}

TimingCache TimingCache::parse(std::string_view text, size_t* skipped) {
  TimingCache cache;
  size_t bad = 0;
  const std::vector<std::string_view> lines = split(text, '\n');
  const bool known = !lines.empty() && lines[0] == kHeader;
  for (size_t i = known ? 1 : 0; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    if (!known) {
      ++bad;
      continue;
    }
    try {
      const Json row = parse_json(lines[i], "a line of the timing cache");
      const int64_t samples = integer_member(row, "samples");
      HONE_CHECK(samples >= 0 && samples < 1'000'000, "'samples' is out of range");
      cache.keep_preferred(text_member(row, "key"), {real_member(row, "ms"), real_member(row, "spread"),
                                                     static_cast<int>(samples), text_member(row, "note")});
    } catch (const Error&) {
      ++bad;  // half a line of an interrupted writer is not worth a failed build
    }
  }
  if (skipped != nullptr) *skipped = bad;
  return cache;
}

TimingCache load_timing_cache(const std::string& path, size_t* bytes, size_t* skipped) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  const std::span<const std::byte> content = file->bytes();
  if (static_cast<int64_t>(content.size()) > kMaxCacheBytes)
    throw Error(fmt::format("{} has {} bytes; a timing cache may have {}", path, content.size(), kMaxCacheBytes),
                "delete the file, or name another one");
  if (bytes != nullptr) *bytes = content.size();
  return TimingCache::parse({reinterpret_cast<const char*>(content.data()), content.size()}, skipped);
}

size_t save_timing_cache(const TimingCache& cache, const std::string& path) {
  const FileLock lock(path);
  TimingCache merged;
  if (std::filesystem::exists(path)) merged = load_timing_cache(path);
  merged.merge(cache);
  const std::string text = merged.text();
  write_file(path, text);
  return text.size();
}

}  // namespace hone
