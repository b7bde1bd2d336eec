# SPDX-License-Identifier: Apache-2.0
"""The Python package with other packages' memory, streams and loops: nothing is copied, nothing polls, threads of Python's go on."""

import asyncio
import contextlib
import gc
import os
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest
import tiny
from conftest import PACKAGE
from onnx import helper

sys.path.insert(0, str(PACKAGE))
hone = pytest.importorskip("hone", reason="this build has no Python binding (sanitizers)")

FLAGS = ["--minShapes=x:1x4", "--optShapes=x:2x4", "--maxShapes=x:8x4", "--builderOptimizationLevel=0"]
WEIGHTS = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    path = tiny.perceptron(tmp_path_factory.mktemp("model") / "model.onnx")
    return hone.build(path, FLAGS, "cpu/1").engine("cpu/1")


def rows(count):
    return np.random.default_rng(count).standard_normal((count, 4)).astype(np.float32)


def expected(values):
    return np.maximum(np.asarray(values) @ WEIGHTS + 1, 0)


def is_right(found, values):
    np.testing.assert_allclose(found, expected(values), rtol=1e-5, atol=1e-5)


class Speaker:
    """A tensor of another package: all that is known of it is DLPack."""

    def __init__(self, array, old=False):
        self.array, self.old, self.asked = array, old, []

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options):
        self.asked.append(options)
        if self.old and options:
            raise TypeError("no such options")
        return self.array.__dlpack__(**options)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.array, dtype)


class OnGpu:
    """What a GPU's tensor says of itself; nobody may read it here."""

    def __init__(self, address=4096, shape=(2, 4), typestr="<f4", strides=None):
        self.__cuda_array_interface__ = {"version": 3, "shape": shape, "typestr": typestr, "data": (address, False), "strides": strides}


@pytest.mark.parametrize("old", [False, True])
def test_tensors_of_other_packages_are_read_and_written_where_they_lie(engine, old):
    x, y = Speaker(rows(2), old), Speaker(np.zeros((2, 8), np.float32), old)
    with engine.context() as context:
        context.set_input("x", x)
        context.bind("y", y)
        context.run_bound()
        is_right(y.array, x.array)
        x.array[:] = rows(3)[:2]  # its memory, not a copy
        context.run_bound()
        is_right(y.array, rows(3)[:2])
    assert x.asked and y.asked


def test_what_cannot_be_shared_is_copied_as_an_input_and_refused_as_an_output(engine):
    with engine.context() as context:
        for values in (Speaker(np.asfortranarray(rows(3))), rows(3).astype(np.float64), rows(6)[::2], rows(3).tolist()):
            is_right(context.run({"x": values})["y"], np.asarray(values, np.float32))
        locked = np.zeros((3, 8), np.float32)
        locked.flags.writeable = False
        for output, reason in ((np.zeros((8, 3), np.float32).T, "gaps"), (np.zeros((3, 8)), "float64"), (locked, "may not be written"), ("text", "no array")):
            with pytest.raises(hone.Error, match=reason):
                context.bind("y", output)
        with pytest.raises(hone.Error, match="there is no output z"):
            context.bind("z", rows(3))


WITHOUT = """
import sys
sys.modules["ml_dtypes"] = None
import ctypes, hone, numpy as np
network = hone.Network()
for name, kind in (("a", "float64"), ("b", "bfloat16")):
    network.input(name, kind, [2])
    network.node("Identity", [name], [name + "y"])
    network.output(name + "y")
context = network.model().build(["--builderOptimizationLevel=0"]).engine().context()
b = context.engine.device.empty((2,), "bfloat16")
(ctypes.c_uint16 * 2).from_address(b.address)[:] = 0x3f80, 0x4000
found = context.run({"a": np.array([1.5, 2.5]), "b": b})
print(found["ay"].tolist(), found["by"])
try:
    context.run({"b": np.ones(2, np.float32)})
except hone.Error as error:
    print(error)
"""


