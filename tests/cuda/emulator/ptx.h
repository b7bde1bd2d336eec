// SPDX-License-Identifier: Apache-2.0
//
// The instructions of inline assembly, with fragments as PTX's manual lays them over a warp's lanes. An instruction that is not
// here ends the program and names itself.
#pragma once

#include <array>

#include "mapped_operand.h"

namespace emulated {

/// %0, %1, ...: a variable that is written, or the value of what is read.
struct Operand {
  void* at = nullptr;
  unsigned long long value = 0;
  template <typename T>
  T& as() const {
    return *static_cast<T*>(at != nullptr ? at : const_cast<unsigned long long*>(&value));
  }
  /// In this block's shared memory, or where mapa() said of another one's.
  char* shared() const {
    const unsigned place = as<unsigned>(), block = place >> kBlockShift;
    return dynamic_shared[block == 0 ? own_block() : block - 1] + (place & (1u << kBlockShift) - 1);
  }
};
template <typename T>
Operand out(T& variable) {
  return {&variable};
}
template <typename T>
Operand in(const T& value) {
  Operand operand;
  memcpy(&operand.value, &value, sizeof value);
  return operand;
}

inline unsigned short bf16_bits(float value) {
  const unsigned bits = emulated_bits<unsigned>(value);
  if (value != value) return 0x7fff;
  return static_cast<unsigned short>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// Every float of 16 bits; to convert one takes the processor's compiler a call.
inline const std::vector<float>& halves() {
  static const std::vector<float> all = [] {
    std::vector<float> values;
    for (unsigned bits = 0; bits < 1u << 16; ++bits)
      values.push_back(static_cast<float>(emulated_bits<_Float16>(static_cast<unsigned short>(bits))));
    return values;
  }();
  return all;
}

struct F16 {
  unsigned short bits;
  operator float() const { return halves()[bits]; }
};
struct Bf16 {
  unsigned short bits;
  operator float() const { return emulated_bits<float>(static_cast<unsigned>(bits) << 16); }
};

/// What a code of E4M3 stands for.
inline float of_e4m3(unsigned char bits) {
  const int exponent = bits >> 3 & 15, fraction = bits & 7;
  if ((bits & 0x7f) == 0x7f) return NAN;
  const float size = exponent == 0 ? ldexpf(static_cast<float>(fraction), -9)
                                   : ldexpf(static_cast<float>(8 + fraction), exponent - 10);
  return bits >> 7 == 0 ? size : -size;
}
struct E4m3 {
  unsigned char bits;
  operator float() const {
    static const std::vector<float> all = [] {
      std::vector<float> values;
      for (unsigned code = 0; code < 256; ++code) values.push_back(of_e4m3(static_cast<unsigned char>(code)));
      return values;
    }();
    return all[bits];
  }
};
/// The nearest code, of two the even one; the largest number for what is beyond.
inline unsigned char bits_of(E4m3, float value) {
  if (value != value) return 0x7f;
  const float size = fabsf(value);
  unsigned char code = 0;
  while (code < 0x7e && of_e4m3(code + 1) <= size) ++code;
  if (code < 0x7e) {
    const float below = size - of_e4m3(code), above = of_e4m3(code + 1) - size;
    if (above < below || (above == below && code % 2 == 1)) ++code;
  }
  return code | (signbit(value) ? 0x80 : 0);
}

inline unsigned short bits_of(F16, float value) { return emulated_bits<unsigned short>(static_cast<_Float16>(value)); }
inline unsigned short bits_of(Bf16, float value) { return bf16_bits(value); }

/// 16 rows of A and 8 columns of B, 32 bytes of each; a register holds `kPer` elements.
template <typename A, typename B, typename Sum>
void multiply(const Operand* operands) {
  constexpr unsigned kPer = 4 / sizeof(A), kHalf = 4 * kPer;
  struct Fragments {
    unsigned a[4], b[2];
  } own;
  for (unsigned i = 0; i < 4; ++i) own.a[i] = operands[4 + i].as<unsigned>();
  for (unsigned i = 0; i < 2; ++i) own.b[i] = operands[8 + i].as<unsigned>();
  const auto all = show(own);
  const auto element = [](const unsigned& word, unsigned k) {
    return reinterpret_cast<const char*>(&word) + k % kPer * sizeof(A);
  };
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned row = lane() / 4 + i / 2 * 8, column = lane() % 4 * 2 + i % 2;
    Sum sum = operands[i].as<Sum>();
    for (unsigned k = 0; k < 2 * kHalf; ++k) {
      const unsigned holder = k % kHalf / kPer, half = k / kHalf;
      const unsigned& a = all[row % 8 * 4 + holder].a[row / 8 + 2 * half];
      const unsigned& b = all[column * 4 + holder].b[half];
      sum += static_cast<Sum>(*reinterpret_cast<const A*>(element(a, k))) *
             static_cast<Sum>(*reinterpret_cast<const B*>(element(b, k)));
    }
    operands[i].as<Sum>() = sum;
  }
}

/// A matrix in shared memory: rows of 128, 64 or 32 bytes whose pieces of 16 are exchanged by bits of where they lie.
template <typename T>
T element_of(unsigned long long matrix, unsigned row, unsigned k) {
  const unsigned bytes = 256u >> (matrix >> 62);
  const unsigned first = (matrix & 0x3fff) << 4, group = (matrix >> 32 & 0x3fff) << 4;
  const unsigned at = first + row / 8 * group + row % 8 * bytes + k * sizeof(T);
  return *reinterpret_cast<const T*>(own_shared() + (at ^ (at >> 7 & (bytes / 16 - 1)) << 4));
}

/// 64 rows of A by kColumns of B, 32 bytes of each, by four warps. Both have arrived: they are read at once.
template <typename T, typename Sum, unsigned kColumns>
void multiply_group(const Operand* operands) {
  const unsigned long long a = operands[kColumns / 2].as<unsigned long long>(),
                           b = operands[kColumns / 2 + 1].as<unsigned long long>();
  constexpr unsigned kDepth = 32 / sizeof(T);
  const unsigned first_row = threadIdx.x / 32 % 4 * 16 + lane() / 4;
  Sum rows[2][kDepth];
  for (unsigned half = 0; half < 2; ++half)
    for (unsigned k = 0; k < kDepth; ++k) rows[half][k] = static_cast<Sum>(element_of<T>(a, first_row + half * 8, k));
  for (unsigned i = 0; i < kColumns / 4; ++i) {  // a column, in both rows
    const unsigned column = i / 2 * 8 + lane() % 4 * 2 + i % 2;
    Sum &upper = operands[i / 2 * 4 + i % 2].as<Sum>(), &lower = operands[i / 2 * 4 + 2 + i % 2].as<Sum>();
    for (unsigned k = 0; k < kDepth; ++k) {
      const Sum b_element = static_cast<Sum>(element_of<T>(b, column, k));
      upper += rows[0][k] * b_element;
      lower += rows[1][k] * b_element;
    }
  }
}

/// The same of 16 weights that are kept of 32: kThreads says which two of every four threads tell where each was among four.
template <typename T, unsigned kThreads, unsigned kColumns>
void multiply_sparse(const Operand* operands) {
  const unsigned long long a = operands[kColumns / 2].as<unsigned long long>(),
                           b = operands[kColumns / 2 + 1].as<unsigned long long>();
  const auto words = show(operands[kColumns / 2 + 3].as<unsigned>());
  const unsigned upper_row = threadIdx.x / 32 % 4 * 16 + lane() / 4;
  struct Kept {
    float weight;
    unsigned channel;
  } kept[2][16];
  for (unsigned half = 0; half < 2; ++half)
    for (unsigned i = 0; i < 16; ++i) {
      const unsigned word = words[lane() / 4 * 4 + 2 * kThreads + i / 8] >> 16 * half;
      const unsigned places = word >> i % 8 / 2 * 4 & 15, place = places >> i % 2 * 2 & 3;
      if ((places & 3) == places >> 2) fail("a sparse weight is told twice");
      kept[half][i] = {element_of<T>(a, upper_row + half * 8, i), i / 2 * 4 + place};
    }
  for (unsigned i = 0; i < kColumns / 4; ++i) {
    const unsigned column = i / 2 * 8 + lane() % 4 * 2 + i % 2;
    for (unsigned half = 0; half < 2; ++half) {
      float& sum = operands[i / 2 * 4 + 2 * half + i % 2].as<float>();
      for (const Kept& each : kept[half])
        sum += each.weight * static_cast<float>(element_of<T>(b, column, each.channel));
    }
  }
}

/// Each lane names a row of 16 bytes; matrix i is that of the rows that lanes 8 i and up name.
template <unsigned kMatrices, bool kTransposed>
void load_matrices(const Operand* operands) {
  const auto rows = show(operands[kMatrices].shared());
  for (unsigned i = 0; i < kMatrices; ++i) {
    unsigned short pair[2];
    for (unsigned k = 0; k < 2; ++k) {
      const unsigned across = lane() % 4 * 2 + k, down = lane() / 4, row = kTransposed ? across : down;
      memcpy(pair + k, rows[8 * i + row] + (kTransposed ? down : across) * 2, 2);
    }
    memcpy(&operands[i].as<unsigned>(), pair, 4);
  }
}

/// The other way round: what lanes hold becomes rows, or columns of them.
template <unsigned kMatrices, bool kTransposed>
void store_matrices(const Operand* operands) {
  const auto rows = show(operands[0].shared());
  for (unsigned i = 0; i < kMatrices; ++i)
    for (unsigned k = 0; k < 2; ++k) {
      const unsigned across = lane() % 4 * 2 + k, down = lane() / 4;
      const auto element = static_cast<unsigned short>(operands[1 + i].as<unsigned>() >> 16 * k);
      memcpy(rows[8 * i + (kTransposed ? across : down)] + (kTransposed ? down : across) * 2, &element, 2);
    }
}

template <unsigned kBytes, bool kGiven>
void copy_later(const Operand* operands) {
  threads[current].groups.back().push_back(
      {operands[0].shared(), operands[1].as<const char*>(), kBytes, kGiven ? operands[2].as<unsigned>() : kBytes});
}
inline void close_group(const Operand*) { threads[current].groups.emplace_back(); }
inline void await_copies(size_t left) {
  auto& groups = threads[current].groups;
  for (; groups.size() > left + 1; groups.erase(groups.begin()))
    for (const Copy& copy : groups.front()) copy.arrive();
}

/// A barrier in shared memory: it turns when `expected` have arrived and no bytes are on their way.
struct Barrier {
  unsigned short phase : 1, expected : 15;
  short pending;
  int bytes;
  void settle() {
    if (pending != 0 || bytes != 0) return;
    phase ^= 1, pending = static_cast<short>(expected), turned = true;
  }
  void arrive() {
    if (pending == 0) fail("more arrive at a barrier than it was told of");
    --pending;
    settle();
  }
};
static_assert(sizeof(Barrier) == 8);
inline Barrier& barrier_at(const Operand& operand) { return *reinterpret_cast<Barrier*>(operand.shared()); }

inline void init_barrier(const Operand* operands) {
  const int count = operands[1].as<int>();
  barrier_at(operands[0]) = {0, static_cast<unsigned short>(count), static_cast<short>(count), 0};
}
inline void arrive_at(const Operand* operands) { barrier_at(operands[0]).arrive(); }
inline void announce_bytes(const Operand* operands) {
  barrier_at(operands[0]).bytes += operands[1].as<int>();
  barrier_at(operands[0]).arrive();
}
inline void arrive_when_fetched(const Operand* operands) {
  auto& groups = threads[current].groups;
  std::vector<Copy> copies;
  for (const auto& group : groups) copies.insert(copies.end(), group.begin(), group.end());
  groups.assign(1, {});
  late.push_back([copies = std::move(copies), barrier = &barrier_at(operands[0])] {
    for (const Copy& copy : copies) copy.arrive();
    barrier->arrive();
  });
}
inline void try_turn(const Operand* operands) {
  const Barrier& barrier = barrier_at(operands[1]);
  const unsigned phase = operands[2].as<unsigned>();
  if (barrier.phase == phase) wait(State::at_turn);
  operands[0].as<unsigned>() = barrier.phase != phase;
}
/// To the same place in each of `blocks`, and told at the same barrier there.
inline void copy_for_blocks(const Operand* operands, unsigned blocks) {
  const auto place = static_cast<size_t>(operands[0].shared() - own_shared()),
             barrier = static_cast<size_t>(operands[3].shared() - own_shared());
  const auto* from = operands[1].as<const char*>();
  const int bytes = operands[2].as<int>();
  if (place % 16 != 0 || reinterpret_cast<size_t>(from) % 16 != 0 || bytes % 16 != 0) fail("a copy of odd bytes");
  for (unsigned block = 0; block < kMostBlocks; ++block)
    if ((blocks >> block & 1) != 0)
      late.push_back([=] {
        memcpy(dynamic_shared[block] + place, from, static_cast<size_t>(bytes));
        auto& told = *reinterpret_cast<Barrier*>(dynamic_shared[block] + barrier);
        told.bytes -= bytes;
        told.settle();
      });
}
/// A box whose pieces of 16 bytes are exchanged by bits of where they lie; zeros where there is nothing.
template <unsigned kAxes>
void copy_box(const Operand* operands) {
  const MappedOperand& whole = *operands[1].as<const MappedOperand*>();
  const long long to = operands[0].shared() - own_shared();
  char *const shared = own_shared(), *const barrier = operands[kAxes + 2].shared();
  if (whole.axes != kAxes) fail("a box of another number of axes than its tensor");
  if (to % 128 != 0) fail("a box that does not begin at a multiple of 128 bytes");
  std::array<int, 4> first{};
  for (unsigned i = 0; i < kAxes; ++i) first[i] = operands[2 + i].as<int>();
  if (first[0] % 16 != 0) fail("a box of odd bytes");
  late.push_back([=] {
    const unsigned width = whole.box[0], rows = whole.box[1] * whole.box[2] * whole.box[3];
    for (unsigned row = 0; row < rows; ++row) {
      unsigned rest = row;
      long long from = 0, step = whole.sizes[0];
      bool there = true;
      for (unsigned i = 1; i < 4; ++i) {
        const long long at = first[i] + rest % whole.box[i];
        rest /= whole.box[i];
        there = there && at >= 0 && at < whole.sizes[i];
        from += at * step;
        step *= whole.sizes[i];
      }
      for (unsigned byte = 0; byte < width; byte += 16) {
        const long long straight = to + row * width + byte, place = straight ^ (straight >> 7 & (width / 16 - 1)) << 4;
        const long long at = first[0] + byte;  // rows are whole pieces, and so are boxes
        if (there && at >= 0 && at < whole.sizes[0]) memcpy(shared + place, whole.from + from + at, 16);
        else memset(shared + place, 0, 16);
      }
    }
    auto& told = *reinterpret_cast<Barrier*>(barrier);
    told.bytes -= static_cast<int>(width * rows);
    told.settle();
  });
}
template <unsigned kFloats>
void load_of_block(const Operand* operands) {
  for (unsigned i = 0; i < kFloats; ++i)
    operands[i].as<float>() = reinterpret_cast<const float*>(operands[kFloats].shared())[i];
}

/// Two elements a register, of two or three operands.
template <typename T, unsigned kOperands, auto Apply>
void by_halves(const Operand* operands) {
  unsigned result = 0;
  for (unsigned i = 0; i < 2; ++i) {
    const auto element = [&](unsigned operand) -> float {
      return T{static_cast<unsigned short>(operands[operand].as<unsigned>() >> 16 * i)};
    };
    const float value = Apply(element(1), element(2), kOperands > 2 ? element(kOperands) : 0.0f);
    result |= static_cast<unsigned>(bits_of(T{}, value)) << 16 * i;
  }
  operands[0].as<unsigned>() = result;
}

/// Two floats, the first one above.
template <typename T>
void pair_of(const Operand* operands) {
  operands[0].as<unsigned>() =
      static_cast<unsigned>(bits_of(T{}, operands[1].as<float>())) << 16 | bits_of(T{}, operands[2].as<float>());
}

struct Instruction {
  const char* text;
  void (*run)(const Operand*);
};
#define HONE_GROUPS(columns)                                                           \
  {"{.reg .pred adds_f16_" #columns ";", multiply_group<F16, float, columns>},         \
      {"{.reg .pred adds_bf16_" #columns ";", multiply_group<Bf16, float, columns>},   \
      {"{.reg .pred adds_e4m3_" #columns ";", multiply_group<E4m3, float, columns>}, { \
    "{.reg .pred adds_s8_" #columns ";", multiply_group<signed char, int, columns>     \
  }
#define HONE_SPARSE(columns)                                                                \
  {"{.reg .pred adds_f16_" #columns "_sparse0;", multiply_sparse<F16, 0, columns>},         \
      {"{.reg .pred adds_f16_" #columns "_sparse1;", multiply_sparse<F16, 1, columns>},     \
      {"{.reg .pred adds_bf16_" #columns "_sparse0;", multiply_sparse<Bf16, 0, columns>}, { \
    "{.reg .pred adds_bf16_" #columns "_sparse1;", multiply_sparse<Bf16, 1, columns>        \
  }
#define HONE_MULTIPLY(shape, a, b, A, B, Sum, sum) \
  { "mma.sync.aligned." shape ".row.col." sum "." a "." b "." sum " ", multiply<A, B, Sum> }
constexpr Instruction kInstructions[] = {
    {"cvt.f32.f16 ", [](const Operand* o) { o[0].as<float>() = F16{o[1].as<unsigned short>()}; }},
    {"cvt.rn.f16.f32 ",
     [](const Operand* o) {
       o[0].as<unsigned short>() = emulated_bits<unsigned short>(static_cast<_Float16>(o[1].as<float>()));
     }},
    {"cvt.rn.bf16.f32 ", [](const Operand* o) { o[0].as<unsigned short>() = bf16_bits(o[1].as<float>()); }},
    {"cvt.rn.f16x2.f32 ", pair_of<F16>},
    {"cvt.rn.bf16x2.f32 ", pair_of<Bf16>},
    {"cvt.rn.f16x2.e4m3x2 ",
     [](const Operand* o) {
       const auto half = [&](unsigned place) {
         const auto code = static_cast<unsigned char>(o[1].as<unsigned short>() >> 8 * place);
         return static_cast<unsigned>(bits_of(F16{}, E4m3{code})) << 16 * place;
       };
       o[0].as<unsigned>() = half(0) | half(1);
     }},
    {"cvt.rn.satfinite.e4m3x2.f32 ",
     [](const Operand* o) {
       o[0].as<unsigned short>() =
           static_cast<unsigned short>(bits_of(E4m3{}, o[1].as<float>()) << 8 | bits_of(E4m3{}, o[2].as<float>()));
     }},
    HONE_MULTIPLY("m16n8k16", "f16", "f16", F16, F16, float, "f32"),
    HONE_MULTIPLY("m16n8k16", "bf16", "bf16", Bf16, Bf16, float, "f32"),
    HONE_MULTIPLY("m16n8k32", "e4m3", "e4m3", E4m3, E4m3, float, "f32"),
    HONE_MULTIPLY("m16n8k32", "s8", "s8", signed char, signed char, int, "s32"),
    {"ldmatrix.sync.aligned.m8n8.x4.shared.b16 ", load_matrices<4, false>},
    {"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 ", load_matrices<4, true>},
    {"stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 ", store_matrices<4, true>},
    {"cp.async.cg.shared.global [%0], [%1], 16, %2;", copy_later<16, true>},
    {"cp.async.cg.shared.global [%0], [%1], 16;", copy_later<16, false>},
    {"cp.async.ca.shared.global [%0], [%1], 8, %2;", copy_later<8, true>},
    {"cp.async.ca.shared.global [%0], [%1], 4, %2;", copy_later<4, true>},
    {"cp.async.commit_group;", close_group},
    {"cp.async.wait_group %0;", [](const Operand* o) { await_copies(o[0].as<unsigned>()); }},
    {"cp.async.wait_all;", [](const Operand* o) { close_group(o), await_copies(0); }},
    {"ex2.approx.ftz.f32 ", [](const Operand* o) { o[0].as<float>() = std::exp2(o[1].as<float>()); }},
    {"rcp.approx.ftz.f32 ", [](const Operand* o) { o[0].as<float>() = 1 / o[1].as<float>(); }},
    {"tanh.approx.f32 ", [](const Operand* o) { o[0].as<float>() = std::tanh(o[1].as<float>()); }},
    {"max.f16x2 ", by_halves<F16, 2, [](float a, float b, float) { return std::fmax(a, b); }>},
    {"max.bf16x2 ", by_halves<Bf16, 2, [](float a, float b, float) { return std::fmax(a, b); }>},
    {"max.s16x2 ",
     [](const Operand* o) {
       unsigned result = 0;
       for (unsigned shift = 0; shift < 32; shift += 16) {
         const auto element = [&](unsigned i) { return static_cast<short>(o[i].as<unsigned>() >> shift); };
         result |= static_cast<unsigned>(static_cast<unsigned short>(std::max(element(1), element(2)))) << shift;
       }
       o[0].as<unsigned>() = result;
     }},
    {"sub.f16x2 ", by_halves<F16, 2, [](float a, float b, float) { return a - b; }>},
    {"fma.rn.bf16x2 ", by_halves<Bf16, 3, [](float a, float b, float c) { return a * b + c; }>},
    {"prefetch.", [](const Operand*) {}},
    {"griddepcontrol.", [](const Operand*) {}},
    {"fence.", [](const Operand*) {}},
    {"setmaxnreg.", [](const Operand*) {}},
    {"mbarrier.init.", init_barrier},
    {"mbarrier.arrive.expect_tx.", announce_bytes},
    {"mbarrier.arrive.", arrive_at},
    {"cp.async.mbarrier.arrive.noinc.", arrive_when_fetched},
    {"{.reg .pred turned; mbarrier.try_wait.parity.", try_turn},
    {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [",
     [](const Operand* o) { copy_for_blocks(o, 1u << own_block()); }},
    {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [",
     [](const Operand* o) { copy_for_blocks(o, o[4].as<unsigned short>()); }},
    {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [", copy_box<2>},
    {"cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [", copy_box<4>},
    {"mapa.shared::cluster.u32 ",
     [](const Operand* o) { o[0].as<unsigned>() = o[1].as<unsigned>() | (o[2].as<unsigned>() + 1) << kBlockShift; }},
    {"ld.shared::cluster.f32 ", load_of_block<1>},
    {"ld.shared::cluster.v2.f32 ", load_of_block<2>},
    {"st.shared.v4.b32 [%0], {%1, %1, %1, %1};",
     [](const Operand* o) {
       for (unsigned i = 0; i < 4; ++i) memcpy(o[0].shared() + 4 * i, &o[1].as<unsigned>(), 4);
     }},
    {"cvt.pack.sat.s8.s32.b32 ",
     [](const Operand* o) {
       const auto saturated = [](int value) {
         return static_cast<unsigned>(value < -128 ? -128 : value > 127 ? 127 : value) & 0xff;
       };
       o[0].as<unsigned>() = o[3].as<unsigned>() << 16 | saturated(o[1].as<int>()) << 8 | saturated(o[2].as<int>());
     }},
    {"ld.global.nc.v4.f32 ",
     [](const Operand* o) {
       for (unsigned i = 0; i < 4; ++i) o[i].as<float>() = o[4].as<const float*>()[i];
     }},
    {"barrier.cluster.", [](const Operand*) { wait(State::at_cluster); }},
    {"wgmma.wait_group.", [](const Operand*) { wait(State::at_group); }},  // four warps multiply as one
    {"wgmma.", [](const Operand*) {}},
    {"/* held */", [](const Operand*) {}},
    HONE_GROUPS(64),
    HONE_GROUPS(128),
    HONE_GROUPS(192),
    HONE_GROUPS(256),
    HONE_SPARSE(64),
    HONE_SPARSE(128),
    HONE_SPARSE(192),
    HONE_SPARSE(256),
};
#undef HONE_GROUPS
#undef HONE_SPARSE
#undef HONE_MULTIPLY

inline const Instruction& find_instruction(const char* text) {
  for (const Instruction& each : kInstructions)
    if (strncmp(text, each.text, strlen(each.text)) == 0) return each;
  fail(text);
}

}  // namespace emulated
