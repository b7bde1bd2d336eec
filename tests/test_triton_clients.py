# SPDX-License-Identifier: Apache-2.0
"""What clients of a Triton server do, with Hone behind it: networks of the zoo, perf_analyzer, sizes that change from request to request,
memory that client and server share, requests that are called off, metrics."""

import os
import threading
import time

import numpy as np
import onnx
import pytest
import served
import tiny
from conftest import Program, unpacked
from onnx import helper
from served import Server, analyze, infer, place, ranges, run, shelf, statistics  # noqa: F401

if served.MISSING:
    pytest.skip(served.MISSING, allow_module_level=True)

FAST = "--builderOptimizationLevel=0"  # which kernels there are is not what is tested
ASKED_AGAIN = 200  # times, 50 ms apart
WORDS = [f"word {number}" for number in range(50)]


def padded(path):
    """y = 2 x, z = the sum of each row of x, of x [n,t]."""
    nodes = [helper.make_node("Add", ["x", "x"], ["y"]), helper.make_node("ReduceSum", ["x", "axes"], ["z"], keepdims=1)]
    return tiny.save(path, nodes, {"axes": np.array([1])}, inputs=[("x", ["n", "t"])], outputs=[("y", ["n", "t"]), ("z", ["n", 1])])


def long(path):
    """Many steps, each of some 20 GFLOP with 8192 rows."""
    random = np.random.default_rng(3)
    weights = {"w0": random.standard_normal((8, 1024), np.float32), "w": random.standard_normal((1024, 1024), np.float32) * np.float32(0.03)}
    nodes = [helper.make_node("MatMul", ["x", "w0"], ["h0"])]
    for step in range(60):
        nodes += [helper.make_node("MatMul", [f"h{step}", "w"], [f"m{step}"]), helper.make_node("Tanh", [f"m{step}"], [f"h{step + 1}"])]
    nodes.append(helper.make_node("ReduceMax", ["h60", "axes"], ["y"], keepdims=1))
    weights["axes"] = np.array([1])
    return tiny.save(path, nodes, weights, inputs=[("x", ["n", 8])], outputs=[("y", ["n", 1])], opset=18)


def tagger(path, folder):
    """The zoo's tagger of texts, with a word for each label: int64 [n,64] to strings [n,64]."""
    model = onnx.load(unpacked("gru_tagger.ts", folder))
    graph, scores = model.graph, model.graph.output[0].name
    graph.node.extend([helper.make_node("ArgMax", [scores], ["label"], axis=2, keepdims=0),
                       helper.make_node("LabelEncoder", ["label"], ["word"], domain="ai.onnx.ml", keys_int64s=range(50), values_strings=WORDS)])
    rows = graph.input[0].type.tensor_type.shape.dim[0].dim_param
    graph.output.append(helper.make_tensor_value_info("word", onnx.TensorProto.STRING, [rows, 64]))
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    onnx.save(model, path)
    return path