def test_types_that_numpy_lacks_are_not_taken_for_others():
    done = subprocess.run([sys.executable, "-c", WITHOUT], env={**os.environ, "PYTHONPATH": str(PACKAGE)}, capture_output=True, text=True, check=True)
    assert "[1.5, 2.5] hone.Tensor(bfloat16[2]" in done.stdout and "install ml_dtypes" in done.stdout


def test_memory_of_a_gpu_is_known_by_its_interface_and_refused_on_a_processor(engine):
    from hone.arrays import memory_of

    memory = memory_of(OnGpu())
    assert (memory.address, memory.kind, hone.DTYPES[memory.type], memory.shape) == (4096, 2, np.float32, (2, 4))
    assert memory_of(OnGpu(strides=(16, 4))).address == 4096 and memory_of(OnGpu(strides=(4, 8))) is None
    assert memory_of(OnGpu(0, (0, 4))).address  # nothing lies there, but no pointer may be NULL
    with engine.context() as context:
        with pytest.raises(hone.Error, match="bound to a tensor on a GPU"):
            context.set_input("x", OnGpu())
        with pytest.raises(hone.Error, match="the tensor holds int32"):
            context.set_input("x", OnGpu(typestr="<i4"))


def test_tensors_are_seen_by_others_without_a_copy(engine):
    tensor = engine.device.empty((2, 3), "int16")
    tensor.write([[1, 2, 3], [4, 5, 6]])
    for array in (np.from_dlpack(tensor), np.asarray(tensor), tensor.numpy()):
        assert array.dtype == np.int16 and array.tolist() == [[1, 2, 3], [4, 5, 6]] and array.ctypes.data == tensor.address
    tensor.numpy()[1, 1] = 9
    assert np.from_dlpack(tensor)[1, 1] == 9
    assert tensor.address % 64 == 0 and tensor.__dlpack_device__() == (1, 0) and not hasattr(tensor, "__cuda_array_interface__")
    with pytest.raises(BufferError):
        tensor.__dlpack__(copy=True, max_version=(1, 0))
    kept, address = np.asarray(tensor), tensor.address
    del tensor, array
    assert kept.ctypes.data == address and kept.tolist() == [[1, 2, 3], [4, 9, 6]]  # the array keeps the memory
    scalar = engine.device.empty((), "float64", "host")
    scalar.write(2.5)
    assert float(scalar.numpy()) == 2.5 and np.from_dlpack(scalar).shape == ()
    with pytest.raises(hone.Error, match="the values have"):
        scalar.write([1, 2])
    with pytest.raises(hone.Error, match="complex128"):
        engine.device.empty((2,), "complex128")


def test_tensors_are_bound_and_copied_in_a_stream(engine):
    device = engine.device
    x, y = device.empty((2, 4)), device.empty((2, 8))
    with engine.context() as context, device.stream() as stream, device.event() as event:
        context.set_input("x", x)
        context.bind("y", y)
        found = np.empty((2, 8), np.float32)
        begin = stream.record()
        for count in (2, 5):
            stream.copy(x, rows(count)[:2])
            context.enqueue(stream)
            stream.copy(found, y)
            event.record(stream)
            event.synchronize()
            assert event.passed() and event.milliseconds_since(begin) >= 0
            is_right(found, rows(count)[:2])
        with pytest.raises(hone.Error, match="two tensors of one type"):
            stream.copy(x, y)
        with pytest.raises(hone.Error, match="no CUDA stream"):
            device.stream("default")
        with pytest.raises(hone.Error, match="make the stream with Hone"):
            device.stream(1)


