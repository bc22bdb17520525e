"""Rebuilds PyTorch's ``ExportedProgram`` from the plain data that ``reader`` gives, for inputs of fixed shapes.

``Arguments`` reads operands, ``Builder`` makes the graph operator by operator, and ``exported_program`` adds weights
and signature. Only operators of PyTorch's that ``program.resolved`` allows are called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import getitem
from pathlib import Path
from typing import Any, Final

from uaccel.errors import ModelError
from uaccel.frontend.checks import ADVICE, NO_CONVERTER, first_line, unsupported
from uaccel.frontend.torch import reader
from uaccel.frontend.torch.converter import check_extents
from uaccel.frontend.torch.program import ARITHMETIC, TorchProgram, check_unchanged, input_specs, output_specs, resolved
from uaccel.frontend.torch.reader import Argument, FileGraph, FileInput, FileNode, Stored, Value
from uaccel.frontend.torch.serialised import (
    Expression,
    MisfitError,
    TensorMeta,
    check_conditions,
    device,
    fields,
    integer,
    items,
    need,
    number,
    tagged,
    text,
    truth,
)
from uaccel.model import Shape
from uaccel.util.files import quiet

# Operands: the few kinds of arguments that operators on tensors take.

# The types of stored elements, by PyTorch's numbers for them.
STORED: Final = (
    dict(enumerate(("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"), 1))
    | dict(enumerate(("complex32", "complex64", "complex128", "bool", "bfloat16"), 9))
    | {28: "uint16", 34: "uint32", 35: "uint64"}
    | dict(enumerate(("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"), 29))
)
# The types that the rebuilt program computes with: half precision becomes float32.
DTYPES: Final = {number: "float32" if name == "float16" else name for number, name in STORED.items()}
_FORMATS: Final = {1: "contiguous_format", 2: "channels_last", 3: "channels_last_3d", 4: "preserve_format"}
_STRIDED: Final = 7


class Arguments:
    """Reads operands of operators. ``values`` holds the results of earlier operators, by name."""

    def __init__(self, torch: Any, values: Mapping[str, Any]) -> None:
        self._torch = torch
        self._values = values
        self._read: dict[str, Callable[[Any, str], Any]] = {
            "as_none": lambda _value, _what: None,
            "as_tensor": self._tensor,
            "as_tensors": lambda value, what: list(items(value, what, self._tensor)),
            "as_int": integer,
            "as_ints": lambda value, what: list(items(value, what, integer)),
            "as_float": number,
            "as_floats": lambda value, what: list(items(value, what, number)),
            "as_bool": truth,
            "as_bools": lambda value, what: list(items(value, what, truth)),
            "as_string": text,
            "as_scalar_type": lambda value, what: dtype(torch, value, what),
            "as_memory_format": self._format,
            "as_layout": self._layout,
            "as_device": lambda value, what: torch.device(device(value, what)),
            "as_optional_tensor": self._any,
            "as_optional_tensors": lambda value, what: list(items(value, what, self._any)),
            **dict.fromkeys(("as_sym_int", "as_sym_float", "as_sym_bool"), self._number),
            **dict.fromkeys(
                ("as_sym_ints", "as_sym_floats", "as_sym_bools"),
                lambda value, what: list(items(value, what, self._number)),
            ),
        }

    def value(self, value: Value, what: str) -> Any:
        tag, content = value
        need(tag in self._read, f"{what} is {tag[:40]!r}, which no operator on tensors takes")
        return self._read[tag](content, what)

    def call(self, schema: Any, given: tuple[Argument, ...]) -> tuple[list[Any], dict[str, Any]]:
        """Arguments by place and by name, in the order of the schema; by place only while all before them are."""
        left = {argument.name: argument for argument in given}
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for place, declared in enumerate(schema.arguments):
            argument = left.pop(declared.name, None)
            if argument is None:
                continue
            value = self.value(argument.value, f"its argument {declared.name!r}")
            by_place = argument.kind == 1 or (argument.kind == 0 and not declared.has_default_value())
            if by_place and not declared.kwarg_only and place == len(args):
                args.append(value)
            else:
                kwargs[declared.name] = value
        need(not left, f"it has the unknown argument {next(iter(left), '')[:40]!r}")
        return args, kwargs

    def _tensor(self, value: Any, what: str) -> Any:
        return self._named(fields(value, what, "name")[0], what)

    def _named(self, name: Any, what: str) -> Any:
        found = text(name, what)
        need(found in self._values, f"{what} is {found[:40]!r}, which nothing before it makes")
        return self._values[found]

    def _any(self, value: Any, what: str) -> Any:
        return self.value(tagged(value, what), what)

    def _number(self, value: Any, what: str) -> Any:
        tag, content = tagged(value, what)
        return self._named(content, what) if tag == "as_name" else self.value((tag, content), what)

    def _format(self, value: Any, what: str) -> Any:
        need(type(value) is int and value in _FORMATS, f"{what} is no memory format")
        return getattr(self._torch, _FORMATS[value])

    def _layout(self, value: Any, what: str) -> Any:
        need(value == _STRIDED, f"{what} is no layout of dense tensors")
        return self._torch.strided


def dtype(torch: Any, value: Any, what: str) -> Any:
    need(type(value) is int and value in DTYPES, f"{what} is no type of elements")
    return getattr(torch, DTYPES[value])


# The graph, built operator by operator.
#
# Each operator runs on fake tensors, which have types and shapes but no elements. Their types and shapes are believed;
# what the file says of results is only compared with them. As all inputs have fixed shapes, the graph has no symbols,
# and arithmetic on extents is done here, with numbers.

_INTEGERS: Final = range(-(1 << 63), 1 << 63)
_HIGHER: Final = "torch.ops.higher_order."
_WITHOUT_GRADIENTS: Final = _HIGHER + "wrap_with_set_grad_enabled"
_WITH_AUTOCAST: Final = _HIGHER + "wrap_with_autocast"

Problem = tuple[int, FileNode, str]


class Builder:
    """Builds a graph. ``symbols`` has the number of each symbol; ``known`` says whether an operator has a converter.

    ``numbers`` gives, by the name of a node, the place in the file of the operator that it is, or is a part of.
    """

    def __init__(self, torch: Any, symbols: Mapping[str, int], known: Callable[[Any], bool]) -> None:
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.fx.experimental.symbolic_shapes import ShapeEnv

        self.graph = torch.fx.Graph()
        self.numbers: dict[str, int] = {}
        self._torch = torch
        self._symbols = symbols
        self._known = known
        self._table = torch.export.default_decompositions()
        self._mode = FakeTensorMode(shape_env=ShapeEnv(), allow_fallback_kernels=False, static_shapes=True)
        self._tensors: dict[Any, Any] = {}
        self._reserved: set[str] = set()
        self._names: set[str] = set()

    def placeholder(self, name: str, shape: Shape, strides: Shape | None, dtype: int) -> Any:
        """The node of an input: a tensor without elements."""
        need(name not in self._names, f"program has two inputs {name!r}")
        kind = getattr(self._torch, DTYPES[dtype])
        with self._mode:
            if strides is None:
                value = self._torch.empty(shape, dtype=kind)
            else:
                value = self._torch.empty_strided(shape, strides, dtype=kind)
        node = self.graph.placeholder(name)
        self._name(node, name)
        self._keep(node, value)
        return node

    def run(self, file: FileGraph, values: dict[str, Any], outputs: tuple[Value, ...]) -> list[Any]:
        """Add all operators of the file, and return the nodes that ``outputs`` name. ``values``: the inputs' nodes."""
        self._reserved = {found for node in file.nodes for found in (node.name, *node.results) if found}
        problems = [f"{_shown(number, node)}: {text}" for number, node, text in self._unknown(file)]
        if problems:
            raise UnsupportedError(problems)
        return self._graph(file, values, outputs, None)

    def _unknown(self, file: FileGraph) -> Iterator[Problem]:
        """Operators that no program may have, also inside regions. Graphs of other operators are control flow."""
        number = 0
        for node in file.nodes:
            inner = [argument.value[1] for argument in node.inputs if argument.value[0] == "as_graph"]
            if node.target in (_WITHOUT_GRADIENTS, _WITH_AUTOCAST):
                yield from ((number, *problem[1:]) for graph in inner for problem in self._unknown(graph))
            elif inner or node.target.startswith(_HIGHER):
                yield number, node, "control flow cannot be compiled; export without it"
            elif node.target not in ARITHMETIC and self._operator(node) is None:
                yield number, node, f"{NO_CONVERTER}; {ADVICE}"
            number += node.lines

    def _operator(self, node: FileNode) -> Any:
        return resolved(self._torch, node.target, self._table, self._known)

    def _graph(
        self, file: FileGraph, values: dict[str, Any], outputs: tuple[Value, ...], inside: int | None
    ) -> list[Any]:
        """Add a graph's operators. ``inside``: the place of the region that it belongs to, None for the outermost."""
        number = 0
        for node in file.nodes:
            place = number if inside is None else inside
            try:
                self._node(node, values, file.tensors, place, outer=inside is None)
            except (MisfitError, ModelError) as error:
                raise UnsupportedError([f"{_shown(place, node)}: {error}"]) from error
            number += node.lines
        read = Arguments(self._torch, values)
        return [read.value(value, f"output {place}") for place, value in enumerate(outputs)]

    def _node(
        self, node: FileNode, values: dict[str, Any], declared: Mapping[str, TensorMeta], place: int, *, outer: bool
    ) -> None:
        for found in node.results:
            need(found not in values, f"the name {found!r} is taken")
        if node.target in ARITHMETIC:
            self._arithmetic(node, values)
        elif node.target.startswith(_HIGHER):
            results = self._region(node, values, place)
            fits = len(results) == len(node.results)
            need(fits, f"it makes {len(results)} results, the file names {len(node.results)}")
            values.update({name: value for name, value in zip(node.results, results, strict=True) if name})
        else:
            made = self._called(node, values, place, outer=outer)
            values.update(made)
            for name, value in made.items():
                self._check(value, declared.get(name))

    def _arithmetic(self, node: FileNode, values: dict[str, Any]) -> None:
        read = Arguments(self._torch, values)
        operands = [read.value(argument.value, "an operand") for argument in node.inputs]
        need(all(isinstance(value, (int, float)) for value in operands), "it computes with what is no number")
        try:
            result = ARITHMETIC[node.target](*operands)
        except (ArithmeticError, TypeError, ValueError) as error:
            raise MisfitError(f"it cannot be computed: {error}") from error
        need(isinstance(result, float) or result in _INTEGERS, "its result has more than 64 bits")
        need(len(node.results) == 1 and not node.several, "it has one result")
        values[str(node.results[0])] = result

    def _region(self, node: FileNode, values: dict[str, Any], place: int) -> list[Any]:
        """The results of a graph that runs in a mode, which becomes a part of the program.

        The graph stands behind the arguments that set the mode, and its operands follow it. A mode of gradients changes
        no result. Nor does autocast where it is off: of its four arguments the third says so.
        """
        read = Arguments(self._torch, values)
        where = next(place for place, one in enumerate(node.inputs) if one.value[0] == "as_graph")
        modes = [read.value(one.value, "a mode") for one in node.inputs[:where]]
        off = node.target == _WITHOUT_GRADIENTS or (len(modes) == 4 and modes[2] is False)
        need(off, "autocast cannot be compiled; export without it")
        inner: FileGraph = node.inputs[where].value[1]
        given = [read.value(one.value, "an operand") for one in node.inputs[where + 1 :]]
        tensors = [held if kind == "as_tensor" and isinstance(held, dict) else {} for kind, held in inner.inputs]
        names = [tensor.get("name") for tensor in tensors]
        named = [found for found in names if isinstance(found, str)]
        need(len(named) == len(names) == len(given), "its program has other inputs")
        return self._graph(inner, dict(zip(named, given, strict=True)), inner.outputs, place)

    def _called(self, node: FileNode, values: dict[str, Any], place: int, *, outer: bool) -> dict[str, Any]:
        """Run an operator, and add its node unless it only checks operands; returns the results that have names."""
        operator, nodes = self._operator(node), self._torch.fx.Node
        args, kwargs = Arguments(self._torch, values).call(operator._schema, node.inputs)
        given = self._torch.utils._pytree.tree_map_only(nodes, self._tensors.__getitem__, (args, kwargs))
        try:
            with self._mode, self._torch.no_grad():
                result = operator(*given[0], **given[1])
        except Exception as error:  # whatever the operator says
            raise ModelError(f"PyTorch cannot compute it: {first_line(error)}") from error
        if not node.results:
            need(not operator._schema.is_mutable, "it changes what it reads, and has no result")
            return {}
        if isinstance(result, (int, float)):
            return {str(node.results[0]): result}
        several = isinstance(result, (list, tuple))
        results = list(result) if several else [result]
        for value in results:
            fits = isinstance(value, self._torch.Tensor)
            need(fits, "it makes a number, not a tensor, at run time; firmware needs it fixed")
            check_extents(value, "its result")
        fits = len(results) == len(node.results) and several == node.several
        need(fits, f"it makes {len(results)} results, the file names {len(node.results)}")
        made = self._emit(operator, args, kwargs, node.name, place, result, outer=outer)
        if not several:
            return {str(node.results[0]): made}
        named = {}
        for which, (name, value) in enumerate(zip(node.results, results, strict=True)):
            if name:
                number = place + 1 + which if outer else place
                named[name] = self._emit(getitem, [made, which], {}, name, number, value, outer=outer)
        return named

    def _emit(self, operator: Any, args: Any, kwargs: Any, name: str, place: int, result: Any, *, outer: bool) -> Any:
        node = self.graph.create_node("call_function", operator, tuple(args), kwargs)
        self._name(node, name if outer and name not in self._names else self._fresh(name))
        self._keep(node, result)
        self.numbers[node.name] = place
        return node

    def _fresh(self, name: str) -> str:
        """A name that no node has, and that no operator of the file's outermost graph needs."""
        found, count = name, 0
        while found in self._names or found in self._reserved:
            count += 1
            found = f"{name}_{count}"
        return found

    def _name(self, node: Any, name: str) -> None:
        """Give a node this name, where PyTorch would choose another."""
        self._names.add(name)
        node.name = name

    def _keep(self, node: Any, value: Any) -> None:
        """Keep a node's fake tensor, and a snapshot as the node's value: later operators may change it in place."""
        self._tensors[node] = value
        with self._mode, self._torch.no_grad():
            node.meta["val"] = self._torch.utils._pytree.tree_map_only(
                self._torch.Tensor, lambda tensor: tensor.detach(), value
            )

    def _check(self, node: Any, declared: TensorMeta | None) -> None:
        """Compare a result with what the file says of it. Sizes that are expressions are not compared."""
        if declared is None or not isinstance(node, self._torch.fx.Node):
            return
        value = node.meta["val"]
        said = [
            self._symbols.get(extent) if isinstance(extent, str) and not isinstance(extent, Expression) else extent
            for extent in declared.shape
        ]
        same = len(said) == len(value.shape) and all(
            wanted is None or isinstance(wanted, Expression) or wanted == extent
            for wanted, extent in zip(said, value.shape, strict=True)
        )
        kind = str(value.dtype).removeprefix("torch.")
        if not same or DTYPES.get(declared.dtype) != kind:
            shown = ",".join("?" if isinstance(extent, Expression) else str(extent) for extent in declared.shape)
            made = ",".join(map(str, value.shape))
            raise MisfitError(
                f"the file says {DTYPES.get(declared.dtype, 'no type')} [{shown}], it makes {kind} [{made}]"
            )