@pytest.fixture(scope="module")
def plans(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plans")
    trtexec = Program(folder)

    def plan(name, model, *flags):
        trtexec(f"--onnx={model}", f"--saveEngine={name}.plan", "--skipInference", FAST, *flags)
        return folder / f"{name}.plan"

    return {"digits": plan("digits", unpacked("digits_cnn", folder), *ranges(image=((1, 2, 8), 1, 8, 8))),
            "bert": plan("bert", unpacked("hf_distilbert.ts", folder), *ranges(input_ids=((1, 1, 2), 16), attention_mask=((1, 1, 2), 16))),
            "tagger": plan("tagger", tagger(folder / "tagger.onnx", folder), *ranges(tokens=((1, 2, 8), 64))),
            "long": plan("long", long(folder / "long.onnx"), *ranges(x=((1, 8192, 8192), 8))),
            "padded": plan("padded", padded(folder / "padded.onnx"), "--profile=0", "--minShapes=x:1x1", "--optShapes=x:1x8", "--maxShapes=x:4x64",
                           "--profile=1", "--minShapes=x:1x1", "--optShapes=x:8x64", "--maxShapes=x:8x64")}


def load(shelf, plans, name):
    """The name of the model that serves the plan, which is loaded."""
    _, models, client = shelf
    place(models, f"{name}.hone", plans[name])
    client.load_model(f"{name}.hone")
    return f"{name}.hone"


def settled(client, model, answered):
    """(requests answered, inferences made), once so many are counted: the server counts an answer after it was given."""
    for _ in range(200):
        counted = statistics(client, model)
        if counted[0] >= answered:
            break
        time.sleep(0.05)
    return counted


def test_networks_of_the_zoo_answer_as_hone_run_does(folder, shelf, plans):
    random = np.random.default_rng(4)
    feeds = {"digits": {"image": random.standard_normal((3, 1, 8, 8), np.float32)},
             "bert": {"input_ids": random.integers(0, 1000, (2, 16)), "attention_mask": random.integers(0, 2, (2, 16))},
             "tagger": {"tokens": random.integers(0, 1000, (5, 64))}}
    for name, given in feeds.items():
        answer, expected = infer(shelf[2], load(shelf, plans, name), given), run(folder, plans[name], given)
        scores = [output for output in answer if output != "word"]
        for output in scores:
            assert np.array_equal(answer[output], expected[output]), f"{name}: {output}"
        if name == "tagger":
            labels = answer[scores[0]].argmax(axis=2)
            assert answer["word"].tolist() == [[WORDS[label].encode() for label in row] for row in labels]
        shelf[2].unload_model(f"{name}.hone")


@pytest.mark.parametrize("protocol, memory", [("grpc", "none"), ("grpc", "system"), ("http", "none")])
def test_every_request_of_perf_analyzer_is_answered_and_counted(shelf, plans, protocol, memory):
    server, _, client = shelf
    model = load(shelf, plans, "digits")
    before = statistics(client, model)
    row = analyze(server, model, "--concurrency-range", 8, "--request-count", 400, "--shared-memory", memory, protocol=protocol)
    assert row["Concurrency"] == 8 and row["Inferences/Second"] > 0 and row["p99 latency"] >= row["p50 latency"] > 0
    answered, executed = (now - then for now, then in zip(settled(client, model, before[0] + 400), before))
    print(f"{protocol}, memory {memory}: {answered} requests in {executed} inferences, p50 {row['p50 latency']:.0f} us, p99 {row['p99 latency']:.0f} us")
    assert answered >= 400 and executed <= answered
    assert client.get_inference_statistics(model).model_stats[0].inference_stats.fail.count == 0


def test_sizes_may_change_with_every_request(shelf, plans):
    """From several clients at once: requests of other sizes must not share an inference, rows of one size may."""
    model = load(shelf, plans, "padded")
    wrong, requests = [], 60

    def ask(number):
        import tritonclient.grpc

        client, random = tritonclient.grpc.InferenceServerClient(shelf[0].grpc), np.random.default_rng(number)
        for _ in range(requests):
            x = random.integers(-9, 9, (random.integers(1, 5), random.choice([1, 5, 64]))).astype(np.float32)
            answer = infer(client, model, {"x": x})
            if not (np.array_equal(answer["y"], 2 * x) and np.array_equal(answer["z"], x.sum(axis=1, keepdims=True))):
                wrong.append(x.shape)

    askers = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    assert not wrong and settled(shelf[2], model, 0)[1] > 0


def unregister_all(client):
    """A server may still hold the regions of a request whose answer has arrived, and then refuses: asked again until it does not."""
    from tritonclient.utils import InferenceServerException

    for _ in range(ASKED_AGAIN):
        try:
            return client.unregister_system_shared_memory()
        except InferenceServerException:
            time.sleep(0.05)
    return client.unregister_system_shared_memory()


@pytest.mark.parametrize("offset", [0, 64, 4, 1])
def test_memory_that_client_and_server_share_is_read_and_written_in_place(shelf, plans, offset):
    """At addresses that kernels can use and at others."""
    import tritonclient.grpc as grpc
    from tritonclient.utils import shared_memory

    client, model = shelf[2], load(shelf, plans, "padded")
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    handle = shared_memory.create_shared_memory_region("tensors", "/hone_triton_test", 3 * x.nbytes + offset)
    try:
        shared_memory.set_shared_memory_region(handle, [x], offset=offset)
        client.register_system_shared_memory("tensors", "/hone_triton_test", 3 * x.nbytes + offset)
        given, wanted = grpc.InferInput("x", list(x.shape), "FP32"), grpc.InferRequestedOutput("y")
        given.set_shared_memory("tensors", x.nbytes, offset)
        wanted.set_shared_memory("tensors", x.nbytes, offset + x.nbytes)
        client.infer(model, [given], outputs=[wanted])
        found = shared_memory.get_contents_as_numpy(handle, np.float32, x.shape, offset + x.nbytes)
        assert np.array_equal(found, 2 * x)
    finally:
        unregister_all(client)
        shared_memory.destroy_shared_memory_region(handle)


def test_a_request_that_is_called_off_ends_its_inference(shelf, plans):
    import tritonclient.grpc as grpc

    server, _, client = shelf
    model = load(shelf, plans, "long")
    infer(client, model, {"x": np.zeros((1, 8), np.float32)})
    given = grpc.InferInput("x", [8192, 8], "FP32")
    given.set_data_from_numpy(np.zeros((8192, 8), np.float32))
    ended, answers = threading.Event(), []
    idle = server.processor_seconds()
    call = client.async_infer(model, [given], lambda result, error: (answers.append((result, error)), ended.set()))
    while server.processor_seconds() < idle + 0.2:  # it is at work
        assert not ended.is_set(), "it was answered too soon"
        time.sleep(0.01)
    call.cancel()
    assert ended.wait(60) and answers[0][0] is None and "cancel" in str(answers[0][1]).lower()
    assert infer(client, model, {"x": np.zeros((1, 8), np.float32)})["y"].tolist() == [[0]]
    settled(client, model, 2)
    counted = client.get_inference_statistics(model).model_stats[0].inference_stats
    assert (counted.success.count, counted.fail.count) == (2, 1), "the inference went on to its end"
    client.unload_model(model)


def test_metrics_agree_with_the_requests_that_were_sent(folder, plans):
    (folder / "models").mkdir()
    place(folder / "models", "digits.hone", plans["digits"])
    with Server(folder / "models") as server:
        client = server.client()
        for rows in (1, 2, 5):
            infer(client, "digits.hone", {"image": np.zeros((rows, 1, 8, 8), np.float32)})
        for _ in range(100):
            if server.counter("nv_inference_exec_count", "digits.hone") == 3:
                break
            time.sleep(0.1)
        counted = {name: server.counter(f"nv_inference_{name}", "digits.hone") for name in ("request_success", "count", "exec_count")}
        assert counted == {"request_success": 3, "count": 8, "exec_count": 3}
        assert server.counter("nv_inference_compute_infer_duration_us", "digits.hone") > 0


def test_instances_compute_on_the_cores_of_their_host_policy(folder, plans):
    (folder / "models").mkdir()
    core = min(os.sched_getaffinity(0))
    place(folder / "models", "pinned", plans["digits"], 'backend: "hone" instance_group { kind: KIND_CPU host_policy: "own" }')
    with Server(folder / "models", f"--host-policy=own,cpu-cores={core}-{core}") as server:
        assert infer(server.client(), "pinned", {"image": np.zeros((2, 1, 8, 8), np.float32)})["logits"].shape == (2, 10)
        assert f"pinned:1: an instance on cpu@{core}-{core}, " in server.text()
