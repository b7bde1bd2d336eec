// SPDX-License-Identifier: Apache-2.0
//
// Launches that ranks make together: where their operands lie, and what stands in their place once the ranks reach across.
#include "backends/cuda/run/recording.h"

#include <gmock/gmock.h>

#include "backends/cuda/run/kernel.h"
#include "backends/cuda/run/mapped_memory.h"

namespace hone::cuda {
namespace {

using Notes = std::vector<std::string>;

class Together final : public CudaKernel, public IsTogether, public GainsByMapping {
 public:
  Together(Notes& notes, std::string name) : notes_(notes), name_(std::move(name)) {}
  void enqueue(CUstream, const Bindings&, bool) const override { notes_.push_back(name_); }
  bool capturable() const override { return false; }  // a replay calls it
  std::shared_ptr<const CudaKernel> across(MappedMemory& memory) const override {
    memory.hold(shared_);
    return std::make_shared<Together>(notes_, name_ + " across");
  }

 private:
  Notes& notes_;
  std::string name_;
  inline static const std::shared_ptr<const void> shared_ = std::make_shared<int>(0);
};

TEST(CudaRecording, ReachesAcrossWhereOperandsLieInMappedMemory) {
  if (device_count() == 0) GTEST_SKIP() << "there is no GPU: " << driver_library().missing;
  CudaDevice device(0);
  const std::shared_ptr<SharedMemory> memory = device.shared_memory(3000);
  if (!memory) GTEST_SKIP() << "this driver has no memory that processes share";
  EXPECT_GE(memory->size(), 3000u);
  auto* base = static_cast<std::byte*>(memory->data());
  const Buffer outside(device, 256);
  Notes notes;
  const auto launch = [&](const std::string& name, const void* from, void* to) {
    Launch made;
    made.kernel = std::make_shared<Together>(notes, name);
    made.inputs = {from};
    made.outputs = {to};
    return made;
  };
  const std::unique_ptr<Stream> stream = device.stream();
  const auto recording =
      device.record({launch("first", base, base + 1024), launch("last", base + 1024, outside.data())});
  auto& across = dynamic_cast<ReachesAcross&>(*recording);
  recording->replay(*stream);
  EXPECT_THAT(notes, testing::ElementsAre("first", "last"));

  const std::string places = fmt::format("{} bytes, held {{}} times: 0>1024;-;", memory->size());
  EXPECT_EQ(across.places_in(*memory), fmt::format(fmt::runtime(places), 0));
  for (int time = 0; time < 2; ++time) across.reach_across(*memory);
  EXPECT_EQ(across.places_in(*memory), fmt::format(fmt::runtime(places), 1)) << "each is held once";
  notes.clear();
  recording->replay(*stream);
  EXPECT_THAT(notes, testing::ElementsAre("first across", "last"));

  const auto apart = device.record({launch("only", outside.data(), base)});
  EXPECT_EQ(dynamic_cast<ReachesAcross&>(*apart).places_in(*memory), "");
}

}  // namespace
}  // namespace hone::cuda
