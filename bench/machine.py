# SPDX-License-Identifier: Apache-2.0
"""What a published figure must say of the machine it was measured on."""

import datetime
import importlib.metadata
import os
import pathlib
import platform
import re
import shlex
import subprocess
import sys


def cpu_fields():
    text = pathlib.Path("/proc/cpuinfo").read_text().split("\n\n")[0]
    return dict(re.findall(r"^(.*?)\s*:\s*(.*)$", text, re.MULTILINE))


def caches():
    found = {}
    for index in sorted(pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
        found[f"L{level}{'' if kind == 'Unified' else kind[0].lower()}"] = size
    return found


def isa(flags):
    """The vector extensions that decide which kernels can be had."""
    known = ("avx2", "fma", "avx512f", "avx512vl", "avx512_vnni", "avx_vnni", "avx512_bf16", "avx512_fp16", "amx_tile")
    return [name for name in known if name in flags]


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def command(program):
    """How `program` was called, without the folders of this machine."""
    return shlex.join([*program.split(), *(pathlib.Path(word).name if word.startswith("/") else word for word in sys.argv[1:])])


def commit(root):
    done = subprocess.run(["git", "-C", root, "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def describe(root):
    cpu = cpu_fields()
    return {
        "cpu": cpu.get("model name", platform.processor()),
        "isa": isa(cpu.get("flags", "").split()),
        "cores": len(os.sched_getaffinity(0)),
        "mhz": cpu.get("cpu MHz"),
        "caches": caches(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "load_before": os.getloadavg()[0],
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "versions": {"hone": commit(root), "onnxruntime": version("onnxruntime"), "openvino": version("openvino"),
                     "numpy": version("numpy"), "python": platform.python_version()},
    }


def sentence(machine):
    """One line for a table's caption."""
    sizes = ", ".join(f"{name} {size}" for name, size in machine["caches"].items())
    return (f"{machine['cpu']}, {machine['cores']} cores, {' '.join(machine['isa'])}; {sizes}; "
            f"{machine['memory_gib']} GiB; {machine['system']}")
