// SPDX-License-Identifier: Apache-2.0
//
// Texts: joining, splitting, normalising, matching, and counting n-grams. Strings are UTF-8 and are compared as bytes.
#include <algorithm>
#include <map>

#include <re2/re2.h>

#include "base/node_error.h"
#include "ops/movement.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

void need_strings(const InferContext& context, size_t operand) {
  HONE_CHECK_AS(TypeError, context.dtype(operand) == DType::string, "operand {} of {} is {}, not string", operand,
                context.node().op_name(), name_of(context.dtype(operand)));
}

void infer_string_concat(InferContext& context) {
  for (size_t i = 0; i < 2; ++i) need_strings(context, i);
  context.set(0, DType::string, broadcast(context.shape(0), context.shape(1)));
}
void eval_string_concat(EvalContext& context) {
  const Tensor &a = context.input(0), &b = context.input(1);
  Dims dims = broadcast_dims(a.dims(), b.dims());
  std::vector<std::string> out;
  for (int64_t i = 0; i < elements(dims); ++i)
    out.push_back(a.strings()[static_cast<size_t>(broadcast_offset(dims, a.dims(), i))] +
                  b.strings()[static_cast<size_t>(broadcast_offset(dims, b.dims(), i))]);
  context.set(0, Tensor::of_strings(std::move(dims), std::move(out)));
}

// ---- StringSplit ----

constexpr std::string_view kBlanks = " \t\n\r\f\v";

