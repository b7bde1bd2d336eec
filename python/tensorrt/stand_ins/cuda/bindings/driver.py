# SPDX-License-Identifier: Apache-2.0
"""The driver's functions that programs call beside the run-time library's. There is one device, one context, and there are no kernels."""

import enum

from cuda._library import Handle, cudaError_t
from cuda.bindings import runtime


class CUresult(enum.IntEnum):
    """What went wrong."""

    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NOT_INITIALIZED = 3
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_INVALID_DEVICE = 101
    CUDA_ERROR_INVALID_HANDLE = 400
    CUDA_ERROR_NOT_SUPPORTED = 801
    CUDA_ERROR_UNKNOWN = 999


class CUdevice(Handle):
    """The processor."""


class CUcontext(Handle):
    """The one context."""


class CUstream(Handle):
    """A stream."""


class CUdeviceptr(Handle):
    """An address."""


def _result(error):
    number = int(error)
    return CUresult(number) if number in CUresult._value2member_map_ else CUresult.CUDA_ERROR_UNKNOWN


def cuInit(flags):  # noqa: N802: the package's names, here and below
    """Nothing is to be done."""
    return CUresult.CUDA_SUCCESS,


def cuDeviceGetCount():  # noqa: N802
    """One."""
    return CUresult.CUDA_SUCCESS, 1


def cuDeviceGet(ordinal):  # noqa: N802
    """The processor."""
    return (CUresult.CUDA_SUCCESS, CUdevice(0)) if int(ordinal) == 0 else (CUresult.CUDA_ERROR_INVALID_DEVICE, None)


def cuDeviceGetName(length, device):  # noqa: N802
    """Its name, as bytes."""
    error, properties = runtime.cudaGetDeviceProperties(0)
    return _result(error), properties.name[:length]


def cuDeviceGetAttribute(attribute, device):  # noqa: N802
    """0: a processor has none of them."""
    return CUresult.CUDA_SUCCESS, 0


def cuCtxCreate(*arguments):  # noqa: N802
    """The one context."""
    return CUresult.CUDA_SUCCESS, CUcontext(1)


def cuCtxGetCurrent():  # noqa: N802
    """The one context."""
    return CUresult.CUDA_SUCCESS, CUcontext(1)


def _nothing(*arguments):
    """Nothing is to be done."""
    return CUresult.CUDA_SUCCESS,


cuCtxDestroy = cuCtxSetCurrent = cuCtxPushCurrent = cuCtxSynchronize = cuDevicePrimaryCtxRelease = _nothing


def cuDevicePrimaryCtxRetain(device):  # noqa: N802
    """The one context."""
    return CUresult.CUDA_SUCCESS, CUcontext(1)


def cuGetErrorName(error):  # noqa: N802
    """The error's name, as bytes."""
    return CUresult.CUDA_SUCCESS, _result(error).name.encode()


def cuGetErrorString(error):  # noqa: N802
    """The same: there are no texts."""
    return cuGetErrorName(error)


def cuMemAlloc(size):  # noqa: N802
    """Memory of the host's."""
    error, address = runtime.cudaMalloc(size)
    return _result(error), None if error != cudaError_t.cudaSuccess else CUdeviceptr(address)


def cuMemFree(address):  # noqa: N802
    """Gives it back."""
    return _result(runtime.cudaFree(address)[0]),


def cuMemcpyHtoD(to, come, size):  # noqa: N802
    """A copy."""
    return _result(runtime.cudaMemcpy(to, come, size, 1)[0]),


def cuMemcpyDtoH(to, come, size):  # noqa: N802
    """A copy."""
    return _result(runtime.cudaMemcpy(to, come, size, 2)[0]),


def cuStreamCreate(flags):  # noqa: N802
    """A stream."""
    error, stream = runtime.cudaStreamCreateWithFlags(flags)
    return _result(error), None if error != cudaError_t.cudaSuccess else CUstream(int(stream))


def cuStreamSynchronize(stream):  # noqa: N802
    """Nothing is ever under way."""
    return _result(runtime.cudaStreamSynchronize(stream)[0]),


def cuStreamDestroy(stream):  # noqa: N802
    """Forgets it."""
    return _result(runtime.cudaStreamDestroy(stream)[0]),


def _no_kernels(*arguments, **named):
    """A processor runs no kernels of GPUs."""
    return CUresult.CUDA_ERROR_NOT_SUPPORTED, None


cuModuleLoadData = cuModuleGetFunction = cuModuleUnload = cuLaunchKernel = cuModuleLoadDataEx = _no_kernels
