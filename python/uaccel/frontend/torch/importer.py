"""Imports a PyTorch program as a Relax module of float operators, quantised where the program is.

Batch normalisation is folded into the layer before it. This runs PyTorch on what the file says, so files of unknown
origin belong into the process that ``isolated`` starts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from uaccel.errors import ModelError, need
from uaccel.frontend.checks import ADVICE, NO_CONVERTER, first_line, need_type, read_file
from uaccel.frontend.converters import Walk, by_tvm, parameters_of
from uaccel.frontend.torch import converter, reader
from uaccel.frontend.torch import program as programs
from uaccel.frontend.torch.converter import Context, Expr, arguments, converts
from uaccel.frontend.torch.rebuild import exported_program
from uaccel.frontend.torch.serialised import TensorMeta
from uaccel.model import (
    Array,
    Bound,
    Fed,
    ImportedModel,
    ModelFile,
    Origin,
    Signature,
    StateSpec,
    TensorSpec,
    UniqueNames,
)
from uaccel.ops.operator import constant, info_of
from uaccel.tvm_api import is_constant, is_tuple_type, is_var, main_bindings, relax, with_names
from uaccel.tvm_api.converters import TorchConverter
from uaccel.util.files import quiet

# Batch normalisation with fixed statistics: f * y + s in each channel, with f = weight / sqrt(variance + eps) and
# s = bias - mean * f. Behind a convolution y = W * x + b this is (f * W) * x + (f * b + s): weights and bias take it.

_NORM = "_native_batch_norm_legit_no_training.default"
# Layers that normalisation is folded into.
_BEFORE = ("conv1d.default", "conv2d.default", "linear.default")


@dataclass(frozen=True)
class Affine:
    """Holds a factor and a summand for each channel."""

    factor: Array
    summand: Array


@converts(f"aten.{_NORM}")
def batch_norm(context: Context, node: Any) -> Expr:
    """The first of its three results, the only one that programs use. Folded, it is the convolution's result."""
    source = node.args[0]
    value = context.expr(source)
    if following(context, source) is not None:
        return [value]  # its weights hold it already
    meaning = _affine(context, node)
    spread = (1, -1) + (1,) * (len(node.meta["val"][0].shape) - 2)
    scaled = context.emit(relax.op.multiply(value, constant(meaning.factor.reshape(spread))))
    return [context.emit(relax.op.add(scaled, constant(meaning.summand.reshape(spread))))]


def following(context: Context, node: Any) -> Affine | None:
    """The normalisation to fold into this layer, None where there is none.

    The layer's weights must be constants, and nothing else may read its result. A linear layer must have one row of
    features for each sample: with more axes its channels are last, while normalisation has them on axis 1.
    """
    target = str(getattr(node.target, "__name__", ""))
    if target not in _BEFORE or len(node.users) != 1:
        return None
    (user,) = node.users
    if str(getattr(user.target, "__name__", "")) != _NORM or user.args[0] is not node:
        return None
    if target == "linear.default" and len(node.meta["val"].shape) != 2:
        return None
    given = arguments(node)
    operands = [entry for entry in (given["weight"], given["bias"]) if entry is not None]
    return _affine(context, user) if all(context.is_constant(entry) for entry in operands) else None


def fold(context: Context, node: Any, meaning: Affine) -> tuple[Any, Any]:
    """The layer's new weights and bias, as PyTorch tensors."""
    given = arguments(node)
    weight = context.array(given["weight"]).astype(np.float64)
    bias = np.zeros(len(weight)) if given["bias"] is None else context.array(given["bias"]).astype(np.float64)
    factor = meaning.factor.astype(np.float64)
    scaled = weight * factor.reshape((-1,) + (1,) * (weight.ndim - 1))
    return (
        context.torch.from_numpy(scaled.astype(np.float32)),
        context.torch.from_numpy((bias * factor + meaning.summand).astype(np.float32)),
    )