def test_several_contexts_are_awaited_in_one_loop(engine):
    async def ask(context, counts):
        return [((await context.run_async({"x": rows(count)}))["y"], count) for count in counts]

    async def main():
        with contextlib.ExitStack() as stack:
            contexts = [stack.enter_context(engine.context()) for _ in range(3)]
            return await asyncio.gather(*(ask(context, (1, 8, 2 + at)) for at, context in enumerate(contexts)))

    for _ in range(2):  # in a loop of its own each
        for answers in asyncio.run(main()):
            for found, count in answers:
                is_right(found, rows(count))


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """An engine that computes for long enough that others are seen to work meanwhile."""
    from onnx import helper

    nodes = [helper.make_node("MatMul", ["x" if at == 0 else f"h{at}", "w"], [f"h{at + 1}" if at < 23 else "y"]) for at in range(24)]
    path = tiny.save(tmp_path_factory.mktemp("slow") / "slow.onnx", nodes, {"w": np.eye(512, dtype=np.float32)}, [("x", [1024, 512])])
    return hone.build(path, ["--builderOptimizationLevel=0"], "cpu/1").engine("cpu/1")


def test_the_loop_goes_on_while_an_inference_runs(slow):
    async def main():
        ticks, going = 0, True

        async def tick():
            nonlocal ticks
            while going:
                await asyncio.sleep(0)
                ticks += 1

        with slow.context() as context:
            values = np.ones((1024, 512), np.float32)
            ticker = asyncio.create_task(tick())
            first = asyncio.create_task(context.run_async({"x": values}))
            await asyncio.sleep(0)
            with pytest.raises(hone.Error, match="at work"):
                await context.run_async({"x": values})
            answer = (await first)["y"]
            going = False
            await ticker
            context.set_input("x", values)
            context.allocate_outputs()
            await context.enqueue()
            return ticks, answer, context.bound["y"].copy()

    ticks, *answers = asyncio.run(main())
    assert ticks > 1
    for answer in answers:
        np.testing.assert_allclose(answer, 1, rtol=1e-5)


def test_a_cancelled_task_ends_its_inference(slow):
    async def main():
        with slow.context() as context:
            values = np.ones((1024, 512), np.float32)
            task = asyncio.create_task(context.run_async({"x": values}))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            stream = context.stream
            context.enqueue()
            context.cancel()
            with contextlib.suppress(hone.Cancelled):  # it may have been done
                await stream.done()
            with contextlib.suppress(hone.Cancelled):
                context.wait()
            np.testing.assert_allclose((await context.run_async({"x": values}))["y"], 1, rtol=1e-5)

    asyncio.run(main())


def test_a_stream_tells_of_its_failures_and_outlives_its_loop(slow):
    values = np.ones((1024, 512), np.float32)
    context = slow.context()

    async def leave():
        context.set_input("x", values)
        context.allocate_outputs()
        for _ in range(3):
            context.enqueue()
        context.stream.done()  # nobody awaits it: the loop is closed before

    asyncio.run(leave())
    context.stream.synchronize()
    del context


def test_threads_of_python_go_on_while_the_library_works(slow):
    counted, going = 0, True

    def count():
        nonlocal counted
        while going:
            counted += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        with slow.context() as context:
            before = counted
            context.run({"x": np.ones((1024, 512), np.float32)})
            during = counted - before
    finally:
        going = False
        thread.join()
    assert during > 1


def test_outputs_are_placed_by_a_function(engine, folder):
    from onnx import helper

    asked = []

    def place(shape):
        asked.append(np.full(shape, -1, np.float32))
        return asked[-1]

    with engine.context() as context:
        context.set_input("x", rows(3))
        context.place_output("y", place)
        context.run_bound()
        is_right(asked[-1], rows(3))
        context.place_output("y", lambda shape: None)
        with pytest.raises(hone.Error, match="returned no memory"):
            context.run_bound()
        context.place_output("y", None)
        is_right(context.run({"x": rows(2)})["y"], rows(2))
    kept = engine.context()
    kept.place_output("y", place)
    seen = weakref.ref(kept)
    del kept
    assert seen() is None  # the function does not keep its context
    path = tiny.save(folder / "places.onnx", [helper.make_node("NonZero", ["x"], ["y"])], outputs=[("y", None, 7)])
    with hone.build(path, FLAGS).engine().context() as context:
        found = []
        context.place_output("y", lambda shape: found.append(np.empty(shape, np.int64)) or found[-1])
        context.run({"x": np.eye(4, dtype=np.float32)})
        assert found[-1].tolist() == [[0, 1, 2, 3], [0, 1, 2, 3]]


