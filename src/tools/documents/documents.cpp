// SPDX-License-Identifier: Apache-2.0
#include "tools/documents/documents.h"

#include <algorithm>

#include "base/file.h"
#include "base/text.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  write_file(path.string(), text);
}

[[noreturn]] void refuse(std::string_view what, const std::string& given, const std::vector<std::string_view>& known) {
  throw Error(fmt::format("there is no {} {}", what, given), fmt::format("did you mean {}?", nearest(given, known)));
}

std::string manual_page(const std::string& name) {
  const std::vector<ManualPage> pages = manual_pages();
  std::vector<std::string_view> names;
  for (const ManualPage& page : pages) {
    if (page.name == name || page.name == "hone-" + name) return page.text;
    names.push_back(std::string_view(page.name).substr(page.name.starts_with("hone-") ? 5 : 0));
  }
  refuse("manual page", name, names);
}

std::string completion(const std::string& shell) {
  if (shell == "bash") return bash_completion();
  if (shell == "zsh") return zsh_completion();
  if (shell == "fish") return fish_completion();
  refuse("completion for", shell, {"bash", "zsh", "fish"});
}

}  // namespace

std::vector<std::string_view> first_words() {
  std::vector<std::string_view> words;
  for (const Command& command : command_table())
    if (std::ranges::find(words, command.first) == words.end()) words.push_back(command.first);
  return words;
}

std::vector<std::string_view> second_words(std::string_view first) {
  std::vector<std::string_view> words;
  for (const Command& command : command_table())
    if (command.first == first && !command.second.empty()) words.push_back(command.second);
  return words;
}

std::string words_of(const Command& command) {
  return std::string(command.first) + (command.second.empty() ? "" : " ") + std::string(command.second);
}

std::vector<ShortFlag> own_flags(const Command& command) {
  std::vector<ShortFlag> flags = command.describe().flags;
  flags.push_back({"--json", "", "", "print JSON instead of text"});
  flags.push_back({"--help", "", "", "show the command's flags"});
  return flags;
}

bool names_file(std::string_view value_name) {
  return std::ranges::any_of(std::initializer_list<std::string_view>{"file", "folder", "plan", "dir"},
                             [&](std::string_view word) { return value_name.find(word) != std::string_view::npos; });
}

void write_documents(const fs::path& folder) {
  // A shell loads what is named as the program that it completes.
  for (const char* program : {"hone", "trtexec"}) {
    write(folder / "bash-completion/completions" / program, bash_completion());
    write(folder / "fish/vendor_completions.d" / (std::string(program) + ".fish"), fish_completion());
  }
  write(folder / "zsh/vendor-completions/_hone", zsh_completion());
  for (const ManualPage& page : manual_pages()) write(folder / "man/man1" / (page.name + ".1"), page.text);
}

int print_document(Words words) {
  try {
    const std::string& kind = words[0];
    const std::string which = words.size() > 1 ? words[1] : "";
    if (kind == "documents") {
      if (which.empty()) throw Error("hone help documents needs a folder", "for example ~/.local/share");
      write_documents(which);
    } else {
      fmt::print("{}", kind == "man" ? manual_page(which.empty() ? "hone" : join(words.subspan(1), "-"))
                                     : completion(which.empty() ? "bash" : which));
    }
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "hone help: {}\n", error.what());
    return 1;
  }
}

}  // namespace hone
