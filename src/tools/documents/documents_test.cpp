// SPDX-License-Identifier: Apache-2.0
#include "tools/documents/documents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/folder_testing.h"
#include "options/flag.h"

namespace hone {
namespace {

using testing::HasSubstr;

TEST(Documents, OfBashAreCurrent) {
  EXPECT_EQ(read_file("docs/completion.bash"), bash_completion())
      << "write it anew: hone help completion > docs/completion.bash";
}

TEST(Documents, CompletionKnowsEveryFlagAndCommand) {
  for (const std::string& script : {bash_completion(), zsh_completion(), fish_completion()}) {
    for (const Flag& flag : flag_table()) EXPECT_THAT(script, HasSubstr(std::string(flag.name.substr(2))));
    for (const Command& command : command_table()) {
      EXPECT_THAT(script, HasSubstr(std::string(command.first)));
      for (const ShortFlag& flag : command.describe().flags)
        EXPECT_THAT(script, HasSubstr(std::string(flag.name.substr(flag.name.starts_with("--") ? 2 : 1))));
    }
  }
}

TEST(Documents, EveryCommandHasAManualPageWithItsFlags) {
  const std::vector<ManualPage> pages = manual_pages();
  ASSERT_EQ(pages.size(), command_table().size() + 2);
  for (size_t i = 0; i < command_table().size(); ++i) {
    const Command& command = command_table()[i];
    EXPECT_EQ(command.describe().name, words_of(command));
    EXPECT_FALSE(command.describe().purpose.empty()) << words_of(command);
    std::string roff;  // where a hyphen of a word is escaped
    for (const char c : command.first) roff += c == '-' ? std::string("\\-") : std::string(1, c);
    EXPECT_THAT(pages[0].text, HasSubstr(roff));
    const size_t flags = command.describe().flags.size() + 2;
    size_t items = 0;
    for (size_t at = 0; (at = pages[i + 2].text.find("\n.TP\n", at)) != std::string::npos; ++at) ++items;
    EXPECT_EQ(items, flags) << pages[i + 2].name;
  }
}

TEST(Documents, AreWrittenAsTheSystemHoldsThem) {
  const TestFolder folder;
  write_documents(folder.path());
  for (const char* file : {"man/man1/hone.1", "man/man1/hone-inspect-changes.1", "bash-completion/completions/trtexec",
                           "fish/vendor_completions.d/hone.fish", "zsh/vendor-completions/_hone"})
    EXPECT_TRUE(std::filesystem::is_regular_file(folder.path() / file)) << file;
}

}  // namespace
}  // namespace hone
