// SPDX-License-Identifier: Apache-2.0
//
// Signals: DFT and STFT by the definition (exact for every length), window functions, the mel filter bank.
#include <cmath>
#include <complex>
#include <numbers>

#include "base/numbers.h"
#include "ops/movement.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

using Complex = std::complex<double>;

/// The first `results` values of the transform of `signal`.
std::vector<Complex> transform(const std::vector<Complex>& signal, size_t results, bool inverse) {
  const size_t n = signal.size();
  std::vector<Complex> roots(n), out(results);
  for (size_t i = 0; i < n; ++i)
    roots[i] = std::polar(1.0, (inverse ? 2 : -2) * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n));
  for (size_t k = 0; k < results; ++k) {
    for (size_t i = 0; i < n; ++i) out[k] += signal[i] * roots[i * k % n];
    if (inverse) out[k] /= static_cast<double>(n);
  }
  return out;
}

struct Transform {
  size_t axis;
  bool inverse, onesided;
  bool to_real() const { return inverse && onesided; }
};

Transform transform_of(const Attrs& attrs, int64_t axis, size_t rank) {
  HONE_CHECK(rank >= 2, "DFT reads tensors of rank 2 or more, not {}", rank);
  const Transform t{normalize_axis(axis, rank), attrs.integer("inverse") != 0, attrs.integer("onesided") != 0};
  HONE_CHECK(t.axis + 1 < rank, "DFT cannot run along the axis of real and imaginary parts");
  return t;
}

Dim default_length(const Transform& t, const Dim& size) { return t.to_real() ? Dim(2) * (size - Dim(1)) : size; }

void infer_dft(InferContext& context) {
  check_one(context, 1, "the length of DFT");
  check_one(context, 2, "the axis of DFT");
  const std::optional<std::vector<int64_t>> axis =
      context.has(2) ? known_integers(context, 2) : std::optional(std::vector<int64_t>{-2});
  HONE_CHECK(context.rank(0) >= 2, "DFT reads tensors of rank 2 or more, not {}", context.rank(0));
  Shape result = context.shape(0);
  const bool to_real = context.attrs().integer("inverse") != 0 && context.attrs().integer("onesided") != 0;
  result[result.rank() - 1] = Dim(to_real ? 1 : 2);
  if (!axis) {
    for (size_t i = 0; i + 1 < result.rank(); ++i) result[i] = context.data_dependent(0, i);
    return context.set(0, context.dtype(0), std::move(result));
  }
  const Transform t = transform_of(context.attrs(), axis->front(), result.rank());
  const std::optional<SymbolicData> given =
      context.has(1) ? context.symbolic(1) : std::optional(SymbolicData{default_length(t, result[t.axis])});
  if (!given) result[t.axis] = context.data_dependent(0, t.axis);
  else result[t.axis] = t.onesided && !t.inverse ? floor_divide((*given)[0], Dim(2)) + Dim(1) : (*given)[0];
  context.set(0, context.dtype(0), std::move(result));
}

void eval_dft(EvalContext& context) {
  const Tensor& x = context.input(0);
  const Dims& dims = x.dims();
  const Transform t = transform_of(context.attrs(), context.has(2) ? context.input(2).integer(0) : -2, dims.size());
  const auto length =
      static_cast<size_t>(context.has(1) ? context.input(1).integer(0) : default_length(t, Dim(dims[t.axis])).value());
  HONE_CHECK(length > 0 && length < (1 << 24), "a transform of {} values cannot be computed", length);
  const size_t results = t.onesided && !t.inverse ? length / 2 + 1 : length, parts = static_cast<size_t>(dims.back()),
               result_parts = t.to_real() ? 1 : 2;
  HONE_CHECK(parts == 1 || parts == 2, "the last axis holds {} parts of a number", parts);
  Dims result_dims = dims;
  result_dims[t.axis] = static_cast<int64_t>(results);
  result_dims.back() = static_cast<int64_t>(result_parts);
  Dims points = dims;
  points.pop_back();
  const AxisView view(points, t.axis);
  const std::vector<double> values = read_doubles(x);
  std::vector<double> out(static_cast<size_t>(elements(result_dims)));
  for (int64_t outer = 0; outer < view.outer; ++outer)
    for (int64_t inner = 0; inner < view.inner; ++inner) {
      std::vector<Complex> signal(length);
      for (size_t i = 0; i < length && i < static_cast<size_t>(view.length); ++i) {
        const size_t at =
            static_cast<size_t>((outer * view.length + static_cast<int64_t>(i)) * view.inner + inner) * parts;
        signal[i] = {values[at], parts == 2 ? values[at + 1] : 0};
      }
      if (t.to_real())  // the other half mirrors the given one
        for (size_t i = length / 2 + 1; i < length; ++i) signal[i] = std::conj(signal[length - i]);
      const std::vector<Complex> spectrum = transform(signal, results, t.inverse);
      for (size_t k = 0; k < results; ++k) {
        const size_t at = static_cast<size_t>(
                              (outer * static_cast<int64_t>(results) + static_cast<int64_t>(k)) * view.inner + inner) *
                          result_parts;
        out[at] = spectrum[k].real();
        if (result_parts == 2) out[at + 1] = spectrum[k].imag();
      }
    }
  context.set(0, write_doubles(x.dtype(), std::move(result_dims), out));
}

