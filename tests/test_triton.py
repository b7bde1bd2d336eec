# SPDX-License-Identifier: Apache-2.0
"""Hone behind Triton Inference Server: the real server from PyPI, its clients, models that are served without a configuration or with one.
What needs no server is in src/triton/backend_test.cpp; what is timed in bench/serving.py."""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import threading
import time

import numpy as np
import pytest
import served
import tiny
from conftest import BIN, Program
from onnx import TensorProto, helper
from served import EXPLICIT, Server, counted, infer, place, ranges, run, shelf  # noqa: F401

if served.MISSING:
    pytest.skip(served.MISSING, allow_module_level=True)

from tritonclient.utils import InferenceServerException  # noqa: E402


def two_inputs(path):
    """y = a + b, z = a b^T by rows, of a and b [n,6]."""
    nodes = [helper.make_node("Add", ["a", "b"], ["y"]), helper.make_node("Mul", ["a", "b"], ["p"]),
             helper.make_node("ReduceSum", ["p", "axes"], ["z"], keepdims=0)]
    return tiny.save(path, nodes, {"axes": np.array([1])}, inputs=[("a", ["n", 6]), ("b", ["n", 6])], outputs=[("y", ["n", 6]), ("z", ["n"])])


def labels(path):
    """Class numbers to words: int64 [n] to strings [n]."""
    node = helper.make_node("LabelEncoder", ["k"], ["word"], domain="ai.onnx.ml", keys_int64s=[0, 1, 2], values_strings=["nought", "eins", "zwölf"],
                            default_string="?")
    return mixed(path, [node], [("k", TensorProto.INT64, ["n"])], [("word", TensorProto.STRING, ["n"])])


def where(path):
    """The indices of what is not zero: as many as the data say."""
    return mixed(path, [helper.make_node("NonZero", ["x"], ["at"])], [("x", TensorProto.INT64, ["n"])], [("at", TensorProto.INT64, [1, "m"])])


def mixed(path, nodes, inputs, outputs):
    import onnx

    infos = [[helper.make_tensor_value_info(*value) for value in values] for values in (inputs, outputs)]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    onnx.save(helper.make_model(helper.make_graph(nodes, "mixed", *infos), opset_imports=opsets, ir_version=8), path)
    return path


def weighty(path):
    """Some 40 MB of weights to read for each inference; `tag` says which row it was."""
    random = np.random.default_rng(3)
    sizes = [64, 2048, 2048, 2048, 8]
    weights = {f"w{i}": random.standard_normal(pair, np.float32) * np.float32(0.02) for i, pair in enumerate(zip(sizes, sizes[1:]))}
    weights |= {"begin": np.array([0]), "end": np.array([1]), "axis": np.array([1])}
    nodes, value = [helper.make_node("Slice", ["x", "begin", "end", "axis"], ["tag"])], "x"
    for i in range(4):
        nodes += [helper.make_node("MatMul", [value, f"w{i}"], [f"m{i}"]), helper.make_node("Tanh", [f"m{i}"], ["y" if i == 3 else f"t{i}"])]
        value = f"t{i}"
    return tiny.save(path, nodes, weights, inputs=[("x", ["n", 64])], outputs=[("y", ["n", 8]), ("tag", ["n", 1])])


@pytest.fixture(scope="module")
def plans(tmp_path_factory):
    """{name: plan} of the small models, built once."""
    folder = tmp_path_factory.mktemp("plans")
    trtexec = Program(folder)
    built = {}
    for name, make, shapes in (("conv", tiny.convolutions, ranges(x=((1, 4, 8), 3, 16, 16))), ("pair", two_inputs, ranges(a=((1, 2, 8), 6), b=((1, 2, 8), 6))),
                               ("words", labels, ranges(k=((1, 2, 8),))), ("where", where, ranges(x=((1, 4, 8),))),
                               ("weighty", weighty, ranges(x=((1, 8, 8), 64)))):
        model = make(folder / f"{name}.onnx")
        trtexec(f"--onnx={model}", f"--saveEngine={name}.plan", "--skipInference", *shapes, *(["--versionCompatible"] if name == "conv" else []))
        built[name] = folder / f"{name}.plan"
    return built


@pytest.fixture
def repository(folder):
    (folder / "models").mkdir()
    return folder / "models"


