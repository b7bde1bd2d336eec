# SPDX-License-Identifier: Apache-2.0
"""Graphs of which an engine cannot compute every operator, through torch.compile: the rest stays in engines, one warning names what does
not, and the next process exports no part again. Skipped where torch or onnxscript is not installed."""

import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")
import test_torch as tests  # noqa: E402

hone = tests.hone


class Around(torch.nn.Module):
    """Convolutions before and behind something that `middle` computes of a picture's eight channels."""

    def __init__(self, middle):
        super().__init__()
        self.begin = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(inplace=True))
        self.end = torch.nn.Sequential(torch.nn.Conv2d(8, 4, 3, padding=1), torch.nn.ReLU(inplace=True))
        self.out, self.middle = torch.nn.Linear(4, 5), middle

    def forward(self, x):
        y = self.begin(x)
        return self.out(self.end(y + self.middle(y)).mean((2, 3))), y.shape[0]


def cholesky(y):
    means = y.mean((2, 3))
    return torch.linalg.cholesky(means.unsqueeze(-1) * means.unsqueeze(-2) + torch.eye(8) * 3).sum((1, 2))[:, None, None, None]


def solved(y):
    return torch.linalg.solve(torch.eye(8) * 3 + y, y)


def mask(y):
    return torch.nn.functional.dropout(y, training=True)


def model_around(middle):
    torch._dynamo.reset()
    torch.manual_seed(4)
    return Around(middle).eval()


@torch.no_grad()
@pytest.mark.parametrize("middle, named", [(cholesky, "linalg_cholesky"), (solved, "linalg_solve"), (mask, "dropout")])
def test_one_warning_names_what_runs_in_torch(folder, middle, named):
    model = model_around(middle)
    run = tests.compiled(model, folder)
    for turn, count in enumerate((2, 2, 3)):
        x = tests.image(count)
        torch.manual_seed(count)
        (found, size), heard = tests.told(lambda x=x: run(x))
        torch.manual_seed(count)
        torch.testing.assert_close(found, model(x)[0], rtol=1e-4, atol=1e-4)
        assert size == count
        assert len(heard) == (1, 0, 1)[turn]  # torch traces again where a size has changed
        assert all(named in each and "beside 2 engines" in each for each in heard), heard
    assert len(list(folder.glob("*.plan"))) >= 2
    kept = [path.read_text() for path in folder.glob("*.torch")]
    assert kept and all(named in each for each in kept)


def test_random_numbers_and_gradients_stay_in_torch(folder):
    model = model_around(mask)
    x = tests.image(2)
    torch.manual_seed(1)
    (found, _), heard = tests.told(lambda: tests.compiled(model, folder)(x))
    torch.manual_seed(1)
    torch.testing.assert_close(found, model(x)[0], rtol=1e-4, atol=1e-4)
    assert len(heard) == 1 and "random" in heard[0] and "a graph of" in heard[0]


def test_gradients_of_a_graph_in_parts(folder):
    model, grads = model_around(cholesky), []
    for call in (tests.compiled(model, folder), model):
        model.zero_grad()
        call(tests.image(2))[0].square().sum().backward()
        grads.append([each.grad.clone() for each in model.parameters()])
    for each in zip(*grads):
        torch.testing.assert_close(*each, rtol=1e-3, atol=1e-4)


SECOND = """
import sys, time, torch, hone.torch
from hone.torch import exporting
sys.path.insert(0, sys.argv[2])
import test_torch_parts as tests
def fail(*_): raise SystemExit("the exporter to ONNX was asked")
exporting.model_of = fail
model = tests.model_around(tests.cholesky)
x = tests.tests.image(2)
with torch.no_grad():
    torch.testing.assert_close(tests.tests.compiled(model, sys.argv[1])(x)[0], model(x)[0], rtol=1e-4, atol=1e-4)
"""


@torch.no_grad()
def test_another_process_finds_the_parts(folder):
    tests.compiled(model_around(cholesky), folder)(tests.image(2))
    done = subprocess.run([sys.executable, "-c", SECOND, folder, os.path.dirname(__file__)], capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": tests.IMPORTED})
    assert done.returncode == 0, done.stderr


@torch.no_grad()
@pytest.mark.parametrize("masks", [(), ("src_mask",), ("src_key_padding_mask",), ("src_mask", "src_key_padding_mask")])
@pytest.mark.parametrize("norm_first, act", [(False, "relu"), (True, "gelu")])
def test_layers_that_torch_fuses_ahead_of_a_backend(folder, masks, norm_first, act):
    """nn.TransformerEncoderLayer without gradients is one operator of torch's, which the exporter does not know."""
    torch._dynamo.reset()
    torch.manual_seed(6)
    layer = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, norm_first=norm_first, activation=act).eval()
    given = {"src_mask": torch.ones(5, 5, dtype=torch.bool).triu(1), "src_key_padding_mask": torch.tensor([[False] * 5, [False, False, False, True, True]])}
    options = {name: given[name] for name in masks}
    run = tests.compiled(lambda x: layer(x, **options), folder)
    x = torch.randn(2, 5, 16)
    found, heard = tests.told(lambda: run(x))
    assert not heard and len(list(folder.glob("*.plan"))) == 1
    torch.testing.assert_close(found, layer(x, **options), rtol=1e-4, atol=1e-4)