/// The axis was an attribute before opset 20, with the first axis behind the batch as default.
void import_dft_attr(ImportContext& context) {
  Attrs attrs = context.attrs();
  Value* axis = integer_constant(context, {attrs.integer_or("axis", 1)});
  attrs.erase("axis");
  context.set_output(
      0,
      context.add("DFT", {context.input(0), context.inputs() > 1 ? context.input(1) : nullptr, axis}, std::move(attrs))
          ->output());
}

// ---- STFT(signal, step, window?, length?) ----

void infer_stft(InferContext& context) {
  check_one(context, 1, "the step of STFT");
  check_one(context, 3, "the length of STFT");
  check_rank(context, 0, 3, "the signal of STFT");
  const Shape& x = context.shape(0);
  const std::optional<SymbolicData> step = context.symbolic(1);
  std::optional<Dim> length;
  if (context.has(3)) {
    if (const std::optional<SymbolicData> given = context.symbolic(3)) length = given->front();
  } else {
    length = context.has(2) ? context.shape(2)[0] : x[1];
  }
  const Dim frames =
      step && length ? floor_divide(x[1] - *length, step->front()) + Dim(1) : context.data_dependent(0, 1);
  Dim bins = length ? *length : context.data_dependent(0, 2);
  if (length && context.attrs().integer("onesided") != 0) bins = floor_divide(bins, Dim(2)) + Dim(1);
  context.set(0, context.dtype(0), {x[0], frames, bins, Dim(2)});
}

void eval_stft(EvalContext& context) {
  const Tensor& x = context.input(0);
  const int64_t batch = x.dims()[0], samples = x.dims()[1], parts = x.dims()[2], step = context.input(1).integer(0);
  const int64_t length = context.has(3)   ? context.input(3).integer(0)
                         : context.has(2) ? context.input(2).size()
                                          : samples;
  HONE_CHECK(parts == 1 || parts == 2, "the samples of a signal have {} parts", parts);
  HONE_CHECK(step > 0 && length > 0 && length <= samples, "frames of {} every {} samples do not fit a signal of {}",
             length, step, samples);
  HONE_CHECK(!context.has(2) || context.input(2).size() == length, "the window has {} values for frames of {}",
             context.input(2).size(), length);
  const std::vector<double> values = read_doubles(x),
                            window = context.has(2) ? read_doubles(context.input(2))
                                                    : std::vector<double>(static_cast<size_t>(length), 1);
  const int64_t frames = (samples - length) / step + 1,
                bins = context.attrs().integer("onesided") != 0 ? length / 2 + 1 : length;
  std::vector<double> out;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t f = 0; f < frames; ++f) {
      std::vector<Complex> signal;
      for (int64_t i = 0; i < length; ++i) {
        const auto at = static_cast<size_t>((b * samples + f * step + i) * parts);
        signal.push_back(Complex(values[at], parts == 2 ? values[at + 1] : 0) * window[static_cast<size_t>(i)]);
      }
      for (const Complex& value : transform(signal, static_cast<size_t>(bins), false))
        out.insert(out.end(), {value.real(), value.imag()});
    }
  context.set(0, write_doubles(x.dtype(), {batch, frames, bins, 2}, out));
}

/// Exporters write real signals without the axis of real and imaginary parts that the standard asks for.
void import_stft(ImportContext& context) {
  Value* signal = context.input(0);
  if (signal->type.ranked && signal->type.shape.rank() == 2)
    signal = context.add("Unsqueeze", {signal, integer_constant(context, {2})})->output();
  const auto optional = [&](size_t i) { return i < context.inputs() ? context.input(i) : nullptr; };
  context.set_output(
      0, context.add("STFT", {signal, context.input(1), optional(2), optional(3)}, context.attrs())->output());
}

// ---- Windows: sums of cosines ----

void infer_window(InferContext& context) {
  check_one(context, 0, "the size of a window");
  const std::optional<SymbolicData> size = context.symbolic(0);
  context.set(0, dtype_of_onnx(context.attrs().integer("output_datatype")),
              {size ? size->front() : context.data_dependent(0, 0)});
}

