# SPDX-License-Identifier: Apache-2.0
"""The compiler of kernels, which there is none of here."""

import enum


class nvrtcResult(enum.IntEnum):  # noqa: N801: the package's names, here and below
    """What went wrong."""

    NVRTC_SUCCESS = 0
    NVRTC_ERROR_PROGRAM_CREATION_FAILURE = 2


def nvrtcCreateProgram(*arguments):  # noqa: N802
    """A processor runs no kernels of GPUs."""
    return nvrtcResult.NVRTC_ERROR_PROGRAM_CREATION_FAILURE, None


def nvrtcGetErrorString(result):  # noqa: N802
    """The error's name, as bytes."""
    return nvrtcResult.NVRTC_SUCCESS, nvrtcResult(result).name.encode()


def nvrtcVersion():  # noqa: N802
    """There is none."""
    return nvrtcResult.NVRTC_SUCCESS, 0, 0
