// SPDX-License-Identifier: Apache-2.0
//
// The backend between a server of the tests and Hone: random requests, wrong ones beside right ones, cancelled ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>

#include "hone/hone.hpp"
#include "hone/network.hpp"
#include "hone/tools.h"
#include "triton/fake_server_testing.h"

namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 3> kWords = {"nought", "", "zw\xc3\xb6lf"};

/// y = table[k] + x, word = the word of s, z = the number that t says, by rows: x [n,4], k [n], s and t [n] of texts.
void save_plan(const fs::path& path) {
  hone::Network network;
  std::vector<float> table(40);
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i);
  network.add_input("x", HONE_F32, {-1, 4}, {"n", ""});
  network.add_input("k", HONE_I64, {-1}, {"n"});
  network.add_input("s", HONE_STRING, {-1}, {"n"});
  network.add_input("t", HONE_STRING, {-1}, {"n"});
  network.add_constant("table", hone::Value::tensor<float>({10, 4}, std::span<const float>(table)));
  network.add_node("Gather", {"table", "k"}, {"row"});
  network.add_node("Add", {"row", "x"}, {"y"});
  const std::vector<std::string> words(kWords.begin(), kWords.end()), backwards(kWords.rbegin(), kWords.rend());
  network.add_node("LabelEncoder", {"s"}, {"number"}, {{"classes_strings", words}}, {}, "ai.onnx.ml");
  network.add_node("LabelEncoder", {"number"}, {"word"}, {{"classes_strings", backwards}}, {}, "ai.onnx.ml");
  network.add_node("Cast", {"t"}, {"z"}, {{"to", int64_t{7}}});
  network.mark_output("y");
  network.mark_output("z");
  network.mark_output("word");
  const hone::Device device("cpu/1");
  const hone::Options options({"--minShapes=x:1x4,k:1,s:1,t:1", "--optShapes=x:2x4,k:2,s:2,t:2",
                               "--maxShapes=x:8x4,k:8,s:8,t:8", "--builderOptimizationLevel=0"});
  hone::Plan::build(network.model(), device, options).save(path.string());
}

std::string packed(const std::vector<std::string>& texts) {
  std::string bytes;
  for (const std::string& text : texts) {
    const auto length = static_cast<uint32_t>(text.size());
    bytes.append(reinterpret_cast<const char*>(&length), sizeof length).append(text);
  }
  return bytes;
}

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// The right answer, and whether there is one.
struct Expected {
  std::vector<float> y;
  std::vector<int64_t> z;
  std::string word;
  bool right = true;
};

class Backend : public testing::Test {
 protected:
  Backend() {
    char name[] = "/tmp/hone-triton-XXXXXX";
    folder_ = mkdtemp(name);
    fs::create_directories(folder_ / "1");
    save_plan(folder_ / "1" / "model.hone");
    must(TRITONBACKEND_Initialize(&backend_));
    model_.backend = &backend_;
    model_.name = "words";
    model_.folder = folder_.string();
    model_.config = R"({"max_batch_size":0,"input":[],"output":[],"instance_group":[{"kind":"KIND_CPU","count":2}]})";
    instance_.model = &model_;
  }
  ~Backend() override {
    if (instance_.state != nullptr) must(TRITONBACKEND_ModelInstanceFinalize(&instance_));
    if (model_.state != nullptr) must(TRITONBACKEND_ModelFinalize(&model_));
    must(TRITONBACKEND_Finalize(&backend_));
    fs::remove_all(folder_);
  }
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  static void must(TRITONSERVER_Error* error) {
    if (error == nullptr) return;
    ADD_FAILURE() << error->text;
    delete error;
  }
  static std::string text_of(TRITONSERVER_Error* error) {
    std::string text = error == nullptr ? "" : error->text;
    delete error;
    return text;
  }
  void load() {
    must(TRITONBACKEND_ModelInitialize(&model_));
    must(TRITONBACKEND_ModelInstanceInitialize(&instance_));
  }
  void execute(std::vector<TRITONBACKEND_Request>& requests) {
    std::vector<TRITONBACKEND_Request*> pointers;
    for (TRITONBACKEND_Request& request : requests) pointers.push_back(&request);
    must(TRITONBACKEND_ModelInstanceExecute(&instance_, pointers.data(), static_cast<uint32_t>(pointers.size())));
  }