def _affine(context: Context, node: Any) -> Affine:
    given = arguments(node)
    need(given["running_mean"] is not None and given["running_var"] is not None, "it has no running statistics")
    mean, variance = (context.array(given[name]).astype(np.float64) for name in ("running_mean", "running_var"))
    weight = np.ones_like(mean) if given["weight"] is None else context.array(given["weight"]).astype(np.float64)
    bias = np.zeros_like(mean) if given["bias"] is None else context.array(given["bias"]).astype(np.float64)
    factor = weight / np.sqrt(variance + float(given["eps"]))
    return Affine(factor.astype(np.float32), (bias - mean * factor).astype(np.float32))


# The walk from node to node. Nodes of constants are computed by PyTorch, others are converted by ours or by TVM's.


@dataclass(frozen=True)
class Made:
    """Says what a variable of the module is: its name to be, its origin, and type and meaning of its value."""

    name: str
    origin: Origin
    spec: TensorSpec


@dataclass(kw_only=True)
class TorchWalk(Walk[Any]):
    """Converts one program. ``context`` knows inputs and weights.

    ``numbers`` has the places of the operators of the user's own program, by name. ``made`` describes the variables,
    which get their final names when all are bound.
    """

    refusals: ClassVar = (Exception,)  # converters and TVM's type rules raise anything for arguments of no sense

    context: Context
    numbers: Mapping[str, int]
    outputs: Sequence[Any]
    tvm: TorchConverter = field(init=False)
    inputs: frozenset[Any] = field(init=False)
    made: dict[Any, Made] = field(default_factory=dict)

    def begin(self) -> None:
        self.context.block = self.block
        self.tvm = TorchConverter(self.block.builder)
        self.inputs = frozenset(value for value in self.context.values.values() if is_var(value))

    def results(self) -> list[Expr]:
        return [self.context.expr(node) for node in self.outputs]

    def where(self, node: Any) -> str:
        origin = self._origin(node)
        return f'operator {origin.index} {_shown(node)} ("{origin.tensor}")'

    def convert(self, node: Any) -> None:
        converter.check_operator(node, ours=_full_name(node.target) in converter.CONVERTERS.names)
        if self._is_known(node):
            self.context.values[node] = self._computed(node)
        else:
            self.context.values[node] = self._bound(node, self._converted(node), self._origin(node))

    def _origin(self, node: Any) -> Origin:
        """The operator of the file that a node is or is made from: the latest in ``from_node`` that the file has."""
        names = [node.name, *(source.name for source in reversed(node.meta.get("from_node", ())))]
        name = next((name for name in names if name in self.numbers), node.name)
        operator = programs.name_of(node.target).partition(".")[0].strip("_")
        return Origin(self.numbers.get(name, len(self.numbers)), operator, name)

    def _is_known(self, node: Any) -> bool:
        """Whether a node is computed now. Dequantised weights are not, as later stages need their integers."""
        if programs.name_of(node.target).startswith("dequantize") and len(node.meta["val"].shape) > 0:
            return False
        return all(self._is_constant(self.context.values.get(entry)) for entry in node.all_input_nodes)

    def _is_constant(self, value: Any) -> bool:
        if isinstance(value, (list, tuple)):
            return all(self._is_constant(entry) for entry in value)
        return isinstance(value, self.context.torch.Tensor)

    def _computed(self, node: Any) -> Any:
        torch = self.context.torch
        with torch.no_grad():
            args, kwargs = torch.utils._pytree.tree_map_only(
                torch.fx.Node, self.context.values.__getitem__, (node.args, node.kwargs)
            )
            try:
                return node.target(*args, **kwargs)
            except Exception as error:  # whatever the operator says
                raise ModelError(f"PyTorch cannot compute it from its constants: {first_line(error)}") from error

    def _converted(self, node: Any) -> Expr:
        operator, namespace = programs.name_of(node.target), programs.namespace_of(node.target)
        if operator == "getitem":
            return _item(self.context, node)
        ours = converter.CONVERTERS.find(_full_name(node.target), node)
        if ours is not None:
            return ours(self.context, node)
        need(namespace == "aten" and self.tvm.knows(operator), f"{NO_CONVERTER}; {ADVICE}")
        converter.check_arguments(node)
        return self._by_tvm(operator, node)

    def _by_tvm(self, operator: str, node: Any) -> Expr:
        """Convert a node by TVM's converter, with normalisation behind it folded into its weights and bias.

        TVM's converters misread options, so they get what tests/frontend/torch/test_options.py holds. A layer without
        a bias has no node that could get one, so it is added behind the layer.
        """
        meaning = following(self.context, node)
        for entry in node.all_input_nodes:
            value = self.context.values[entry]
            self.tvm.define(entry, self.context.expr(entry) if self.context.is_constant(entry) else value)
        late = None
        if meaning is not None:
            given = arguments(node)
            weight, bias = fold(self.context, node, meaning)
            self.tvm.define(given["weight"], constant(weight.numpy()))
            if given["bias"] is not None:
                self.tvm.define(given["bias"], constant(bias.numpy()))
            else:
                late = bias
        with by_tvm():
            value = self.tvm.convert(operator, node)
        if late is None:
            return value
        spread = (1, -1) + (1,) * (len(node.meta["val"].shape) - 2)
        return relax.op.add(value, constant(late.numpy().reshape(spread)))

    def _bound(self, node: Any, value: Any, origin: Origin) -> Any:
        """Bind results to variables, and check their types. Constants and existing variables get no new variable."""
        if isinstance(value, (list, tuple)):
            return [self._bound(node, entry, origin) for entry in value]
        if is_constant(value):
            return self.context.torch.from_numpy(value.value.numpy().copy())
        var = value if is_var(value) else self.context.block.emit(value, "lv")
        if is_tuple_type(var):
            return var
        declared = node.meta["val"]
        if hasattr(declared, "shape"):
            wanted, computed = programs.info_of_value(declared), info_of(var)
            need(wanted == computed, f"the program declares {wanted}, TVM's converter computes {computed}; {ADVICE}")
        if var not in self.made and var not in self.inputs:
            spec = TensorSpec(origin.tensor, info_of(var), self.context.quantised.get(node))
            self.made[var] = Made(f"{origin.op}_{origin.index}", origin, spec)
        return var

    def stand_in(self, node: Any) -> None:
        values = node.meta["val"]
        several = isinstance(values, (list, tuple))
        self.context.values[node] = [self._stand_in(value) for value in values] if several else self._stand_in(values)

    def _stand_in(self, value: Any) -> Any:
        if not hasattr(value, "shape") or any(not isinstance(extent, int) for extent in value.shape):
            return self.context.block.stand_in((1,), "float32")
        info = programs.info_of_value(value)
        return self.context.block.stand_in(info.shape, info.dtype if info.dtype in programs.DTYPES else "float32")


