// SPDX-License-Identifier: Apache-2.0
//
// What kernels of integer sums share, in whatever registers they add up: first A is packed, with its border and in whole steps; then
// the workers share the tiles. Where A has no border and whole steps already it is multiplied in place.
#pragma once

#include <memory>

#include "backends/cpu/quant/integer_pack.h"

namespace hone::cpu {

class IntegerKernel : public CpuKernel {
 public:
  size_t workspace_bytes() const override;
  int phases() const override;
  bool serial() const override;
  void run(int phase, int worker, int workers, const Bindings& bindings) const override;

 protected:
  IntegerKernel(const IntegerShape& shape, const IntegerConfig& config, const IntegerSums& sums,
                const KernelShapes& shapes, Isa isa, IntegerPack::Copy copy);

  /// All tiles of the worker's share; `whole` has the first tile's arguments.
  virtual void multiply(int worker, int workers, const IntegerTileArgs& whole) const = 0;

  /// The arguments of the tile that begins at a panel, counted over all groups, and a pixel of the result, counted over all images;
  /// but for its place in A.
  IntegerTileArgs at(IntegerTileArgs args, int64_t panel, int64_t pixel) const;
  /// The same as many pixels further on, of sums that are given.
  void pass(IntegerTileArgs& args, int64_t pixels) const;
  /// The same of a tile's code, but for its places in A and the weights.
  IntegerTileSpec tile_spec(int rows, bool last_column) const;
  bool is_last(int64_t panel) const { return (s_.groups == 1 ? panel : panel % panels_) == panels_ - 1; }
  int64_t weight_bytes() const { return s_.groups * padded() * steps_ * kStepBytes; }

  template <typename T>
  static void advance(T*& pointer, int64_t bytes) {
    if (pointer != nullptr) pointer = reinterpret_cast<T*>(reinterpret_cast<intptr_t>(pointer) + bytes);
  }

  IntegerShape s_;
  IntegerConfig config_;
  IntegerSums sums_;
  IntegerPack pack_;
  int64_t panel_, panels_;  // of a group
  int64_t steps_;           // of all taps
  size_t slack_ = 0;        // bytes behind the copy of A that may be read

 private:
  template <typename T>
  static const T* input(const Bindings& bindings, int64_t i) {
    return i < 0 ? nullptr : static_cast<const T*>(bindings.inputs[static_cast<size_t>(i)]);
  }
  template <typename T>
  static const T* constant(const Bindings& bindings, int place) {
    return place < 0 ? nullptr : static_cast<const T*>(bindings.constants[static_cast<size_t>(place)]);
  }

  // The workspace: what sums begin with, where that is known now only; then what packing wants.
  bool needs_base() const { return places_.leans >= 0; }
  int64_t padded() const { return panels_ * panel_; }
  int64_t base_bytes() const;
  std::byte* packed(const Bindings& bindings) const {
    return static_cast<std::byte*>(bindings.workspace) + base_bytes();
  }
  int64_t zero(const Bindings& bindings) const;
  void begin_sums(int worker, int workers, const Bindings& bindings) const;
  IntegerTileArgs arguments(const Bindings& bindings) const;

  IntegerConstants places_;
  ByteOutputSpec bytes_;
  bool signed_zero_ = false;
  int64_t lanes_, result_bytes_, residual_bytes_;
};

}  // namespace hone::cpu
