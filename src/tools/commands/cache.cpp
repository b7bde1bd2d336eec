// SPDX-License-Identifier: Apache-2.0
//
// `hone cache`: what timing caches hold, several made one, old entries thrown out. Files are locked and replaced whole.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "tools/commands/commands.h"
#include "tools/common/api.h"
#include "tools/common/terminal.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

const FriendlyCommand& command() {
  static const FriendlyCommand kCommand{
      "cache",
      "list FILE... | merge TARGET SOURCE... | prune FILE",
      "list: what timing caches hold. merge: add the entries of files, and of all files in folders, to TARGET; the "
      "order does not matter. prune: drop damaged lines, and what the flags say.",
      {{"--keys", "", "", "of list: the problems that they know, the slowest first: for hone bench kernels"},
       {"--keep", "<text>", "", "of prune: drop all entries whose key lacks the text, such as a processor's name"},
       {"--rejected", "", "", "of prune: drop the entries of tactics that failed"}},
      false};
  return kCommand;
}

struct Loaded {
  Owned<hone_timing_cache> cache;
  size_t bytes = 0, skipped = 0;

  size_t entries() const { return hone_timing_cache_entries(cache.get()); }
  std::string text() const {
    const void* bytes_of = nullptr;
    size_t size = 0;
    check(hone_timing_cache_bytes(cache.get(), &bytes_of, &size));
    return {static_cast<const char*>(bytes_of), size};
  }
};

Loaded load(const std::string& path) {
  Loaded loaded;
  loaded.cache = make<hone_timing_cache>(hone_timing_cache_create_from_file, path.c_str(), &loaded.skipped);
  loaded.bytes = std::filesystem::file_size(path);
  return loaded;
}

/// One JSON object per line of a cache file, its text beside it.
std::vector<std::pair<std::string, Json>> rows_of(const Loaded& cache) {
  std::vector<std::pair<std::string, Json>> rows;
  const std::string text = cache.text();
  for (const std::string_view line : split(text, '\n')) {
    const Json row = Json::parse(line, nullptr, false);
    if (row.is_object() && row.contains("key")) rows.emplace_back(line, row);
  }
  return rows;
}

int list(Words files, bool json) {
  Json found = Json::array();
  for (const std::string& path : files) {
    const Loaded loaded = load(path);
    size_t rejected = 0;
    for (const auto& [text, row] : rows_of(loaded)) rejected += row["ms"].get<double>() < 0 ? 1 : 0;
    found.push_back({{"file", path},
                     {"bytes", loaded.bytes},
                     {"entries", loaded.entries()},
                     {"rejected", rejected},
                     {"damagedLines", loaded.skipped}});
  }
  if (json) {
    fmt::print("{}\n", found.dump(2, ' ', false, Json::error_handler_t::replace));
    return 0;
  }
  const Page page;
  for (const Json& file : found) {
    page.title(file["file"].get<std::string>());
    page.pair("entries",
              fmt::format("{}, {} of them rejected tactics", file["entries"].dump(), file["rejected"].dump()));
    page.pair("size", fmt::format("{} bytes", file["bytes"].dump()));
    if (file["damagedLines"] != 0)
      page.warning(fmt::format("  {} lines are damaged or of another version", file["damagedLines"].dump()));
  }
  return 0;
}

/// Each problem once, by the time of its best tactic.
int list_keys(Words files) {
  std::map<std::string, double> best;
  for (const std::string& path : files)
    for (const auto& [text, row] : rows_of(load(path))) {
      const std::string key = row["key"].get<std::string>();
      const double ms = row["ms"].get<double>();
      if (ms < 0) continue;
      const auto [at, fresh] = best.try_emplace(key.substr(0, key.find(" | ")), ms);
      if (!fresh) at->second = std::min(at->second, ms);
    }
  std::vector<std::pair<std::string, double>> order(best.begin(), best.end());
  std::ranges::stable_sort(order, std::ranges::greater{}, &std::pair<std::string, double>::second);
  for (const auto& [key, ms] : order) fmt::print("{}\n", key);
  return 0;
}

/// The files among the sources, and those of the folders.
std::vector<std::string> files_of(Words sources) {
  std::vector<std::string> files;
  for (const std::string& source : sources) {
    if (!std::filesystem::is_directory(source)) {
      files.push_back(source);
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(source))
      if (entry.is_regular_file()) files.push_back(entry.path().string());
  }
  return files;
}

int merge(const std::string& target, Words sources) {
  const auto merged = make<hone_timing_cache>(hone_timing_cache_create, nullptr, size_t{0});
  size_t skipped = 0;
  for (const std::string& path : files_of(sources)) {
    const Loaded part = load(path);
    skipped += part.skipped;
    check(hone_timing_cache_merge(merged.get(), part.cache.get()));
  }
  size_t bytes = 0;
  check(hone_timing_cache_save(merged.get(), target.c_str(), &bytes));  // and what the target holds
  fmt::print("{}: {} entries, {} bytes{}\n", target, load(target).entries(), bytes,
             skipped == 0 ? std::string() : fmt::format(", {} damaged lines left out", skipped));
  return 0;
}

int prune(const std::string& path, const std::string& keep, bool rejected) {
  const FileLock lock(path);
  const Loaded loaded = load(path);
  std::string text;
  size_t dropped = 0;
  for (const auto& [line, row] : rows_of(loaded)) {
    const bool wanted =
        (!rejected || row["ms"].get<double>() >= 0) && row["key"].get<std::string>().find(keep) != std::string::npos;
    if (wanted) text += line + "\n";
    else ++dropped;
  }
  const std::string whole = loaded.text();
  if (const std::string head = whole.substr(0, whole.find('\n') + 1);
      !head.empty() && !Json::parse(head, nullptr, false).contains("key"))
    text = head + text;
  write_file(path, text);
  fmt::print("{}: {} entries dropped, {} damaged lines dropped, {} entries kept\n", path, dropped, loaded.skipped,
             loaded.entries() - dropped);
  return 0;
}

int dispatch(std::vector<std::string> words) {
  const bool json = std::erase(words, "--json") > 0;
  const bool rejected = std::erase(words, "--rejected") > 0;
  const bool keys = std::erase(words, "--keys") > 0;
  const std::string action = words.empty() ? "" : words[0];
  std::string keep;
  if (const auto flag = std::ranges::find(words, "--keep"); flag != words.end() && flag + 1 != words.end()) {
    keep = *(flag + 1);
    words.erase(flag, flag + 2);
  }
  const Words rest = Words(words).subspan(words.empty() ? 0 : 1);
  if (action == "list" && !rest.empty()) return keys ? list_keys(rest) : list(rest, json);
  if (action == "merge" && rest.size() >= 2) return merge(rest[0], rest.subspan(1));
  if (action == "prune" && rest.size() == 1) return prune(rest[0], keep, rejected);
  const bool asked = action == "--help" || action == "-h";
  fmt::print(asked ? stdout : stderr, "{}", friendly_help(command()));
  return asked ? 0 : 1;
}

}  // namespace

const FriendlyCommand& describe_cache() { return command(); }

int run_cache(Words words) {
  try {
    return dispatch({words.begin(), words.end()});
  } catch (const Error& error) {
    fmt::print(stderr, "hone cache: {}\n", error.what());
    return 1;
  } catch (const std::filesystem::filesystem_error& error) {
    fmt::print(stderr, "hone cache: {}: {}\n", error.path1().string(), error.code().message());
    return 1;
  }
}

}  // namespace hone