def feeds_of(name, rows, seed=1):
    random = np.random.default_rng(seed)
    if name == "conv":
        return {"x": random.standard_normal((rows, 3, 16, 16), np.float32)}
    return {key: random.standard_normal((rows, 6), np.float32) for key in ("a", "b")}


def test_plans_are_served_without_a_configuration_and_survive_ten_kills(folder, repository, plans):
    for name in ("conv", "pair", "words", "where"):
        place(repository, f"{name}.hone", plans[name])
    expected = {(name, rows): run(folder, plans[name], feeds_of(name, rows)) for name in ("conv", "pair") for rows in (1, 3, 8)}
    files, shared = sorted(repository.rglob("*")), set(os.listdir("/dev/shm"))
    for start in range(10):
        with Server(repository) as server:
            client = server.client("http" if start % 2 else "grpc")
            for (name, rows), arrays in expected.items():
                for output, array in infer(client, f"{name}.hone", feeds_of(name, rows)).items():
                    assert array.dtype == arrays[output].dtype
                    assert np.array_equal(array.reshape(arrays[output].shape), arrays[output]), f"{name}, {rows} rows: {output}"
            words = infer(client, "words.hone", {"k": np.array([[2], [0], [7]])})["word"]  # Triton has no tensors of a batch alone
            assert [word[0].decode() for word in words] == ["zwölf", "nought", "?"]
            assert infer(client, "where.hone", {"x": np.array([0, 5, 0, 6, 7])})["at"].tolist() == [[1, 3, 4]]
            server.kill()
        for address in (server.http, server.grpc, server.metrics):
            with socket.socket() as probe:
                assert probe.connect_ex((address.split(":")[0], int(address.split(":")[1]))) != 0
    assert sorted(repository.rglob("*")) == files
    assert set(os.listdir("/dev/shm")) <= shared


def test_what_the_plan_says_is_the_configuration(shelf, plans):
    _, models, client = shelf
    for name in ("conv", "pair", "words", "where"):
        place(models, f"{name}.hone", plans[name])
        client.load_model(f"{name}.hone")
    conv, pair, words, found = (client.get_model_config(f"{name}.hone", as_json=True)["config"] for name in ("conv", "pair", "words", "where"))
    assert conv["max_batch_size"] == 8 and conv["dynamic_batching"]["preferred_batch_size"] == [4, 8]
    assert conv["input"][0]["dims"] == ["3", "16", "16"] and conv["output"][0]["dims"] == ["10"]
    assert [(tensor["name"], tensor["dims"]) for tensor in pair["output"]] == [("y", ["6"]), ("z", ["1"])]
    assert words["output"][0]["data_type"] == "TYPE_STRING" and words["max_batch_size"] == 8
    assert "max_batch_size" not in found and "dynamic_batching" not in found, "rows that the data decide cannot be told apart"
    assert set(infer(client, "pair.hone", feeds_of("pair", 2), outputs=["z"])) == {"z"}


@pytest.mark.parametrize("file", ["model.onnx", "model.plan"])
def test_configurations_are_completed_and_checked(shelf, plans, file):
    _, models, client = shelf
    model = plans["pair"].with_suffix(".onnx") if file == "model.onnx" else plans["pair"]
    place(models, "given", model, 'backend: "hone" max_batch_size: 4 dynamic_batching { max_queue_delay_microseconds: 100 }', called=file)
    client.load_model("given")
    config = client.get_model_config("given", as_json=True)["config"]
    assert config["max_batch_size"] == 4 and [tensor["name"] for tensor in config["input"]] == ["a", "b"]
    feeds = feeds_of("pair", 4)
    assert np.array_equal(infer(client, "given", feeds)["y"], feeds["a"] + feeds["b"])
    client.unload_model("given")
    for wrong, sentence in (('max_batch_size: 4 input { name: "c" data_type: TYPE_FP32 dims: 6 }', "the plan has none of that name"),
                            ('max_batch_size: 4 input { name: "a" data_type: TYPE_INT32 dims: 6 }', "a is TYPE_FP32 in the plan"),
                            ('max_batch_size: 4 input { name: "a" data_type: TYPE_FP32 dims: 7 }', "a has the sizes"),
                            ('max_batch_size: 4 parameters { key: "device" value { string_value: "tpu" } }', "tpu")):
        (models / "given" / "config.pbtxt").write_text(f'backend: "hone" {wrong}', "utf-8")
        with pytest.raises(InferenceServerException, match=sentence):
            client.load_model("given")
    shutil.rmtree(models / "given")


