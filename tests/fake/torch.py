# SPDX-License-Identifier: Apache-2.0
"""As much of torch, on a processor, as examples/torch_stream.py calls: tensors that other packages know by DLPack alone."""

import numpy as np

float32, float16, int64, int32 = np.float32, np.float16, np.int64, np.int32


class Tensor:
    def __init__(self, array):
        self._array = array

    @property
    def shape(self):
        return self._array.shape

    def fill_(self, value):
        self._array.fill(value)
        return self

    def sum(self):
        return Tensor(self._array.sum())

    def __float__(self):
        return float(self._array)

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def zeros(shape, dtype=float32, device="cpu"):
    assert device == "cpu"
    return Tensor(np.zeros(shape, dtype))


class cuda:  # noqa: N801
    @staticmethod
    def is_available():
        return False
