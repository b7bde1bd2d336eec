// SPDX-License-Identifier: Apache-2.0
//
// Broken and malicious models: each is refused with a message that names what is wrong, in bounded time and memory.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "base/folder_testing.h"
#include "onnx/hostile/testing.h"

namespace hone {
namespace {

using W = onnx::ModelWriter;
using onnx::refusal;
using onnx::refusal_of_nodes;
using onnx::vector_value;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal_of_tensor(const std::string& tensor, const std::string& directory = {}) {
  return refusal(W::model(W::graph({.nodes = {W::node("Add", {"x", "w"}, {"y"})},
                                    .initializers = {tensor},
                                    .inputs = {vector_value("x")},
                                    .outputs = {vector_value("y")}})),
                 directory);
}

// ---- not a model ----

TEST(HostileModel, OtherKindsOfFilesAreNamed) {
  EXPECT_THAT(refusal(Blob()), HasSubstr("empty"));
  EXPECT_THAT(refusal(Blob::copy("ir_version: 8\ngraph {}\n")), HasSubstr("text"));
  EXPECT_THAT(refusal(Blob::copy("HONEPLAN\x01\x02")), AllOf(HasSubstr("plan"), HasSubstr("--loadEngine")));
  EXPECT_THAT(refusal(Blob::copy("version https://git-lfs.github.com/spec/v1\n")), HasSubstr("Git LFS"));
  EXPECT_THAT(refusal(Blob::copy("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")), HasSubstr("not an ONNX model"));
  EXPECT_THAT(refusal(Blob::copy("\x08\x07")), HasSubstr("no ONNX graph"));
}

Blob small_model() {
  return W::model(W::graph({.nodes = {W::node("Concat", {"x", "w"}, {"y"}, {W::integer_attr("axis", 0)}, "join")},
                            .initializers = {W::raw_tensor("w", 1, {2}, std::string(8, '\0'))},
                            .inputs = {vector_value("x")},
                            .outputs = {vector_value("y")}}));
}

TEST(HostileModel, AModelCutAnywhereIsRefusedOrRead) {
  const Blob whole = small_model();
  ASSERT_EQ(refusal(whole), "");
  int refused = 0;
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string message = refusal(Blob::copy(whole.text().substr(0, size)));
    EXPECT_THAT(message, Not(HasSubstr("INTERNAL"))) << "cut to " << size;
    refused += message.empty() ? 0 : 1;
  }
  EXPECT_GT(refused,
            static_cast<int>(whole.size()) - 30);  // behind the graph only the operator sets and domains follow
}

TEST(HostileModel, AlteredBytesNeverCrash) {
  constexpr uint32_t kSeed = 20261;
  SCOPED_TRACE(fmt::format("seed {}", kSeed));
  std::mt19937 random(kSeed);
  const Blob whole = small_model();
  for (int round = 0; round < 3000; ++round) {
    std::string bytes(whole.text());
    for (int i = 0; i < 3; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    EXPECT_THAT(refusal(Blob::copy(bytes)), Not(HasSubstr("INTERNAL"))) << "round " << round;
  }
}

// ---- structure ----

TEST(HostileModel, AMissingInputIsNamedWithItsNode) {
  EXPECT_THAT(refusal_of_nodes({W::node("Relu", {"nowhere"}, {"y"}, {}, "r")}),
              AllOf(HasSubstr("'nowhere'"), HasSubstr("node r (Relu")));
}
TEST(HostileModel, AMissingOutputIsNamed) {
  EXPECT_THAT(refusal_of_nodes({W::node("Relu", {"x"}, {"z"})}), HasSubstr("'y'"));
}
TEST(HostileModel, ACycleIsNamed) {
  EXPECT_THAT(refusal_of_nodes({W::node("Add", {"x", "b"}, {"a"}, {}, "one"), W::node("Relu", {"a"}, {"b"}, {}, "two"),
                                W::node("Relu", {"b"}, {"y"})}),
              AllOf(HasSubstr("cycle"), HasSubstr("one")));
}
TEST(HostileModel, TwoProducersOfOneNameAreNamed) {
  EXPECT_THAT(refusal_of_nodes({W::node("Relu", {"x"}, {"y"}, {}, "one"), W::node("Neg", {"x"}, {"y"}, {}, "two")}),
              AllOf(HasSubstr("one"), HasSubstr("two"), HasSubstr("'y'")));
  EXPECT_THAT(refusal_of_nodes({W::node("Relu", {"x"}, {"x"}, {}, "one")}), HasSubstr("x"));
}
TEST(HostileModel, ANodeWithoutOutputsIsRefused) {
  EXPECT_THAT(refusal_of_nodes({W::node("Relu", {"x"}, {}, {}, "mute"), W::node("Relu", {"x"}, {"y"})}),
              HasSubstr("mute"));
}
TEST(HostileModel, ANodeWithoutInputsIsRefused) {
  EXPECT_THAT(refusal_of_nodes({W::node("Relu", {}, {"y"}, {}, "r")}), HasSubstr("node r"));
}
TEST(HostileModel, AnAxisBeyondTheRankIsRefused) {
  EXPECT_THAT(refusal_of_nodes({W::node("Concat", {"x", "x"}, {"y"}, {W::integer_attr("axis", 1)}, "c")}),
              AllOf(HasSubstr("axis 1"), HasSubstr("node c")));
}
TEST(HostileModel, UnknownAttributesAreRefused) {
  EXPECT_THAT(refusal_of_nodes({W::node("Relu", {"x"}, {"y"}, {W::integer_attr("power", 9000)})}),
              HasSubstr("'power'"));
}

TEST(HostileModel, AllUnknownOperatorsAreListedAtOnce) {
  EXPECT_THAT(refusal_of_nodes({W::node("Rellu", {"x"}, {"a"}, {}, "typo"),
                                W::node("Magic", {"a"}, {"b"}, {}, "trick", "com.example"),
                                W::node("Rellu", {"b"}, {"y"}, {}, "again")}),
              AllOf(HasSubstr("2 operators"), HasSubstr("Rellu (opset 17) at typo, again"),
                    HasSubstr("com.example::Magic"), HasSubstr("hint")));
}
TEST(HostileModel, AnAncientOpsetIsRead) {
  EXPECT_EQ(refusal(W::model(W::graph({.nodes = {W::node("Relu", {"x"}, {"y"})},
                                       .inputs = {vector_value("x")},
                                       .outputs = {vector_value("y")}}),
                             {}, 3)),
            "");
}

// ---- tensors ----

TEST(HostileModel, RawDataMustFitTheSizes) {
  EXPECT_THAT(refusal_of_tensor(W::raw_tensor("w", 1, {2}, "abc")), AllOf(HasSubstr("'w'"), HasSubstr("8 bytes")));
  EXPECT_THAT(refusal_of_tensor(W::raw_tensor("w", 1, {2}, std::string(12, 'a'))), HasSubstr("'w'"));
}
TEST(HostileModel, TypedDataMustFitTheSizes) {
  EXPECT_THAT(refusal_of_tensor(W::integers("w", {3}, {1, 2})), HasSubstr("'w'"));
  EXPECT_THAT(refusal_of_tensor(W::integers("w", {1}, {1, 2})), HasSubstr("'w'"));
}
TEST(HostileModel, HugeSizesAreRefusedBeforeMemoryIsTaken) {
  EXPECT_THAT(refusal_of_tensor(W::integers("w", {int64_t{1} << 40}, {1})), HasSubstr("'w'"));
  EXPECT_THAT(refusal_of_tensor(W::raw_tensor("w", 1, {int64_t{1} << 33, int64_t{1} << 33}, "abcd")),
              HasSubstr("overflow"));
}
TEST(HostileModel, NegativeSizesAreRefused) {
  EXPECT_THAT(refusal_of_tensor(W::raw_tensor("w", 1, {-1, -2}, std::string(8, 'a'))), HasSubstr("negative"));
}
TEST(HostileModel, UnknownElementTypesAreNamed) {
  EXPECT_THAT(refusal_of_tensor(W::raw_tensor("w", 14, {1}, std::string(8, 'a'))), HasSubstr("COMPLEX64"));
  EXPECT_THAT(refusal_of_tensor(W::raw_tensor("w", 999, {1}, "a")), HasSubstr("999"));
}
TEST(HostileModel, AnInitialiserTwiceIsRefused) {
  const std::string w = W::raw_tensor("w", 1, {2}, std::string(8, 'a'));
  EXPECT_THAT(refusal(W::model(W::graph({.nodes = {W::node("Add", {"x", "w"}, {"y"})},
                                         .initializers = {w, w},
                                         .inputs = {vector_value("x")},
                                         .outputs = {vector_value("y")}}))),
              HasSubstr("'w' is defined twice"));
}

// ---- external data ----

class ExternalData : public ::testing::Test {
 protected:
  ExternalData() {
    std::filesystem::create_directories(model_ / "sub");
    for (const auto& path : {root_ / "secret.bin", model_ / "w.bin", model_ / "sub" / "w.bin"})
      std::ofstream(path) << "0123456789abcdef";
  }

  std::string refusal_at(const std::string& location, const std::string& offset = "0",
                         const std::string& length = "8") {
    return refusal_of_tensor(
        W::external("w", 1, {2}, {{"location", location}, {"offset", offset}, {"length", length}, {"unknown", "x"}}),
        model_.string());
  }

  TestFolder folder_;
  std::filesystem::path root_ = folder_.path(), model_ = root_ / "model";
};

TEST_F(ExternalData, IsReadBelowTheModel) {
  EXPECT_EQ(refusal_at("w.bin"), "");
  EXPECT_EQ(refusal_at("sub/w.bin", "8"), "");
  EXPECT_EQ(refusal_at("./sub/w.bin", "3"), "");
}
TEST_F(ExternalData, IsRefusedOutsideOfTheModel) {
  EXPECT_THAT(refusal_at("../secret.bin"), HasSubstr("leaves its directory"));
  EXPECT_THAT(refusal_at("sub/../../secret.bin"), HasSubstr("leaves its directory"));
  EXPECT_THAT(refusal_at((root_ / "secret.bin").string()), HasSubstr("not a relative path"));
  EXPECT_THAT(refusal_at(""), HasSubstr("no location"));
  EXPECT_THAT(refusal_at("sub"), HasSubstr("regular file"));
  EXPECT_THAT(refusal_at("absent.bin"), HasSubstr("absent.bin"));
}
TEST_F(ExternalData, IsRefusedThroughLinks) {
  std::filesystem::create_symlink(root_ / "secret.bin", model_ / "link.bin");
  std::filesystem::create_directory_symlink(root_, model_ / "up");
  std::filesystem::create_hard_link(root_ / "secret.bin", model_ / "hard.bin");
  EXPECT_THAT(refusal_at("link.bin"), HasSubstr("symbolic link"));
  EXPECT_THAT(refusal_at("up/secret.bin"), HasSubstr("symbolic link"));
  EXPECT_THAT(refusal_at("hard.bin"), HasSubstr("hard links"));
}
TEST_F(ExternalData, OffsetsAndLengthsAreChecked) {
  EXPECT_THAT(refusal_at("w.bin", "17"), HasSubstr("begin at byte 17"));
  EXPECT_THAT(refusal_at("w.bin", "12"), HasSubstr("behind the end"));
  EXPECT_THAT(refusal_at("w.bin", "8", "9223372036854775807"), HasSubstr("behind the end"));
  EXPECT_THAT(refusal_at("w.bin", "-8"), HasSubstr("'-8'"));
  EXPECT_THAT(refusal_at("w.bin", "99999999999999999999"), HasSubstr("is not a size"));
  EXPECT_THAT(refusal_at("w.bin", "zero"), HasSubstr("'zero'"));
  EXPECT_THAT(refusal_at("w.bin", "0", "4"), HasSubstr("8 bytes"));
}
TEST_F(ExternalData, IsFoundBesideAModelThatIsNamedWithoutADirectory) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(model_);
  const Blob model =
      W::model(W::graph({.nodes = {W::node("Add", {"x", "w"}, {"y"})},
                         .initializers = {W::external("w", 1, {2}, {{"location", "w.bin"}, {"length", "8"}})},
                         .inputs = {vector_value("x")},
                         .outputs = {vector_value("y")}}));
  std::ofstream("model.onnx") << model.text();
  const Blob outside = W::model(W::graph({.nodes = {W::node("Add", {"x", "w"}, {"y"})},
                                          .initializers = {W::external("w", 1, {2}, {{"location", "../secret.bin"}})},
                                          .inputs = {vector_value("x")},
                                          .outputs = {vector_value("y")}}));
  std::ofstream("outside.onnx") << outside.text();
  const auto refusal_of_file = [](const std::string& path) {
    return onnx::refusal_by([&] { import_onnx(path, silent_logger()); });
  };
  EXPECT_EQ(refusal_of_file("model.onnx"), "");
  EXPECT_THAT(refusal_of_file("outside.onnx"), HasSubstr("leaves its directory"));
  std::filesystem::current_path(before);
}
TEST_F(ExternalData, LengthsOfOffsetsThatWrapAreRefused) {
  EXPECT_THAT(refusal_at("w.bin", "9223372036854775807", "9223372036854775807"), HasSubstr("begin at byte"));
  EXPECT_THAT(refusal_at("w.bin", "8", "9223372036854775800"), HasSubstr("behind the end"));
  EXPECT_THAT(refusal_at("w.bin", "16", "1"), HasSubstr("behind the end"));
  EXPECT_THAT(refusal_at("w.bin", "0", "-1"), HasSubstr("'-1'"));
}
TEST_F(ExternalData, APipeDoesNotBlock) {
  ASSERT_EQ(::mkfifo((model_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(refusal_at("pipe"), HasSubstr("regular file"));
}
TEST_F(ExternalData, IsRefusedWithoutADirectory) {
  EXPECT_THAT(refusal_of_tensor(W::external("w", 1, {2}, {{"location", "w.bin"}})),
              HasSubstr("not read from a directory"));
}

}  // namespace
}  // namespace hone