def _shown(node: Any) -> str:
    """The name in messages: of an operator with its namespace, of a Python function alone."""
    return str(node.target) if hasattr(node.target, "_schema") else programs.name_of(node.target)


def _full_name(target: Any) -> str:
    return f"{programs.namespace_of(target)}.{programs.name_of(target)}"


def known_operators() -> Callable[[Any], bool]:
    """A function that says whether a converter, ours or TVM's, takes an operator."""
    by_tvm = frozenset(TorchConverter(None).operators())
    return lambda target: programs.name_of(target) in by_tvm or _full_name(target) in converter.CONVERTERS.names


def _item(context: Context, node: Any) -> Expr:
    """A result of a node with several. A converter that gives a single one has left out the others."""
    source, number = node.args
    values = context.values[source]
    if isinstance(values, (list, tuple)):
        need(number < len(values), f"result {number} of {programs.name_of(source.target)} is not supported; {ADVICE}")
        return values[number]
    if is_tuple_type(values):
        return relax.TupleGetItem(values, number)
    need(number == 0, f"result {number} of {programs.name_of(source.target)} is not supported; {ADVICE}")
    return values


# The import as a whole.


def import_torch(path: Path, input_shapes: reader.InputShapes | None = None) -> ImportedModel:
    """Import a trusted file in this process; ``isolated.import_isolated`` is for all others."""
    return import_bytes(path, read_file(path, reader.LARGEST_FILE), input_shapes or {})


