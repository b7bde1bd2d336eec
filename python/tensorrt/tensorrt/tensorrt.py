# SPDX-License-Identifier: Apache-2.0
"""The classes and functions of the module, those that its release has, under the name by which annotations know them."""

import importlib

from ._base import enums as _enums, surface as _surface

# What each module gives, in the order in which they need each other. First the network's side, then the engine's.
_NAMES = {
    "_base.values": "Dims Dims2 DimsHW Dims3 Dims4 Permutation Weights IHostMemory nptype volume",
    "_base.logger": "ILogger Logger",
    "_network.tensors": "ITensor",
    "_network.layers": "ILayer",
    "_network.layer_classes": """IConvolutionLayer IDeconvolutionLayer IFullyConnectedLayer IPoolingLayer IActivationLayer IElementWiseLayer IUnaryLayer
        IMatrixMultiplyLayer IConstantLayer IShuffleLayer ISliceLayer IIdentityLayer ICastLayer IFillLayer IConcatenationLayer ISoftMaxLayer
        IReduceLayer ITopKLayer IGatherLayer IScatterLayer IScaleLayer IResizeLayer IShapeLayer ISelectLayer INonZeroLayer IOneHotLayer
        IQuantizeLayer IDequantizeLayer IDynamicQuantizeLayer INormalizationLayer IParametricReLULayer ILRNLayer IPaddingLayer IEinsumLayer
        IGridSampleLayer INMSLayer IReverseSequenceLayer ICumulativeLayer ISqueezeLayer IUnsqueezeLayer IAssertionLayer
        IRaggedSoftMaxLayer IRotaryEmbeddingLayer IKVCacheUpdateLayer IMoELayer IDistCollectiveLayer IPluginV2Layer IPluginV3Layer
        IRNNv2Layer""",
    "_network.loops": """ILoop ILoopBoundaryLayer ITripLimitLayer IRecurrenceLayer IIteratorLayer ILoopOutputLayer IIfConditional
        IIfConditionalBoundaryLayer IConditionLayer IIfConditionalInputLayer IIfConditionalOutputLayer IAttention
        IAttentionBoundaryLayer IAttentionInputLayer IAttentionOutputLayer""",
    "_network.network": "INetworkDefinition",
    "_parser.parser": "OnnxParser OnnxParserRefitter ParserError get_nv_onnx_parser_version",
    "_building.profiles": "IOptimizationProfile",
    "_building.timing_cache": "ITimingCache TimingCacheKey TimingCacheValue",
    "_building.config": "IBuilderConfig",
    "_building.progress": "IProgressMonitor",
    "_building.calibration": "IInt8Calibrator IInt8EntropyCalibrator IInt8EntropyCalibrator2 IInt8LegacyCalibrator IInt8MinMaxCalibrator",
    "_building.algorithms": "IAlgorithm IAlgorithmContext IAlgorithmIOInfo IAlgorithmSelector IAlgorithmVariant",
    "_engine.listeners": "IOutputAllocator IDebugListener IProfiler Profiler IGpuAllocator IGpuAsyncAllocator IErrorRecorder",
    "_engine.context": "IExecutionContext",
    "_engine.inspector": "EngineInspector",
    "_engine.engine": "ICudaEngine ISerializationConfig IRuntimeConfig",
    "_plugins.registry": """IPluginRegistry PluginField PluginFieldCollection PluginFieldCollection_ IPluginCreator IPluginCreatorInterface
        IPluginCreatorV3One IPluginCreatorV3Quick IPluginResource IPluginResourceContext IVersionedInterface InterfaceInfo
        get_plugin_registry get_builder_plugin_registry init_libnvinfer_plugins""",
    "_plugins.classes": """DimsExprs IDimensionExpr IExprBuilder PluginTensorDesc DynamicPluginTensorDesc IPluginCapability IPluginV2 IPluginV2Ext
        IPluginV2DynamicExtBase IPluginV2DynamicExt IPluginV3 IPluginV3OneCore IPluginV3OneBuild IPluginV3OneBuildV2 IPluginV3OneRuntime
        IPluginV3QuickCore IPluginV3QuickBuild IPluginV3QuickAOTBuild IPluginV3QuickRuntime ISymExpr ISymExprs KernelLaunchParams""",
    "_building.builder": "Builder",
    "_engine.refitter": "Refitter",
    "_engine.runtime": "Runtime IStreamReader IStreamReaderV2 IStreamWriter",
}

_TYPES = {"float32": "FLOAT", "float16": "HALF", "int8": "INT8", "int32": "INT32", "int64": "INT64", "bool": "BOOL", "uint8": "UINT8",
          "bfloat16": "BF16", "fp8": "FP8", "int4": "INT4", "fp4": "FP4", "e8m0": "E8M0"}
_ALIASES = {"SliceMode": "SampleMode", "ResizeMode": "InterpolationMode"}  # of 8.x


def _assemble():
    """{name: class, function, enum or member} of this release."""
    names = {name: kind for name, kind in _enums.ALL.items() if name != "Severity"}
    for module, given in _NAMES.items():
        made = importlib.import_module(f".{module}", __package__)
        names.update({name: getattr(made, name) for name in given.split() if _surface.has_class(name)})
    for name, member in _TYPES.items():
        if hasattr(_enums.DataType, member):
            names[name] = getattr(_enums.DataType, member)
    for name, enum in _ALIASES.items():
        if name == "SliceMode" or _surface.MAJOR == "8":
            names[name] = names[enum]
    for cls in [each for each in names.values() if isinstance(each, type)]:
        if not issubclass(cls, _enums.Enum):
            _surface.trim([cls])
            cls.__dir__ = _surface.public_names
            cls.__module__ = __name__
    return names


_itemsize = _enums.itemsize
globals().update(_assemble())
__all__ = [name for name in globals() if not name.startswith("_") and name != "importlib"]