class UnsupportedError(Exception):
    """Lists operators that cannot be compiled, with the reason for each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def _shown(number: int, node: FileNode) -> str:
    target = node.target.removeprefix("torch.ops.")
    return f'operator {number} {target[:120]} ("{node.name}")'


# The exported program: the graph, its weights, and what else PyTorch wants to know.


def exported_program(
    torch: Any, path: Path, stored: Stored, input_shapes: reader.InputShapes, known: Callable[[Any], bool]
) -> TorchProgram:
    """The program for inputs of these shapes; ``known`` says whether an operator has a converter."""
    check_unchanged(path, list(stored.program.changed))
    try:
        with quiet():
            return _Exported(torch, path, stored, input_shapes, known).program()
    except UnsupportedError as error:
        raise unsupported(path, error.problems) from error
    except MisfitError as error:
        raise ModelError(f"{path} cannot be read: its {error}; {reader.WANTED}") from error


class _Exported:
    """Makes an ``ExportedProgram`` whose placeholders are the file's tensors, all as buffers, and then the inputs."""

    def __init__(
        self, torch: Any, path: Path, stored: Stored, input_shapes: reader.InputShapes, known: Callable[[Any], bool]
    ) -> None:
        self._torch = torch
        self._path = path
        self._file = stored.program
        self._tensors = stored.tensors
        self._shapes, symbols = reader.fixed_shapes(path, stored.program, input_shapes)
        check_conditions(path, self._file.conditions, self._shapes)
        self._builder = Builder(torch, symbols, known)
        self._state: dict[str, Any] = {}
        self._stored: dict[str, str] = {}

    def program(self) -> TorchProgram:
        names = [entry.name for entry in self._file.inputs if entry.name]
        need(len(set(names)) == len(names), "program has two inputs of one name")
        constants = {entry.name: self._constant(entry) for entry in self._file.inputs if entry.stored is not None}
        given = {name: self._given(name, shape) for name, shape in self._shapes.items()}
        inputs = input_specs(self._path, list(given.values()))
        kept = self._kept_targets()
        values = self._builder.run(
            self._file.graph, constants | given, (*self._file.kept.values(), *self._file.outputs)
        )
        outputs = output_specs(self._path, values[len(kept) :])
        self._builder.graph.output(tuple(values)).meta["val"] = tuple(node.meta["val"] for node in values)
        exported = self._exported(list(constants), list(given), values, kept)
        return TorchProgram(exported, inputs, outputs, self._builder.numbers, self._stored, kept)

    def _kept_targets(self) -> tuple[str, ...]:
        """Our names of the buffers that the file says it writes to at the end."""
        ours = {name: target for target, name in self._stored.items()}
        need(self._file.kept.keys() <= ours.keys(), "program writes to a buffer that it does not have")
        return tuple(ours[name] for name in self._file.kept)

    def _constant(self, entry: FileInput) -> Any:
        """The placeholder of a stored tensor, under a name of ours: the file's might mean something to PyTorch."""
        tensor = self._tensors.get(str(entry.stored))
        if tensor is None:
            raise MisfitError(f"weight {entry.stored!r} is missing")
        target = f"stored_{len(self._state)}"
        self._stored[target] = str(entry.stored)
        value = self._state[target] = self._loaded(tensor)
        return self._builder.placeholder(entry.name, tuple(value.shape), tuple(value.stride()), tensor.meta.dtype)

    def _given(self, name: str, shape: Shape) -> Any:
        meta = self._file.graph.tensors[name]
        need(meta.dtype in DTYPES, f"input {name!r} has no type")
        return self._builder.placeholder(name, shape, None, meta.dtype)

    def _loaded(self, stored: reader.StoredTensor) -> Any:
        """A copy of a stored tensor, whose bounds the reader has checked. Native code needs truth values of 0 or 1."""
        kind = getattr(self._torch, STORED[stored.meta.dtype])
        content = bytearray(stored.content)
        need(DTYPES[stored.meta.dtype] != "bool" or max(content, default=0) < 2, "weights hold truths beside 0 and 1")
        flat = self._torch.frombuffer(content, dtype=kind) if content else self._torch.empty(0, dtype=kind)
        values = flat.as_strided(stored.meta.shape, stored.meta.strides, stored.meta.offset)
        return values.to(getattr(self._torch, DTYPES[stored.meta.dtype]))

    def _exported(self, constants: list[str], given: list[str], values: list[Any], kept: tuple[str, ...]) -> Any:
        from torch._export.verifier import load_verifier
        from torch.export import ExportedProgram
        from torch.export.exported_program import ModuleCallEntry, ModuleCallSignature
        from torch.export.graph_signature import (
            ExportGraphSignature,
            InputKind,
            InputSpec,
            OutputKind,
            OutputSpec,
            TensorArgument,
        )

        stored = zip(constants, self._state, strict=True)
        taken = [InputSpec(InputKind.BUFFER, TensorArgument(name), target, True) for name, target in stored]
        taken += [InputSpec(InputKind.USER_INPUT, TensorArgument(name), None) for name in given]
        results = values[len(kept) :]
        made = [
            OutputSpec(OutputKind.BUFFER_MUTATION, TensorArgument(node.name), target)
            for node, target in zip(values, kept, strict=False)
        ]
        made += [OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(node.name), None) for node in results]
        structure = self._torch.utils._pytree.tree_structure
        call = ModuleCallSignature(
            inputs=[],
            outputs=[],
            in_spec=structure((tuple(given), {})),
            out_spec=structure(tuple(given_result.name for given_result in results)),
            forward_arg_names=given,
        )
        try:
            return ExportedProgram(
                self._torch.nn.Module(),
                self._builder.graph,
                ExportGraphSignature(taken, made),
                self._state,
                {},
                [ModuleCallEntry("", call)],
                verifiers=[load_verifier("TRAINING")],  # it lets operators change their operands
            )
        except Exception as error:  # its own checks
            raise ModelError(f"{self._path}: PyTorch does not take it: {first_line(error)}; {reader.WANTED}") from error