def test_a_model_is_built_once_and_kept(shelf, plans):
    server, models, client = shelf
    flags = 'backend: "hone" max_batch_size: 4 parameters { key: "flags" value { string_value: "--builderOptimizationLevel=1" } }'
    place(models, "built", plans["conv"].with_suffix(".onnx"), flags)
    client.load_model("built")
    kept = models / "built" / "1" / "model.onnx.cpu.plan"
    first = kept.stat().st_mtime_ns
    assert (models / "built" / "1" / "hone.cache").exists()
    values = infer(client, "built", feeds_of("conv", 4))["y"]
    client.unload_model("built")
    client.load_model("built")
    assert kept.stat().st_mtime_ns == first, "it was built again"
    assert np.array_equal(infer(client, "built", feeds_of("conv", 4))["y"], values)
    client.unload_model("built")
    (models / "built" / "config.pbtxt").write_text(flags.replace("=1", "=0"), "utf-8")
    client.load_model("built")
    assert kept.stat().st_mtime_ns != first, "other flags, the same plan"
    assert server.text().count("building ") == 2 + server.text().count("/given/1/model.onnx for")


def test_the_backend_serves_repositories_of_tensorrt(folder, repository, plans):
    backends = folder / "backends" / "tensorrt"
    backends.mkdir(parents=True)
    (backends / "libtriton_tensorrt.so").symlink_to(served.BACKENDS / "hone" / "libtriton_hone.so")
    place(repository, "old", plans["conv"], 'platform: "tensorrt_plan"')
    with Server(repository, backends=folder / "backends", env={"LD_LIBRARY_PATH": f"{served.BACKENDS.parent}:{served.HOME / 'lib'}"}) as server:
        assert infer(server.client(), "old", feeds_of("conv", 3))["y"].shape == (3, 10)


def test_the_installed_backend_serves_wherever_it_lies(folder, repository, plans):
    first, moved = folder / "first", folder / "moved here"
    subprocess.run(["cmake", "--install", BIN.parent, "--prefix", first, "--component", "programs"], check=True, stdout=subprocess.DEVNULL)
    first.rename(moved)
    told = json.loads(subprocess.run([moved / "bin/hone", "doctor", "--json"], check=True, stdout=subprocess.PIPE).stdout)["tritonBackends"]
    assert pathlib.Path(told) == moved / "lib/hone/backends"
    place(repository, "conv.hone", plans["conv"])
    with Server(repository, backends=told) as server:
        assert infer(server.client(), "conv.hone", feeds_of("conv", 3))["y"].shape == (3, 10)


def test_eight_clients_share_inferences_and_each_gets_its_own_answer(shelf, plans):
    _, models, client = shelf
    place(models, "weighty.hone", plans["weighty"])
    client.load_model("weighty.hone")
    requests, times, wrong = 60, [], []

    def ask(number):
        import tritonclient.grpc

        own = tritonclient.grpc.InferenceServerClient(shelf[0].grpc)
        for i in range(requests):
            x = np.full((1, 64), number * requests + i, np.float32)
            begin = time.perf_counter()
            answer = infer(own, "weighty.hone", {"x": x})
            times.append(time.perf_counter() - begin)
            if answer["tag"][0, 0] != x[0, 0]:
                wrong.append((number, i))

    infer(client, "weighty.hone", {"x": np.zeros((1, 64), np.float32)})
    before = counted(client, "weighty.hone", 1)
    askers = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    answered, executed = (now - then for now, then in zip(counted(client, "weighty.hone", before[0] + 8 * requests), before))
    print(f"{answered} requests in {executed} inferences, p50 {np.percentile(times, 50) * 1e3:.1f} ms, p99 {np.percentile(times, 99) * 1e3:.1f} ms")
    assert not wrong and answered == 8 * requests
    assert executed < 0.5 * answered
    stats = client.get_inference_statistics("weighty.hone").model_stats[0]
    parts = [stats.inference_stats.compute_input.ns, stats.inference_stats.compute_infer.ns, stats.inference_stats.compute_output.ns]
    assert all(part > 0 for part in parts) and sum(batch.compute_infer.count for batch in stats.batch_stats) == stats.execution_count


