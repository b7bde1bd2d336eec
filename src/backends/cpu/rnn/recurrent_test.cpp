// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include "backends/cpu/support/tactic_testing.h"

namespace hone::cpu {
namespace {

const CheckOptions kSizes{.tolerance = 2e-5,
                          .seed = 13,
                          .tuned = {{"N", 2}, {"T", 5}},
                          .run = {{{"N", 2}, {"T", 5}}, {{"N", 1}, {"T", 1}}, {{"N", 11}, {"T", 3}}}};

struct Layer {
  std::string op = "LSTM", attrs = {}, direction = "forward";
  int width = 7, hidden = 19;
  bool bias = true, states = false, peepholes = false, lengths = false;
  std::string results = "%y, %h", wanted = "%y, %h";

  int check(CheckOptions options = kSizes) const {
    const int gates = op == "LSTM" ? 4 : op == "GRU" ? 3 : 1, d = direction == "bidirectional" ? 2 : 1;
    std::string text = fmt::format("(%x: f32[T,N,{}]{}{}{}) {{\n", width, lengths ? ", %len: i32[N]" : "",
                                   states ? fmt::format(", %h0: f32[{},N,{}]", d, hidden) : "",
                                   states && op == "LSTM" ? fmt::format(", %c0: f32[{},N,{}]", d, hidden) : "");
    const auto constant = [&](const char* name, std::string dims, int seed) {
      text += fmt::format(" %{} = constant f32[{}]!{:016x}{:016x}\n", name, dims, seed, seed);
    };
    constant("w", fmt::format("{},{},{}", d, gates * hidden, width), 1);
    constant("r", fmt::format("{},{},{}", d, gates * hidden, hidden), 2);
    if (bias) constant("b", fmt::format("{},{}", d, 2 * gates * hidden), 3);
    if (peepholes) constant("p", fmt::format("{},{}", d, 3 * hidden), 4);
    std::string operands =
        fmt::format("%x, %w, %r, {}, {}, {}", bias ? "%b" : "_", lengths ? "%len" : "_", states ? "%h0" : "_");
    if (op == "LSTM") operands += fmt::format(", {}, {}", states ? "%c0" : "_", peepholes ? "%p" : "_");
    text += fmt::format(" {} = {}({}) {{direction=\"{}\"{}}}\n return {}\n}}", results, op, operands, direction,
                        attrs.empty() ? "" : ", " + attrs, wanted);
    options.inputs = [&](const Graph& graph) {
      std::vector<Tensor> tensors = random_inputs(graph, 5);
      if (lengths)
        tensors[1] = random_tensor(DType::i32, tensors[1].dims(), 6, 0, static_cast<double>(tensors[0].dims()[0]) + 1);
      return tensors;
    };
    return check_tactics(text, "recurrent", options);
  }
};

TEST(RecurrentTactic, EveryCellInEveryDirection) {
  for (const char* direction : {"forward", "reverse", "bidirectional"}) {
    EXPECT_GT((Layer{.direction = direction, .states = true, .results = "%y, %h, %c", .wanted = "%y, %h, %c"}.check()),
              0);
    for (const bool states : {false, true}) {
      EXPECT_GT((Layer{.op = "RNN", .direction = direction, .states = states}.check()), 0);
      for (const int late : {0, 1})
        EXPECT_GT((Layer{.op = "GRU",
                         .attrs = fmt::format("linear_before_reset={}", late),
                         .direction = direction,
                         .states = states}
                       .check()),
                  0);
    }
  }
}

TEST(RecurrentTactic, SequencesOfTheirOwnLengths) {
  for (const char* direction : {"forward", "bidirectional"}) {
    EXPECT_GT(
        (Layer{.direction = direction, .states = true, .lengths = true, .results = "%y, %h, %c", .wanted = "%y, %h, %c"}
             .check()),
        0);
    EXPECT_GT((Layer{.op = "RNN", .direction = direction, .states = true, .lengths = true}.check()), 0);
    for (const int late : {0, 1})
      EXPECT_GT((Layer{.op = "GRU",
                       .attrs = fmt::format("linear_before_reset={}", late),
                       .direction = direction,
                       .lengths = true}
                     .check()),
                0);
  }
}

TEST(RecurrentTactic, PeepholesCouplingAndClip) {
  EXPECT_GT(
      (Layer{.direction = "bidirectional", .peepholes = true, .results = "%y, %h, %c", .wanted = "%c, %y"}.check()), 0);
  EXPECT_GT((Layer{.attrs = "input_forget=1, clip=0.25", .states = true, .peepholes = true}.check()), 0);
  EXPECT_GT((Layer{.op = "GRU", .attrs = "clip=0.125"}.check()), 0);
}

TEST(RecurrentTactic, SizesAroundABlockOfUnits) {
  for (const int hidden : {1, 8, 16, 17, 48, 100})
    for (const char* op : {"LSTM", "GRU", "RNN"})
      EXPECT_GT((Layer{.op = op, .direction = "bidirectional", .width = 33, .hidden = hidden, .bias = false}.check()),
                0);
  EXPECT_GT((Layer{.results = "%y", .wanted = "%y"}.check()), 0);
  EXPECT_GT((Layer{.results = "%y, %h", .wanted = "%h"}.check()), 0);
}

TEST(RecurrentTactic, EveryActivation) {
  for (const char* name : {"Sigmoid", "Tanh", "Relu", "HardSigmoid", "LeakyRelu", "ThresholdedRelu", "ScaledTanh",
                           "Affine", "Elu", "Softsign", "Softplus"})
    for (const char* parameters : {"", ", activation_alpha=[0.75, 0.5], activation_beta=[0.25, 0.125]"})
      EXPECT_GT((Layer{.op = "RNN",
                       .attrs = fmt::format("activations=[\"{0}\", \"{0}\"]{1}", name, parameters),
                       .direction = "bidirectional",
                       .hidden = 5}
                     .check()),
                0)
          << name;
}

}  // namespace
}  // namespace hone::cpu
