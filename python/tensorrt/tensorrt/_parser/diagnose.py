# SPDX-License-Identifier: Apache-2.0
"""Which nodes of a model Hone refuses, and why: one after the other.

Hone's reader stops at the first node that is wrong. So that node and all that depends on it are taken out, and the rest is asked again.
Operators without a rule are told all at once.
"""

import re
import struct

import hone

from .._base import native, onnx

_AT = re.compile(r"while importing node node_(\d+)(?:[ (/]|$)")
_UNKNOWN = re.compile(r"node_(\d+)\b")
MOST = 1000  # nodes that are looked for


def _probe(model, chosen):
    """A model of the nodes that are left, each called by its number, whose outputs are all tensors."""
    graph = onnx.Graph("probe")
    graph.inputs, graph.tensors, graph.rest = model.graph.inputs, model.graph.tensors, model.graph.rest
    names = []
    for at in chosen:
        node = model.graph.nodes[at]
        made = onnx.Node(node.op, node.inputs, node.outputs, f"node_{at}", node.domain)
        made.raw_attributes, made.rest = node.raw_attributes, node.rest
        graph.nodes.append(made)
        names += [name for name in node.outputs if name]
    graph.outputs = [onnx.Info(name) for name in names]
    probe = onnx.Model(graph)
    probe.ir, probe.opsets, probe.functions = model.ir, model.opsets, model.functions
    return probe


def ask(model, chosen, folder):
    """{tensor: (element, sizes)} of the nodes; raises hone.Error."""
    from .._base.elements import HONE

    try:
        read = hone.Model.parse(_probe(model, chosen).bytes(), folder)
    except UnicodeDecodeError:
        raise hone.Error("a name in the model is no UTF-8 text") from None
    found = {name: (HONE[kind], list(sizes)) for name, kind, is_input, sizes, *_ in read.handle.tensors() if not is_input}
    read.close()
    return found


def _without(model, chosen, bad):
    """The nodes that neither are bad nor depend on one that is."""
    gone, kept = set(), []
    for at in chosen:
        node = model.graph.nodes[at]
        if at in bad or any(name in gone for name in [*node.inputs, *node.outer_names()]):
            gone.update(name for name in node.outputs if name)
        else:
            kept.append(at)
    return kept


def examine(model, folder):
    """_examined(); a model whose fields are not what ONNX says is wrong as a whole."""
    try:
        return _examined(model, folder)
    except (onnx.Malformed, ValueError, TypeError, AttributeError, struct.error) as error:
        return {}, [], f"a field of the model is not what ONNX says: {error}"


def _examined(model, folder):
    """(types of all tensors that are right, [(node's index, text, whether its operator is unknown)], text of what is wrong with the
    whole model or None)."""
    chosen, refused = list(range(len(model.graph.nodes))), {}
    while len(refused) < MOST:
        if refused and not chosen:
            return {}, [(at, *refused[at]) for at in sorted(refused)], None
        try:
            types = ask(model, chosen, folder)
        except hone.Error as error:
            text = str(error)
        else:
            return types, [(at, *refused[at]) for at in sorted(refused)], None
        head, _, hint = text.partition("\n  hint: ")
        unknown = "not supported" in head and "while importing" not in head
        found = [int(number) for number in (_UNKNOWN if unknown else _AT).findall(head)]
        found = [at for at in found if at in set(chosen)]
        if not found:
            return {}, [(at, *refused[at]) for at in sorted(refused)], native.text_of(hone.Error(text))
        if not unknown:
            found = found[:1]
        reason = re.sub(r"\bnode_\d+\b", "the node", head.split("\n")[0]) + (f" (hint: {hint.strip()})" if hint and not unknown else "")
        refused.update({at: (reason, unknown) for at in found})
        chosen = _without(model, chosen, set(found))
    return {}, [(at, *refused[at]) for at in sorted(refused)], None