def test_instances_divide_the_cores(shelf, plans):
    server, models, client = shelf
    cores = len(os.sched_getaffinity(0))
    place(models, "two", plans["weighty"], 'backend: "hone" instance_group { count: 2 kind: KIND_CPU }')
    before = server.threads()
    client.load_model("two")
    askers = [threading.Thread(target=lambda: [infer(client, "two", {"x": np.zeros((8, 64), np.float32)}) for _ in range(10)]) for _ in range(4)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    workers = max(cores // 2, 1)
    assert server.text().count(f"two:1: an instance on cpu/{workers}, ") == 2
    assert server.threads() - before <= cores + 4
    client.unload_model("two")


def test_requests_that_make_no_sense_end_in_a_sentence(shelf, plans):
    server, models, client = shelf
    place(models, "conv.hone", plans["conv"])
    client.load_model("conv.hone")
    for array in (np.zeros((1, 3, 16, 16), np.float64), np.zeros((1, 3, 16), np.float32), np.zeros((0, 3, 16, 16), np.float32),
                  np.zeros((9, 3, 16, 16), np.float32), np.zeros((1, 3, 16, 15), np.float32)):
        with pytest.raises(InferenceServerException) as refused:
            infer(client, "conv.hone", {"x": array})
        assert len(refused.value.message()) > 20
    place(models, "words.hone", plans["words"])
    client.load_model("words.hone")
    assert infer(client, "words.hone", {"k": np.array([[1]])})["word"].tolist() == [[b"eins"]]
    assert server.alive() and infer(client, "conv.hone", feeds_of("conv", 1))["y"].shape == (1, 10)


def test_damaged_plans_are_refused(shelf, plans):
    server, models, client = shelf
    whole = plans["conv"].read_bytes()
    for name, bytes in (("cut", whole[: len(whole) // 2]), ("empty", b""), ("altered", whole[:-9] + b"x" + whole[-8:]), ("text", b"no plan at all")):
        place(models, f"{name}.hone", plans["conv"]).write_bytes(bytes)
        with pytest.raises(InferenceServerException, match=f"{name}.hone"):
            client.load_model(f"{name}.hone")
    (models / "nothing.hone" / "1").mkdir(parents=True)
    with pytest.raises(InferenceServerException):
        client.load_model("nothing.hone")
    assert server.alive()


def test_plans_of_another_processor_are_chosen_anew_or_refused(repository, plans):
    for name in ("conv", "weighty"):  # the first was built with --versionCompatible
        place(repository, f"{name}.hone", plans[name])
    with Server(repository, EXPLICIT, env={"HONE_CPU_ISA": "scalar"}) as server:
        client = server.client()
        client.load_model("conv.hone")
        assert "conv.hone:1: The plan does not fit this machine" in server.text()
        assert infer(client, "conv.hone", feeds_of("conv", 2))["y"].shape == (2, 10)
        with pytest.raises(InferenceServerException, match="versionCompatible"):
            client.load_model("weighty.hone")
        assert server.alive()


def test_a_model_that_is_overwritten_or_deleted_goes_on_being_served(shelf, plans):
    server, models, client = shelf
    file = place(models, "gone.hone", plans["conv"])
    client.load_model("gone.hone")
    before = infer(client, "gone.hone", feeds_of("conv", 2))["y"]
    os.truncate(file, 100)
    assert np.array_equal(infer(client, "gone.hone", feeds_of("conv", 2))["y"], before)
    shutil.rmtree(models / "gone.hone")
    assert np.array_equal(infer(client, "gone.hone", feeds_of("conv", 2))["y"], before)
    client.unload_model("gone.hone")
    with pytest.raises(InferenceServerException):
        client.load_model("gone.hone")
    assert server.alive()


def test_loading_a_hundred_times_needs_no_more_memory(shelf, plans):
    server, models, client = shelf
    place(models, "again.hone", plans["weighty"])
    sizes = []
    for _ in range(110):
        client.load_model("again.hone")
        infer(client, "again.hone", {"x": np.zeros((8, 64), np.float32)})
        client.unload_model("again.hone")
        while client.is_model_ready("again.hone"):
            time.sleep(0.001)
        sizes.append(server.resident())
    before, after = min(sizes[5:25]), min(sizes[-20:])  # some are taken while the model is on its way out
    print(f"resident: {before / 2**20:.1f} MiB at first, {after / 2**20:.1f} MiB behind 110 times; the plan has {pathlib.Path(plans['weighty']).stat().st_size >> 20} MiB")
    assert after <= 1.02 * before
