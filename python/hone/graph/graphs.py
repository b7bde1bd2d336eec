# SPDX-License-Identifier: Apache-2.0
"""Graphs: nodes, inputs and outputs; layers added by name; copies."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Number
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import cleaning, folding
from .base import GraphError
from .nodes import Node
from .tensors import Constant, Tensor, Variable

if TYPE_CHECKING:
    from ..diagnosis import Diagnosis
    from .functions import Function


class Opset(NamedTuple):
    """A set of operators that a model imports."""

    domain: str
    version: int


class _Nodes(list):
    """The nodes of a graph. `fresh`: those whose tensors' names layer() has not seen yet."""

    def __init__(self, nodes: Iterable[Node] = ()):
        list.__init__(self, nodes)
        self.fresh = list(self)

    def append(self, node: Node) -> None:
        self.fresh.append(node)
        list.append(self, node)

    def insert(self, at: int, node: Node) -> None:
        self.fresh.append(node)
        list.insert(self, at, node)

    def extend(self, nodes: Iterable[Node]) -> None:
        self[len(self):] = nodes

    def __iadd__(self, nodes: Iterable[Node]) -> _Nodes:
        self.extend(nodes)
        return self

    def __setitem__(self, at: Any, nodes: Any) -> None:
        new = list(nodes) if isinstance(at, slice) else [nodes]
        self.fresh += new
        list.__setitem__(self, at, new if isinstance(at, slice) else nodes)

    def __reduce__(self) -> tuple:
        return list, (list(self),)


