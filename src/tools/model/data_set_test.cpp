// SPDX-License-Identifier: Apache-2.0
#include "tools/model/data_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error_testing.h"
#include "base/file.h"
#include "base/folder_testing.h"
#include "tools/files/npy.h"
#include "tools/files/zip_testing.h"

namespace hone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// x: f32[`batch`,2], where a batch of 0 is dynamic.
Graph network(int64_t batch) {
  Graph graph;
  graph.add_input("x", {DType::f32, Shape{batch == 0 ? Dim::symbol("n") : Dim(batch), 2}});
  return graph;
}

template <typename T>
void write_array(const std::string& path, DType dtype, const Dims& dims, const std::vector<T>& values) {
  write_file(path, npy_text(dtype, dims, std::as_bytes(std::span(values))));
}

std::vector<float> batch_of(DataSet& data, size_t batch, size_t count) {
  std::vector<float> values(count);
  data.load(batch, "x", std::as_writable_bytes(std::span(values)));
  return values;
}

TEST(DataSet, FilesOfAFolderFollowEachOtherInBatches) {
  const TestFolder folder;
  write_array<float>(folder.file("b.npy"), DType::f32, {1, 2}, {7, 8});
  write_array<float>(folder.file("a.npy"), DType::f32, {3, 2}, {1, 2, 3, 4, 5, 6});
  write_file(folder.file("notes.txt"), "nothing");
  DataSet data(std::filesystem::path(folder.file("a.npy")).parent_path().string(), network(0));
  ASSERT_EQ(data.batches(), 4u);
  EXPECT_THAT(data.shapes().at("x"), ElementsAre(1, 2));
  EXPECT_THAT(batch_of(data, 2, 2), ElementsAre(5, 6));
  EXPECT_THAT(batch_of(data, 3, 2), ElementsAre(7, 8));
  EXPECT_THAT(batch_of(data, 0, 2), ElementsAre(1, 2));
}

TEST(DataSet, ABatchIsWhatTheModelSays) {
  const TestFolder folder;
  write_array<float>(folder.file("a.npy"), DType::f32, {3, 2}, {1, 2, 3, 4, 5, 6});
  DataSet data(folder.file("a.npy"), network(2));
  EXPECT_EQ(data.batches(), 1u);
  EXPECT_EQ(data.left_over(), 1u);
  EXPECT_THAT(batch_of(data, 0, 4), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(error_of([&] { DataSet(folder.file("a.npy"), network(4)); }),
              HasSubstr("holds 3 samples; a batch of this network has 4"));
}

TEST(DataSet, CompressedSamplesAreReadInAnyOrder) {
  const TestFolder folder;
  std::vector<float> values(2000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const std::string array = npy_text(DType::f32, {1000, 2}, std::as_bytes(std::span(values)));
  write_file(folder.file("a.npz"), ZipSample::compressed(array).text());
  DataSet data(folder.file("a.npz"), network(3));
  EXPECT_EQ(data.left_over(), 1u);
  for (const size_t batch : {0UL, 1UL, 200UL, 7UL, 332UL})
    EXPECT_EQ(batch_of(data, batch, 6)[5], static_cast<float>(6 * batch + 5)) << batch;
  ZipSample damaged = ZipSample::compressed(array);
  damaged.checksum ^= 1;
  write_file(folder.file("b.npz"), damaged.text());
  DataSet other(folder.file("b.npz"), network(3));
  EXPECT_THAT(error_of([&] { batch_of(other, 332, 6); }), HasSubstr("checksum"));
}

TEST(DataSet, NumbersAreConverted) {
  const TestFolder folder;
  write_array<double>(folder.file("a.npy"), DType::f64, {1, 2}, {0.5, -2});
  DataSet data(folder.file("a.npy"), network(0));
  EXPECT_THAT(batch_of(data, 0, 2), ElementsAre(0.5F, -2));
}

TEST(DataSet, WhatDoesNotFitIsNamed) {
  const TestFolder folder;
  write_array<float>(folder.file("a.npy"), DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(error_of([&] { DataSet(folder.file("a.npy"), network(0)); }),
              testing::AllOf(HasSubstr("shape [2,3]"), HasSubstr("input x"), HasSubstr("a.npy")));
  EXPECT_THAT(error_of([&] { DataSet(folder.file("none.npz"), network(0)); }), HasSubstr("no such file"));
  Graph two = network(0);
  two.add_input("z", {DType::f32, Shape{1}});
  EXPECT_THAT(error_of([&] { DataSet(folder.file("a.npy"), two); }), HasSubstr("2 inputs"));
}

}  // namespace
}  // namespace hone
