# SPDX-License-Identifier: Apache-2.0
"""Arrays in device memory: their memory and copies, no arithmetic."""

import numpy as np

from pycuda import driver


class GPUArray:
    """An array in device memory."""

    def __init__(self, shape, dtype, allocator=None, gpudata=None, order="C"):
        self.shape = tuple(shape) if hasattr(shape, "__len__") else (shape,)
        self.dtype = np.dtype(dtype)
        self.nbytes = driver.size_of(self.shape, self.dtype)
        self.size = self.nbytes // self.dtype.itemsize
        self.gpudata = driver.mem_alloc(max(1, self.nbytes)) if gpudata is None else gpudata

    @property
    def ptr(self):
        """Where it lies."""
        return int(self.gpudata)

    def set(self, array):
        """Takes an array's elements."""
        array = np.ascontiguousarray(array, self.dtype)
        if array.size != self.size:
            raise ValueError(f"{array.size} elements do not fit into {self.size}")
        if self.nbytes:
            driver.memcpy_htod(self.gpudata, array)

    def set_async(self, array, stream=None):
        """The same: done when it returns."""
        self.set(array)

    def get(self, ary=None):
        """Its elements."""
        array = np.empty(self.shape, self.dtype) if ary is None else ary
        if self.nbytes:
            driver.memcpy_dtoh(array, self.gpudata)
        return array

    def get_async(self, stream=None, ary=None):
        """The same: done when it returns."""
        return self.get(ary)

    def __len__(self):
        return self.shape[0] if self.shape else 0


def empty(shape, dtype, allocator=None, order="C"):
    """An array of no particular contents."""
    return GPUArray(shape, dtype)


def zeros(shape, dtype=np.float64, allocator=None, order="C"):
    """An array of zeros."""
    array = GPUArray(shape, dtype)
    array.set(np.zeros(array.shape, array.dtype))
    return array


def to_gpu(ary, allocator=None):
    """An array with another's elements."""
    array = GPUArray(np.shape(ary), ary.dtype)
    array.set(ary)
    return array


def to_gpu_async(ary, allocator=None, stream=None):
    """The same."""
    return to_gpu(ary)