class Graph:
    """A model's graph, or the body of an If, Loop or Scan. Methods that change it return it."""

    DEFAULT_OPSET = 11
    OPSET_FUNC_MAP: dict[int, dict[str, Callable]] = {}  # what register() was given for single operator sets
    GLOBAL_FUNC_MAP: dict[str, Callable] = {}  # ... and for all

    _origin: Any = None  # the library's graph that it was read from: what is said of it and stands nowhere here
    _loose: list = []  # constants of a model that no node reads
    _given: list = []  # constants of a model that are listed among the inputs, too
    _extra: list = []  # what a model declares of tensors that are no results of nodes
    _order: dict = {"inputs": {}, "values": {}, "weights": {}}  # places in the model that was read, by name

    @staticmethod
    def register(opsets: Iterable[int] | None = None) -> Callable:
        """A decorator: the function becomes a method of graphs, of those of these operator sets alone if they are given."""

        def keep(function: Callable) -> Callable:
            if opsets is None:
                Graph.GLOBAL_FUNC_MAP[function.__name__] = function
            else:
                for opset in opsets:
                    Graph.OPSET_FUNC_MAP.setdefault(opset, {})[function.__name__] = function
            return function

        return keep

    def __init__(self, nodes: Sequence[Node] | None = None, inputs: Sequence[Tensor] | None = None, outputs: Sequence[Tensor] | None = None,
                 name: str | None = None, doc_string: str | None = None, opset: int | None = None, import_domains: Sequence | None = None,
                 producer_name: str | None = None, producer_version: str | None = None, functions: Sequence[Function] | None = None,
                 ir_version: int | None = None):
        self._nodes = nodes if isinstance(nodes, _Nodes) else _Nodes(nodes or ())
        self._inputs, self._outputs = list(inputs or ()), list(outputs or ())
        self.name = self.__name__ = "onnx_graphsurgeon_graph" if name is None else name
        self.doc_string, self.opset = doc_string or "", Graph.DEFAULT_OPSET if opset is None else opset
        self.producer_name, self.producer_version = producer_name or "", producer_version or ""
        self.import_domains, self.ir_version = import_domains, ir_version
        self.name_idx = 0  # of the next name that layer() makes
        self._names: set = set()  # of tensors and nodes, as far as layer() has looked
        self._functions = list(functions or ())
        self._share_functions()

    @property
    def nodes(self) -> list[Node]:
        """In the order in which they are written."""
        return self._nodes

    @nodes.setter
    def nodes(self, nodes: Iterable[Node]) -> None:
        if nodes is not self._nodes:
            self._nodes = _Nodes(nodes)

    @property
    def inputs(self) -> list[Tensor]:
        """What a run is given."""
        return self._inputs

    @inputs.setter
    def inputs(self, tensors: Iterable[Tensor]) -> None:
        self._inputs = list(tensors)

    @property
    def outputs(self) -> list[Tensor]:
        """What a run gives."""
        return self._outputs

    @outputs.setter
    def outputs(self, tensors: Iterable[Tensor]) -> None:
        self._outputs = list(tensors)

    @property
    def functions(self) -> list[Function]:
        """The functions of the model: one list for all of its graphs."""
        return self._functions

    @functions.setter
    def functions(self, functions: Iterable[Function]) -> None:
        self._functions[:] = functions

    def _share_functions(self) -> None:
        """Bodies may come with functions of their own: they go into this graph's list, which becomes theirs."""
        known = {function.unique_id for function in self._functions}
        for graph in [*self._functions, self]:
            for body in graph.subgraphs(recursive=True):
                for function in body._functions:
                    if function.unique_id not in known:
                        known.add(function.unique_id)
                        self._functions.append(function)
                body._functions = self._functions
        for function in self._functions:
            function._functions = self._functions

    def __getattr__(self, name: str) -> Any:
        members = self.__dict__
        if name.startswith("__") or "_functions" not in members:
            raise AttributeError(name)
        found = Graph.OPSET_FUNC_MAP.get(members["opset"], {}).get(name) or Graph.GLOBAL_FUNC_MAP.get(name)
        if found is None:
            found = next((function.__call__ for function in members["_functions"] if function.name == name), None)
        if found is not None:
            return lambda *args, **kwargs: found(self, *args, **kwargs)
        others = sorted(opset for opset, functions in Graph.OPSET_FUNC_MAP.items() if name in functions)
        registered = f"; it is registered for the operator sets {others}" if others else ""
        raise AttributeError(f"a graph of the operator set {members['opset']} has no member {name!r}{registered}")

    def subgraphs(self, recursive: bool = False) -> Iterator[Graph]:
        """The bodies of its nodes; `recursive`: those inside of them, too."""
        seen = set()
        for node in self.nodes:
            for body in node.subgraphs(recursive):
                if id(body) not in seen:
                    seen.add(id(body))
                    yield body

    @contextmanager
    def node_ids(self) -> Iterator[Graph]:
        """Within the block each node has a number, node.id."""
        for number, node in enumerate(self.nodes):
            node.id = number
        try:
            yield self
        finally:
            for node in self.nodes:
                node.__dict__.pop("id", None)

    def tensors(self, check_duplicates: bool = False) -> OrderedDict[str, Tensor]:
        """By name, in the order of the nodes. `check_duplicates`: two of one name are an error."""
        found: OrderedDict[str, Tensor] = OrderedDict()
        for tensor in self._all_tensors():
            if tensor.is_empty():
                continue
            if found.setdefault(tensor.name, tensor) is not tensor:
                if check_duplicates:
                    raise GraphError(f"two tensors are called {tensor.name}: {found[tensor.name]} and {tensor}\n  hint: rename one of them")
                found[tensor.name] = tensor
        return found

    def _all_tensors(self) -> Iterator[Tensor]:
        yield from self._inputs
        for node in self._nodes:
            yield from node._inputs
            yield from node._outputs
        yield from self._outputs

    def cleanup(self, remove_unused_node_outputs: bool = False, recurse_subgraphs: bool = True, remove_unused_graph_inputs: bool = False,
                recurse_functions: bool = True) -> Graph:
        """Removes nodes that no output depends on, and what makes the graph's inputs."""
        cleaning.clean(self, remove_unused_node_outputs, recurse_subgraphs, remove_unused_graph_inputs)
        for function in self._functions if recurse_functions else ():
            cleaning.clean(function, remove_unused_node_outputs, recurse_subgraphs, remove_unused_graph_inputs)
        return self

    def toposort(self, recurse_subgraphs: bool = True, recurse_functions: bool = True, mode: str = "full") -> Graph:
        """Sorts nodes so that producers come first, and functions so that they come before those that call them ("nodes", "functions": these
        alone). A cycle is told with its nodes."""
        if mode not in ("full", "nodes", "functions"):
            raise GraphError(f"there is no mode {mode!r}\n  hint: full, nodes or functions")
        if mode != "functions":
            cleaning.sort(self, recurse_subgraphs)
            for function in self._functions if recurse_functions else ():
                cleaning.sort(function, recurse_subgraphs)
        if mode != "nodes":
            cleaning.sort_functions(self._functions)
        return self

    def fold_constants(self, fold_shapes: bool = True, recurse_subgraphs: bool = True, partitioning: str | None = None, error_ok: bool = True,
                       flatten_subgraphs: bool = True, size_threshold: int | None = None,
                       should_exclude_node: Callable[[Node], bool] | None = None, recurse_functions: bool = True) -> Graph:
        """Turns results that follow from constants and known shapes into constants, pairs of casts into nothing, and Ifs whose condition is
        known into their branch. Nodes that nobody needs any more stay until cleanup(). `size_threshold`: results of more bytes stay
        computed. `partitioning` changes nothing: a node that cannot be computed never keeps another one from being folded."""
        rules = folding.Rules(fold_shapes, recurse_subgraphs, error_ok, flatten_subgraphs, size_threshold, should_exclude_node)
        if partitioning not in (None, "basic", "recursive"):
            raise GraphError(f"there is no partitioning {partitioning!r}\n  hint: None, basic or recursive")
        folding.fold(self, rules)
        for function in reversed(self._functions) if recurse_functions else ():
            folding.fold(function, rules)
        return self

    def infer_shapes(self) -> Graph:
        """Gives every result and output the type and shape that follow from the inputs; what does not follow stays as it is declared."""
        folding.infer(self)
        return self

    def diagnose(self) -> Diagnosis:
        """What Hone would refuse of the model, node by node: operands that do not fit, types that an operator does not take, ..."""
        from ..diagnosis import diagnose
        from .writing import export_bytes

        return diagnose(export_bytes(self, do_type_check=False))

    def layer(self, inputs: Sequence | None = None, outputs: Sequence | None = None, *args: Any, **kwargs: Any) -> list[Tensor]:
        """Adds a node and returns its outputs. A text becomes a new tensor whose name begins with it, an array or numbers a constant; other
        arguments are those of Node."""
        for node in self._nodes.fresh:
            self._names.add(node.name)
            self._names.update(tensor.name for tensor in node._inputs)
            self._names.update(tensor.name for tensor in node._outputs)
        self._nodes.fresh.clear()
        self._names.update(tensor.name for tensor in self._inputs)
        given = [self._tensor_of(each) for each in inputs or ()]
        made = [self._tensor_of(each) for each in outputs or ()]
        if "name" not in kwargs:
            kwargs["name"] = self._new_name("onnx_graphsurgeon_node")
        node = Node(*args, inputs=given, outputs=made, **kwargs)
        self._nodes.append(node)
        return node.outputs

    def _new_name(self, begin: str) -> str:
        while True:
            name = f"{begin}_{self.name_idx}"
            self.name_idx += 1
            if name not in self._names:
                self._names.add(name)
                return name

    def _tensor_of(self, given: Any) -> Tensor:
        if isinstance(given, Tensor):
            self._names.add(given.name)
            return given
        if isinstance(given, str):
            return Variable(self._new_name(given))
        if isinstance(given, np.ndarray):
            return Constant(self._new_name("onnx_graphsurgeon_constant"), given)
        if isinstance(given, (list, tuple, Number)):
            some = given if isinstance(given, (list, tuple)) else [given]
            dtype = np.float32 if any(isinstance(each, float) for each in some) else np.int64
            return Constant(self._new_name("onnx_graphsurgeon_lst_constant"), np.array(given, dtype))
        raise GraphError(f"layer() makes no tensor of {type(given).__name__}: {given!r}"
                         "\n  hint: tensors, texts, arrays, numbers and lists of numbers; did you forget to unpack a list with *?")

    def copy(self, tensor_map: dict | None = None) -> Graph:
        """Another graph of copies of its nodes and tensors; values and attributes that are no graphs are shared. `tensor_map`: tensors around
        it, by name, that the copy reads instead of copies."""
        copier = _Copier(self, tensor_map or {})
        for body in self.subgraphs():  # what they read is known before they are copied
            for tensor in cleaning.captured(body).values():
                copier(tensor)
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._nodes = _Nodes(node.copy([copier(tensor) for tensor in node.inputs], [copier(tensor) for tensor in node.outputs], copier.known)
                             for node in self.nodes)
        made._inputs, made._outputs = [copier(tensor) for tensor in self.inputs], [copier(tensor) for tensor in self.outputs]
        made._loose, made._given = [copier(tensor) for tensor in self._loose], [copier(tensor) for tensor in self._given]
        made._names, made._functions = set(), list(self._functions)
        return made

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Graph) and (self.opset, self.ir_version) == (other.opset, other.ir_version)
                                 and _domains(self) == _domains(other) and self.inputs == other.inputs and self.outputs == other.outputs
                                 and {each.unique_id for each in self.functions} == {each.unique_id for each in other.functions}
                                 and list(self.nodes) == list(other.nodes))

    __hash__ = None

    def __str__(self) -> str:
        nodes = "\n".join(map(str, self.nodes))
        return (f"Graph {self.name} (Opset {self.opset})\nLocal Functions: [{','.join(each.name for each in self.functions)}]\n"
                f"Inputs: {self.inputs}\nNodes: {nodes}\nOutputs: {self.outputs}")

    __repr__ = __str__


def _domains(graph: Graph) -> list:
    return [(each.domain, each.version) for each in graph.import_domains or ()]


class _Copier:
    """One copy of each tensor. What a body reads from around it is what the graph around it has made of it."""

    def __init__(self, graph: Graph, around: dict):
        self.around = around
        self.known = dict(around)  # of tensors by identity, and by name of those that the caller gives
        self.own = {id(tensor) for node in graph.nodes for tensor in node.outputs} | {id(tensor) for tensor in graph.inputs}

    def __call__(self, tensor: Tensor) -> Tensor:
        if tensor.is_empty():
            return Variable.empty()
        found = self.known.get(id(tensor))
        if found is None and id(tensor) not in self.own:
            found = self.around.get(tensor.name)
        if found is None:
            found = tensor.copy()
        self.known[id(tensor)] = found
        return found