/// Between runs of blanks; what is left after `limit` cuts keeps its blanks inside.
std::vector<std::string> split_at_blanks(std::string_view text, int64_t limit) {
  std::vector<std::string> parts;
  while (true) {
    const size_t begin = text.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) return parts;
    text.remove_prefix(begin);
    const size_t end =
        static_cast<int64_t>(parts.size()) < limit ? text.find_first_of(kBlanks) : std::string_view::npos;
    if (end == std::string_view::npos) {
      const bool last = static_cast<int64_t>(parts.size()) >= limit;
      parts.emplace_back(last ? text.substr(0, text.find_last_not_of(kBlanks) + 1) : text);
      return parts;
    }
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::vector<std::string> split_at(std::string_view text, std::string_view delimiter, int64_t limit) {
  std::vector<std::string> parts;
  for (size_t at = 0;
       static_cast<int64_t>(parts.size()) < limit && (at = text.find(delimiter)) != std::string_view::npos;) {
    parts.emplace_back(text.substr(0, at));
    text.remove_prefix(at + delimiter.size());
  }
  parts.emplace_back(text);
  return parts;
}

void infer_string_split(InferContext& context) {
  need_strings(context, 0);
  Shape result = context.shape(0);
  result.push_back(context.data_dependent(0, result.rank()));
  context.set(0, DType::string, std::move(result));
  context.set(1, DType::i64, context.shape(0));
}
void eval_string_split(EvalContext& context) {
  const Tensor& x = context.input(0);
  const std::string delimiter = context.attrs().text("delimiter");
  const int64_t limit = context.attrs().has("maxsplit") ? context.attrs().integer("maxsplit") : INT64_MAX;
  std::vector<std::vector<std::string>> parts;
  std::vector<int64_t> counts;
  int64_t most = 0;
  for (const std::string& text : x.strings()) {
    parts.push_back(delimiter.empty() ? split_at_blanks(text, limit) : split_at(text, delimiter, limit));
    counts.push_back(static_cast<int64_t>(parts.back().size()));
    most = std::max(most, counts.back());
  }
  std::vector<std::string> out;
  for (std::vector<std::string>& list : parts) {
    list.resize(static_cast<size_t>(most));
    out.insert(out.end(), list.begin(), list.end());
  }
  Dims dims = x.dims();
  dims.push_back(most);
  context.set(0, Tensor::of_strings(std::move(dims), std::move(out)));
  context.set(1, Tensor::of<int64_t>(x.dims(), std::span<const int64_t>(counts)));
}

// ---- StringNormalizer: ASCII letters change case; others need a locale, which results must not depend on ----

std::string in_case(std::string text, const std::string& action) {
  for (char& c : text) {
    if (action == "LOWER" && c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (action == "UPPER" && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

void infer_normalizer(InferContext& context) {
  need_strings(context, 0);
  const size_t rank = context.rank(0);
  HONE_CHECK(rank == 1 || (rank == 2 && (!context.shape(0)[0].is_constant() || context.shape(0)[0] == Dim(1))),
             "StringNormalizer reads [C] or [1,C], not [{}]", context.shape(0).text());
  Shape result = context.shape(0);
  if (context.attrs().has("stopwords") && !context.attrs().texts("stopwords").empty())
    result[rank - 1] = context.data_dependent(0, rank - 1);
  context.set(0, DType::string, std::move(result));
}
void eval_normalizer(EvalContext& context) {
  const Attrs& attrs = context.attrs();
  const std::string& action = attrs.text("case_change_action");
  HONE_CHECK_AS(AttributeError, action == "NONE" || action == "LOWER" || action == "UPPER", "'{}' is no change of case",
                action);
  const std::string compared = attrs.integer("is_case_sensitive") != 0 ? "NONE" : "LOWER";
  std::vector<std::string> stop, out;
  if (attrs.has("stopwords"))
    for (const std::string& word : attrs.texts("stopwords")) stop.push_back(in_case(word, compared));
  for (const std::string& text : context.input(0).strings())
    if (std::find(stop.begin(), stop.end(), in_case(text, compared)) == stop.end())
      out.push_back(in_case(text, action));
  if (out.empty() && !stop.empty()) out.emplace_back();
  Dims dims = context.input(0).dims();
  dims.back() = static_cast<int64_t>(out.size());
  context.set(0, Tensor::of_strings(std::move(dims), std::move(out)));
}

// ---- RegexFullMatch ----

void infer_regex(InferContext& context) {
  need_strings(context, 0);
  context.set(0, DType::boolean, context.shape(0));
}
void eval_regex(EvalContext& context) {
  const std::string& pattern = context.attrs().text("pattern");
  const RE2 compiled(pattern, RE2::Quiet);
  if (!compiled.ok())
    throw Error(fmt::format("'{}' is not a pattern: {}", pattern, compiled.error()),
                "patterns follow RE2, as ONNX says");
  TensorBuilder builder(DType::boolean, context.input(0).dims());
  for (size_t i = 0; i < builder.data<bool>().size(); ++i)
    builder.data<bool>()[i] = RE2::FullMatch(context.input(0).strings()[i], compiled);
  context.set(0, builder.finish());
}

// ---- TfIdfVectorizer ----

/// n-grams of the pool by their words, with the place each has in the result and in the weights.
class NGrams {
 public:
  using Words = std::vector<std::string>;
  explicit NGrams(const Attrs& attrs) {
    Words pool;
    if (attrs.has("pool_strings")) pool = attrs.texts("pool_strings");
    else
      for (const int64_t number : attrs.integers("pool_int64s")) pool.push_back(std::to_string(number));
    const Dims &counts = attrs.integers("ngram_counts"), &places = attrs.integers("ngram_indexes");
    size_t index = 0;
    for (size_t n = 1; n <= counts.size(); ++n) {
      const auto begin = static_cast<size_t>(counts[n - 1]),
                 end = n < counts.size() ? static_cast<size_t>(counts[n]) : pool.size();
      HONE_CHECK(begin <= end && end <= pool.size() && (end - begin) % n == 0,
                 "ngram_counts does not fit a pool of {} words", pool.size());
      for (size_t at = begin; at < end; at += n, ++index) {
        HONE_CHECK(index < places.size(), "ngram_indexes has {} numbers for more n-grams", places.size());
        places_[Words(pool.begin() + static_cast<std::ptrdiff_t>(at),
                      pool.begin() + static_cast<std::ptrdiff_t>(at + n))] = {places[index], index};
      }
    }
  }
  const std::pair<int64_t, size_t>* find(const Words& words) const {
    const auto at = places_.find(words);
    return at == places_.end() ? nullptr : &at->second;
  }

 private:
  std::map<Words, std::pair<int64_t, size_t>> places_;
};

int64_t gram_places(const Attrs& attrs) {
  const Dims& places = attrs.integers("ngram_indexes");
  HONE_CHECK(!places.empty() && *std::min_element(places.begin(), places.end()) >= 0,
             "ngram_indexes is empty or holds a negative place");
  return *std::max_element(places.begin(), places.end()) + 1;
}

void infer_tf_idf(InferContext& context) {
  HONE_CHECK(context.rank(0) == 1 || context.rank(0) == 2, "TfIdfVectorizer reads [C] or [N,C], not rank {}",
             context.rank(0));
  Shape result = context.shape(0);
  result[result.rank() - 1] = Dim(gram_places(context.attrs()));
  context.set(0, DType::f32, std::move(result));
}

void count_grams(const NGrams& grams, const NGrams::Words& row, const Attrs& attrs, std::span<double> counts,
                 std::vector<size_t>& index_of) {
  const auto size = static_cast<int64_t>(row.size());  // longer n-grams and skips fit nowhere
  const int64_t shortest = attrs.integer("min_gram_length"), longest = std::min(attrs.integer("max_gram_length"), size),
                most_skipped = std::min(attrs.integer("max_skip_count"), size);
  HONE_CHECK(shortest >= 1, "n-grams of {} words", shortest);
  for (int64_t n = shortest; n <= longest; ++n)
    for (int64_t skip = 0; skip <= (n == 1 ? 0 : most_skipped); ++skip)
      for (int64_t begin = 0; begin + (n - 1) * (skip + 1) < static_cast<int64_t>(row.size()); ++begin) {
        NGrams::Words words;
        for (int64_t i = 0; i < n; ++i) words.push_back(row[static_cast<size_t>(begin + i * (skip + 1))]);
        if (const auto* found = grams.find(words)) {
          counts[static_cast<size_t>(found->first)] += 1;
          index_of[static_cast<size_t>(found->first)] = found->second;
        }
      }
}

void eval_tf_idf(EvalContext& context) {
  const Tensor& x = context.input(0);
  const Attrs& attrs = context.attrs();
  const NGrams grams(attrs);
  const int64_t places = gram_places(attrs), width = x.dims().back(), rows = width == 0 ? 0 : x.size() / width;
  const std::string& mode = attrs.text("mode");
  std::vector<double> out;
  for (int64_t r = 0; r < rows; ++r) {
    NGrams::Words row;
    for (int64_t i = 0; i < width; ++i)
      row.push_back(x.dtype() == DType::string ? x.strings()[static_cast<size_t>(r * width + i)]
                                               : std::to_string(x.integer(r * width + i)));
    std::vector<double> counts(static_cast<size_t>(places));
    std::vector<size_t> index_of(static_cast<size_t>(places));
    count_grams(grams, row, attrs, counts, index_of);
    for (size_t i = 0; i < counts.size(); ++i) {
      const double weight =
          attrs.has("weights") && !attrs.reals("weights").empty() ? attrs.reals("weights").at(index_of[i]) : 1;
      if (mode == "IDF") counts[i] = counts[i] > 0 ? weight : 0;
      else if (mode == "TFIDF") counts[i] *= weight;
      else HONE_CHECK_AS(AttributeError, mode == "TF", "'{}' is no mode of TfIdfVectorizer", mode);
    }
    out.insert(out.end(), counts.begin(), counts.end());
  }
  Dims dims = x.dims();
  dims.back() = places;
  out.resize(static_cast<size_t>(elements(dims)));
  context.set(0, write_doubles(DType::f32, std::move(dims), out));
}

}  // namespace

const OpDef ops::string_concat{.name = "StringConcat",
                               .min_inputs = 2,
                               .max_inputs = 2,
                               .infer = infer_string_concat,
                               .eval = eval_string_concat,
                               .onnx = {{"StringConcat", 20}}};
const OpDef ops::string_split{
    .name = "StringSplit",
    .attrs = {text_attr("delimiter", ""), {"maxsplit", AttrKind::integer, std::nullopt, false, "most cuts"}},
    .outputs = 2,
    .infer = infer_string_split,
    .eval = eval_string_split,
    .onnx = {{"StringSplit", 20}},
    .traits = {.data_dependent = true}};
const OpDef ops::string_normalizer{.name = "StringNormalizer",
                                   .attrs = {text_attr("case_change_action", "NONE"),
                                             integer_attr("is_case_sensitive", 0),
                                             text_attr("locale", ""),
                                             {"stopwords", AttrKind::texts, std::nullopt, false, "what is left out"}},
                                   .infer = infer_normalizer,
                                   .eval = eval_normalizer,
                                   .onnx = {{"StringNormalizer", 10}},
                                   .traits = {.data_dependent = true}};
const OpDef ops::regex_full_match{.name = "RegexFullMatch",
                                  .attrs = {required_attr("pattern", AttrKind::text)},
                                  .infer = infer_regex,
                                  .eval = eval_regex,
                                  .onnx = {{"RegexFullMatch", 20}}};
const OpDef ops::tf_idf_vectorizer{.name = "TfIdfVectorizer",
                                   .attrs = {required_attr("max_gram_length", AttrKind::integer),
                                             required_attr("max_skip_count", AttrKind::integer),
                                             required_attr("min_gram_length", AttrKind::integer),
                                             required_attr("mode", AttrKind::text),
                                             required_attr("ngram_counts", AttrKind::integers),
                                             required_attr("ngram_indexes", AttrKind::integers),
                                             integers_attr("pool_int64s"),
                                             {"pool_strings", AttrKind::texts, std::nullopt, false, "words"},
                                             {"weights", AttrKind::reals, std::nullopt, false, "by n-gram"}},
                                   .infer = infer_tf_idf,
                                   .eval = eval_tf_idf,
                                   .onnx = {{"TfIdfVectorizer", 9}}};

}  // namespace hone
