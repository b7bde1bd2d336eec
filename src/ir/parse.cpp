// SPDX-License-Identifier: Apache-2.0
//
// Reads the text form that print.cpp writes; also accepts what people write by hand: numbers as operands, comments
// after #, and no `return` (the last node's results are then the outputs).
#include <algorithm>
#include <cctype>
#include <unordered_map>

#include "base/hash.h"
#include "base/limits.h"
#include "base/numbers.h"
#include "base/text.h"
#include "ir/op.h"
#include "ir/text.h"

namespace hone {
namespace {

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  [[noreturn]] void fail(const std::string& what) const {
    const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
    throw Error(fmt::format("line {} of the graph text: {}", line, what), "the form is described in src/ir/print.cpp");
  }
  void blanks() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#')
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      else if (std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
      else return;
    }
  }
  bool at_end() {
    blanks();
    return at_ == text_.size();
  }
  char peek() {
    blanks();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(std::string_view token) {
    blanks();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) fail(fmt::format("'{}' expected before '{}'", token, text_.substr(at_, 20)));
  }
  std::string_view word(std::string_view extra = "_") {
    blanks();
    const size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
                                  extra.find(text_[at_]) != std::string_view::npos))
      ++at_;
    return text_.substr(start, at_ - start);
  }
  std::string_view until(char end) {
    const size_t start = at_, stop = text_.find(end, at_);
    if (stop == std::string_view::npos) fail(fmt::format("'{}' is missing", end));
    at_ = stop + 1;
    return text_.substr(start, stop - start);
  }
  std::string quoted() {
    expect("\"");
    std::string result;
    while (true) {
      if (at_ >= text_.size()) fail("a text is not closed");
      const char c = text_[at_++];
      if (c == '"') return result;
      if (c != '\\') {
        result += c;
        continue;
      }
      if (at_ >= text_.size()) fail("a text is not closed");
      const char escaped = text_[at_++];
      if (escaped == 'n') result += '\n';
      else if (escaped == 'x' && at_ + 2 <= text_.size()) {
        result += static_cast<char>(std::strtol(std::string(text_.substr(at_, 2)).c_str(), nullptr, 16));
        at_ += 2;
      } else result += escaped;
    }
  }
  /// A number's text: digits, sign, point, exponent, inf, nan.
  std::string_view number() {
    blanks();
    const size_t start = at_;
    if (at_ < text_.size() && text_[at_] == '-') ++at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool sign = (c == '-' || c == '+') && at_ > start && text_[at_ - 1] == 'e';
      if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && !sign) break;
      ++at_;
    }
    return text_.substr(start, at_ - start);
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

Shape parse_shape(std::string_view text) {
  std::vector<Dim> dims;
  if (trim(text).empty()) return Shape();
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      dims.push_back(Dim::parse(trim(text.substr(start, i - start))));
      start = i + 1;
    } else if (text[i] == '(') ++depth;
    else if (text[i] == ')') --depth;
  }
  return Shape(std::move(dims));
}

class Parser {
 public:
  Parser(Lexer& lexer, const OpLookup& lookup, std::span<const Tensor> data, int nesting)
      : lexer_(lexer), lookup_(lookup), data_(data), nesting_(nesting) {}

  Graph graph() {
    if (nesting_ > kMaxNesting) lexer_.fail(fmt::format("graphs are nested deeper than {}", kMaxNesting));
    lexer_.expect("(");
    while (!lexer_.take(")")) {
      const std::string name = value_name();
      lexer_.expect(":");
      if (values_.contains(name)) lexer_.fail("%" + name + " is defined twice");
      values_[name] = graph_.add_input(name, type());
      lexer_.take(",");
    }
    lexer_.expect("{");
    while (!lexer_.take("}")) statement();
    if (!returned_) graph_.set_outputs(last_ == nullptr ? std::vector<Value*>() : last_->outputs);
    return std::move(graph_);
  }

 private:
  std::string value_name() {
    lexer_.expect("%");
    if (lexer_.peek() == '"') return lexer_.quoted();
    std::string name(lexer_.word("_./"));
    if (name.empty()) lexer_.fail("a value's name is missing after %");
    return name;
  }

  TensorType type() {
    const std::string_view name = lexer_.word();
    const std::optional<DType> dtype = parse_dtype(name);
    if (!dtype) lexer_.fail(fmt::format("'{}' is not an element type", name));
    if (*dtype == DType::sequence || *dtype == DType::optional) {
      if (nesting_ > kMaxNesting) lexer_.fail("a type is nested too deeply");
      lexer_.expect("<");
      ++nesting_;
      TensorType element = type();
      --nesting_;
      lexer_.expect(">");
      return container_of(*dtype, std::move(element));
    }
    if (*dtype == DType::map) return map_type();
    lexer_.expect("[");
    if (lexer_.take("*")) {
      lexer_.expect("]");
      return unranked(*dtype);
    }
    TensorType result{*dtype, parse_shape(lexer_.until(']')), Layout::linear};
    if (lexer_.take("@")) {
      const std::optional<Layout> layout = parse_layout(lexer_.word());
      if (!layout) lexer_.fail("unknown layout");
      result.layout = *layout;
    }
    return result;
  }

