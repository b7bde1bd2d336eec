# SPDX-License-Identifier: Apache-2.0
"""IBuilderConfig: how to build. It keeps what programs set, in TensorRT's words; _build_flags.py says it in Hone's."""

import os

from .._base import enums, native, surface
from .._base.checks import instance, kept
from .._base.reports import Managed
from .._network.layers import ILayer
from .algorithms import IAlgorithmSelector
from .calibration import IInt8Calibrator
from .profiles import IOptimizationProfile
from .progress import IProgressMonitor
from .timing_cache import ITimingCache, timing_cache

_BuilderFlag, _PoolType, _Preview = enums.BuilderFlag, enums.MemoryPoolType, enums.PreviewFeature
_GIB = 1 << 30
TACTIC_SOURCES = {"8": 31, "10": 24, "11": 3}[surface.MAJOR]




class IBuilderConfig(Managed):
    """How to build an engine."""

    def __init__(self, logger):
        self._logger = logger
        self.reset()

    def reset(self):
        """All as at first."""
        self._flags = 1 << int(_BuilderFlag.TF32)
        self._pools = {}
        self._profiles = []
        self._calibration_profile = None
        self._calibrator = self._selector = self._monitor = None
        self._quantization_flags = 0
        self._sources = TACTIC_SOURCES
        self._preview = {"PROFILE_SHARING_0806"} if surface.MAJOR == "10" else set()
        self._cache = None
        self._level, self._avg_timing, self._min_timing, self._max_tactics, self._aux_streams = 3, 1, 1, -1, -1
        self._verbosity = enums.ProfilingVerbosity.LAYER_NAMES_ONLY
        self._capability = enums.EngineCapability.STANDARD
        self._hardware = enums.HardwareCompatibilityLevel.NONE
        self._platform = enums.get("RuntimePlatform") and enums.get("RuntimePlatform").SAME_AS_BUILD
        self._tiling = enums.get("TilingOptimizationLevel") and enums.get("TilingOptimizationLevel").NONE
        self._l2_limit = -1
        self._device_type, self._layer_devices = enums.DeviceType.GPU, {}
        self._profile_stream = 0
        self.plugins_to_serialize = []
        self.remote_auto_tuning_config = ""
        self.build_route = ""

    all_build_routes = property(lambda self: [], doc="None are listed; trtexec --helpBuildRoute has Hone's.")

    # ---- flags ----

    @property
    def flags(self):
        """The flags as a mask."""
        return self._flags

    @flags.setter
    def flags(self, mask):
        self._flags = int(mask)

    def set_flag(self, flag):
        """Sets one."""
        self._flags |= 1 << int(_BuilderFlag(flag))

    def clear_flag(self, flag):
        """Clears one."""
        self._flags &= ~(1 << int(_BuilderFlag(flag)))

    def get_flag(self, flag):
        """Whether it is set."""
        return bool(self._flags >> int(_BuilderFlag(flag)) & 1)

    def _has(self, name):
        """Whether a flag is set that this release may lack."""
        flag = getattr(_BuilderFlag, name, None)
        return flag is not None and self.get_flag(flag)

    @property
    def quantization_flags(self):
        """The flags of quantisation as a mask."""
        return self._quantization_flags

    @quantization_flags.setter
    def quantization_flags(self, mask):
        self._quantization_flags = int(mask)

    def set_quantization_flag(self, flag):
        """Sets one."""
        self._quantization_flags |= 1 << int(_quantization(flag))

    def clear_quantization_flag(self, flag):
        """Clears one."""
        self._quantization_flags &= ~(1 << int(_quantization(flag)))

    def get_quantization_flag(self, flag):
        """Whether it is set."""
        return bool(self._quantization_flags >> int(_quantization(flag)) & 1)

    def set_preview_feature(self, feature, enable):
        """Known by name alone: kept."""
        (self._preview.add if enable else self._preview.discard)(_Preview(feature).name)

    def get_preview_feature(self, feature):
        """What was set."""
        return _Preview(feature).name in self._preview

    def set_tactic_sources(self, tactic_sources):
        """Which libraries may serve, as a mask; CUBLAS and CUDNN stand for oneDNN on a processor."""
        self._sources = int(tactic_sources)
        return True

    def get_tactic_sources(self):
        """The mask."""
        return self._sources

    # ---- memory ----

    def set_memory_pool_limit(self, pool, pool_size):
        """Bytes that a pool may have."""
        if pool_size < 0:
            raise TypeError(f"set_memory_pool_limit({pool}, {pool_size}): a limit is no negative number")
        self._pools[_PoolType(pool).name] = int(pool_size)

    def get_memory_pool_limit(self, pool):
        """What was set, else what there is."""
        name = _PoolType(pool).name
        return self._pools.get(name, _default_limit(name))

    max_workspace_size = property(lambda self: self.get_memory_pool_limit(_PoolType.WORKSPACE),
                                  lambda self, size: self.set_memory_pool_limit(_PoolType.WORKSPACE, size), doc="The workspace pool's.")

    # ---- profiles ----

    def add_optimization_profile(self, profile):
        """The profile's number; -1 for what is none."""
        if not isinstance(profile, IOptimizationProfile) or not profile:
            return self._failed("add_optimization_profile() was given no consistent profile", -1)
        self._profiles.append(profile)
        return len(self._profiles) - 1

    @property
    def num_optimization_profiles(self):
        """How many there are."""
        return len(self._profiles)

    def set_calibration_profile(self, profile):
        """The shapes that calibration runs at."""
        if not isinstance(profile, IOptimizationProfile) or not profile:
            return self._failed("set_calibration_profile() was given no consistent profile", False)
        self._calibration_profile = profile
        return True

    def get_calibration_profile(self):
        """What was set, or None."""
        return self._calibration_profile

    # ---- times ----

    def create_timing_cache(self, serialized_timing_cache):
        """A cache of bytes, an empty one of none."""
        try:
            return timing_cache(serialized_timing_cache, self._logger)
        except (TypeError, BufferError):
            raise TypeError("create_timing_cache(serialized_timing_cache): a buffer") from None

    def set_timing_cache(self, cache, ignore_mismatch):
        """Builds look times up there and leave theirs."""
        self._cache = instance(cache, ITimingCache, "set_timing_cache", none=True)
        return True

    def get_timing_cache(self):
        """The very object that was set, or the one that a build made."""
        return self._cache

    # ---- devices: there is one ----

    @property
    def default_device_type(self):
        """Kept; DLA is none of the devices."""
        return self._device_type

    @default_device_type.setter
    def default_device_type(self, device_type):
        self._device_type = enums.DeviceType(device_type)

    @property
    def DLA_core(self):  # noqa: N802: the interface's name
        """-1: there is none."""
        return -1

    @DLA_core.setter
    def DLA_core(self, core):  # noqa: N802
        if core != -1:
            self._warned(f"there is no DLA core {core}: everything runs on the selected device")

    def set_device_type(self, layer, device_type):
        """Kept; all layers run on the selected device."""
        self._layer_devices[_layer(layer)] = enums.DeviceType(device_type)

    def get_device_type(self, layer):
        """What was set, else the default."""
        return self._layer_devices.get(_layer(layer), self._device_type)

    def is_device_type_set(self, layer):
        """Whether it was."""
        return _layer(layer) in self._layer_devices

    def reset_device_type(self, layer):
        """The default again."""
        self._layer_devices.pop(_layer(layer), None)

    def can_run_on_DLA(self, layer):  # noqa: N802: the interface's name
        """Never."""
        return False


