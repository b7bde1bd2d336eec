# SPDX-License-Identifier: Apache-2.0
"""Which release of the interface this module shows: version, classes, members and the enums' numbers change together.

HONE_TENSORRT_API is read once, when the module is imported: "8.6", "10" (the default) or "11". The classes are written for all
releases at once; what a release does not have is taken away here, so that a program's hasattr() answers as it would there.
"""

import os

_NAMES = {"8": "8", "8.6": "8", "8.6.1": "8", "": "10", "10": "10", "10.16": "10", "10.16.1": "10", "11": "11", "11.1": "11", "11.1.0": "11"}

_asked = os.environ.get("HONE_TENSORRT_API", "").strip()
if _asked not in _NAMES:
    raise ImportError(f"HONE_TENSORRT_API={_asked}: there is no such surface\n  hint: set it to 8.6, 10 or 11, or leave it out for 10")

MAJOR = _NAMES[_asked]
VERSION = {"8": "8.6.1", "10": "10.16.1", "11": "11.1.0"}[MAJOR]

# Beside them, every class is in all three.
CLASSES = {
    "10 11": """
        DimsExprs DynamicPluginTensorDesc IAttention IAttentionBoundaryLayer IAttentionInputLayer IAttentionOutputLayer
        ICumulativeLayer IDebugListener IDimensionExpr IDistCollectiveLayer IDynamicQuantizeLayer IExprBuilder IGpuAsyncAllocator
        IKVCacheUpdateLayer IMoELayer IPluginCapability IPluginCreatorInterface IPluginCreatorV3One IPluginCreatorV3Quick
        IPluginResource IPluginResourceContext IPluginV2DynamicExt IPluginV2DynamicExtBase IPluginV3 IPluginV3Layer IPluginV3OneBuild
        IPluginV3OneBuildV2 IPluginV3OneCore IPluginV3OneRuntime IPluginV3QuickAOTBuild IPluginV3QuickBuild IPluginV3QuickCore
        IPluginV3QuickRuntime IProgressMonitor IRotaryEmbeddingLayer IRuntimeConfig ISerializationConfig ISqueezeLayer
        IStreamReaderV2 IStreamWriter ISymExpr ISymExprs IUnsqueezeLayer IVersionedInterface InterfaceInfo KernelLaunchParams
        OnnxParserRefitter PluginTensorDesc TimingCacheKey TimingCacheValue""",
    "8 10": """
        IAlgorithm IAlgorithmContext IAlgorithmIOInfo IAlgorithmSelector IAlgorithmVariant IInt8Calibrator IInt8EntropyCalibrator
        IInt8EntropyCalibrator2 IInt8LegacyCalibrator IInt8MinMaxCalibrator""",
    "10": "IStreamReader",
    "8": "IFullyConnectedLayer IRNNv2Layer",
}
MEMBERS = {
    "8": {
        "Builder": "build_engine max_batch_size",
        "IAlgorithmIOInfo": "tensor_format",
        "IBuilderConfig": "max_workspace_size min_timing_iterations",
        "IConvolutionLayer": "dilation kernel_size padding stride",
        "ICudaEngine": """
            __len__ binding_is_input get_binding_bytes_per_component get_binding_components_per_element get_binding_dtype
            get_binding_format get_binding_format_desc get_binding_index get_binding_name get_binding_shape
            get_binding_vectorized_dim get_location get_profile_shape get_profile_shape_input is_execution_binding
            is_shape_binding max_batch_size num_bindings""",
        "IDeconvolutionLayer": "kernel_size padding stride",
        "IExecutionContext": """
            execute execute_async execute_async_v2 get_binding_shape get_shape get_strides set_binding_shape
            set_shape_input""",
        "IGpuAllocator": "free",
        "INetworkDefinition": """
            add_convolution add_deconvolution add_fully_connected add_padding add_pooling add_rnn_v2
            has_explicit_precision""",
        "IPaddingLayer": "post_padding pre_padding",
        "IPoolingLayer": "padding stride window_size",
    },
    "10 11": {
        "Builder": "build_engine_with_config build_serialized_network_to_stream",
        "IBuilderConfig": """
            l2_limit_for_tiling max_num_tactics progress_monitor remote_auto_tuning_config runtime_platform
            tiling_optimization_level""",
        "ICudaEngine": """
            create_runtime_config create_serialization_config device_memory_size_v2 get_aliased_input_tensor
            get_device_memory_size_for_profile_v2 get_engine_stat get_tensor_profile_values
            get_weight_streaming_automatic_budget is_debug_tensor serialize_with_config streamable_weights_size
            weight_streaming_budget_v2 weight_streaming_scratch_memory_size""",
        "IDequantizeLayer": "block_shape to_type",
        "IExecutionContext": """
            get_debug_listener get_debug_state get_runtime_config set_all_tensors_debug_state set_communicator
            set_debug_listener set_device_memory set_tensor_debug_state unfused_tensors_debug_state
            update_device_memory_size_for_shapes""",
        "IFillLayer": "is_alpha_beta_int64 to_type",
        "IGpuAllocator": "allocate_async deallocate_async",
        "ILayer": "num_ranks",
        "INMSLayer": "indices_type",
        "INetworkDefinition": """
            add_attention add_cumulative add_dist_collective add_dynamic_quantize add_dynamic_quantize_v2
            add_kv_cache_update add_moe add_normalization_v2 add_plugin add_plugin_v3 add_rotary_embedding add_squeeze
            add_unsqueeze are_weights_marked_refittable flags get_flag is_debug_tensor mark_debug
            mark_unfused_tensors_as_debug_tensors mark_weights_refittable unmark_debug
            unmark_unfused_tensors_as_debug_tensors unmark_weights_refittable""",
        "INonZeroLayer": "indices_type",
        "INormalizationLayer": "is_v2",
        "IPluginRegistry": "acquire_plugin_resource all_creators all_creators_recursive get_creator release_plugin_resource",
        "IQuantizeLayer": "block_shape to_type",
        "ISliceLayer": "axes",
        "ITimingCache": "query queryKeys update",
        "ITopKLayer": "indices_type",
        "OnnxParser": """
            get_layer_output_tensor get_subgraph_nodes is_subgraph_supported load_initializer load_model_proto
            num_subgraphs parse_model_proto set_builder_config supports_model_v2""",
        "ParserError": "local_function_stack local_function_stack_size node_name node_operator",
        "Refitter": """
            get_named_weights get_weights_location get_weights_prototype refit_cuda_engine_async unset_named_weights
            weights_validation""",
    },
    "8 10": {
        "Builder": "platform_has_fast_fp16 platform_has_fast_int8 platform_has_tf32",
        "IBuilderConfig": """
            algorithm_selector clear_quantization_flag get_calibration_profile get_quantization_flag int8_calibrator
            quantization_flags set_calibration_profile set_quantization_flag""",
        "ICudaEngine": "create_execution_context_without_device_memory device_memory_size has_implicit_batch_dimension",
        "IExecutionContext": "all_shape_inputs_specified",
        "ILayer": "output_type_is_set precision precision_is_set reset_output_type reset_precision set_output_type",
        "INormalizationLayer": "compute_precision",
        "IPluginRegistry": "get_plugin_creator plugin_creator_list",
        "ITensor": "dynamic_range reset_dynamic_range set_dynamic_range",
        "OnnxParser": "parse_with_weight_descriptors supports_model",
        "Refitter": "get_dynamic_range get_tensors_with_dynamic_range set_dynamic_range",
    },
    "11": {
        "IAttention": "causal_kind key_value_form key_value_lengths query_form query_lengths",
        "IBuilderConfig": "all_build_routes build_route",
        "IKVCacheUpdateLayer": "update_form update_lengths",
        "INetworkDefinition": "add_attention_v2",
    },
    "10": {
        "ICudaEngine": "get_device_memory_size_for_profile minimum_weight_streaming_budget weight_streaming_budget",
    },
}