  TensorType map_type() {
    lexer_.expect("<");
    const std::optional<DType> key = parse_dtype(lexer_.word());
    lexer_.expect(",");
    const std::optional<DType> value = parse_dtype(lexer_.word());
    if ((key != DType::i64 && key != DType::string) || !value || is_container(*value))
      lexer_.fail("a map goes from i64 or string to single values");
    for (const char* token : {"[", "]", ">"}) lexer_.expect(token);
    return map_of(*key, *value);
  }

  void statement() {
    if (lexer_.at_end()) lexer_.fail("'}' is missing");
    if (lexer_.take("return")) {
      std::vector<Value*> outputs;
      do outputs.push_back(known(value_name()));
      while (lexer_.take(","));
      graph_.set_outputs(std::move(outputs));
      returned_ = true;
      return;
    }
    std::vector<std::string> names;
    do names.push_back(value_name());
    while (lexer_.take(","));
    lexer_.expect("=");
    const std::string word(lexer_.word("_.:-"));  // "com.acme::Scale": an operator of a program
    if (word == "constant") {
      define(names.at(0), graph_.add_constant(constant(), names[0]));
      return;
    }
    node(names, word);
  }

  void node(const std::vector<std::string>& names, const std::string& op_name) {
    const OpDef* op = lookup_(op_name);
    if (op == nullptr) lexer_.fail("unknown operator " + op_name);
    std::vector<Value*> inputs = operands();
    Attrs attrs;
    if (lexer_.take("{")) attrs = attributes();
    const std::string name = lexer_.peek() == '"' ? lexer_.quoted() : "";
    std::vector<std::string> origin;
    if (lexer_.peek() == '[')
      if (AttrValue list = value(); std::holds_alternative<std::vector<std::string>>(list))
        origin = std::get<std::vector<std::string>>(list);
    std::vector<std::unique_ptr<Graph>> bodies;
    while (lexer_.peek() == '(')
      bodies.push_back(std::make_unique<Graph>(Parser(lexer_, lookup_, data_, nesting_ + 1).graph()));
    last_ = with_note(
        [&] { return fmt::format("reading node %{} ({})", names[0], op_name); },
        [&] { return graph_.add(*op, std::move(inputs), std::move(attrs), name, names.size(), std::move(bodies)); });
    last_->origin = std::move(origin);
    for (size_t i = 0; i < names.size(); ++i) {
      last_->outputs[i]->name = names[i];
      define(names[i], last_->outputs[i]);
    }
  }

  std::vector<Value*> operands() {
    lexer_.expect("(");
    std::vector<Value*> inputs;
    std::vector<std::pair<size_t, double>> literals;
    while (!lexer_.take(")")) {
      if (lexer_.peek() == '%') inputs.push_back(known(value_name()));
      else if (lexer_.take("_")) inputs.push_back(nullptr);
      else {
        const std::string_view text = lexer_.number();
        const std::optional<double> number = parse_real(text);
        if (!number) lexer_.fail(fmt::format("'{}' is neither a value nor a number", text));
        literals.emplace_back(inputs.size(), *number);
        inputs.push_back(nullptr);
      }
      lexer_.take(",");
    }
    DType dtype = DType::f32;  // a literal takes the type of the first named operand
    for (const Value* input : inputs)
      if (input != nullptr) {
        dtype = input->type.dtype;
        break;
      }
    for (const auto& [index, number] : literals) inputs[index] = graph_.add_constant(scalar(dtype, number));
    return inputs;
  }

  static Tensor scalar(DType dtype, double number) {
    TensorBuilder builder(dtype, {});
    store(builder, 0, exact(number));
    return builder.finish();
  }

  static void store(TensorBuilder& builder, size_t index, std::string_view text) {
    if (is_small(builder.dtype())) {
      builder.codes()[index] = float_to_small(builder.dtype(), static_cast<float>(parse_real(text).value_or(0)));
      return;
    }
    visit(builder.dtype(), [&]<typename T>() {
      T& out = builder.data<T>()[index];
      if constexpr (std::is_same_v<T, uint64_t>) out = std::strtoull(std::string(text).c_str(), nullptr, 10);
      else if constexpr (std::is_same_v<T, bool>) out = parse_real(text).value_or(0) != 0;
      else if constexpr (std::is_integral_v<T>) {
        const std::optional<int64_t> whole = parse_integer(text);
        out = static_cast<T>(whole ? *whole : saturated<int64_t>(parse_real(text).value_or(0)));
      } else if constexpr (std::is_same_v<T, double>) out = parse_real(text).value_or(0);
      else out = T(static_cast<float>(parse_real(text).value_or(0)));
    });
  }