def _quantization(flag):
    return enums.get("QuantizationFlag")(flag)


def _layer(layer):
    return instance(layer, ILayer, "device type").name


def _kept(member, kind, about):
    """A property that keeps what is set, of a kind."""
    def get(self):
        return getattr(self, member)

    def put(self, value):
        setattr(self, member, kind(value))

    return property(get, put, doc=about)


def _enum(name):
    return enums.get(name) or (lambda value: value)


IBuilderConfig.builder_optimization_level = _kept("_level", int, "Effort of the build, 0 to 5.")
IBuilderConfig.avg_timing_iterations = _kept("_avg_timing", int, "Runs that are averaged per tactic.")
IBuilderConfig.min_timing_iterations = _kept("_min_timing", int, "Fewest runs per tactic.")
IBuilderConfig.max_num_tactics = _kept("_max_tactics", int, "Most tactics timed per layer; -1 chooses.")
IBuilderConfig.max_aux_streams = _kept("_aux_streams", int, "Kept: an inference's steps run one behind the other.")
IBuilderConfig.l2_limit_for_tiling = _kept("_l2_limit", int, "Kept: layers are not tiled across each other.")
IBuilderConfig.profile_stream = _kept("_profile_stream", int, "Kept: the build has streams of its own.")
IBuilderConfig.profiling_verbosity = _kept("_verbosity", _enum("ProfilingVerbosity"), "What the engine keeps of its layers.")
IBuilderConfig.engine_capability = _kept("_capability", _enum("EngineCapability"), "Kept: STANDARD is what there is.")
IBuilderConfig.hardware_compatibility_level = _kept("_hardware", _enum("HardwareCompatibilityLevel"),
                                                    "All but NONE: a plan that other machines can tune again.")
IBuilderConfig.runtime_platform = _kept("_platform", _enum("RuntimePlatform"), "Kept.")
IBuilderConfig.tiling_optimization_level = _kept("_tiling", _enum("TilingOptimizationLevel"), "Kept.")
IBuilderConfig.int8_calibrator = kept("_calibrator", IInt8Calibrator, "Gives samples; the very object that was set.")
IBuilderConfig.algorithm_selector = kept("_selector", IAlgorithmSelector, "Chooses tactics; the very object that was set.")
IBuilderConfig.progress_monitor = kept("_monitor", IProgressMonitor, "Hears how far the build is; the very object that was set.")


def _default_limit(name):
    if name == "WORKSPACE" or name == "TACTIC_DRAM":
        return native.device().info.memory_bytes or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"DLA_MANAGED_SRAM": 0, "DLA_LOCAL_DRAM": _GIB, "DLA_GLOBAL_DRAM": _GIB // 2, "TACTIC_SHARED_MEMORY": _GIB}[name]
