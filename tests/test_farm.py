# SPDX-License-Identifier: Apache-2.0
"""hone.farm: models listed here, timed by workers, one cache for each kind; beside Ray and fsspec where they are installed."""

import collections
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest
import tiny
from conftest import BIN, PACKAGE, Program

sys.path.insert(0, str(PACKAGE))
os.environ["PATH"] = f"{BIN}:{os.environ['PATH']}"
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH")]))
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

HUGE = "(%0:f32[4096,4096] %1:f32[4096,4096] ); %2 = MatMul(%0, %1, ) -> %2"
ALIKE = 1e6  # a tolerance of the probe that no other program on this machine exceeds


def test_importing_hone_and_its_farm_imports_no_ray():
    code = "import sys, hone, hone.farm; assert not {'ray', 'fsspec'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_ray_the_farm_says_what_to_install(folder):
    code = "import sys; sys.modules['ray'] = None; from hone.farm.__main__ import main; sys.exit(main(['m.onnx', '--store=memory://x']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 1 and 'pip install "hone[ray]"' in done.stderr and "docs/farm.md" in done.stderr


@pytest.fixture(scope="module")
def cluster():
    """Ray on this machine, which is of two kinds."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install ray==2.60.0 fsspec")
    pytest.importorskip("fsspec", reason="fsspec is not installed: pip install ray==2.60.0 fsspec")
    ray.init(num_cpus=2, resources={"wide": 1, "narrow": 1}, include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()


@pytest.fixture
def models(folder):
    """Six models of three shapes each."""
    perceptrons = [tiny.perceptron(folder / f"p{number}.onnx") for number in range(3)]
    networks = [tiny.convolutions(folder / f"c{number}.onnx") for number in range(3)]
    shapes = [("4", perceptrons), ("3x16x16", networks)]
    return [(str(model), (f"--optShapes=x:{batch}x{sizes}",)) for sizes, group in shapes for model in group for batch in (1, 2, 8)]


def parts(store):
    """The keys of each file of a store in a folder."""
    return {path: [json.loads(line)["key"] for line in path.read_text().splitlines()[1:]] for path in pathlib.Path(store).glob("parts/*/*")}


def test_eighteen_builds_from_two_kinds_time_nothing(folder, cluster, models):
    from hone import farm

    store = folder / "store"
    reports = farm.run(models, ["wide=cpu/2", "narrow=cpu/1"], f"file://{store}", tolerance=ALIKE, seconds=1, say=str)
    assert reports[0].kind != reports[1].kind
    for report in reports:
        assert report.timed > 0 and report.known == 0 and report.rejected == report.refused_nodes == []
    counted = collections.Counter(key for keys in parts(store).values() for key in keys)
    assert set(counted.values()) == {1}, "a key was timed twice"
    assert len(counted) == sum(report.timed for report in reports)

    trtexec = Program(folder)
    for device, report in zip(("cpu/2", "cpu/1"), reports):
        cache = store / f"cache-{report.kind}.jsonl"
        for number, (model, flags) in enumerate(models):
            for again in range(5 if number in (0, 17) else 1):
                trtexec(f"--onnx={model}", *flags, f"--device={device}", f"--timingCacheFile={cache}", "--errorOnTimingCacheMiss", "--skipInference",
                        f"--saveEngine={again}.plan")
            if number in (0, 17):
                assert len({(folder / f"{again}.plan").read_bytes() for again in range(5)}) == 1

    again = farm.run(models, ["wide=cpu/2"], f"file://{store}", tolerance=ALIKE, say=str)[0]
    assert again.timed == 0 and again.known == again.problems


@pytest.mark.parametrize("place", ["memory", "file"])
def test_two_drivers_on_one_store_lose_nothing(folder, cluster, models, place):
    from hone import farm

    url = {"memory": "memory://two-drivers", "file": f"file://{folder}/store"}[place]
    reports = []

    def drive(own):
        reports.extend(farm.run(own, ["wide=cpu/2"], url, tolerance=ALIKE, say=str))

    drivers = [threading.Thread(target=drive, args=(own,)) for own in (models[:9], models[9:])]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
    assert len(reports) == 2
    kind = reports[0].kind
    store = farm.Store(url)
    merged = store._read(f"cache-{kind}.jsonl").splitlines()
    names = store._names(f"parts/{kind}")
    everything = {json.loads(line)["key"] for name in names for line in store._read(f"parts/{kind}/{name}").splitlines()[1:]}
    assert {json.loads(line)["key"] for line in merged[1:]} == everything
    assert len({name.partition("-")[0] for name in names}) == max(report.problems for report in reports) + min(report.problems for report in reports)


def status_of(process):
    """The fields of /proc/PID/stat behind the name; nothing where it has ended."""
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return []


def processor_seconds(process):
    fields = status_of(process)
    return int(fields[11]) / os.sysconf("SC_CLK_TCK") if fields else 0


def tuners_below(ancestor):
    """The processes of this test that time keys, each with those above it, nearest first."""
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if b"--in-process" not in words or b"--probe" in words:
                continue
        except OSError:
            continue
        above = []
        while (fields := status_of(above[-1] if above else entry.name)) and int(fields[1]) > 1 and ancestor not in above:
            above.append(int(fields[1]))
        if ancestor in above:
            yield int(entry.name), above


def farmed_beside(harm, models, store):
    """The report of a farm that has the huge product among its problems; harm(process, ancestors) is asked of each process that times, again and again."""
    from hone import farm
    from hone.farm import program

    genuine, done = program.problems, threading.Event()

    def go_on():
        while not done.wait(0.05):
            for process, ancestors in tuners_below(os.getpid()):
                with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                    harm(process, ancestors)

    program.problems = lambda *words: [{"key": HUGE, "seconds": 0.5}, *genuine(*words)]
    harmer = threading.Thread(target=go_on)
    harmer.start()
    try:
        return farm.run(models, ["wide=cpu/2"], f"file://{store}", ["--maxTactics=2"], tolerance=ALIKE, say=str)[0]
    finally:
        done.set()
        harmer.join()
        program.problems = genuine


def test_a_worker_that_is_killed_costs_its_bundle_a_second_try(folder, cluster, models):
    """Whoever has the huge product is killed, each time: it is rejected, all others are there."""

    def kill(process, ancestors):
        if processor_seconds(process) > 0.5:
            os.kill(ancestors[1], signal.SIGKILL)  # the worker above `hone tune` and its `--in-process`
            time.sleep(0.5)

    report = farmed_beside(kill, models[9:12], folder / "store")
    assert [key for key, _ in report.rejected] == [HUGE] and "worker ended" in report.rejected[0][1]
    timed = {key.split(" | ")[0] for keys in parts(folder / "store").values() for key in keys}
    assert len(timed) == report.problems and HUGE in timed


def test_a_killed_worker_and_a_key_that_crashes_cost_themselves_alone(folder, cluster, models):
    """The first worker at work is killed, once; whoever times the huge product afterwards crashes, each time."""
    killed = []

    def kill_once_then_crash(process, ancestors):
        if not killed and processor_seconds(process) > 0.1:
            os.kill(ancestors[1], signal.SIGKILL)
            killed.append(ancestors[1])
        elif killed and processor_seconds(process) > 0.5:
            os.kill(process, signal.SIGSEGV)

    report = farmed_beside(kill_once_then_crash, models[9:12], folder / "store")
    assert killed and {key.split(" | ")[0] for key, _ in report.rejected} == {HUGE}
    assert all("killed by signal 11" in why for _, why in report.rejected)
    rows = [json.loads(line) for path in (folder / "store").glob("parts/*/*") for line in path.read_text().splitlines()[1:]]
    timed = {row["key"].split(" | ")[0] for row in rows if row["ms"] >= 0}
    assert len(timed - {HUGE}) == report.problems - 1


def test_a_node_that_is_slower_than_its_kind_is_given_nothing(folder, cluster, models):
    from hone import farm

    kind = json.loads(Program(folder, "hone").answer("problems", "--describe", "--device=cpu/2"))["kind"]
    store = farm.Store(f"file://{folder}/store")
    for number in range(3):
        store.put_probe(kind, f"node{number}", 1e-6)
    with pytest.raises(farm.FarmError, match="like the others"):
        farm.run(models[:1], ["wide=cpu/2"], store.url, say=str)
    assert parts(folder / "store") == {}


def test_a_resource_that_no_node_declares_is_named(folder, cluster, models):
    from hone import farm

    with pytest.raises(farm.FarmError, match="no node declares absent"):
        farm.run(models[:1], ["absent=cpu"], f"file://{folder}/store", say=str)
