# SPDX-License-Identifier: Apache-2.0
"""IOptimizationProfile: the ranges of shapes that an engine serves, and of the values of shape tensors."""

from .._base.values import Dims


def _whole(number):
    """The number as an int; TypeError where it is none."""
    whole = int(number)
    if whole != number:
        raise TypeError(f"a profile holds whole numbers, {number!r} is none")
    return whole


def _range(name, shapes, kind):
    """Three lists of numbers that ascend and are of one length."""
    least, likeliest, most = (tuple(map(_whole, shape)) for shape in shapes)
    if not len(least) == len(likeliest) == len(most):
        raise RuntimeError(f"the {kind} of {name} in a profile are of several lengths: {least}, {likeliest}, {most}")
    if any(not low <= middle <= high for low, middle, high in zip(least, likeliest, most)):
        raise RuntimeError(f"the {kind} of {name} in a profile do not ascend: {least}, {likeliest}, {most}")
    return least, likeliest, most


class IOptimizationProfile:
    """The ranges of the inputs' shapes; true when they are consistent."""

    def __init__(self):
        self._shapes, self._values = {}, {}
        self._extra_memory_target = 1.0

    def set_shape(self, input, min, opt, max):
        """The smallest, likeliest and largest shape of an input; RuntimeError where they do not ascend."""
        shapes = _range(input, (min, opt, max), "shapes")
        if any(size < 0 for shape in shapes for size in shape):
            raise RuntimeError(f"the shapes of {input} in a profile have negative sizes: {', '.join(map(str, shapes))}")
        self._shapes[input] = shapes

    def get_shape(self, input):
        """The three as Dims; [] where none were set."""
        return [Dims(shape) for shape in self._shapes.get(input, ())]

    def set_shape_input(self, input, min, opt, max):
        """The smallest, likeliest and largest values of a shape tensor."""
        self._values[input] = _range(input, (min, opt, max), "values")

    def get_shape_input(self, input):
        """The three as lists; [] where none were set."""
        return [list(values) for values in self._values.get(input, ())]

    @property
    def extra_memory_target(self):
        """Kept: kernels of several profiles share memory anyway."""
        return self._extra_memory_target

    @extra_memory_target.setter
    def extra_memory_target(self, target):
        self._extra_memory_target = float(target)

    def __bool__(self):
        return True

    __nonzero__ = __bool__
