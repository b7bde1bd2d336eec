// SPDX-License-Identifier: Apache-2.0
//
// The beginning and the end that all register tiles share: accumulators start from the bias, zero or a partial sum; they end with
// residual, activation and store. The accumulator of (pixel, vector) is register pixel * vectors + vector.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/jit/bf16_memory.h"
#include "backends/cpu/jit/emitter.h"
#include "backends/cpu/jit/vector_math.h"
#include "tensor/dtype.h"

namespace hone::cpu {

/// What a tile gets at run time. Offsets in the code depend on the order.
struct TileArgs {
  const float* src;      // first input row that counts, at the tile's first column and first channel
  const float* weights;  // first packed weight of that filter row
  float* dst;
  const float* residual;
  const float* bias;
  const float* prefetch;  // weights that a later tile needs, brought into L2 on the way
  int64_t rows;           // filter rows inside the image, may be zero
  int64_t flags;          // TileFlag
};

enum TileFlag : int64_t { kFirstBlock = 1, kLastBlock = 2 };

using TileFunction = void (*)(const TileArgs*);

/// Strides in bytes.
struct OutputSpec {
  int pixels = 0, vectors = 0;
  int tail = 0;             // lanes of the last vector, 0 when it is full
  bool blocked = false;     // the sum may be split over several calls, through dst
  DType type = DType::f32;  // of dst and residual: f32, or bf16 where it is not blocked
  int64_t dst_pixel = 0, residual_pixel = 0;
  Epilogue epilogue;
};

/// True when the tile stores its sums and runs the activation over them afterwards, which takes a dst of f32: a residual that
/// is added after the activation must then not lie in dst.
bool ends_through_memory(Isa isa, int pixels, int vectors, const Epilogue& epilogue, DType dst = DType::f32);
/// Registers that must be left beside the accumulators where dst is bf16.
constexpr int kNarrowSpares = 3;

class TileOutput {
 public:
  using Vec = Emitter::Vec;
  using Reg64 = Xbyak::Reg64;

  TileOutput(Emitter& emitter, const OutputSpec& spec) : e_(emitter), s_(spec), math_(emitter), bf16_(emitter) {}

  /// Loads dst_ and the tail mask, fills the accumulators. Clobbers rax.
  void begin();
  /// Everything after the sum, including the return. All registers but the accumulators may be clobbered.
  void end();

  int accumulators() const { return s_.pixels * s_.vectors; }
  Vec acc(int pixel, int vector) const { return e_.vec(pixel * s_.vectors + vector); }
  /// Registers beside the accumulators; all of them are free outside of the sum.
  Vec spare(int index) const { return e_.vec(accumulators() + index); }
  int spare_count() const { return e_.registers() - accumulators(); }
  bool is_tail(int vector) const { return s_.tail != 0 && vector == s_.vectors - 1; }
  int64_t vector_offset(int vector) const { return int64_t{vector} * e_.vector_bytes(); }
  /// The same in a tensor of spec.type.
  int64_t tensor_offset(int vector) const { return vector_offset(vector) / (narrow() ? 2 : 1); }
  bool narrow() const { return s_.type == DType::bf16; }
  Xbyak::RegExp place(const Reg64& base, int64_t offset) const;
  Xbyak::Address arg(size_t offset) const { return e_.qword[args() + static_cast<int>(offset)]; }
  Xbyak::Address at(const Reg64& base, int64_t offset) const;
  Xbyak::Address broadcast_at(const Reg64& base, int64_t offset) const;  // an AVX-512 operand: one element in all lanes
  void add(const Reg64& reg, int64_t bytes);

  // Only caller-saved registers of the System V convention, so that nothing needs to be pushed. Free for the sum: rax, rcx,
  // rdx, rsi, r8, r9, r11.
  static Reg64 args() { return Reg64(Xbyak::Operand::RDI); }
  static Reg64 dst() { return Reg64(Xbyak::Operand::R10); }

 private:
  static Reg64 residual() { return Reg64(Xbyak::Operand::RSI); }
  static Reg64 counter() { return Reg64(Xbyak::Operand::RCX); }

  template <typename Body>
  void for_each_output(Body&& body) {
    for (int pixel = 0; pixel < s_.pixels; ++pixel)
      for (int vector = 0; vector < s_.vectors; ++vector) body(pixel, vector);
  }
  void load(const Vec& x, const Reg64& base, int64_t pixel_stride, int pixel, int vector);
  void store(const Vec& x, int pixel, int vector);
  void add_residual(const Vec& x, int pixel, int vector, const Vec& scratch, const Vec& mask);
  void end_in_registers();
  void end_through_memory();

  Emitter& e_;
  const OutputSpec& s_;
  VectorMath math_;
  Bf16Memory bf16_;
};

}  // namespace hone::cpu
