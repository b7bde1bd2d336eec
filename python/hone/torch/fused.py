# SPDX-License-Identifier: Apache-2.0
"""Operators that torch fuses before any backend sees a graph, spelled out for its ONNX exporter, which knows no form of them.

nn.TransformerEncoderLayer calls one such operator for the whole layer when it is evaluated without gradients. The spelling-out is put
into torch's table of decompositions, where the exporter looks; nothing that torch has there already is replaced.
"""

from __future__ import annotations

import torch
from torch.nn import functional


def encoder_layer(src, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu, norm_first, eps, norm_weight_1, norm_bias_1,
                  norm_weight_2, norm_bias_2, ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2, mask=None, mask_type=None):
    """aten._transformer_encoder_layer_fwd: attention and two products, each with its sum and normalisation."""
    def normalised(x, weight, bias):
        return functional.layer_norm(x, (embed_dim,), weight, bias, eps)

    def attended(x):
        rows, length = x.shape[0], x.shape[1]
        query, key, value = (each.reshape(rows, length, num_heads, embed_dim // num_heads).transpose(1, 2)
                             for each in functional.linear(x, qkv_weight, qkv_bias).split(embed_dim, -1))
        y = functional.scaled_dot_product_attention(query, key, value, None if mask is None else _allowed(mask, mask_type))
        return functional.linear(y.transpose(1, 2).reshape(rows, length, embed_dim), proj_weight, proj_bias)

    def multiplied(x):
        y = functional.linear(x, ffn_weight_1, ffn_bias_1)
        return functional.linear(functional.gelu(y) if use_gelu else functional.relu(y), ffn_weight_2, ffn_bias_2)

    if norm_first:
        src = src + attended(normalised(src, norm_weight_1, norm_bias_1))
        return src + multiplied(normalised(src, norm_weight_2, norm_bias_2))
    src = normalised(src + attended(src), norm_weight_1, norm_bias_1)
    return normalised(src + multiplied(src), norm_weight_2, norm_bias_2)


def _allowed(mask, mask_type):
    """Which positions are looked at: the operator's masks say which are not, in booleans or what becomes one."""
    allowed = mask.to(torch.bool).logical_not()
    return allowed[:, None, None, :] if mask_type == 1 else allowed  # 1: of keys that are padding


def teach() -> None:
    """Puts them into torch's table, once."""
    from torch._decomp import decomposition_table

    target = getattr(torch.ops.aten, "_transformer_encoder_layer_fwd", None)
    if target is not None:
        decomposition_table.setdefault(target.default, encoder_layer)
