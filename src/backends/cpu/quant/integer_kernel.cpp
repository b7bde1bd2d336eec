// SPDX-License-Identifier: Apache-2.0
//
// Sums in vector registers.

#include "backends/cpu/quant/integer_kernel.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/quant/byte_output.h"
#include "backends/cpu/quant/integer_matrix.h"
#include "base/checked.h"

namespace hone::cpu {
namespace {

constexpr int64_t kMostDistance = int64_t{1} << 40;
constexpr int64_t kSmallWork = 1 << 15;  // products that one worker should do alone

/// What tiles need besides the accumulators; true where an activation of floats fits too.
bool fits(const IntegerConfig& config, const EpilogueCode& epilogue, bool to_bytes, Isa isa) {
  if (config.dot == IntegerDot::tiles) return is_matrix_config(config) && matrix_ends_fit(epilogue, to_bytes);
  const auto rows = static_cast<int>(config.rows), vectors = static_cast<int>(config.vectors);
  if (!integer_tile_fits(isa, config.dot, rows, vectors)) return false;
  return !to_bytes || !ends_through_memory(isa, rows, vectors, epilogue.epilogue());
}

class VectorKernel final : public IntegerKernel {
 public:
  VectorKernel(const IntegerShape& shape, const IntegerConfig& config, const IntegerSums& sums,
               const KernelShapes& shapes, Isa isa)
      : IntegerKernel(shape, config, sums, shapes, isa,
                      sums.column_zeros ? IntegerPack::Copy::with_window_sums : IntegerPack::Copy::where_needed) {
    strips_ = ceil_divide(shape.out.back(), config.rows);
    std::array<std::array<size_t, 2>, 2> offsets{};
    emitter_ = Emitter::generate(isa, [&](Emitter& e) {
      for (const bool last_row : {false, true})
        for (const bool last_column : {false, true})
          offsets[last_row][last_column] = emit_integer_tile(e, spec_of(last_row, last_column));
    });
    for (const size_t i : {0, 1})
      for (const size_t j : {0, 1}) tiles_[i][j] = emitter_->entry<IntegerTileFunction>(offsets[i][j]);
  }

 private:
  /// The larger operand stays where it is while the smaller one, which stays in cache, passes by.
  void multiply(int worker, int workers, const IntegerTileArgs& whole) const override {
    const int64_t blocks = s_.images * pack_.rows() * strips_, columns = s_.groups * panels_;
    const bool by_panels = pack_.image_bytes() * s_.images < weight_bytes();
    const Share share = share_of(blocks * columns, worker, workers);
    for (int64_t item = share.begin; item < share.end; ++item) {
      const int64_t panel = by_panels ? item / blocks : item % columns,
                    block = by_panels ? item % blocks : item / columns;
      multiply_tile(whole, panel, block / strips_, block % strips_ * config_.rows);
    }
  }

  void multiply_tile(const IntegerTileArgs& whole, int64_t panel, int64_t row, int64_t x) const {
    IntegerTileArgs args = at(whole, panel, row * s_.out.back() + x);
    advance(args.tile.src, pack_.place(row, panel / panels_) + x * pack_.stride());
    tiles_[x + config_.rows > s_.out.back() ? 1 : 0][is_last(panel) ? 1 : 0](&args);
  }

  IntegerTileSpec spec_of(bool last_row, bool last_column) const {
    const int64_t left = s_.out.back() % config_.rows, rows = last_row && left != 0 ? left : config_.rows;
    const auto taps = static_cast<int64_t>(pack_.taps().size());
    IntegerTileSpec spec = tile_spec(static_cast<int>(rows), last_column);
    spec.a_row = pack_.stride();
    spec.b_step = panel_ * kStepBytes;
    spec.steps = steps_ / taps;
    spec.taps = taps;
    return spec;
  }