# Members by their order, "NAME=number" where that differs. The first text is 10.16's, in the order in which it declares them.
ENUMS = {
    "DataType": "FLOAT HALF=1 BF16=7 INT8=2 INT32=3 INT64=8 BOOL=4 UINT8=5 FP8=6 INT4=9 FP4=10 E8M0=11",
    "TensorFormat": "LINEAR CHW2 HWC8 CHW4 CHW16 CHW32 DHWC8 CDHW32 HWC DLA_LINEAR DLA_HWC4 HWC16 DHWC",
    "TensorLocation": "DEVICE HOST",
    "TensorIOMode": "NONE INPUT OUTPUT",
    "Severity": "INTERNAL_ERROR ERROR WARNING INFO VERBOSE",
    "BuilderFlag": """
        FP16=0 BF16=17 INT8=1 DEBUG=2 GPU_FALLBACK=3 REFIT=4 DISABLE_TIMING_CACHE=5 EDITABLE_TIMING_CACHE=27 TF32=6 SPARSE_WEIGHTS=7
        SAFETY_SCOPE=8 OBEY_PRECISION_CONSTRAINTS=9 PREFER_PRECISION_CONSTRAINTS=10 DIRECT_IO=11 REJECT_EMPTY_ALGORITHMS=12
        VERSION_COMPATIBLE=13 EXCLUDE_LEAN_RUNTIME=14 FP8=15 ERROR_ON_TIMING_CACHE_MISS=16 DISABLE_COMPILATION_CACHE=18 WEIGHTLESS=19
        STRIP_PLAN=19 REFIT_IDENTICAL=20 WEIGHT_STREAMING=21 INT4=22 REFIT_INDIVIDUAL=23 STRICT_NANS=24 MONITOR_MEMORY=25 FP4=26
        DISTRIBUTIVE_INDEPENDENCE=28""",
    "NetworkDefinitionCreationFlag": "EXPLICIT_BATCH STRONGLY_TYPED PREFER_JIT_PYTHON_PLUGINS PREFER_AOT_PYTHON_PLUGINS",
    "MemoryPoolType": "WORKSPACE DLA_MANAGED_SRAM DLA_LOCAL_DRAM DLA_GLOBAL_DRAM TACTIC_DRAM TACTIC_SHARED_MEMORY",
    "ProfilingVerbosity": "LAYER_NAMES_ONLY NONE DETAILED",
    "TacticSource": "CUBLAS CUBLAS_LT CUDNN EDGE_MASK_CONVOLUTIONS JIT_CONVOLUTIONS",
    "PreviewFeature": "PROFILE_SHARING_0806 ALIASED_PLUGIN_IO_10_03 RUNTIME_ACTIVATION_RESIZE_10_10 MULTIDEVICE_RUNTIME_10_16",
    "HardwareCompatibilityLevel": "NONE AMPERE_PLUS SAME_COMPUTE_CAPABILITY",
    "RuntimePlatform": "SAME_AS_BUILD WINDOWS_AMD64",
    "TilingOptimizationLevel": "NONE FAST MODERATE FULL",
    "EngineCapability": "STANDARD SAFETY DLA_STANDALONE",
    "DeviceType": "GPU DLA",
    "QuantizationFlag": "CALIBRATE_BEFORE_FUSION",
    "CalibrationAlgoType": "LEGACY_CALIBRATION ENTROPY_CALIBRATION ENTROPY_CALIBRATION_2 MINMAX_CALIBRATION",
    "LayerType": """
        CONVOLUTION CAST ACTIVATION POOLING LRN SCALE SOFTMAX DECONVOLUTION CONCATENATION ELEMENTWISE PLUGIN UNARY PADDING SHUFFLE REDUCE
        TOPK GATHER MATRIX_MULTIPLY RAGGED_SOFTMAX CONSTANT IDENTITY PLUGIN_V2 SLICE SHAPE PARAMETRIC_RELU RESIZE TRIP_LIMIT RECURRENCE
        ITERATOR LOOP_OUTPUT SELECT FILL QUANTIZE DEQUANTIZE CONDITION CONDITIONAL_INPUT CONDITIONAL_OUTPUT SCATTER EINSUM ASSERTION
        ONE_HOT NON_ZERO GRID_SAMPLE NMS REVERSE_SEQUENCE NORMALIZATION PLUGIN_V3 SQUEEZE UNSQUEEZE CUMULATIVE DYNAMIC_QUANTIZE
        ATTENTION_INPUT ATTENTION_OUTPUT ROTARY_EMBEDDING KV_CACHE_UPDATE MOE DIST_COLLECTIVE""",
    "ActivationType": """
        RELU SIGMOID TANH LEAKY_RELU ELU SELU SOFTSIGN SOFTPLUS CLIP HARD_SIGMOID SCALED_TANH THRESHOLDED_RELU GELU_ERF GELU_TANH""",
    "ElementWiseOperation": "SUM PROD MAX MIN SUB DIV POW FLOOR_DIV AND OR XOR EQUAL GREATER LESS",
    "UnaryOperation": """
        EXP LOG SQRT RECIP ABS NEG SIN COS TAN SINH COSH ASIN ACOS ATAN ASINH ACOSH ATANH CEIL FLOOR ERF NOT SIGN ROUND ISINF ISNAN""",
    "PoolingType": "MAX AVERAGE MAX_AVERAGE_BLEND",
    "PaddingMode": "EXPLICIT_ROUND_DOWN EXPLICIT_ROUND_UP SAME_UPPER SAME_LOWER",
    "MatrixOperation": "NONE TRANSPOSE VECTOR",
    "ReduceOperation": "SUM PROD MAX MIN AVG NONE",
    "TopKOperation": "MAX MIN",
    "ScaleMode": "UNIFORM CHANNEL ELEMENTWISE",
    "GatherMode": "DEFAULT ELEMENT ND",
    "ScatterMode": "ELEMENT ND",
    "FillOperation": "LINSPACE RANDOM_UNIFORM RANDOM_NORMAL",
    "SampleMode": "STRICT_BOUNDS WRAP CLAMP FILL REFLECT",
    "InterpolationMode": "NEAREST LINEAR CUBIC",
    "ResizeCoordinateTransformation": "ALIGN_CORNERS ASYMMETRIC HALF_PIXEL",
    "ResizeSelector": "FORMULA UPPER",
    "ResizeRoundMode": "HALF_UP HALF_DOWN FLOOR CEIL",
    "LoopOutput": "LAST_VALUE CONCATENATE REVERSE",
    "TripLimit": "COUNT WHILE",
    "BoundingBoxFormat": "CORNER_PAIRS CENTER_SIZES",
    "OnnxParserFlag": """
        NATIVE_INSTANCENORM ENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA REPORT_CAPABILITY_DLA ENABLE_PLUGIN_OVERRIDE ADJUST_FOR_DLA""",
    "ErrorCode": """
        SUCCESS INTERNAL_ERROR MEM_ALLOC_FAILED MODEL_DESERIALIZE_FAILED INVALID_VALUE INVALID_GRAPH INVALID_NODE UNSUPPORTED_GRAPH
        UNSUPPORTED_NODE UNSUPPORTED_NODE_ATTR UNSUPPORTED_NODE_INPUT UNSUPPORTED_NODE_DATATYPE UNSUPPORTED_NODE_DYNAMIC
        UNSUPPORTED_NODE_SHAPE REFIT_FAILED""",
    "ErrorCodeTRT": """
        SUCCESS UNSPECIFIED_ERROR INTERNAL_ERROR INVALID_ARGUMENT INVALID_CONFIG FAILED_ALLOCATION FAILED_INITIALIZATION
        FAILED_EXECUTION FAILED_COMPUTATION INVALID_STATE UNSUPPORTED_STATE""",
    "ExecutionContextAllocationStrategy": "STATIC ON_PROFILE_CHANGE USER_MANAGED",
    "SerializationFlag": "EXCLUDE_WEIGHTS EXCLUDE_LEAN_RUNTIME INCLUDE_REFIT",
    "LayerInformationFormat": "ONELINE JSON",
    "EngineStat": "TOTAL_WEIGHTS_SIZE STRIPPED_WEIGHTS_SIZE",
    "WeightsRole": "KERNEL BIAS SHIFT SCALE CONSTANT ANY",
    "SeekPosition": "SET CUR END",
    "TempfileControlFlag": "ALLOW_IN_MEMORY_FILES ALLOW_TEMPORARY_FILES",
    "AllocatorFlag": "RESIZABLE",
    "PluginFieldType": "FLOAT16 FLOAT32 FLOAT64 INT8 INT16 INT32 CHAR DIMS UNKNOWN BF16 INT64 FP8 INT4 FP4",
    "PluginCapabilityType": "CORE BUILD RUNTIME",
    "TensorRTPhase": "BUILD RUNTIME",
    "DimensionOperation": "SUM PROD MAX MIN SUB EQUAL LESS FLOOR_DIV CEIL_DIV",
    "PluginCreatorVersion": "V1=0 V1_PYTHON=64",
    "AttentionNormalizationOp": "NONE SOFTMAX",
    "KVCacheMode": "LINEAR",
    "CumulativeOperation": "SUM",
    "MoEActType": "NONE SILU",
    "CollectiveOperation": "ALL_REDUCE ALL_GATHER BROADCAST REDUCE REDUCE_SCATTER",
    "QuickPluginCreationRequest": "UNKNOWN PREFER_JIT PREFER_AOT STRICT_JIT STRICT_AOT",
    "PluginArgType": "INT",
    "PluginArgDataType": "INT8 INT16 INT32",
    "APILanguage": "CPP PYTHON",
}
# What differs; None: the release has no such enum.
ENUMS_OF = {
    "8": {
        "DataType": "FLOAT HALF INT8 INT32 BOOL UINT8 FP8",
        "BuilderFlag": """
            FP16 INT8 DEBUG GPU_FALLBACK STRICT_TYPES REFIT DISABLE_TIMING_CACHE TF32 SPARSE_WEIGHTS SAFETY_SCOPE
            OBEY_PRECISION_CONSTRAINTS PREFER_PRECISION_CONSTRAINTS DIRECT_IO REJECT_EMPTY_ALGORITHMS ENABLE_TACTIC_HEURISTIC
            VERSION_COMPATIBLE EXCLUDE_LEAN_RUNTIME FP8""",
        "NetworkDefinitionCreationFlag": "EXPLICIT_BATCH EXPLICIT_PRECISION",
        "MemoryPoolType": "WORKSPACE DLA_MANAGED_SRAM DLA_LOCAL_DRAM DLA_GLOBAL_DRAM TACTIC_DRAM",
        "ProfilingVerbosity": "LAYER_NAMES_ONLY NONE DETAILED DEFAULT=0 VERBOSE=2",
        "PreviewFeature": "FASTER_DYNAMIC_SHAPES_0805 DISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805 PROFILE_SHARING_0806",
        "HardwareCompatibilityLevel": "NONE AMPERE_PLUS",
        "EngineCapability": "STANDARD=0 DEFAULT=0 SAFETY=1 SAFE_GPU=1 DLA_STANDALONE=2 SAFE_DLA=2",
        "LayerType": """
            CONVOLUTION FULLY_CONNECTED ACTIVATION POOLING LRN SCALE SOFTMAX DECONVOLUTION CONCATENATION ELEMENTWISE PLUGIN UNARY PADDING
            SHUFFLE REDUCE TOPK GATHER MATRIX_MULTIPLY RAGGED_SOFTMAX CONSTANT RNN_V2 IDENTITY PLUGIN_V2 SLICE SHAPE PARAMETRIC_RELU
            RESIZE TRIP_LIMIT RECURRENCE ITERATOR LOOP_OUTPUT SELECT FILL QUANTIZE DEQUANTIZE CONDITION CONDITIONAL_INPUT
            CONDITIONAL_OUTPUT SCATTER EINSUM ASSERTION ONE_HOT NON_ZERO GRID_SAMPLE NMS REVERSE_SEQUENCE NORMALIZATION CAST""",
        "ActivationType": "RELU SIGMOID TANH LEAKY_RELU ELU SELU SOFTSIGN SOFTPLUS CLIP HARD_SIGMOID SCALED_TANH THRESHOLDED_RELU",
        "UnaryOperation": """
            EXP LOG SQRT RECIP ABS NEG SIN COS TAN SINH COSH ASIN ACOS ATAN ASINH ACOSH ATANH CEIL FLOOR ERF NOT SIGN ROUND ISINF""",
        "PaddingMode": "EXPLICIT_ROUND_DOWN EXPLICIT_ROUND_UP SAME_UPPER SAME_LOWER CAFFE_ROUND_DOWN CAFFE_ROUND_UP",
        "ReduceOperation": "SUM PROD MAX MIN AVG",
        "SampleMode": "STRICT_BOUNDS=0 DEFAULT=0 WRAP=1 CLAMP=2 FILL=3 REFLECT=4",
        "ErrorCode": """
            SUCCESS INTERNAL_ERROR MEM_ALLOC_FAILED MODEL_DESERIALIZE_FAILED INVALID_VALUE INVALID_GRAPH INVALID_NODE UNSUPPORTED_GRAPH
            UNSUPPORTED_NODE""",
        "OnnxParserFlag": "NATIVE_INSTANCENORM",
        "PluginFieldType": "FLOAT16 FLOAT32 FLOAT64 INT8 INT16 INT32 CHAR DIMS UNKNOWN",
        "RNNOperation": "RELU TANH LSTM GRU",
        "RNNDirection": "UNIDIRECTION BIDIRECTION",
        "RNNInputMode": "LINEAR SKIP",
        "RNNGateType": "INPUT OUTPUT FORGET UPDATE RESET CELL HIDDEN",
        **dict.fromkeys(("RuntimePlatform", "TilingOptimizationLevel", "ExecutionContextAllocationStrategy", "SerializationFlag", "EngineStat",
                         "SeekPosition", "PluginCapabilityType", "TensorRTPhase", "PluginCreatorVersion", "AttentionNormalizationOp",
                         "KVCacheMode", "CumulativeOperation", "MoEActType", "CollectiveOperation", "QuickPluginCreationRequest",
                         "PluginArgType", "PluginArgDataType", "APILanguage")),
    },
    "11": {
        "BuilderFlag": """
            DEBUG=2 GPU_FALLBACK=3 REFIT=4 DISABLE_TIMING_CACHE=5 EDITABLE_TIMING_CACHE=26 TF32=6 SPARSE_WEIGHTS=7 SAFETY_SCOPE=8
            DIRECT_IO=11 VERSION_COMPATIBLE=12 EXCLUDE_LEAN_RUNTIME=13 ERROR_ON_TIMING_CACHE_MISS=15 DISABLE_COMPILATION_CACHE=17
            STRIP_PLAN=18 REFIT_IDENTICAL=19 WEIGHT_STREAMING=20 REFIT_INDIVIDUAL=22 STRICT_NANS=23 MONITOR_MEMORY=24
            DISTRIBUTIVE_INDEPENDENCE=27""",
        "NetworkDefinitionCreationFlag": "STRONGLY_TYPED PREFER_JIT_PYTHON_PLUGINS PREFER_AOT_PYTHON_PLUGINS",
        "TacticSource": "EDGE_MASK_CONVOLUTIONS JIT_CONVOLUTIONS",
        "PreviewFeature": "ALIASED_PLUGIN_IO_10_03 RUNTIME_ACTIVATION_RESIZE_10_10",
        "CollectiveOperation": "ALL_REDUCE ALL_GATHER BROADCAST REDUCE REDUCE_SCATTER ALL_TO_ALL GATHER SCATTER",
        "CausalMaskKind": "NONE UPPER_LEFT LOWER_RIGHT",
        "AttentionIOForm": "PADDED_BHND PACKED_NHD",
        **dict.fromkeys(("QuantizationFlag", "CalibrationAlgoType")),
    },
}
# They compare and combine with numbers.
ORDERED = """
    TensorFormat Severity BuilderFlag NetworkDefinitionCreationFlag TacticSource EngineCapability QuantizationFlag SerializationFlag
    ExecutionContextAllocationStrategy EngineStat SeekPosition AllocatorFlag DimensionOperation ErrorCodeTRT PluginCapabilityType
    TensorRTPhase PluginCreatorVersion QuickPluginCreationRequest PluginArgType PluginArgDataType APILanguage"""


