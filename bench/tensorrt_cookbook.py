# SPDX-License-Identifier: Apache-2.0
"""The layer scripts of NVIDIA's TensorRT cookbook (cookbook/02-API/Layer of NVIDIA/trt-samples-for-hackathon-cn), run as they are and held against
the outputs that they record beside them (log-main.py.log).

What is compared is what each case prints: names, types and sizes of inputs and outputs, and their numbers. Scripts that draw their data without
a seed print other numbers each time; of those the names, types and sizes are compared. Lists of the classes' members are left out.
"""

import os
import pathlib
import re
import subprocess

DRAWN = {"Gather": "case_element_mode", "GridSample": "", "NMS": "", "TopK": "", "Fill": "case_random"}  # cases whose names begin so
# Where the exact result is 0, what is printed is the rounding of sums of numbers of 10^4.
TOLERANCE = {"Convolution": 2e-2}
NUMBER = re.compile(r"^[-+]?(\d+\.?\d*([eE][-+]?\d+)?|\.\d+|inf|nan)$")
ABOUT_MEMBERS = re.compile(r"\s*\d+(/\s*\d+)? (Callback|Callable|Non-callable|used|uncovered|class-only|instance-only)")


def cases(text):
    """{case: lines that it printed}."""
    found, name = {}, None
    for line in text.splitlines():
        begins = re.match(r"=+ Start \[(.*)\]", line)
        if begins:
            name = begins[1] + "'" * sum(begins[1] == each.rstrip("'") for each in found if each)
            found[name] = []
        elif re.match(r"=+ End ", line):
            name = None
        elif line.strip() and not re.search(r"\[TRT\]|\[TensorRT-Cookbook\]|^Layer\(|Public members of|Usage coverage|Class/Object", line) and \
                not ABOUT_MEMBERS.match(line):
            found.setdefault(name, []).append(re.sub(r"0x[0-9a-f]{6,}", "0x", line))
    return found


def words(lines):
    return [word for word in re.sub(r"([\[\](),=:])", r" \1 ", " ".join(lines)).split() if word not in "[](),"]


def difference(recorded, found, tolerance):
    """What is different; None. Two numbers in a hundred may be one step of FP8 away, nothing further."""
    recorded, found = words(recorded), words(found)
    if len(recorded) != len(found):
        return f"{len(recorded)} words are {len(found)}"
    far = []
    for one, other in zip(recorded, found):
        if one == other:
            continue
        if not (NUMBER.match(one) and NUMBER.match(other)):
            return f"{one} is {other}"
        one, other = float(one), float(other)
        off = 0 if one == other or one != one and other != other else abs(one - other) / max(1, abs(one))
        if not off <= max(0.1, tolerance):
            return f"{one} is {other}"
        if off > tolerance:
            far.append(f"{one} is {other}")
    return far[0] if len(far) > len(recorded) / 50 else None


def compared(script, printed):
    """{case: what is different} of a script."""
    recorded, found = cases((script / "log-main.py.log").read_text()), cases(printed)
    drawn, wrong = DRAWN.get(script.name), {}
    for case, lines in recorded.items():
        other = found.get(case)
        if other is None:
            wrong[case] = "did not come"
            continue
        if drawn is not None and case and case.startswith(drawn):
            lines, other = ([line for line in each if re.match("(In|Out)put ?->", line)] for each in (lines, other))
        told = difference(lines, other, TOLERANCE.get(script.name, 1e-3))
        if told:
            wrong[case] = told
    return wrong


def run(folder, python, variables):
    """Runs all; prints one line for each script, and how many are as recorded. 0 where at least 45 of 48 are."""
    scripts = sorted(path.parent for path in (folder / "02-API/Layer").glob("*/main.py"))
    variables = {**variables, "TRT_COOKBOOK_PATH": str(folder), "PYTHONPATH": f"{variables['PYTHONPATH']}{os.pathsep}{folder}"}
    good = 0
    for script in scripts:
        done = subprocess.run([python, "main.py"], cwd=script, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, errors="replace", check=False)
        if not (pathlib.Path(script) / "log-main.py.log").exists():
            wrong = {} if done.returncode == 0 else {"it": f"ended with {done.returncode}"}
            said = "ran; it records no output"
        else:
            wrong, said = compared(script, done.stdout), "as recorded"
            if done.returncode != 0:
                wrong["it"] = f"ended with {done.returncode}: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ''}"
        good += not wrong
        print(f"{script.name:24} {said if not wrong else '; '.join(f'{case}: {why}' for case, why in wrong.items())}"[:300], flush=True)
    print(f"{good} of {len(scripts)}")
    return 0 if good >= 45 else 1
