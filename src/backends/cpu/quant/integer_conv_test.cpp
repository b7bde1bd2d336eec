// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of bytes against their meaning, exactly: windows, borders, groups and depths that fill no step or vector, zero points
// at both ends, and everything that may follow the sums on the way to bytes.
#include <fmt/format.h>

#include <random>

#include "backends/cpu/support/tactic_testing.h"

namespace hone::cpu {
namespace {

Tensor random_bytes(DType dtype, Dims dims, uint64_t seed) {
  std::mt19937_64 random(seed);
  const int64_t low = dtype == DType::i8 ? -128 : 0;
  std::vector<int64_t> values(static_cast<size_t>(elements(dims)));
  for (int64_t& value : values) {
    const uint64_t draw = random() % 320;
    value = low + static_cast<int64_t>(draw < 256 ? draw : draw < 288 ? 0 : 255);
  }
  return write_integers(dtype, std::move(dims), values);
}

CheckOptions exactly() {
  CheckOptions options{.tolerance = 0, .rounds = true, .tuned = {{"N", 1}}, .run = {{{"N", 1}}, {{"N", 2}}}};
  options.inputs = [](const Graph& region) {
    std::vector<Tensor> inputs;
    for (const Value* input : region.inputs())
      inputs.push_back(random_bytes(input->type.dtype, input->type.shape.values(), 7 + inputs.size()));
    return inputs;
  };
  return options;
}

struct Window {
  int64_t channels, filters, group, height, width, kernel, stride, dilation, pad;
  std::string text() const {
    return fmt::format("{}x{}x{} to {} in {} groups, {} stride {} dilation {} pad {}", channels, height, width, filters,
                       group, kernel, stride, dilation, pad);
  }
  std::string attrs() const {
    return fmt::format(
        "{{auto_pad=\"NOTSET\", dilations=[{2}, {2}], group={4}, kernel_shape=[{0}, {0}], pads=[{3}, {3}, {3}, {3}], "
        "strides=[{1}, {1}]}}",
        kernel, stride, dilation, pad, group);
  }
};

constexpr Window kWindows[] = {
    {8, 16, 1, 5, 6, 1, 1, 1, 0},   // a matrix in place
    {64, 70, 1, 9, 7, 3, 1, 1, 1},  // taps that follow each other
    {5, 17, 1, 8, 8, 3, 2, 1, 1},   {3, 33, 1, 11, 10, 7, 2, 1, 3}, {12, 10, 2, 7, 9, 3, 1, 2, 2},
    {40, 35, 1, 8, 9, 3, 1, 2, 1},  // on matrix tiles: rows joined, rows of their own, groups, in place, pixels that fill no row
    {70, 16, 1, 7, 33, 3, 2, 1, 1}, {66, 34, 2, 3, 5, 1, 1, 1, 0},  {64, 48, 1, 6, 7, 1, 1, 1, 0},
    {48, 34, 2, 7, 7, 1, 1, 1, 0},  {24, 24, 3, 6, 6, 1, 2, 1, 0},  {16, 4, 4, 4, 5, 2, 1, 1, 0},
};
constexpr Window kDepthwise[] = {
    {16, 16, 16, 6, 7, 3, 1, 1, 1}, {64, 64, 64, 5, 5, 5, 2, 1, 2},
    {70, 70, 70, 7, 6, 3, 1, 2, 2}, {24, 24, 24, 5, 21, 3, 1, 1, 1},  // several pixels together
    {3, 3, 3, 9, 9, 2, 1, 1, 0},    {139, 139, 139, 4, 4, 3, 1, 1, 1},
};

enum class Zero { none, first, last, given };

std::string sums_text(const Window& w, DType x, DType weights, Zero zero, bool weight_zeros) {
  const int64_t low = x == DType::i8 ? -128 : 0;
  std::string text =
      fmt::format("(%x: {0}[N,{1},{2},{3}]{4}) {{\n %w = constant {5}[{6},{7},{8},{8}]!05\n", name_of(x), w.channels,
                  w.height, w.width, zero == Zero::given ? fmt::format(", %z: {}[]", name_of(x)) : "", name_of(weights),
                  w.filters, w.channels / w.group, w.kernel);
  if (zero == Zero::first || zero == Zero::last)
    text += fmt::format(" %z = constant {}[]{{{}}}\n", name_of(x), low + (zero == Zero::last ? 255 : 0));
  if (weight_zeros) text += fmt::format(" %v = constant {}[{}]!06\n", name_of(weights), w.filters);
  return text + fmt::format(" %sums = ConvInteger(%x, %w, {}, {}) {}\n", zero == Zero::none ? "_" : "%z",
                            weight_zeros ? "%v" : "_", w.attrs());
}

int check(const std::string& text, const char* family) { return check_tactics(text, family, exactly()); }

/// All 32 ways of the first window, and of each other one every eighth, another one each.
template <size_t N>
void check_sums(const Window (&windows)[N], const char* family) {
  constexpr Zero kZeros[] = {Zero::none, Zero::first, Zero::last, Zero::given};
  for (size_t i = 0; i < N; ++i)
    for (size_t way = i; way < 32 + i; way += i == 0 ? 1 : 8) {
      const DType x = way % 2 == 0 ? DType::u8 : DType::i8, weights = way / 2 % 2 == 0 ? DType::u8 : DType::i8;
      const std::string text = sums_text(windows[i], x, weights, kZeros[way / 8 % 4], way / 4 % 2 == 1);
      EXPECT_GT(check(text + " return %sums\n}", family), 0) << windows[i].text();
    }
}

TEST(IntegerConv, SumsAreExactForAllTypesAndZeroPoints) { check_sums(kWindows, "integer_conv"); }

TEST(IntegerDepthwise, SumsAreExactForAllTypesAndZeroPoints) { check_sums(kDepthwise, "integer_depthwise"); }

/// Scales at which results cover a byte's range and beyond.
std::string scaled_text(const Window& w, DType x) {
  return sums_text(w, x, DType::i8, Zero::last, false) +
         fmt::format(
             " %i = constant i32[{0},1,1]!07\n %t = Add(%sums, %i)\n %f = Cast(%t) {{to=\"f32\"}}\n"
             " %s = constant f32[{0},1,1]!08\n %y = Mul(%f, %s)\n",
             w.filters);
}
struct Bytes {
  const char* type;
  int zero;
};

/// What about two thirds of the results do not saturate at.
double step_of_results(const Window& w) {
  return 91.7 * std::sqrt(static_cast<double>(w.channels / w.group * w.kernel * w.kernel));
}

std::string to_bytes(const Window& w, const Bytes& bytes, const char* value) {
  return fmt::format(
      " %ys = constant f32[]{{{}}}\n %yz = constant {}[]{{{}}}\n %q = QuantizeLinear({}, %ys, %yz) {{axis=1}}\n"
      " return %q\n}}",
      step_of_results(w), bytes.type, bytes.zero, value);
}

constexpr Bytes kBytes[] = {{"u8", 0}, {"u8", 131}, {"i8", 0}, {"i8", -128}, {"i8", 127}};

/// Each window with another two of the types.
void check_bytes(const Window& window, const char* family) {
  static size_t turn = 0;
  ++turn;
  for (const Bytes& bytes : {kBytes[turn % std::size(kBytes)], kBytes[(turn + 2) % std::size(kBytes)]})
    for (const char* activation :
         {"", "Relu(%y)", "Clamp(%y) {max=8000.0, min=-3000.0}", "LeakyRelu(%y) {alpha=0.25}"}) {
      const bool plain = *activation == '\0';
      const std::string text = scaled_text(window, DType::u8) +
                               (plain ? std::string() : fmt::format(" %a = {}\n", activation)) +
                               to_bytes(window, bytes, plain ? "%y" : "%a");
      EXPECT_GT(check(text, family), 0) << window.text() << activation;
    }
}

TEST(IntegerConv, BytesAreExact) {
  for (const Window& window : kWindows) check_bytes(window, "integer_conv");
}

TEST(IntegerDepthwise, BytesAreExact) {
  for (const Window& window : kDepthwise) check_bytes(window, "integer_depthwise");
}

TEST(IntegerConv, AddsBytesBehindARoundingOfItsOwn) {
  const Window window{12, 19, 1, 5, 7, 3, 1, 1, 1};
  for (const char* residual : {"u8", "i8"})
    for (const bool rounds : {false, true})
      for (const bool early : {false, true}) {
        std::string text = scaled_text(window, DType::i8);
        text.replace(text.find(") {"), 3, fmt::format(", %r: {}[N,19,5,7]) {{", residual));
        text += fmt::format(
            " %rs = constant f32[]{{1151.3}}\n %rz = constant {}[]{{100}}\n"
            " %rf = DequantizeLinear(%r, %rs, %rz) {{axis=1}}\n",
            residual);
        if (early) text += " %e = Relu(%y)\n";
        const char* before = early ? "%e" : "%y";
        if (rounds)
          text += fmt::format(
              " %ms = constant f32[]{{1217.9}}\n %mz = constant i8[]{{-3}}\n"
              " %mq = QuantizeLinear({}, %ms, %mz) {{axis=1}}\n"
              " %m = DequantizeLinear(%mq, %ms, %mz) {{axis=1}}\n",
              before);
        text += fmt::format(" %added = Add({}, %rf)\n", rounds ? "%m" : before);
        if (!early) text += " %a = Relu(%added)\n";
        text += to_bytes(window, {"u8", 3}, early ? "%added" : "%a");
        EXPECT_GT(check(text, "integer_conv"), 0) << text;
      }
}

}  // namespace
}  // namespace hone::cpu
