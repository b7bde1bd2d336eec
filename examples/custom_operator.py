# SPDX-License-Identifier: Apache-2.0
"""An operator of one's own as a Python function:  custom_operator.py MODEL.onnx

MODEL has nodes SoftClip of the domain com.acme: y = limit tanh(x / limit), with the attribute `limit`.
"""

import sys

import hone
import numpy as np


@hone.operator("com.acme", "SoftClip", attributes={"limit": 1.0})
def soft_clip(x, limit):
    return limit * np.tanh(x / np.float32(limit))


plan = hone.build(sys.argv[1])
plan.save("custom.plan")  # whoever loads it registers com.acme::SoftClip before
with plan.engine().context() as context:
    name, (dtype, shape) = next(iter(context.engine.inputs.items()))
    shape = [max(size, 1) for size in shape]  # dynamic sizes are -1
    values = np.linspace(-4, 4, int(np.prod(shape)), dtype=dtype).reshape(shape)
    for output, result in context.run({name: values}).items():
        print(output, *result.ravel().round(4))
