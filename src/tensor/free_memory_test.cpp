// SPDX-License-Identifier: Apache-2.0
#include "tensor/free_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "base/file.h"
#include "base/folder_testing.h"
#include "base/state_error.h"
#include "tensor/tensor.h"

namespace hone {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class FreeMemory : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder_.path() / name).parent_path());
    write_file(folder_.file(name), text);
  }
  int64_t free() const { return free_memory(folder_.path().string()); }

 private:
  TestFolder folder_;
};

TEST_F(FreeMemory, IsWhatTheKernelCanFreeAndSwap) {
  EXPECT_EQ(free(), std::numeric_limits<int64_t>::max());
  write("proc/meminfo", "MemTotal:       100 kB\nMemFree:         10 kB\nMemAvailable:    40 kB\nSwapFree:     2 kB\n");
  EXPECT_EQ(free(), 42 * 1024);
}

TEST_F(FreeMemory, IsBoundedByTheGroupWhoseFilesCanGo) {
  write("proc/meminfo", "MemAvailable:    40 kB\n");
  write("sys/fs/cgroup/memory.current", "9000\n");
  write("sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(free(), 40 * 1024);
  write("sys/fs/cgroup/memory.max", "10000\n");
  EXPECT_EQ(free(), 1000);
  write("sys/fs/cgroup/memory.stat", "anon 5000\nfile 700\nfile_mapped 1\nshmem 200\n");
  EXPECT_EQ(free(), 1500);
  write("sys/fs/cgroup/memory.max", "100\n");  // lowered since
  EXPECT_EQ(free(), 0);
}

std::string refusal(const Dims& dims) {
  try {
    require_memory(DType::f32, dims);
    return {};
  } catch (const OutOfMemory& error) {
    return error.what();
  }
}

TEST(RequireMemory, NamesTheTensorItsBytesAndWhatIsFree) {
  EXPECT_EQ(refusal({3, 4}), "");
  EXPECT_THAT(refusal({1 << 20, 1 << 20}),
              AllOf(HasSubstr("f32[1048576,1048576]"), HasSubstr("4398046511104 bytes"), HasSubstr("are free")));
  EXPECT_THROW(require_memory(DType::f32, Dims{int64_t{1} << 40, int64_t{1} << 40}), Error);
}

TEST(RequireMemory, IsAskedForEveryTensorThatIsMade) {
  EXPECT_THROW(TensorBuilder(DType::u8, {int64_t{1} << 42}), OutOfMemory);
  EXPECT_EQ(TensorBuilder(DType::u8, {1 << 10}).finish().size(), 1 << 10);
}

}  // namespace
}  // namespace hone