def import_bytes(path: Path, data: bytes, input_shapes: reader.InputShapes) -> ImportedModel:
    """Import the file at ``path`` with content ``data``. One error names all operators that cannot be converted."""
    torch = programs.torch_package()
    program = read_program(torch, path, data, input_shapes)
    flat = programs.decomposed(torch, path, program.exported)
    programs.check_changes(path, flat, program.stored)
    imported = _Import(path, program, flat)
    with quiet():
        module = imported.convert(torch)
    return ImportedModel(
        name=path.stem,
        source_format="torch.export",
        digest=hashlib.sha256(data).hexdigest(),
        module=module,
        signature=imported.signature,
        tensors=imported.tensors,
        origins=imported.origins,
        file=ModelFile(path.suffix.lower(), data),
        state=imported.state,
    )


def read_program(torch: Any, path: Path, data: bytes, input_shapes: reader.InputShapes) -> programs.TorchProgram:
    stored = reader.read(path, data)
    if stored.program.uses("torchao"):
        programs.register_torchao()
    return exported_program(torch, path, stored, input_shapes, known_operators())


def rehearse() -> None:
    """Import a tiny program, so that PyTorch loads now what a confined process could not; ``relu_`` is decomposed."""
    torch = programs.torch_package()
    tensor = TensorMeta(7, (1,), (1,), 0)
    own = reader.FileNode(
        "torch.ops.aten.relu.default", (reader.Argument("self", 1, ("as_tensor", {"name": "x"})),), ("y",), False, "y"
    )
    changing = replace(own, target="torch.ops.aten.relu_.default", results=("z",), name="z")
    given, result = reader.FileInput("x", None, ("as_tensor", {"name": "x"})), ("as_tensor", {"name": "z"})
    graph = reader.FileGraph((), (), (own, changing), {"x": tensor}, frozenset())
    stored = reader.Stored(reader.FileProgram(graph, (given,), (result,), (), {}, {}), {})
    program = exported_program(torch, Path("rehearsal"), stored, {}, known_operators())
    programs.decomposed(torch, Path("rehearsal"), program.exported)


def execute(
    path: Path,
    data: bytes,
    samples: Sequence[Sequence[Array]],
    bound: Sequence[Bound] = (),
    first: Sequence[Array] = (),
    *,
    afresh: bool = False,
) -> list[list[Array]]:
    """Run the file's program in PyTorch, for samples of one shape, and return the results of each.

    ``first`` is what ``bound`` inputs begin with. With ``afresh`` each sample begins with that, and with the buffers of
    the file; else they go on from sample to sample."""
    torch = programs.torch_package()
    program = reader.read(path, data).program
    names = [entry.name for entry in program.inputs if entry.stored is None and entry.name]
    whole = list(samples[0])
    for pair, value in zip(bound, first, strict=True):
        whole.insert(pair.input, value)
    shapes = {name: value.shape for name, value in zip(names, whole, strict=True)}
    made = read_program(torch, path, data, shapes)
    exported = made.exported

    def started() -> Fed:
        buffers = {target: value.clone() for target, value in exported.state_dict.items()}

        def run(inputs: Sequence[Array]) -> list[Array]:
            values = [torch.from_numpy(value.copy()) for value in inputs]
            results = torch.fx.Interpreter(exported.graph_module).run(*buffers.values(), *values)
            buffers.update(zip(made.kept, results, strict=False))
            return [value.numpy().copy() for value in results[len(made.kept) :]]

        return Fed(run, bound, first)

    with quiet(), torch.no_grad():
        fed = started()
        return [(started() if afresh else fed)(sample) for sample in samples]


