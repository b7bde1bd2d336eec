// SPDX-License-Identifier: Apache-2.0
//
// One filter row at a time: its weights go into registers where there is room, then the input columns of the tile pass by,
// each loaded once and added, weighted, to every output pixel that it touches.

#include "backends/cpu/conv/depthwise_code.h"

#include <algorithm>
#include <map>

namespace hone::cpu {
namespace {

class DepthwiseEmitter {
 public:
  using Vec = Emitter::Vec;

  DepthwiseEmitter(Emitter& emitter, const DepthwiseSpec& spec)
      : e_(emitter), s_(spec), out_(emitter, spec), bf16_(emitter) {
    columns_ = int(s_.tile.columns.size());
    weights_in_registers_ = columns_ * s_.vectors + 1 <= out_.spare_count();
  }

  size_t emit() {
    e_.align(64);
    const size_t offset = e_.getSize();
    out_.begin();
    e_.mov(src_, out_.arg(offsetof(TileArgs, src)));
    e_.mov(weights_, out_.arg(offsetof(TileArgs, weights)));
    e_.mov(rows_, out_.arg(offsetof(TileArgs, rows)));
    Xbyak::Label row, done;
    e_.test(rows_, rows_);
    e_.jz(done, e_.T_NEAR);
    e_.align(32);
    e_.L(row);
    filter_row();
    out_.add(src_, s_.src_row);
    out_.add(weights_, columns_ * s_.block_bytes);
    e_.dec(rows_);
    e_.jnz(row, e_.T_NEAR);
    e_.L(done);
    out_.end();
    return offset;
  }

 private:
  struct Use {
    int pixel, column;
  };

  /// Input column (relative to the tile) → the products it takes part in.
  std::map<int, std::vector<Use>> uses() const {
    std::map<int, std::vector<Use>> table;
    for (int column = 0; column < columns_; ++column)
      for (int pixel = s_.tile.columns[size_t(column)].begin; pixel < s_.tile.columns[size_t(column)].end; ++pixel)
        table[pixel * s_.stride + column * s_.dilation].push_back({pixel, column});
    return table;
  }

  Vec weight(int column, int vector) const { return out_.spare(column * s_.vectors + vector); }
  Xbyak::Address weight_at(int column, int vector) const {
    return out_.at(weights_, column * s_.block_bytes + out_.vector_offset(vector));
  }

  void filter_row() {
    if (weights_in_registers_)
      for (int column = 0; column < columns_; ++column)
        for (int vector = 0; vector < s_.vectors; ++vector) e_.load(weight(column, vector), weight_at(column, vector));
    const int first_free = weights_in_registers_ ? columns_ * s_.vectors : 0;
    const int elements = out_.spare_count() - first_free;
    int turn = 0;
    for (const auto& [position, users] : uses())
      for (int vector = 0; vector < s_.vectors; ++vector) {
        const int64_t offset = position * s_.src_pixel + out_.tensor_offset(vector);
        const auto from = out_.at(src_, offset);
        if (users.size() == 1 && weights_in_registers_ && !out_.is_tail(vector) && !out_.narrow()) {
          e_.vfmadd231ps(out_.acc(users[0].pixel, vector), weight(users[0].column, vector), from);
          continue;
        }
        const Vec x = out_.spare(first_free + turn++ % elements);
        if (out_.narrow()) {
          const auto place = out_.place(src_, offset);
          out_.is_tail(vector) ? bf16_.load_tail(x, place) : bf16_.load(x, place);
        } else if (out_.is_tail(vector)) {
          e_.load_tail(x, from, x);
        } else {
          e_.load(x, from);
        }
        for (const auto [pixel, column] : users) {
          if (weights_in_registers_) {
            e_.vfmadd231ps(out_.acc(pixel, vector), x, weight(column, vector));
          } else {
            e_.vfmadd231ps(out_.acc(pixel, vector), x, weight_at(column, vector));
          }
        }
      }
  }

  Emitter& e_;
  const DepthwiseSpec& s_;
  TileOutput out_;
  Bf16Memory bf16_;
  int columns_ = 0;
  bool weights_in_registers_ = false;

  const Xbyak::Reg64 src_{Xbyak::Operand::RAX}, weights_{Xbyak::Operand::R8}, rows_{Xbyak::Operand::RCX};
};

}  // namespace

size_t emit_depthwise_tile(Emitter& emitter, const DepthwiseSpec& spec) {
  return DepthwiseEmitter(emitter, spec).emit();
}

}  // namespace hone::cpu