  int64_t strips_ = 1;
  std::unique_ptr<Emitter> emitter_;
  IntegerTileFunction tiles_[2][2] = {};  // [of the last rows][of the last columns]
};

}  // namespace

// ---- What kernels share ----

IntegerKernel::IntegerKernel(const IntegerShape& shape, const IntegerConfig& config, const IntegerSums& sums,
                             const KernelShapes& shapes, Isa isa, IntegerPack::Copy copy)
    : s_(shape),
      config_(config),
      sums_(sums),
      pack_(shape, config, copy),
      panel_(config.panel(isa)),
      panels_(ceil_divide(shape.columns, panel_)),
      steps_(config.steps(shape)),
      places_(sums),
      bytes_(byte_output_spec(sums.sums.rounding, sums.sums.residual, sums.sums.result, sums.epilogue.epilogue())),
      lanes_(lanes_of(isa)),
      result_bytes_(static_cast<int64_t>(size_of(shapes.outputs[0].dtype))),
      residual_bytes_(sums.sums.residual ? 1 : 4) {
  const int64_t zero = sums.sums.zero_input;
  signed_zero_ = zero >= 0 && shapes.inputs[static_cast<size_t>(zero)].dtype == DType::i8;
}

size_t IntegerKernel::workspace_bytes() const { return static_cast<size_t>(base_bytes() + pack_.bytes()) + slack_; }

int IntegerKernel::phases() const { return 1 + pack_.phases() + (pack_.phases() == 0 && needs_base() ? 1 : 0); }

bool IntegerKernel::serial() const {
  return s_.images * elements(s_.out) * s_.groups * s_.columns * s_.depth * s_.taps() < kSmallWork;
}

void IntegerKernel::run(int phase, int worker, int workers, const Bindings& bindings) const {
  if (phase == phases() - 1) return multiply(worker, workers, arguments(bindings));
  if (phase == 0 && needs_base()) begin_sums(worker, workers, bindings);
  if (pack_.phases() > 0)
    pack_.run(phase, worker, workers, input<std::byte>(bindings, sums_.input), zero(bindings), packed(bindings));
}

int64_t IntegerKernel::base_bytes() const { return needs_base() ? round_up(s_.groups * padded() * 4, 64) : 0; }

/// In the form in which A is multiplied.
int64_t IntegerKernel::zero(const Bindings& bindings) const {
  return zero_point(sums_.sums, signed_zero_, bindings) + config_.added(s_);
}

void IntegerKernel::begin_sums(int worker, int workers, const Bindings& bindings) const {
  const auto *base = constant<uint32_t>(bindings, places_.base), *leans = constant<uint32_t>(bindings, places_.leans);
  auto* to = static_cast<uint32_t*>(bindings.workspace);
  const auto z = static_cast<uint32_t>(zero(bindings));
  const Share share = share_of(s_.groups * padded(), worker, workers);
  for (int64_t j = share.begin; j < share.end; ++j) to[j] = base[j] + z * leans[j];
}

IntegerTileArgs IntegerKernel::arguments(const Bindings& bindings) const {
  const void* a = pack_.phases() > 0 ? packed(bindings) : input<void>(bindings, sums_.input);
  const auto* factor = input<float>(bindings, sums_.sums.factor_input);
  return {.tile = {.src = static_cast<const float*>(a),
                   .weights = constant<float>(bindings, places_.weights),
                   .dst = static_cast<float*>(bindings.outputs[0]),
                   .residual = input<float>(bindings, sums_.epilogue.residual),
                   .bias = constant<float>(bindings, places_.bias),
                   .prefetch = nullptr,
                   .rows = 0,
                   .flags = 0},
          .base = needs_base() ? static_cast<const int32_t*>(bindings.workspace)
                               : constant<int32_t>(bindings, places_.base),
          .zeros = constant<int32_t>(bindings, places_.zeros),
          .row_sums = pack_.window_sums(packed(bindings)),
          .factor = factor != nullptr ? factor : constant<float>(bindings, places_.factor),
          .taps = pack_.taps().data(),
          .sums = nullptr};
}

IntegerTileArgs IntegerKernel::at(IntegerTileArgs args, int64_t panel, int64_t pixel) const {
  const int64_t group = s_.groups == 1 ? 0 : panel / panels_, column = (panel - group * panels_) * panel_,
                place = (pixel * s_.groups + group) * s_.columns + column, padded_column = group * padded() + column;
  advance(args.tile.weights, padded_column * steps_ * kStepBytes);
  advance(args.tile.dst, place * result_bytes_);
  advance(args.tile.residual, place * residual_bytes_);
  advance(args.tile.bias, padded_column * 4);
  advance(args.base, padded_column * 4);
  advance(args.zeros, padded_column * 4);
  advance(args.row_sums, (group * s_.images * elements(s_.out) + pixel) * 4);
  if (sums_.sums.factor == Factor::columns) advance(args.factor, padded_column * 4);
  return args;
}

void IntegerKernel::pass(IntegerTileArgs& args, int64_t pixels) const {
  const int64_t passed = pixels * s_.groups * s_.columns;
  advance(args.tile.dst, passed * result_bytes_);
  advance(args.tile.residual, passed * residual_bytes_);
  advance(args.row_sums, pixels * 4);
  advance(args.sums, pixels * kTileChannels * 4);
}

IntegerTileSpec IntegerKernel::tile_spec(int rows, bool last_column) const {
  const int64_t left = s_.columns % panel_, columns = last_column && left != 0 ? left : panel_;
  OutputSpec output;
  output.pixels = rows;
  output.vectors = static_cast<int>((columns + lanes_ - 1) / lanes_);
  output.tail = static_cast<int>(columns % lanes_);
  output.dst_pixel = s_.groups * s_.columns * result_bytes_;
  output.residual_pixel = s_.groups * s_.columns * residual_bytes_;
  output.epilogue = sums_.epilogue.epilogue();
  IntegerTileSpec spec;
  spec.dot = config_.dot;
  spec.output = output;
  spec.column_zeros = sums_.column_zeros;
  spec.factor = sums_.sums.factor;
  spec.bytes = bytes_;
  return spec;
}

IntegerConstants::IntegerConstants(const IntegerSums& sums) {
  if (sums.sums.zero_input >= 0) leans = count++;
  if (sums.column_zeros) zeros = count++;
  if (sums.sums.factor != Factor::none && sums.sums.factor_input < 0) factor = count++;
  if (sums.epilogue.bias) bias = count++;
}

std::vector<IntegerConfig> integer_configs(const IntegerShape& shape, const EpilogueCode& epilogue, bool to_bytes,
                                           Isa isa, bool byte_dots) {
  const IntegerDot dot = byte_dots ? IntegerDot::bytes : IntegerDot::words;
  const int64_t wanted = ceil_divide(shape.columns, lanes_of(isa)), pixels = shape.out.back();
  std::vector<IntegerConfig> configs;
  if (has_byte_tiles(isa) && fills_matrix_tiles(shape) && fits(kIntegerTiles, epilogue, to_bytes, isa))
    configs.push_back(kIntegerTiles);
  for (int vectors = IntegerConfig::kMostVectors; vectors >= 1; --vectors) {
    if (vectors > wanted || (vectors == 1 && wanted > 1)) continue;
    IntegerConfig config{dot, IntegerConfig::kMostRows, vectors};
    while (config.rows > 0 && !fits(config, epilogue, to_bytes, isa)) --config.rows;
    if (config.rows == 0) continue;
    config.rows = ceil_divide(pixels, ceil_divide(pixels, config.rows));
    configs.push_back(config);
  }
  return configs;
}

int64_t zero_point(const SumsCode& sums, bool is_signed, const Bindings& bindings) {
  if (sums.zero_input < 0) return sums.zero;
  const void* given = bindings.inputs[static_cast<size_t>(sums.zero_input)];
  return is_signed ? int64_t{*static_cast<const int8_t*>(given)} : int64_t{*static_cast<const uint8_t*>(given)};
}

void require_packing(const IntegerShape& shape, const IntegerConfig& config) {
  require_sizes(Dims{config.run_steps(shape), kStepBytes, shape.taps()});
  Dims packed{shape.images, shape.groups, config.pixel_steps(shape) * kStepBytes, shape.taps()};
  int64_t width = shape.groups * config.pixel_steps(shape) * kStepBytes;
  for (size_t axis = shape.in.size(); axis-- > 0;) {
    require_sizes(Dims{shape.out[axis], shape.strides[axis]});
    require_sizes(Dims{shape.filter[axis], shape.dilations[axis]});
    packed.push_back(shape.span(axis));
    require_sizes(packed);
    HONE_CHECK(checked_multiply(width, shape.strides[axis]) < kMostDistance &&
                   checked_multiply(width, shape.span(axis)) < kMostDistance,
               "a layer of integers in the plan has rows of {} pixels", shape.span(axis));
    width *= shape.span(axis);
  }
}

void require_integer_kernel(const IntegerShape& shape, const IntegerConfig& config, const IntegerSums& sums, Isa isa) {
  HONE_CHECK(config.dot != IntegerDot::bytes || has_byte_dots(isa),
             "a layer in the plan adds up products of bytes (VNNI), which this processor does not");
  HONE_CHECK(config.dot != IntegerDot::tiles || has_byte_tiles(isa),
             "a layer in the plan multiplies matrix tiles of bytes (AMX), which this processor does not have");
  HONE_CHECK(fits(config, sums.epilogue, static_cast<bool>(sums.sums.result), isa),
             "a layer of integers in the plan has tiles of {} by {} vectors", config.rows, config.vectors);
  require_packing(shape, config);
  const int64_t row = std::max(shape.strides.back() * shape.groups * config.pixel_steps(shape) * kStepBytes,
                               shape.groups * shape.columns * 4);
  HONE_CHECK(row < INT32_MAX / (IntegerConfig::kMostRows + 1),
             "a layer of integers in the plan has {} groups of {} and {} channels", shape.groups, shape.depth,
             shape.columns);
}

std::shared_ptr<const CpuKernel> make_integer_kernel(const IntegerShape& shape, const IntegerConfig& config,
                                                     const IntegerSums& sums, const KernelShapes& shapes, Isa isa) {
  if (config.dot == IntegerDot::tiles) return make_matrix_kernel(shape, sums, shapes);
  return std::make_shared<VectorKernel>(shape, config, sums, shapes, isa);
}

}  // namespace hone::cpu