def test_two_contexts_take_turns_in_one_memory(slow):
    values = np.ones((1024, 512), np.float32)
    with slow.context() as one, slow.context() as two:
        size = one.memory_bytes()
        memory = slow.device.empty((size + 256,), "uint8")
        start = -memory.address % 256
        for context in (one, two):
            context.set_memory(memory.numpy()[start:start + size])
        for context in (one, two, one):
            memory.numpy()[:] = 255
            np.testing.assert_allclose(context.run({"x": values})["y"], 1, rtol=1e-5)
        assert size > values.nbytes // 2 and (memory.numpy() != 255).any()  # it is this memory that was used
        one.set_memory(None)
        np.testing.assert_allclose(one.run({"x": values})["y"], 1, rtol=1e-5)


def test_a_device_says_what_it_is():
    with hone.Device("cpu", workers=1, instruction_set="avx2") as device:
        assert device.info.kind == "cpu" and device.info.workers == 1 and not device.info.architecture.startswith("avx512")
        assert "float32" in device.info.multiplied_types and device.info.host_accessible and device.ordinal == 0
    with hone.Device("cpu", cores=[min(os.sched_getaffinity(0))]) as device:
        assert device.info.workers == 1
    with pytest.raises(hone.Error):
        hone.Device("cpu", workers=-1)


def test_a_removed_python_operator_is_freed_with_the_last_engine_that_uses_it(folder):
    path = tiny.save(folder / "model.onnx", [helper.make_node("Kept", ["x"], ["y"], domain="test.memory")])

    def double(x):
        return x * 2

    operator, gone = hone.Operator(double, "test.memory", "Kept"), weakref.ref(double)
    engine = hone.build(path, ["--shapes=x:2x4", "--builderOptimizationLevel=0"], "cpu/1").engine("cpu/1")
    operator.remove()
    del operator, double
    gc.collect()
    assert gone() is not None
    np.testing.assert_array_equal(engine.context().run({"x": np.ones((2, 4), np.float32)})["y"], np.full((2, 4), 2))
    engine.close()
    del engine
    gc.collect()
    assert gone() is None
    kept = hone.Operator(lambda x: x, "test.memory", "Twice")
    with pytest.raises(hone.Error, match="test.memory::Twice"):
        hone.Operator(lambda x: x, "test.memory", "Twice")  # not registered, so not released
    kept.remove()


def test_what_is_made_of_a_plan_keeps_the_bytes_that_it_was_read_of(tmp_path):
    """The library reads bytes that begin at a multiple of 64 where they lie: an engine, a network, refitted plans and builds of it, too."""
    data = hone.build(tiny.perceptron(tmp_path / "model.onnx"), [*FLAGS, "--refit"]).bytes()
    plan, before = hone.Plan.parse(data), sys.getrefcount(data)
    network = plan.network()
    refitted = plan.refit({"w": WEIGHTS * 2})
    again = refitted.refit({"w": WEIGHTS})
    made = [network, refitted, again, again.network(), network.build([*FLAGS, "--refit"])]
    assert all(each._data == (data,) for each in made)
    del plan, network, refitted, made
    gc.collect()
    assert sys.getrefcount(data) >= before
    engine = again.engine("cpu/1")
    del again
    gc.collect()
    with engine.context() as context:
        np.testing.assert_allclose(context.run({"x": rows(3)})["y"], expected(rows(3)), rtol=1e-4, atol=1e-4)