@dataclass
class _Import:
    """Imports one program. ``flat`` is the decomposed program, whose first outputs are what buffers become."""

    path: Path
    program: programs.TorchProgram
    flat: Any
    tensors: dict[str, TensorSpec] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)
    signature: Signature = field(default_factory=lambda: Signature((), ()))
    state: tuple[StateSpec, ...] = ()

    def convert(self, torch: Any) -> Any:
        """The module. This fills ``tensors``, ``origins``, ``signature`` and ``state`` as well."""
        self.state = tuple(self._buffers())
        nodes = [*programs.user_inputs(self.flat), *self._kept_nodes()]
        parameters = parameters_of([*self.program.inputs, *(entry.spec for entry in self.state)])
        context = Context(torch, values=self._weights() | dict(zip(nodes, parameters, strict=True)))
        outputs = self._output_nodes()
        count = len(self.state)
        results = [*outputs[count:], *outputs[:count]]
        walk = TorchWalk(path=self.path, context=context, numbers=self.program.nodes, outputs=results)
        called = [node for node in self.flat.graph.nodes if node.op == "call_function" and node.users]
        module = walk.module(parameters, called)
        self._describe(context, dict(zip(nodes, parameters, strict=True)), outputs[count:])
        return self._named(module, walk)

    def _buffers(self) -> Iterator[StateSpec]:
        """The buffers that the program writes to, with what they hold in the file."""
        for target in self.flat.graph_signature.buffers_to_mutate.values():
            value = self.flat.state_dict[target]
            name, info = self.program.stored.get(target, target), programs.info_of_value(value)
            need_type(info.dtype, programs.DTYPES, f'{self.path}: buffer "{name}"')
            yield StateSpec(TensorSpec(name, info), value.numpy().copy())

    def _kept_nodes(self) -> list[Any]:
        """The placeholders of these buffers."""
        names = {target: name for name, target in self._targets().items()}
        placed = {node.name: node for node in self.flat.graph.nodes if node.op == "placeholder"}
        return [placed[names[target]] for target in self.flat.graph_signature.buffers_to_mutate.values()]

    def _targets(self) -> dict[str, str]:
        """The names of stored tensors, by those of their placeholders."""
        return {spec.arg.name: str(spec.target) for spec in self.flat.graph_signature.input_specs if spec.target}

    def _weights(self) -> dict[Any, Any]:
        """PyTorch's tensors of parameters, buffers and constants, by the nodes that stand for them."""
        stores: list[Mapping[str, Any]] = [self.flat.state_dict, self.flat.constants]
        targets = self._targets()
        found: dict[Any, Any] = {}
        for node in self.flat.graph.nodes:
            name = targets.get(node.name, "") if node.op == "placeholder" else str(node.target)
            if node.op in ("placeholder", "get_attr"):
                value = next((store[name] for store in stores if name in store), None)
                found |= {} if value is None else {node: value}
        return found

    def _output_nodes(self) -> list[Any]:
        (output,) = (node for node in self.flat.graph.nodes if node.op == "output")
        return list(output.args[0])

    def _describe(self, context: Context, parameters: Mapping[Any, Any], outputs: Sequence[Any]) -> None:
        """Set the signature, with the quantisation of inputs and outputs."""

        def meant(nodes: Iterable[Any], specs: Sequence[TensorSpec]) -> tuple[TensorSpec, ...]:
            pairs = zip(nodes, specs, strict=False)
            return tuple(replace(spec, quantisation=context.quantised.get(node)) for node, spec in pairs)

        self.signature = Signature(meant(parameters, self.program.inputs), meant(outputs, self.program.outputs))
        specs = [*self.signature.inputs, *(entry.spec for entry in self.state)]
        self.tensors.update(zip((var.name for var in parameters.values()), specs, strict=True))

    def _named(self, module: Any, walk: TorchWalk) -> Any:
        """Name results, such as ``conv2d_3``. Bindings before one, back to the previous result's, share its origin."""
        unique, names = UniqueNames(), {}
        parameters, bindings = main_bindings(module)
        for var in parameters:
            unique.take(var.name)
        pending = []
        for var, _ in bindings:
            pending.append(var)
            if var in walk.made:
                names[var] = unique.take(walk.made[var].name)
                self.origins.update({names.get(part, part.name): walk.made[var].origin for part in pending})
                self.tensors[names[var]] = walk.made[var].spec
                pending = []
        return with_names(module, names)
