# SPDX-License-Identifier: Apache-2.0
"""One network in several processes: collectives against their meaning, models that are divided against the whole, ranks that do not come,
end early or do something else."""

import json
import os
import random
import sys

import numpy as np
import onnx
import pytest
import ranks
import tiny
from conftest import IMPORTED, Program
from onnx import TensorProto, helper
from ranks import Launch

SEED = int(os.environ.get("HONE_FUZZ_SEED", random.randrange(1 << 31)))


def give(folder, name, arrays):
    for rank, array in enumerate(arrays):
        np.save(folder / f"{name}{rank}.npy", array)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int32", "int64", "uint8", "int8", "int16", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("inside", [False, True])
def test_every_collective_on_every_axis_is_what_it_means(folder, dtype, inside):
    nodes, inputs, results = ranks.every_form(inside)
    model = ranks.save(folder / "model.onnx", nodes, inputs, results, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
    values = [np.random.default_rng(rank).integers(1, 5 if inside else 6, (4, 2, 3)).astype(dtype) for rank in range(2)]
    give(folder, "x", values)
    Launch(folder)("run", "model.onnx", "-i", "x:x{rank}.npy", "-o", "out")
    for mine, expected in zip(ranks.outputs(folder, "out"), ranks.reference([model, model], [{"x": x} for x in values]), strict=True):
        assert set(mine) == set(results)
        for name in results:
            np.testing.assert_allclose(mine[name], expected[name], rtol=1e-3 if dtype == "float16" else 1e-6, err_msg=name)


def test_an_attention_that_is_spread_as_polygraphy_spreads_it_gives_what_the_whole_one_gives(folder):
    """hone multi-device shard, which writes what polygraphy's does (test_oracle_more.py): a part of the sequence on each rank."""
    sizes = ["b", 2, "sequence_length", 4]
    nodes = [helper.make_node("Transpose", ["k"], ["turned"], name="turn", perm=[0, 1, 3, 2]), helper.make_node("MatMul", ["q", "turned"], ["s"], name="scores"),
             helper.make_node("Softmax", ["s"], ["p"], name="softmax", axis=-1), helper.make_node("MatMul", ["p", "v"], ["y"], name="result")]
    tiny.save(folder / "model.onnx", nodes, inputs=[(name, sizes) for name in "qkv"], outputs=[("y", sizes)], opset=18)
    (folder / "ranks").mkdir()
    done = Program(folder, "hone").run("multi-device", "shard", "model.onnx", "--one-shot", "--gpus", "2", "--i-idx", "2", "--o-idx", "2", "--k-idx", "3", "--v-idx", "2",
                                       "-o", "ranks/model.onnx")
    assert done.returncode == 0, done.stdout
    kinds = [node.op_type for node in onnx.load(folder / "ranks/model.onnx").graph.node]
    assert kinds.count("DistCollective") == 6, kinds
    feeds = {name: np.random.default_rng(7).standard_normal((1, 2, 6, 4), np.float32) for name in "qkv"}
    assert max(differences(folder, "model.onnx", feeds)) < 1e-6


# ---- Models that are divided ----

def transformer(path, heads=4, width=32, vocabulary=64, one_matrix=False):
    """Two layers of attention and perceptron with norms and residual sums, over a table; tokens [b,s]."""
    draw, weights, nodes = np.random.default_rng(3), {}, []

    def weight(name, *dims):
        weights[name] = draw.standard_normal(dims, np.float32) * np.float32(0.3)
        return name

    def add(op, inputs, output, **attributes):
        nodes.append(helper.make_node(op, inputs, [output] if isinstance(output, str) else output, name=f"node_{len(nodes)}", **attributes))
        return output

    weights["heads"], weights["flat"] = np.array([0, 0, heads, width // heads]), np.array([0, 0, width])
    weights["scale"], weights["gain"] = np.float32((width // heads) ** -0.5), np.ones(width, np.float32)
    x = add("Gather", [weight("table", vocabulary, width), "tokens"], "embedded")
    for layer in "01":
        n = add("LayerNormalization", [x, "gain"], f"n{layer}", axis=-1)
        if one_matrix:
            t = add("Add", [add("MatMul", [n, weight(f"qkv{layer}", width, 3 * width)], f"t{layer}"), weight(f"qkv_bias{layer}", 3 * width)], f"tb{layer}")
            parts = add("Split", [t], [f"{part}{layer}" for part in "qkv"], axis=2, num_outputs=3)
        else:
            parts = [add("Add", [add("MatMul", [n, weight(f"w{part}{layer}", width, width)], f"p{part}{layer}"), weight(f"b{part}{layer}", width)],
                         f"{part}{layer}") for part in "qkv"]
        turned = [add("Transpose", [add("Reshape", [part, "heads"], f"{part}_heads")], f"{part}_turned", perm=[0, 2, 3, 1] if part[0] == "k" else [0, 2, 1, 3])
                  for part in parts]
        scores = add("Mul", [add("MatMul", turned[:2], f"scores{layer}"), "scale"], f"scaled{layer}")
        mixed = add("MatMul", [add("Softmax", [scores], f"probabilities{layer}", axis=-1), turned[2]], f"mixed{layer}")
        flat = add("Reshape", [add("Transpose", [mixed], f"back{layer}", perm=[0, 2, 1, 3]), "flat"], f"flat{layer}")
        o = add("Add", [add("MatMul", [flat, weight(f"wo{layer}", width, width)], f"out{layer}"), weight(f"bo{layer}", width)], f"outb{layer}")
        x = add("Add", [x, o], f"r{layer}")
        n = add("LayerNormalization", [x, "gain"], f"m{layer}", axis=-1)
        up = add("Add", [add("MatMul", [n, weight(f"up{layer}", width, 4 * width)], f"u{layer}"), weight(f"bu{layer}", 4 * width)], f"ub{layer}")
        h = add("Relu", [up], f"g{layer}")
        x = add("Add", [x, add("MatMul", [h, weight(f"down{layer}", 4 * width, width)], f"d{layer}")], f"s{layer}")
    add("MatMul", [x, weight("head", width, vocabulary)], "logits")
    return tiny.save(path, nodes, weights, inputs=[("tokens", ["b", "s"], TensorProto.INT64)], outputs=[("logits", ["b", "s", vocabulary])], opset=18,
                     ir_version=9)


def divide(folder, model, *flags, ranks_=2):
    return json.loads(Program(folder, "hone").answer("shard", model, f"--tp={ranks_}", "-o", "ranks", "--json", *flags))


def differences(folder, model, feeds, ranks_=2):
    """Of each rank's outputs from those of the whole model, relative."""
    words, shapes = [], ["-s", ",".join(f"{name}:{'x'.join(map(str, array.shape))}" for name, array in feeds.items())]
    for name, array in feeds.items():
        np.save(folder / f"{name}.npy", array)
        words.append(f"{name}:{name}.npy")
    Program(folder, "hone")("run", model, "--noTF32", "-i", ",".join(words), "-o", "whole", *shapes)
    Launch(folder, ranks=ranks_)("run", f"ranks/{model}", "--noTF32", "-i", ",".join(words), "-o", "out", *shapes)
    found = []
    for mine in ranks.outputs(folder, "out", ranks_):
        for name, array in mine.items():
            whole = np.load(folder / "whole" / f"{name}.npy")
            found.append(float(np.linalg.norm(array - whole) / np.linalg.norm(whole)))
    return found


@pytest.mark.parametrize("one_matrix", [False, True])
@pytest.mark.parametrize("form", ["tensorrt", "microsoft"])
def test_a_transformer_that_is_divided_gives_what_the_whole_one_gives(folder, one_matrix, form):
    transformer(folder / "model.onnx", one_matrix=one_matrix)
    report = divide(folder, "model.onnx", f"--form={form}")
    assert report["pairs"] == 4, report
    assert {row["weight"] for row in report["whole"]} == {"table", "head"}, "small ones stay whole and are named"
    tokens = np.random.default_rng(1).integers(0, 64, (2, 5))
    assert max(differences(folder, "model.onnx", {"tokens": tokens})) < 1e-5


def test_four_ranks_and_open_sizes_are_the_same(folder):
    transformer(folder / "model.onnx")
    assert divide(folder, "model.onnx", ranks_=4)["pairs"] == 4
    assert max(differences(folder, "model.onnx", {"tokens": np.arange(6).reshape(1, 6)}, ranks_=4)) < 1e-5


def test_large_tables_and_heads_are_divided_by_columns(folder):
    transformer(folder / "model.onnx", width=64, vocabulary=1 << 14)
    report = divide(folder, "model.onnx")
    assert (report["pairs"], report["alone"], report["tables"], report["whole"]) == (4, 1, 1, [])
    sizes = [(folder / f"ranks/model.onnx.rank{rank}").stat().st_size for rank in range(2)]
    assert max(sizes) < 0.52 * (folder / "model.onnx").stat().st_size
    assert report["estimate"]["slower"] and report["estimate"]["collectives"] == 6, "a small network waits longer than it reads"
    assert not divide(folder, "model.onnx", "--collective-us=0")["estimate"]["slower"]
    assert max(differences(folder, "model.onnx", {"tokens": np.arange(6).reshape(1, 6)})) < 1e-5


def test_weights_in_another_file_are_cut_there(folder):
    transformer(folder / "inside.onnx", width=64)
    onnx.save(onnx.load(folder / "inside.onnx"), folder / "model.onnx", save_as_external_data=True, size_threshold=0, location="weights.bin")
    assert divide(folder, "model.onnx")["pairs"] == 4
    assert (folder / "ranks/model.onnx.rank1.data").stat().st_size < 0.6 * (folder / "weights.bin").stat().st_size
    assert max(differences(folder, "model.onnx", {"tokens": np.arange(6).reshape(1, 6)})) < 1e-5


def test_plans_of_ranks_are_built_saved_measured_and_checked(folder):
    transformer(folder / "model.onnx")
    divide(folder, "model.onnx")
    told = Launch(folder, "trtexec")("--onnx=ranks/model.onnx", "--saveEngine=model.plan", "--shapes=tokens:1x4", "--iterations=20", "--duration=0", "--warmUp=0")
    assert "PASSED" in told[0] and "Throughput" in told[0] and "Throughput" not in told[1]
    assert (folder / "model.plan.rank0").exists() and (folder / "model.plan.rank1").exists()
    told = Launch(folder)("bench", "model.plan", "-s", "tokens:1x4", "-t", "0.2", "--json")
    assert json.loads(told[0])["queries"] > 0 and told[1] == ""
    kinds = Program(folder, "hone").answer("inspect", "model.plan.rank0")
    assert "Collective" in kinds or "gloo" in kinds


# ---- What goes wrong ----

@pytest.fixture
def plans(folder):
    return ranks.plans_for_faults(folder)


def test_a_process_that_is_started_alone_says_what_it_needs(plans):
    done = Program(plans, "hone").run("run", "model.plan.rank0", "-s", "x:2x4")
    assert done.returncode == 1 and "divided over several ranks" in done.stdout and "torchrun" in done.stdout


def test_another_number_of_ranks_is_refused(plans):
    done = Launch(plans, ranks=3).run("run", "model.plan.rank0", "-s", "x:2x4")
    assert all(status == 1 and "made for 2 ranks, there are 3" in text for status, text in done), done


@pytest.mark.parametrize("kind", ranks.SENTENCES)
def test_whatever_another_rank_does_ends_in_a_sentence_and_not_in_a_hang(plans, kind):
    print(f"HONE_FUZZ_SEED={SEED}")
    generator = random.Random(f"{SEED} {kind}")
    for _ in range(2):
        done = ranks.fault(plans, kind, generator)
        for status, text in done:
            assert ranks.is_told(kind, status, text), (kind, status, text)


# ---- Ranks agree ----

def kernels_of(folder, plan):
    return [layer["kernel"] for layer in json.loads(Program(folder, "hone").answer("inspect", plan, "--layers", "--json"))["layers"]]


def test_ranks_with_different_timing_caches_choose_the_same(folder):
    """Rank 0 chooses: what the other has measured, or another file says, changes nothing."""
    transformer(folder / "model.onnx")
    divide(folder, "model.onnx")
    flags, one = ["--shapes=tokens:1x4", "--skipInference"], {"HONE_THREADS": "1"}
    Program(folder, "trtexec")("--onnx=ranks/model.onnx.rank1", "--timingCacheFile=0.cache", *flags, env=one)
    with open(folder / "1.cache", "w", encoding="utf-8") as file:  # others than linear's usual kernel win; written as Hone writes lines
        for row in map(json.loads, (folder / "0.cache").read_text().splitlines()):
            if "| cpu.linear(" in row.get("key", ""):
                row["ms"] *= 1000
            file.write(json.dumps(row, separators=(",", ":")) + "\n")
    for rank in range(2):
        Program(folder, "trtexec")("--onnx=ranks/model.onnx.rank1", f"--saveEngine=alone{rank}.plan", f"--timingCacheFile={rank}.cache", *flags, env=one)
    assert kernels_of(folder, "alone0.plan") != kernels_of(folder, "alone1.plan"), "the caches do not disagree"
    Launch(folder, "trtexec")("--onnx=ranks/model.onnx", "--saveEngine=model.plan", "--timingCacheFile={rank}.cache", *flags)
    assert kernels_of(folder, "model.plan.rank0") == kernels_of(folder, "model.plan.rank1") == kernels_of(folder, "alone0.plan")


def test_results_that_all_ranks_have_are_the_same_bits_in_a_thousand_runs(folder):
    transformer(folder / "model.onnx")
    divide(folder, "model.onnx")
    (folder / "hash.py").write_text("""
import hashlib, os, sys
import numpy as np, hone
engine = hone.build("ranks/model.onnx.rank" + os.environ["RANK"], ["--shapes=tokens:1x4"]).engine().context()
digest = hashlib.sha256()
for i in range(1000):
    digest.update(engine.run({"tokens": np.full((1, 4), i % 60)})["logits"].tobytes())
print(digest.hexdigest())
""")
    told = Launch(folder, [sys.executable, "hash.py"])(env=lambda rank: {"PYTHONPATH": IMPORTED})
    assert len(told[0].strip()) == 64 and told[0] == told[1]
