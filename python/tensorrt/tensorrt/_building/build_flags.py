# SPDX-License-Identifier: Apache-2.0
"""What a configuration says, in Hone's flags, and the note that engines of it carry."""

from .._base import enums, surface
from .config import TACTIC_SOURCES

# TensorRT's flag: Hone's. What is in neither list has no effect on a build: it steers GPUs, DLA or a safety runtime.
_FLAGS = {"SPARSE_WEIGHTS": "--sparsity=enable", "REFIT": "--refit", "STRIP_PLAN": "--stripWeights",
          "DISABLE_TIMING_CACHE": "--noBuilderCache", "ERROR_ON_TIMING_CACHE_MISS": "--errorOnTimingCacheMiss",
          "VERSION_COMPATIBLE": "--versionCompatible", "EXCLUDE_LEAN_RUNTIME": "--excludeLeanRuntime", "DIRECT_IO": "--directIO",
          "WEIGHT_STREAMING": "--allowWeightStreaming", "OBEY_PRECISION_CONSTRAINTS": "--precisionConstraints=obey",
          "PREFER_PRECISION_CONSTRAINTS": "--precisionConstraints=prefer", "DISTRIBUTIVE_INDEPENDENCE": "--distributiveIndependence",
          "ENABLE_TACTIC_HEURISTIC": "--heuristic", "DISABLE_COMPILATION_CACHE": "--noCompilationCache"}
_PRECISIONS = {"FP16": "--fp16", "BF16": "--bf16", "INT8": "--int8", "FP8": "--fp8", "INT4": "--int4"}
_VERBOSITIES = {"LAYER_NAMES_ONLY": "layer_names_only", "NONE": "none", "DETAILED": "detailed", "DEFAULT": "layer_names_only",
                "VERBOSE": "detailed"}
_LAYOUTS = {"LINEAR": "chw", "CHW2": "chw2", "HWC8": "hwc8", "CHW4": "chw4", "CHW16": "chw16", "CHW32": "chw32", "DHWC8": "dhwc8",
            "CDHW32": "cdhw32", "HWC": "hwc", "HWC16": "hwc16", "DHWC": "dhwc"}
_TYPES = {"FLOAT": "fp32", "HALF": "fp16", "BF16": "bf16", "INT8": "int8", "UINT8": "uint8", "INT32": "int32", "INT64": "int64",
          "BOOL": "bool", "FP8": "fp8"}


def precisions(config):
    """The types that a configuration allows beside FP32."""
    return [name for name in _PRECISIONS if config._has(name)]


def flags_of(config, strongly_typed):
    """Hone's flags for a configuration."""
    flags = [f"--builderOptimizationLevel={min(max(config.builder_optimization_level, 0), 5)}",
             f"--profilingVerbosity={_VERBOSITIES[config.profiling_verbosity.name]}"]
    flags += [flag for name, flag in _FLAGS.items() if config._has(name)]
    flags += ["--stronglyTyped"] if strongly_typed else [_PRECISIONS[name] for name in precisions(config)]
    if not config._has("TF32"):
        flags.append("--noTF32")
    if config._avg_timing != 1:
        flags.append(f"--avgTiming={config._avg_timing}")
    if config._min_timing != 1:
        flags.append(f"--minTiming={config._min_timing}")
    if config._max_tactics != -1:
        flags.append(f"--maxTactics={config._max_tactics}")
    if "WORKSPACE" in config._pools:
        flags.append(f"--memPoolSize=workspace:{config._pools['WORKSPACE']}B")
    if config.hardware_compatibility_level.name != "NONE" and "--versionCompatible" not in flags:
        flags.append("--versionCompatible")
    return flags + _sources(config)


def _sources(config):
    """The libraries that a program left out; the default leaves none out."""
    names = [name for name in ("CUBLAS", "CUBLAS_LT", "CUDNN") if hasattr(enums.TacticSource, name)]
    if config._sources == TACTIC_SOURCES or not names:
        return []
    out = [f"-{name}" for name in names if not config._sources >> int(getattr(enums.TacticSource, name)) & 1]
    return [f"--tacticSources={','.join(out)}"] if out else []


def layout_of(tensor):
    """The first of the layouts that a tensor allows."""
    mask = tensor.allowed_formats
    return next((of for of in enums.TensorFormat.__members__.values() if mask >> int(of) & 1), enums.TensorFormat.LINEAR)


def layout_flags(inputs, outputs, hidden=0):
    """`hidden`: how many outputs there are that the program does not know. Flags for the layouts of inputs and outputs; none where all are linear. And {name: number of the format} of those that are not."""
    flags, formats = [], {}
    for flag, tensors in (("--inputIOFormats", inputs), ("--outputIOFormats", outputs)):
        layouts = [layout_of(tensor) for tensor in tensors]
        if all(of.name not in _LAYOUTS or of.name == "LINEAR" for of in layouts):
            continue
        flags.append(f"{flag}=" + ",".join(f"{_TYPES[tensor.dtype.name]}:{_LAYOUTS.get(of.name, 'chw')}"
                                           for tensor, of in zip(tensors, layouts)) + ",bool:chw" * hidden * (tensors is outputs))
        formats.update({tensor.name: int(of) for tensor, of in zip(tensors, layouts) if of.name in _LAYOUTS and of.name != "LINEAR"})
    return flags, formats


def note_of(network, config, formats, shape_inputs, shape_outputs, debug):
    """What an engine wants to know later and a plan does not hold."""
    note = {"version": surface.VERSION, "name": network.name, "profiling_verbosity": int(config.profiling_verbosity),
            "engine_capability": int(config.engine_capability), "hardware_compatibility_level": int(config.hardware_compatibility_level),
            "tactic_sources": config.get_tactic_sources()}
    optional = {"formats": formats, "shape_inputs": shape_inputs, "shape_outputs": shape_outputs, "debug": debug,
                "weight_streaming": config._has("WEIGHT_STREAMING"), "stripped": config._has("STRIP_PLAN")}
    return {**note, **{key: value for key, value in optional.items() if value}}