def members(name):
    """[(member, number)] of an enum in the order of declaration; None where the release has no such enum."""
    text = ENUMS_OF.get(MAJOR, {}).get(name, ENUMS.get(name, None) if name in ENUMS else None)
    if text is None:
        return None
    split = [word.partition("=") for word in text.split()]
    return [(word, int(number) if number else at) for at, (word, _, number) in enumerate(split)]


def enums():
    """The names of all enums of this release."""
    return [name for name in {**ENUMS, **ENUMS_OF.get(MAJOR, {})} if members(name) is not None]


def has_class(name):
    """Whether this release has the class."""
    return all(MAJOR in releases.split() for releases, names in CLASSES.items() if name in names.split())


def has_member(cls, name):
    """Whether this release's class has the member."""
    return all(MAJOR in releases.split() for releases, of in MEMBERS.items() if name in of.get(cls, "").split())


def public_names(value):
    """dir() of the module's objects: without what is private here. A program's own classes show all that is theirs."""
    names = object.__dir__(value)
    if not type(value).__module__.startswith(__package__.partition(".")[0]):
        return names
    return [name for name in names if not name.startswith("_") or name.startswith("__")]


def trim(classes):
    """Takes the members away that this release's classes do not have."""
    for cls in classes:
        for part in [cls, *(base for base in cls.__mro__ if base.__name__.startswith("_"))]:
            for name in [name for name in vars(part) if not has_member(cls.__name__, name)]:
                delattr(part, name)