  Tensor constant() {
    const TensorType constant_type = type();
    if (!constant_type.shape.is_static()) lexer_.fail("a constant has a symbolic size");
    const Dims dims = constant_type.shape.values();
    if (lexer_.take("$")) {
      const std::optional<int64_t> index = parse_integer(lexer_.number());
      if (!index || *index < 0 || *index >= static_cast<int64_t>(data_.size()))
        lexer_.fail("a constant refers to data that is not there");
      const Tensor& tensor = data_[static_cast<size_t>(*index)];
      if (tensor.type() != constant_type) lexer_.fail("a constant's data has another type");
      return tensor;
    }
    if (lexer_.take("!")) {
      const std::string hash(lexer_.word());
      if (lexer_.take("*")) {
        const DType codes = lexer_.take("f8e4m3fn*") ? DType::f8e4m3fn : DType::i8;
        const double step = parse_real(lexer_.number()).value_or(0);
        return random_steps(constant_type.dtype, dims, hash64(hash), step, codes);
      }
      const bool integer = !is_float(constant_type.dtype);
      return random_tensor(constant_type.dtype, dims, hash64(hash), integer ? 0 : -1, integer ? 2 : 1);
    }
    if (constant_type.dtype == DType::string) {
      AttrValue list = value();
      return Tensor::of_strings(dims, std::get<std::vector<std::string>>(list));
    }
    lexer_.expect("{");
    TensorBuilder builder(constant_type.dtype, dims);
    const auto count = static_cast<size_t>(elements(dims));
    for (size_t i = 0; i < count; ++i) {
      if (i > 0) lexer_.expect(",");
      store(builder, i, lexer_.number());
    }
    lexer_.expect("}");
    return builder.finish();
  }

  Attrs attributes() {
    Attrs attrs;
    while (!lexer_.take("}")) {
      const std::string name(lexer_.word());
      lexer_.expect("=");
      attrs.set(name, value());
      lexer_.take(",");
    }
    return attrs;
  }

  AttrValue value() {
    if (lexer_.peek() == '"') return lexer_.quoted();
    if (lexer_.take("reals[]")) return std::vector<double>();
    if (lexer_.take("texts[]")) return std::vector<std::string>();
    if (lexer_.take("[")) return list();
    if (lexer_.take("tensor ")) return constant();
    return number();
  }

  AttrValue number() {
    const std::string_view text = lexer_.number();
    if (const std::optional<int64_t> whole = parse_integer(text)) return *whole;
    const std::optional<double> real = parse_real(text);
    if (!real) lexer_.fail(fmt::format("'{}' is not a value", text));
    return *real;
  }

  AttrValue list() {
    std::vector<AttrValue> items;
    while (!lexer_.take("]")) {
      items.push_back(lexer_.peek() == '"' ? AttrValue(lexer_.quoted()) : number());
      lexer_.take(",");
    }
    const auto all = [&]<typename T>() -> std::optional<std::vector<T>> {
      std::vector<T> values;
      for (const AttrValue& item : items) {
        if (const T* typed = std::get_if<T>(&item)) values.push_back(*typed);
        else if (std::is_same_v<T, double> && std::holds_alternative<int64_t>(item)) {
          if constexpr (std::is_same_v<T, double>) values.push_back(static_cast<double>(std::get<int64_t>(item)));
        } else return std::nullopt;
      }
      return values;
    };
    if (auto integers = all.operator()<int64_t>()) return *integers;
    if (auto reals = all.operator()<double>()) return *reals;
    if (auto texts = all.operator()<std::string>()) return *texts;
    lexer_.fail("a list mixes texts and numbers");
  }

  Value* known(const std::string& name) {
    const auto at = values_.find(name);
    if (at == values_.end()) lexer_.fail("%" + name + " is not defined");
    return at->second;
  }
  void define(const std::string& name, Value* value) {
    if (!values_.emplace(name, value).second) lexer_.fail("%" + name + " is defined twice");
  }

  Lexer& lexer_;
  const OpLookup& lookup_;
  std::span<const Tensor> data_;
  int nesting_;
  Graph graph_;
  Node* last_ = nullptr;
  bool returned_ = false;
  std::unordered_map<std::string, Value*> values_;
};

}  // namespace

Graph parse_graph(std::string_view text, const OpLookup& lookup) { return parse_with_data(text, lookup, {}); }

Graph parse_with_data(std::string_view text, const OpLookup& lookup, std::span<const Tensor> data) {
  Lexer lexer(text);
  Graph graph = Parser(lexer, lookup, data, 0).graph();
  if (!lexer.at_end()) lexer.fail("text behind the graph");
  return graph;
}

}  // namespace hone
