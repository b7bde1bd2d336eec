# SPDX-License-Identifier: Apache-2.0
"""torch.compile's backend and plans of exported programs, beside torch itself. Skipped where torch or onnxscript is not installed."""

import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import IMPORTED, PACKAGE

sys.path.insert(0, str(PACKAGE))
hone = pytest.importorskip("hone", reason="this build has no Python binding (sanitizers)")
torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")
import hone.torch  # noqa: E402


class Small(torch.nn.Module):
    """A convolution, a normalisation in place, a view of the input and a size beside it."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.out = torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.Linear(8, 5)
        self.act = torch.nn.ReLU(inplace=True)

    def forward(self, x, times=2):
        y = self.act(self.norm(self.conv(x))).mean((2, 3))
        return self.out(y) * times, x.flatten(1), x.shape[0]


@pytest.fixture
def small():
    torch._dynamo.reset()
    torch.manual_seed(3)
    return Small().eval()


def image(count, size=8):
    return torch.randn(count, 3, size, size, generator=torch.Generator().manual_seed(count))


def compiled(model, folder, **options):
    return torch.compile(model, backend=hone.torch.backend, options={"cache": folder, "flags": ["--builderOptimizationLevel=0"], **options})


def told(function):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        answer = function()
    return answer, [str(each.message) for each in heard if issubclass(each.category, hone.torch.HoneWarning)]


@torch.no_grad()
def test_a_model_gives_what_it_gave_at_every_shape(folder, small):
    run = compiled(small, folder)
    for count, times in ((2, 2), (3, 2), (5, 2), (40, 2), (3, 7), (3, 8)):
        x = image(count)
        (answers, heard), expected = told(lambda: run(x, times)), small(x, times)
        assert not heard
        torch.testing.assert_close(answers[0], expected[0], rtol=1e-4, atol=1e-4)
        assert answers[1].data_ptr() == x.data_ptr() and answers[2] == count


def test_gradients_are_those_of_torch(folder, small):
    found, expected = [], []
    for model, into in ((compiled(small, folder), found), (small, expected)):
        x = image(2).requires_grad_()
        small.zero_grad()
        model(x)[0].square().sum().backward()
        into += [x.grad, small.conv.weight.grad.clone(), small.out.bias.grad.clone()]
    for each in zip(found, expected):
        torch.testing.assert_close(*each, rtol=1e-3, atol=1e-4)


@torch.no_grad()
def test_changed_weights_are_noticed(folder, small):
    run = compiled(small, folder)
    for _ in range(3):
        torch.testing.assert_close(run(image(2))[0], small(image(2))[0], rtol=1e-4, atol=1e-4)
        small.out.weight.mul_(-2)
    _, heard = told(lambda: [run(image(2)) for _ in range(9) if small.out.weight.add_(1) is not None])
    assert len(heard) == 1 and "change from call to call" in heard[0]


@torch.no_grad()
@pytest.mark.parametrize("function, reason", [
    (lambda x: torch.linalg.eigh(x)[0] + 1, "_linalg_eigh"),
    (lambda x: torch.fft.fft(x), "complex64"),
    (lambda x: x.add_(1).sin(), "add_"),
    (lambda x: x.view(-1).mul_(2).sin(), "mul_"),
    (lambda x: torch.nn.functional.dropout(x, training=True) * 0, "random"),
    (lambda x: torch.nn.functional.batch_norm(x, torch.zeros(4), torch.ones(4), training=True), "batch_norm"),
])
def test_what_an_engine_cannot_do_runs_in_torch_after_one_warning(folder, function, reason):
    torch._dynamo.reset()
    run = compiled(function, folder)
    for first in (True, False):
        x = torch.eye(4) + 1
        (answer, heard), expected = told(lambda x=x: run(x)), function(torch.eye(4) + 1)
        torch.testing.assert_close(answer, expected)
        assert len(heard) == (1 if first else 0) and all(reason in each for each in heard)


@torch.no_grad()
def test_training_keeps_its_running_averages(folder):
    torch._dynamo.reset()
    norms = [torch.nn.BatchNorm1d(4).train() for _ in range(2)]
    _, heard = told(lambda: compiled(norms[0], folder)(torch.arange(12.0).reshape(3, 4)))
    norms[1](torch.arange(12.0).reshape(3, 4))
    assert len(heard) == 1 and "training" in heard[0]
    torch.testing.assert_close(norms[0].running_mean, norms[1].running_mean)


@torch.no_grad()
def test_types_stay_what_they_are(folder):
    torch._dynamo.reset()

    def function(x):
        return x.bfloat16() * 2, x.half() + 1, x > 0, x.long(), x.double()

    for found, expected in zip(compiled(function, folder)(torch.arange(6.0)), function(torch.arange(6.0))):
        torch.testing.assert_close(found, expected)


@torch.no_grad()
def test_tensors_that_are_written_in_the_source_are_constants(folder):
    torch._dynamo.reset()

    def function(x):
        return x[:, torch.tensor([0, 2, 1])] * torch.tensor([1.0, 2.0, 3.0])

    found, heard = told(lambda: compiled(function, folder)(torch.arange(6.0).reshape(2, 3)))
    assert not heard
    torch.testing.assert_close(found, function(torch.arange(6.0).reshape(2, 3)))


@torch.no_grad()
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_recurrent_layers_where_torch_traces_them(folder, kind):
    torch._dynamo.reset()
    torch.manual_seed(8)
    model = getattr(torch.nn, kind)(6, 4, 2, batch_first=True, bidirectional=True, dropout=0.5).eval()
    with torch._dynamo.config.patch(allow_rnn=True):
        run = compiled(model, folder)
        for count in (2, 3):
            x = torch.randn(count, 5, 6)
            found, heard = told(lambda x=x: run(x)[0])
            assert not heard and list(folder.glob("*.plan"))
            torch.testing.assert_close(found, model(x)[0], rtol=1e-4, atol=1e-4)


SECOND = """
import sys, time, torch, hone.torch
from hone.torch import exporting
sys.path.insert(0, sys.argv[2])
import test_torch as tests
def fail(*_): raise SystemExit("the exporter was asked")
exporting.exported = exporting.model_of = fail
backend = sys.modules["hone.torch.backend"]
made, init = [], backend.ShapedEngines.__init__
def note(self, *arguments, **options):
    init(self, *arguments, **options)
    made.append(self)
