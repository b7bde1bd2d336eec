# SPDX-License-Identifier: Apache-2.0
"""The run-time library's functions."""

import ctypes

from cuda._library import (  # noqa: F401
    LIBRARY,
    cudaError_t,
    cudaEvent_t,
    cudaMemcpyKind,
    cudaMemPool_t,
    cudaMemPoolProps,
    cudaStream_t,
    function,
)

_LETTERS = {
    "cudaMalloc": "Pz", "cudaFree": "p", "cudaMallocHost": "Pz", "cudaFreeHost": "p", "cudaHostAlloc": "Pzu", "cudaMallocManaged": "Pzu",
    "cudaMallocAsync": "Pzs", "cudaFreeAsync": "ps", "cudaMallocFromPoolAsync": "Pzss", "cudaMemcpy": "ppzi", "cudaMemcpyAsync": "ppzis",
    "cudaMemset": "piz", "cudaMemsetAsync": "pizs", "cudaMemGetInfo": "ZZ", "cudaHostRegister": "pzu", "cudaHostUnregister": "p",
    "cudaStreamCreate": "S", "cudaStreamCreateWithFlags": "Su", "cudaStreamCreateWithPriority": "Sui", "cudaStreamDestroy": "s",
    "cudaStreamSynchronize": "s", "cudaStreamQuery": "s", "cudaStreamWaitEvent": "ssu", "cudaStreamBeginCapture": "si",
    "cudaStreamEndCapture": "sP", "cudaStreamIsCapturing": "sI", "cudaEventCreate": "E", "cudaEventCreateWithFlags": "Eu",
    "cudaEventRecord": "ss", "cudaEventSynchronize": "s", "cudaEventQuery": "s", "cudaEventElapsedTime": "Fss", "cudaEventDestroy": "s",
    "cudaGetDeviceCount": "I", "cudaGetDevice": "I", "cudaSetDevice": "i", "cudaDeviceSynchronize": "", "cudaDeviceReset": "",
    "cudaDeviceGetAttribute": "Iii", "cudaRuntimeGetVersion": "I", "cudaDriverGetVersion": "I", "cudaGetLastError": "",
    "cudaPeekAtLastError": "", "cudaMemPoolDestroy": "s", "cudaMemPoolTrimTo": "sz",
}
for _name, _letters in _LETTERS.items():
    globals()[_name] = function(_name, _letters)

cudaStreamDefault, cudaStreamNonBlocking, cudaStreamPerThread, cudaStreamLegacy = 0, 1, 2, 1
_create_pool, _set_pool = function("cudaMemPoolCreate", "Gp"), function("cudaMemPoolSetAttribute", "sip")
for _name in ("cudaGetErrorName", "cudaGetErrorString"):
    getattr(LIBRARY, _name).restype = ctypes.c_char_p


class cudaMemPoolAttr:  # noqa: N801
    """What a pool can be told."""

    cudaMemPoolAttrReleaseThreshold = 4


class cudaMemAllocationType:  # noqa: N801
    """How a pool's memory is."""

    cudaMemAllocationTypePinned = 1


class cudaMemLocationType:  # noqa: N801
    """Where it is."""

    cudaMemLocationTypeDevice = 1


class cudaDeviceProp:  # noqa: N801
    """The processor."""

    def __init__(self, name, memory):
        self.name, self.totalGlobalMem, self.major, self.minor, self.multiProcessorCount = name, memory, 0, 0, 1


def cudaGetDeviceProperties(device):  # noqa: N802
    """Name and memory of the processor."""
    place = ctypes.create_string_buffer(1024)
    error = cudaError_t(LIBRARY.cudaGetDeviceProperties(place, int(device)))
    if error != cudaError_t.cudaSuccess:
        return error, None
    return error, cudaDeviceProp(place.raw[:256].split(b"\0")[0], int.from_bytes(place.raw[288:296], "little"))


def cudaMemPoolCreate(properties):  # noqa: N802
    """A pool, by name alone."""
    return _create_pool(ctypes.addressof(ctypes.create_string_buffer(8)))


def cudaMemPoolSetAttribute(pool, attribute, value):  # noqa: N802
    """Kept nowhere."""
    place = ctypes.c_uint64(int(value))
    return _set_pool(pool, int(attribute), ctypes.addressof(place))


def cudaGetErrorName(error):  # noqa: N802
    """The error's name, as bytes."""
    return cudaError_t.cudaSuccess, LIBRARY.cudaGetErrorName(int(error))


def cudaGetErrorString(error):  # noqa: N802
    """What it means, as bytes."""
    return cudaError_t.cudaSuccess, LIBRARY.cudaGetErrorString(int(error))
