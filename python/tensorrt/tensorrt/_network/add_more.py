# SPDX-License-Identifier: Apache-2.0
"""The network's add_ methods, second half: choosing, gathering, normalising, quantising, plugins."""

import operator

from .._base import enums
from .._base.values import sizes_of
from .add import _held, member

DataType = enums.ALL["DataType"]


def _int(value):
    return operator.index(value)


class _AddMoreLayers:
    """Methods of INetworkDefinition."""

    def _indices(self, asked):
        return DataType.INT32 if asked is None else member("DataType", asked, "indices_type")

    def add_topk(self, input, op, k, axes, indices_type=None):
        return self._add("TOPK", [input], 2, op=member("TopKOperation", op, "add_topk"), k=_int(k), axes=_int(axes),
                         indices_type=self._indices(indices_type))

    def add_gather(self, input, indices, axis):
        return self._add("GATHER", [input, indices], axis=_int(axis), mode=enums.ALL["GatherMode"].DEFAULT, num_elementwise_dims=0)

    def add_gather_v2(self, input, indices, mode):
        return self._add("GATHER", [input, indices], axis=0, mode=member("GatherMode", mode, "add_gather_v2"), num_elementwise_dims=0)

    def add_scatter(self, data, indices, updates, mode):
        return self._add("SCATTER", [data, indices, updates], axis=0, mode=member("ScatterMode", mode, "add_scatter"))

    def add_scale(self, input, mode, shift=None, scale=None, power=None):
        return self.add_scale_nd(input, mode, shift, scale, power, 1)

    def add_scale_nd(self, input, mode, shift=None, scale=None, power=None, channel_axis=1):
        return self._add("SCALE", [input], weights=_held(SHIFT=shift, SCALE=scale, POWER=power), mode=member("ScaleMode", mode, "add_scale"),
                         channel_axis=_int(channel_axis))

    def add_resize(self, input):
        return self._add("RESIZE", [input])

    def add_non_zero(self, input, indices_type=None):
        return self._add("NON_ZERO", [input], indices_type=self._indices(indices_type))

    def add_one_hot(self, indices, values, depth, axis):
        return self._add("ONE_HOT", [indices, values, depth], axis=_int(axis))

    def add_quantize(self, input, scale, output_type=None):
        return self._add("QUANTIZE", [input, scale], axis=-1,
                         to_type=DataType.INT8 if output_type is None else member("DataType", output_type, "add_quantize"))

    def add_dequantize(self, input, scale, output_type=None):
        return self._add("DEQUANTIZE", [input, scale], axis=-1,
                         to_type=DataType.FLOAT if output_type is None else member("DataType", output_type, "add_dequantize"))

    def add_normalization(self, input, scale, bias, axesMask):  # noqa: N803: the interface's name
        return self._add("NORMALIZATION", [input, scale, bias], axes=_int(axesMask), epsilon=1e-5, num_groups=1, is_v2=False)

    def add_normalization_v2(self, input, scale, bias, axesMask):  # noqa: N803: the interface's name
        return self._add("NORMALIZATION", [input, scale, bias], word="NormalizationV2", axes=_int(axesMask), epsilon=1e-5, num_groups=1,
                         is_v2=True)

    def add_parametric_relu(self, input, slopes):
        return self._add("PARAMETRIC_RELU", [input, slopes])

    def add_lrn(self, input, window, alpha, beta, k):
        return self._add("LRN", [input], window_size=_int(window), alpha=float(alpha), beta=float(beta), k=float(k))

    def add_einsum(self, inputs, equation):
        return self._add("EINSUM", list(inputs), equation=str(equation))

    def add_grid_sample(self, input, grid):
        return self._add("GRID_SAMPLE", [input, grid])

    def add_nms(self, boxes, scores, max_output_boxes_per_class, indices_type=None):
        return self._add("NMS", [boxes, scores, max_output_boxes_per_class], 2, indices_type=self._indices(indices_type))

    def add_reverse_sequence(self, input, sequence_lens):
        return self._add("REVERSE_SEQUENCE", [input, sequence_lens], batch_axis=1, sequence_axis=0)

    def add_cumulative(self, input, axis, op, exclusive, reverse):
        return self._add("CUMULATIVE", [input, axis], op=member("CumulativeOperation", op, "add_cumulative"), exclusive=bool(exclusive),
                         reverse=bool(reverse))

    def add_squeeze(self, input, axes):
        return self._add("SQUEEZE", [input, axes])

    def add_unsqueeze(self, input, axes):
        return self._add("UNSQUEEZE", [input, axes])

    def add_assertion(self, condition, message):
        return self._add("ASSERTION", [condition], 0, message=str(message))

    def add_ragged_softmax(self, input, bounds):
        return self._add("RAGGED_SOFTMAX", [input, bounds])

    def add_dynamic_quantize(self, input, axis, block_size, output_type, scale_type):
        return self._add("DYNAMIC_QUANTIZE", [input], 2, axis=_int(axis), block_size=_int(block_size),
                         to_type=member("DataType", output_type, "output_type"), scale_type=member("DataType", scale_type, "scale_type"))

    def add_dynamic_quantize_v2(self, input, block_shape, output_type, scale_type):
        return self._add("DYNAMIC_QUANTIZE", [input], 2, block_shape=tuple(sizes_of(block_shape, "block_shape")),
                         to_type=member("DataType", output_type, "output_type"), scale_type=member("DataType", scale_type, "scale_type"))

    def add_rotary_embedding(self, input, cos_cache, sin_cache, interleaved, rotary_embedding_dim):
        return self._add("ROTARY_EMBEDDING", [input, cos_cache, sin_cache], interleaved=bool(interleaved),
                         rotary_embedding_dim=_int(rotary_embedding_dim))

    def add_kv_cache_update(self, cache, update, write_indices, cache_mode):
        self._own(cache, "add_kv_cache_update")
        if cache._record is not None:
            return self._failed(f"add_kv_cache_update: the cache is an input of the network, {cache._name} is not")
        return self._add("KV_CACHE_UPDATE", [cache, update, write_indices], cache_mode=member("KVCacheMode", cache_mode, "add_kv_cache_update"))

    def add_moe(self, hidden_states, selected_experts_for_tokens, scores_for_selected_experts):
        return self._add("MOE", [hidden_states, selected_experts_for_tokens, scores_for_selected_experts])

    def add_dist_collective(self, input, dist_collective_op, reduce_op, root, groups):
        return self._failed("add_dist_collective: engines of Hone run on one device")

    def _plugin_layer(self, kind, inputs, plugin):
        from .._plugins.layers import add_plugin_layer

        return add_plugin_layer(self, kind, inputs, plugin)

    def add_plugin_v2(self, inputs, plugin):
        return self._plugin_layer("PLUGIN_V2", list(inputs), plugin)

    def add_plugin_v3(self, inputs, shape_inputs, plugin):
        return self._plugin_layer("PLUGIN_V3", [*inputs, *shape_inputs], plugin)

    def add_plugin(self, func):
        tensors, plugin = getattr(func, "tensors", None), getattr(func, "plugin", None)
        if plugin is None:
            raise TypeError("add_plugin: what a plugin of tensorrt.plugin.op returns")
        return self._plugin_layer("PLUGIN_V3", list(tensors), plugin)