void eval_window(EvalContext& context) {
  const int64_t size = context.input(0).integer(0);
  HONE_CHECK(size >= 0, "a window of {} values", size);
  const auto turns = static_cast<double>(context.attrs().integer("periodic") != 0 ? size : size - 1);
  const std::vector<double>& weights = context.attrs().reals("weights");
  std::vector<double> out;
  for (int64_t i = 0; i < size; ++i) {
    double sum = 0;
    for (size_t k = 0; k < weights.size(); ++k)
      sum += weights[k] * std::cos(2 * std::numbers::pi * static_cast<double>(k) * static_cast<double>(i) / turns);
    out.push_back(sum);
  }
  context.set(0, write_doubles(dtype_of_onnx(context.attrs().integer("output_datatype")), {size}, out));
}

template <int kind>
void import_window(ImportContext& context) {
  static const std::vector<double> kWeights[] = {{0.5, -0.5}, {25.0 / 46, -21.0 / 46}, {0.42, -0.5, 0.08}};
  Attrs attrs = context.attrs();
  attrs.set("weights", kWeights[kind]);
  context.set_output(0, context.add("Window", {context.input(0)}, std::move(attrs))->output());
}

// ---- MelWeightMatrix(bands, transform length, sample rate, low, high) ----

void infer_mel(InferContext& context) {
  for (size_t i = 0; i < 5; ++i) check_one(context, i, "an operand of MelWeightMatrix");
  const std::optional<SymbolicData> bands = context.symbolic(0), length = context.symbolic(1);
  context.set(0, dtype_of_onnx(context.attrs().integer("output_datatype")),
              {length ? floor_divide(length->front(), Dim(2)) + Dim(1) : context.data_dependent(0, 0),
               bands ? bands->front() : context.data_dependent(0, 1)});
}

void eval_mel(EvalContext& context) {
  const int64_t bands = context.input(0).integer(0), length = context.input(1).integer(0), bins = length / 2 + 1;
  const double rate = context.input(2).real(0), low = context.input(3).real(0), high = context.input(4).real(0);
  HONE_CHECK(bands > 0 && length > 0 && rate > 0, "a mel matrix of {} bands and {} samples at {} Hz", bands, length,
             rate);
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  std::vector<int64_t> edges;  // bins at which the triangles begin, peak and end
  for (int64_t i = 0; i < bands + 2; ++i) {
    const double at = mel(low) + static_cast<double>(i) * (mel(high) - mel(low)) / static_cast<double>(bands + 2);
    const double hertz = 700 * (std::pow(10, at / 2595) - 1);
    edges.push_back(saturated<int64_t>(std::floor(static_cast<double>(length + 1) * hertz / rate)));
  }
  std::vector<double> out(static_cast<size_t>(bins * bands));
  for (int64_t band = 0; band < bands; ++band) {
    const int64_t begin = edges[static_cast<size_t>(band)], peak = edges[static_cast<size_t>(band) + 1],
                  end = edges[static_cast<size_t>(band) + 2];
    const auto put = [&](int64_t bin, double value) {
      if (bin >= 0 && bin < bins) out[static_cast<size_t>(bin * bands + band)] = value;
    };
    if (peak == begin) put(peak, 1);
    for (int64_t bin = begin; peak > begin && bin <= peak; ++bin)
      put(bin, static_cast<double>(bin - begin) / static_cast<double>(peak - begin));
    for (int64_t bin = peak; end > peak && bin < end; ++bin)
      put(bin, static_cast<double>(end - bin) / static_cast<double>(end - peak));
  }
  context.set(0, write_doubles(dtype_of_onnx(context.attrs().integer("output_datatype")), {bins, bands}, out));
}

}  // namespace

const OpDef ops::dft{.name = "DFT",
                     .attrs = {integer_attr("inverse", 0), integer_attr("onesided", 0)},
                     .min_inputs = 1,
                     .max_inputs = 3,
                     .infer = infer_dft,
                     .eval = eval_dft,
                     .onnx = {{"DFT", 20}, {"DFT", 17, 19, import_dft_attr}}};

const OpDef ops::stft{.name = "STFT",
                      .attrs = {integer_attr("onesided", 1)},
                      .min_inputs = 2,
                      .max_inputs = 4,
                      .infer = infer_stft,
                      .eval = eval_stft,
                      .onnx = {{"STFT", 17, kEveryLater, import_stft}}};

const OpDef ops::window{.name = "Window",
                        .attrs = {integer_attr("output_datatype", 1), integer_attr("periodic", 1),
                                  required_attr("weights", AttrKind::reals)},
                        .infer = infer_window,
                        .eval = eval_window,
                        .onnx = {{"HannWindow", 17, kEveryLater, import_window<0>},
                                 {"HammingWindow", 17, kEveryLater, import_window<1>},
                                 {"BlackmanWindow", 17, kEveryLater, import_window<2>}}};

const OpDef ops::mel_weight_matrix{.name = "MelWeightMatrix",
                                   .attrs = {integer_attr("output_datatype", 1)},
                                   .min_inputs = 5,
                                   .max_inputs = 5,
                                   .infer = infer_mel,
                                   .eval = eval_mel,
                                   .onnx = {{"MelWeightMatrix", 17}}};

}  // namespace hone
