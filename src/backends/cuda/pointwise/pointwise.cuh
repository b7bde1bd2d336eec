// SPDX-License-Identifier: Apache-2.0
//
// The frame around a generated formula: a thread takes V neighbours of the innermost axis. Before this stand S (scalars),
// formula.cuh, Result, V, OPERANDS, AXES, the parameters and, where all sizes are known, FIXED_NEST.

template <typename T> static inline bool load_vector(Vector<T, V>& to, const T* from, int offset, int inner) {
  if (V > 1 && inner == 1) to = *reinterpret_cast<const Vector<T, V>*>(from + offset);
  else to.at[0] = from[offset];
  return V > 1 && inner == 1;
}

#ifdef FIXED_NEST
#define NEST constexpr Nest nest = FIXED_NEST;
#else
#define NEST const Nest& nest = nest_argument;
#endif

#define BEGIN                                                        \
  await_operands();                                                  \
  NEST                                                               \
  const int item = blockIdx.x * blockDim.x + threadIdx.x;            \
  if (item >= count) return;                                         \
  int offsets[OPERANDS + 1] = {};                                    \
  unsigned rest = (unsigned)item;                                    \
  _Pragma("unroll") for (int axis = AXES - 1; axis >= 0; --axis) {   \
    if (nest.sizes[axis] == 1) continue;                             \
    const unsigned size = axis == AXES - 1 ? nest.sizes[axis] / V : nest.sizes[axis]; \
    const int at = (int)(rest % size) * (axis == AXES - 1 ? V : 1);  \
    rest /= size;                                                    \
    _Pragma("unroll") for (int k = 0; k <= OPERANDS; ++k) offsets[k] += at * nest.strides[k][axis]; \
  }
#define LOAD(element, pointer, k) load_vector(element, pointer, offsets[k], nest.strides[k][AXES - 1])
#define STORE(values)                                                                        \
  if (V > 1) *reinterpret_cast<Vector<Result, V>*>(result + offsets[OPERANDS]) = values;    \
  else result[offsets[OPERANDS]] = values.at[0];
