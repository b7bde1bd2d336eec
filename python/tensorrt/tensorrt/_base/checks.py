# SPDX-License-Identifier: Apache-2.0
"""Arguments that are something else than the interface says: TypeError, as TensorRT's bindings raise it."""


def instance(value, cls, what, none=False):
    """The value where it is of the class, or None where that may be; else TypeError."""
    if isinstance(value, cls) or none and value is None:
        return value
    raise TypeError(f"{what}: {type(value).__name__} is no tensorrt.{cls.__name__}")


def buffer(value, what):
    """The bytes of a buffer; TypeError for what is none."""
    try:
        return bytes(memoryview(value))
    except (TypeError, BufferError):
        raise TypeError(f"{what}: {type(value).__name__} is no buffer") from None


def kept(member, cls, about):
    """A property that keeps the very object that is set, of a class, or None."""
    def put(self, value):
        setattr(self, member, instance(value, cls, member.strip("_"), none=True))

    return property(lambda self: getattr(self, member), put, doc=about)