  TRITONBACKEND_Request request(int64_t rows, Expected& expected) {
    std::vector<float> x;
    std::vector<int64_t> k;
    std::vector<std::string> s, numbers, words;
    for (int64_t row = 0; row < rows; ++row) {
      k.push_back(pick(10));
      expected.z.push_back(pick(1000));
      numbers.push_back(std::to_string(expected.z.back()));
      const auto word = static_cast<size_t>(pick(3));
      s.emplace_back(kWords[word]);
      words.emplace_back(kWords[2 - word]);
      for (int64_t i = 0; i < 4; ++i) {
        x.push_back(static_cast<float>(pick(100)));
        expected.y.push_back(x.back() + static_cast<float>(k.back() * 4 + i));
      }
    }
    expected.word = packed(words);
    TRITONBACKEND_Request request;
    request.inputs["x"] = {TRITONSERVER_TYPE_FP32, {rows, 4}, {bytes_of(x)}, 0, TRITONSERVER_MEMORY_CPU, {}};
    request.inputs["k"] = {TRITONSERVER_TYPE_INT64, {rows}, {bytes_of(k)}, 0, TRITONSERVER_MEMORY_CPU, {}};
    request.inputs["s"] = {TRITONSERVER_TYPE_BYTES, {rows}, {packed(s)}, 0, TRITONSERVER_MEMORY_CPU, {}};
    request.inputs["t"] = {TRITONSERVER_TYPE_BYTES, {rows}, {packed(numbers)}, 0, TRITONSERVER_MEMORY_CPU, {}};
    request.wanted = {"y", "z", "word"};
    return request;
  }

  /// Right requests in several pieces at odd addresses.
  void scatter(TRITONBACKEND_Request& request) {
    for (auto& [name, input] : request.inputs) {
      const std::string all = input.buffers[0];
      const auto cut = static_cast<size_t>(pick(static_cast<int64_t>(all.size()) + 1));
      if (pick(2) == 0) input.buffers = {all.substr(0, cut), all.substr(cut)};
      input.offset = static_cast<size_t>(std::array<int, 4>{0, 1, 4, 16}[static_cast<size_t>(pick(4))]);
    }
  }

  /// Makes one thing of the request wrong.
  void spoil(TRITONBACKEND_Request& request) {
    TRITONBACKEND_Input& x = request.inputs["x"];
    switch (pick(9)) {
      case 0: x.type = TRITONSERVER_TYPE_FP64; break;
      case 1: x.dims = {x.dims[0]}; break;
      case 2: x.dims = {0, 4}; break;
      case 3: x.buffers.back() += '\0'; break;
      case 4: x.dims[1] = -4; break;
      case 5: request.inputs.erase("k"); break;
      case 6: request.inputs["s"].buffers = {"\xff\xff\xff\xff"}; break;
      case 7: request.cancelled = true; break;
      default: x.kind = TRITONSERVER_MEMORY_GPU; break;
    }
  }

  int64_t pick(int64_t count) { return std::uniform_int_distribution<int64_t>(0, count - 1)(random_); }

  static void expect_answer(const TRITONBACKEND_Request& request, const Expected& expected) {
    EXPECT_EQ(request.answers, 1);
    EXPECT_EQ(request.releases, 1);
    EXPECT_EQ(request.error.empty(), expected.right) << request.error;
    if (!expected.right) return;
    const std::map<std::string, std::string> right = {
        {"y", bytes_of(expected.y)}, {"z", bytes_of(expected.z)}, {"word", expected.word}};
    for (const std::string& name : request.wanted) EXPECT_EQ(request.outputs.at(name).bytes, right.at(name)) << name;
    EXPECT_EQ(request.outputs.size(), request.wanted.size());
  }

  fs::path folder_;
  TRITONBACKEND_Backend backend_;
  TRITONBACKEND_Model model_;
  TRITONBACKEND_ModelInstance instance_;
  std::mt19937_64 random_{1};
};

