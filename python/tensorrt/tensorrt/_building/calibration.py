# SPDX-License-Identifier: Apache-2.0
"""INT8 calibrators: a program gives samples, and what they show of each tensor's range becomes a cache of scales that the build reads.

The network runs once in f32 with all its tensors observed. A cache is text as TensorRT writes it: "TRT-101601-EntropyCalibration2",
then a line for each tensor with its scale, the bytes of a float as eight hexadecimal digits.
"""

import ctypes
import math
import struct

import hone
import numpy as np

from .._base import enums, native, surface
from .._base.reports import called, relay
from .ranges import Histogram

_Algo = enums.get("CalibrationAlgoType")
_METHODS = ("LEGACY_CALIBRATION", "ENTROPY_CALIBRATION", "ENTROPY_CALIBRATION_2", "MINMAX_CALIBRATION")
_KINDS = {"LEGACY_CALIBRATION": "LegacyCalibration", "ENTROPY_CALIBRATION": "EntropyCalibration",
          "ENTROPY_CALIBRATION_2": "EntropyCalibration2", "MINMAX_CALIBRATION": "MinMaxCalibration"}


class IInt8Calibrator:
    """Gives samples; to be derived from: get_batch_size(), get_batch(names), read_calibration_cache(),
    write_calibration_cache(cache), get_algorithm()."""

    _algorithm = "ENTROPY_CALIBRATION_2"

    def __init__(self):
        pass

    def get_algorithm(self):
        """How ranges are found."""
        return getattr(_Algo, self._algorithm) if _Algo is not None else self._algorithm


class IInt8EntropyCalibrator(IInt8Calibrator):
    """The range that loses least information."""

    _algorithm = "ENTROPY_CALIBRATION"


class IInt8EntropyCalibrator2(IInt8Calibrator):
    """The same."""

    _algorithm = "ENTROPY_CALIBRATION_2"


class IInt8MinMaxCalibrator(IInt8Calibrator):
    """The whole range."""

    _algorithm = "MINMAX_CALIBRATION"


class IInt8LegacyCalibrator(IInt8Calibrator):
    """A quantile of the values: get_quantile()."""

    _algorithm = "LEGACY_CALIBRATION"


class CalibrationFailed(Exception):
    """Why there are no scales."""


def _method(calibrator):
    name = getattr(called(calibrator.get_algorithm), "name", None)
    if name not in _METHODS:
        raise CalibrationFailed(f"the calibrator's get_algorithm() returned {name}, not one of {', '.join(_METHODS)}")
    return name


def _threshold(histogram, method, calibrator):
    if method == "MINMAX_CALIBRATION":
        return histogram.largest
    if method == "LEGACY_CALIBRATION":
        share = called(calibrator.get_quantile) if hasattr(calibrator, "get_quantile") else None
        return histogram.quantile(0.9999 if share is None else float(share))
    return histogram.least_entropy()


def _batch(calibrator, names):
    """Addresses of the next sample; None where there is none."""
    given = called(calibrator.get_batch, names)
    if given is None or len(given) == 0:
        return None
    addresses = [int(address) for address in given]
    if len(addresses) != len(names):
        raise CalibrationFailed(f"the calibrator's get_batch() returned {len(addresses)} addresses for the {len(names)} inputs "
                                f"{', '.join(names)}")
    return addresses


class _Observed:
    """The network in f32; `model` has all of its tensors as outputs."""

    def __init__(self, model, shapes, logger):
        profiles = [{name: (shape,) * 3 for name, shape in shapes.items() if -1 in model.inputs[name][1]}]
        receive, threshold = relay(logger)
        plan = model.build(["--builderOptimizationLevel=0", "--noTF32", "--noBuilderCache"], native.device(), receive, min(threshold, 2),
                           profiles=profiles if profiles[0] else ())
        self.engine = hone.Engine(plan, native.device())
        self.context = self.engine.context()
        self.shapes = shapes

    def run(self, addresses, add):
        """One sample; add(tensor, values) hears of all that is f32."""
        feeds = {}
        for name, address in addresses.items():
            dtype = self.engine.inputs[name][0]
            feeds[name] = array_at(address, self.shapes[name], dtype)
            if dtype == np.float32:
                add(name, feeds[name])
        for name, value in self.context.run(feeds).items():
            if getattr(value, "dtype", None) == np.float32:
                add(name, value)


def array_at(address, shape, dtype):
    """What lies at an address of the device, as an array of the host's."""
    count = math.prod(shape) * dtype.itemsize
    if not native.on_host():
        array = np.empty(shape, dtype)
        with native.device().stream() as stream:
            stream.handle.copy(array.ctypes.data, address, count)
            stream.synchronize()
        return array
    return np.frombuffer((ctypes.c_byte * count).from_address(address), dtype).reshape(shape) if count else np.empty(shape, dtype)


def _text(scales, method):
    version = surface.VERSION.split(".")
    head = f"TRT-{version[0]}{int(version[1]):02d}{int(version[2]):02d}-{_KINDS[method]}\n"
    return (head + "".join(f"{name}: {struct.pack('>f', scale).hex()}\n" for name, scale in scales.items())).encode()


def cache_of(calibrator, model, names, shapes, inputs, logger):
    """The calibration cache for a network, read or made. `model` is Hone's, with all tensors as outputs, `names` what
    the build calls them, `shapes` {input: sizes} of the samples, `inputs` the inputs' names in the network's order. CalibrationFailed says why there is none."""
    method = _method(calibrator)
    known = called(calibrator.read_calibration_cache)
    if known is not None and len(known) > 0:
        return bytes(known)
    addresses = _batch(calibrator, list(inputs))
    if addresses is None:
        raise CalibrationFailed("the calibrator has neither samples nor a cache")
    observed, histograms = _Observed(model, shapes, logger), {}
    while addresses is not None:
        observed.run(dict(zip(inputs, addresses)), lambda name, values: histograms.setdefault(name, Histogram()).add(values))
        addresses = _batch(calibrator, list(inputs))
    scales = {names.get(name, name): (_threshold(histogram, method, calibrator) or 1.0) / 127 for name, histogram in histograms.items()}
    text = _text(scales, method)
    called(calibrator.write_calibration_cache, memoryview(text))
    return text


def with_ranges(text, ranges):
    """A cache with further scales: of tensors whose ranges the network says."""
    text = text or _text({}, "ENTROPY_CALIBRATION_2")
    kept = [line for line in text.decode(errors="replace").splitlines() if line.rpartition(":")[0] not in ranges]
    return ("\n".join(kept + [f"{name}: {struct.pack('>f', most / 127).hex()}" for name, most in ranges.items()]) + "\n").encode()