backend.ShapedEngines.__init__ = note
call, times = backend.Compiled.__call__, []
def timed(self, *arguments):
    start = time.perf_counter()
    answer = call(self, *arguments)
    times.append(time.perf_counter() - start)
    return answer
backend.Compiled.__call__ = timed
torch.manual_seed(3)
model = tests.Small().eval()
with torch.no_grad():
    torch.testing.assert_close(tests.compiled(model, sys.argv[1])(tests.image(2))[0], model(tests.image(2))[0], rtol=1e-4, atol=1e-4)
print(f"built {sum(each.built for each in made)}, loaded {sum(each.loaded for each in made)}, first call behind torch's tracing {times[0]:.3f} s")
"""


@torch.no_grad()
def test_another_process_finds_the_engines(folder, small):
    compiled(small, folder)(image(2))
    assert list(folder.glob("*.plan"))
    done = subprocess.run([sys.executable, "-c", SECOND, folder, os.path.dirname(__file__)], capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": IMPORTED})
    assert done.returncode == 0 and "HoneWarning" not in done.stderr, done.stderr
    assert "built 0, loaded 1," in done.stdout, done.stdout
    print(done.stdout)


class Fixed(torch.nn.Module):
    """Channels by a convolution, length by what is added: torch may still trace both as symbols."""

    def __init__(self):
        super().__init__()
        self.conv, self.place = torch.nn.Conv1d(6, 4, 3, padding=1), torch.nn.Parameter(torch.randn(4, 20))

    def forward(self, x):
        return self.conv(x) + self.place


@torch.no_grad()
def test_what_an_operator_fixes_is_no_size_that_changes(folder):
    torch._dynamo.reset()
    model = Fixed().eval()
    run = torch.compile(model, backend=hone.torch.backend, options={"cache": folder, "flags": ["--builderOptimizationLevel=0"]}, dynamic=True)
    for rows in (2, 3):
        x = torch.randn(rows, 6, 20)
        found, heard = told(lambda x=x: run(x))
        assert not heard, heard
        torch.testing.assert_close(found, model(x), rtol=1e-4, atol=1e-4)
    assert len(list(folder.glob("*.plan"))) == 1


@torch.no_grad()
def test_exported_programs_become_plans(folder, small):
    program = torch.export.export(small, (image(2),), dynamic_shapes=({0: torch.export.Dim.AUTO}, None)[:1])
    hone.torch.save_plan(program, folder / "small.plan", ["--builderOptimizationLevel=0"])
    context = hone.load(folder / "small.plan").engine().context()
    (name,) = context.engine.inputs
    for count in (2, 7):
        outputs = list(context.run({name: image(count).numpy()}).values())
        np.testing.assert_allclose(outputs[0], small(image(count))[0].numpy(), rtol=1e-4, atol=1e-4)


def test_misspelt_options_are_refused(small):
    with pytest.raises(Exception, match="there is no option flgas"):
        torch.compile(small, backend=hone.torch.backend, options={"flgas": []})(image(2))


def devices():
    return ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


def close(found, expected, device):
    """On a GPU products of f32 may be made of TF32."""
    near = 1e-4 if device == "cpu" else 1e-2
    torch.testing.assert_close(found, expected, rtol=near, atol=near)


@torch.no_grad()
@pytest.mark.parametrize("device", devices())
def test_results_stay_what_they_are_wherever_inputs_lie(folder, small, device):
    small.to(device)
    run, kept = compiled(small, folder), []
    fixed = image(2).to(device)
    for turn in range(6):
        fixed.copy_(image(2) + turn)  # another content where the last lay
        kept.append((run(fixed)[0], small(fixed)[0]))
    for turn in range(6):
        moving = (image(2) - turn).to(device)
        kept.append((run(moving)[0], small(moving)[0]))
        gaps = (image(2, 9) - turn).to(device).transpose(2, 3)
        kept.append((run(gaps)[0], small(gaps)[0]))
    for found, expected in kept:
        close(found, expected, device)


@torch.no_grad()
@pytest.mark.parametrize("device", devices())
def test_threads_share_a_compiled_model(folder, small, device):
    small.to(device)
    run = compiled(small, folder)
    run(image(2).to(device))

    def work(number):
        found = []
        with torch.no_grad():
            for turn in range(20):
                x = (image(2) + number * 20 + turn).to(device)
                found.append((run(x)[0], small(x)[0]))
        return found

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(work, range(4)):
            for each in found:
                close(*each, device)


@torch.no_grad()
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU that torch sees")
def test_streams_captures_and_numbers_on_a_gpu(folder, small):
    small.cuda()
    run = compiled(small, folder)
    x = image(2).cuda()
    for stream in (torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.current_stream()):
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(4):
                found = run(x)[0]
        torch.cuda.synchronize()
        close(found, small(x)[0], "cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = run(x)[0]
    for turn in range(3):
        x.copy_(image(2) * turn)
        graph.replay()
        torch.cuda.synchronize()
        close(found, small(x)[0], "cuda")

    def with_number(x, number):
        return (x * number).sin()

    scaled = compiled(with_number, folder)
    for number in (2.0, 3.0, 4.0):
        close(scaled(x, torch.tensor(number)), with_number(x, number), "cuda")


@torch.no_grad()
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU that torch sees")
def test_changed_weights_are_noticed_behind_the_launch(folder, small):
    small.cuda()
    run = compiled(small, folder)
    for _ in range(3):
        for _ in range(3):
            close(run(image(2).cuda())[0], small(image(2).cuda())[0], "cuda")
        small.out.weight.mul_(-2)