TEST_F(Backend, AnswersAThousandRandomRequestsEachWithItsOwn) {
  const char* given = std::getenv("HONE_FUZZ_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  RecordProperty("seed", std::to_string(seed));
  SCOPED_TRACE("HONE_FUZZ_SEED=" + std::to_string(seed));
  random_.seed(seed);
  load();
  for (int done = 0; done < 1000;) {
    std::vector<TRITONBACKEND_Request> requests;
    std::vector<Expected> expected;
    for (int64_t left = 1 + pick(4); left > 0; --left, ++done) {
      Expected& answer = expected.emplace_back();
      TRITONBACKEND_Request& request = requests.emplace_back(this->request(1 + pick(2), answer));
      scatter(request);
      if (pick(3) == 0) request.wanted.resize(static_cast<size_t>(pick(4)));
      if (pick(4) != 0) continue;
      spoil(request);
      answer.right = false;
    }
    execute(requests);
    for (size_t i = 0; i < requests.size(); ++i) expect_answer(requests[i], expected[i]);
    if (HasFailure()) return;
  }
  EXPECT_LT(instance_.inferences, instance_.reported - instance_.failed) << "nothing was put together";
}

TEST_F(Backend, ABadRowDoesNotSpoilThoseBesideIt) {
  load();
  std::vector<Expected> expected(3);
  std::vector<TRITONBACKEND_Request> requests;
  for (Expected& answer : expected) requests.push_back(request(2, answer));
  requests[1].inputs["t"].buffers = {packed({"7", "seven"})};
  expected[1].right = false;
  execute(requests);
  for (size_t i = 0; i < 3; ++i) expect_answer(requests[i], expected[i]);
  EXPECT_EQ(instance_.failed, 1U);
}

TEST_F(Backend, CancelledRequestsAreAnsweredSo) {
  load();
  std::vector<Expected> expected(2);
  std::vector<TRITONBACKEND_Request> requests = {request(1, expected[0]), request(1, expected[1])};
  requests[0].cancelled = true;
  expected[0].right = false;
  execute(requests);
  EXPECT_EQ(requests[0].code, TRITONSERVER_ERROR_CANCELLED);
  for (size_t i = 0; i < 2; ++i) expect_answer(requests[i], expected[i]);
  EXPECT_EQ(instance_.rows, 1U);
}

TEST_F(Backend, MoreRowsThanTheProfilesTakeAreRefused) {
  load();
  std::vector<Expected> expected(1);
  std::vector<TRITONBACKEND_Request> requests = {request(9, expected[0])};
  expected[0].right = false;
  execute(requests);
  expect_answer(requests[0], expected[0]);
  EXPECT_NE(requests[0].error.find('9'), std::string::npos) << requests[0].error;
}

TEST_F(Backend, CompletesTheConfiguration) {
  must(TRITONBACKEND_ModelInitialize(&model_));
  for (const char* part : {R"("max_batch_size":8)", R"("preferred_batch_size":[2,8])", R"("data_type":"TYPE_STRING")",
                           R"({"name":"k","data_type":"TYPE_INT64","dims":[1],"reshape":{"shape":[]}})"})
    EXPECT_NE(model_.config.find(part), std::string::npos) << part << " in " << model_.config;
}

TEST_F(Backend, TellsHowManyInstancesThePlanWasMeasuredToDoMostWith) {
  const auto told = [&](int streams) {
    const std::string file = (folder_ / "1" / "model.hone").string();
    auto found = hone::detail::sized<hone_throughput>();
    found.streams = streams;
    found.workers = 3;
    found.rows = 1;
    found.rows_per_second = found.median_ms = found.p99_ms = 1;
    hone_plan* made = nullptr;
    hone::check(hone_plan_create_with_throughput(hone::Plan::load(file).get(), &found, &made));
    hone::check(hone_plan_save(made, file.c_str()));
    hone_plan_destroy(made);
    logged.clear();
    must(TRITONBACKEND_ModelInitialize(&model_));
    must(TRITONBACKEND_ModelFinalize(&model_));
    model_.state = nullptr;
    return std::ranges::any_of(logged, [](const std::string& line) {
      return line.find("instance_group { count: 5 kind: KIND_CPU }") != std::string::npos;
    });
  };
  EXPECT_FALSE(told(2)) << "that is how many the configuration has";
  EXPECT_TRUE(told(5));
}

TEST_F(Backend, RefusesModelsThatItCannotServeWithASentence) {
  const std::string right = model_.config;
  const auto refused = [&](const std::string& config) {
    model_.config = config;
    return text_of(TRITONBACKEND_ModelInitialize(&model_));
  };
  EXPECT_NE(refused(R"({"max_batch_size":64})").find("the plan takes at most 8"), std::string::npos);
  EXPECT_NE(refused(R"({"default_model_filename":"other.plan"})").find("holds no other.plan"), std::string::npos);
  EXPECT_NE(refused(R"({"max_batch_size":8,"output":[{"name":"none"}]})").find("none of that name"), std::string::npos);
  EXPECT_NE(refused("{"), "");
  fs::resize_file(folder_ / "1" / "model.hone", 1000);
  EXPECT_NE(refused(right).find("model.hone: "), std::string::npos);
  EXPECT_EQ(model_.state, nullptr);
}

TEST_F(Backend, RefusesAnInstanceOnTheWrongKindOfDevice) {
  must(TRITONBACKEND_ModelInitialize(&model_));
  instance_.kind = TRITONSERVER_INSTANCEGROUPKIND_GPU;
  EXPECT_NE(text_of(TRITONBACKEND_ModelInstanceInitialize(&instance_)), "");
}

}  // namespace
