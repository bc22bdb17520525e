"""Starts the confined process that reads a ``.pt2`` file, and carries its model over as plain data.

The process that starts it needs no PyTorch, and does not parse the file.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from uaccel import tvm_api
from uaccel.errors import InternalError, ModelError
from uaccel.frontend import limits
from uaccel.frontend.checks import read_file
from uaccel.frontend.torch.program import ADVICE
from uaccel.frontend.torch.reader import LARGEST_FILE, WANTED, InputShapes
from uaccel.frontend.torch.sandbox import FrameError, read_frame, write_frame
from uaccel.model import (
    Array,
    ImportedModel,
    ModelFile,
    Origin,
    Quantisation,
    Signature,
    StateSpec,
    TensorInfo,
    TensorSpec,
)
from uaccel.ops.matmul import FullyConnectedBlocks
from uaccel.ops.operator import IntegerOperator, get
from uaccel.ops.recurrent import Recurrent
from uaccel.ops.reduce import TopK
from uaccel.tvm_api import relax, tirx
from uaccel.util.text import named

# The wire format: an imported model as JSON and arrays, and back. It is all that leaves the process that reads a file.
#
# A file might have taken that process over, so the format is narrow. It can name operators of Relax and a few of ours,
# with numbers, text and tensors as operands. It has no way to say a function or code, not even for operators of Relax
# that would call one.

_ATTRIBUTES: Final = "relax.attrs."
_OPERATORS: Final = "relax."
# Operators of ours that the converters of PyTorch emit; all other ones come later, when integers are made.
_OWN: Final[dict[str, IntegerOperator[Any]]] = {
    operator.full_name: operator for operator in (get(FullyConnectedBlocks), get(Recurrent), get(TopK))
}


def packed(model: ImportedModel) -> tuple[dict[str, Any], list[Array]]:
    """A model as a JSON object, and the constant tensors that the object refers to by number."""
    sender = _Sender()
    module = sender.module(model.module)
    document = {
        **named(model, "name", "source_format", "digest"),
        "module": module,
        "inputs": [_spec(spec) for spec in model.signature.inputs],
        "outputs": [_spec(spec) for spec in model.signature.outputs],
        "tensors": {name: _spec(spec) for name, spec in model.tensors.items()},
        "origins": {name: [origin.index, origin.op, origin.tensor] for name, origin in model.origins.items()},
        "state": [_spec(entry.spec) for entry in model.state],
    }
    return document, [*(entry.initial for entry in model.state), *sender.tensors]


def unpacked(document: dict[str, Any], tensors: list[Array], file: ModelFile) -> ImportedModel:
    """The model that ``packed`` made these of."""
    specs = [_read_spec(spec) for spec in document["state"]]
    initial, constants = tensors[: len(specs)], tensors[len(specs) :]
    return ImportedModel(
        name=str(document["name"]),
        source_format=str(document["source_format"]),
        digest=str(document["digest"]),
        module=_Receiver(constants).module(document["module"]),
        signature=Signature(tuple(map(_read_spec, document["inputs"])), tuple(map(_read_spec, document["outputs"]))),
        tensors={str(name): _read_spec(spec) for name, spec in document["tensors"].items()},
        origins={
            str(name): Origin(int(index), str(op), str(tensor))
            for name, (index, op, tensor) in document["origins"].items()
        },
        file=file,
        state=tuple(map(StateSpec, specs, initial)),
    )


def _spec(spec: TensorSpec) -> list[Any]:
    meaning = spec.quantisation
    grid = None if meaning is None else [meaning.scales, meaning.zero_points, meaning.axis]
    return [spec.name, spec.info.shape, spec.info.dtype, grid]


def _read_spec(entry: list[Any]) -> TensorSpec:
    name, shape, dtype, grid = entry
    meaning = None if grid is None else Quantisation(tuple(map(float, grid[0])), tuple(map(int, grid[1])), int(grid[2]))
    return TensorSpec(str(name), TensorInfo(tuple(map(int, shape)), str(dtype)), meaning)


@dataclass
class _Sender:
    """Writes a module as JSON, and keeps its constants in ``tensors``.

    Expressions refer to variables by numbers in the order of binding, parameters first, so only to what is before them.
    """

    tensors: list[Array] = field(default_factory=list)
    numbers: dict[Any, int] = field(default_factory=dict)

    def module(self, module: Any) -> dict[str, Any]:
        if [name.name_hint for name in module.functions] != ["main"]:
            raise ModelError("it became more than one function, which cannot be compiled")
        parameters, bindings, result = tvm_api.bindings_of(module["main"])
        shown = []
        for var in parameters:
            self.numbers[var] = len(self.numbers)
            shown.append([var.name, [int(extent) for extent in var.ty.shape.values], str(var.ty.dtype)])
        bound = []
        for var, value in bindings:
            bound.append([var.name, self.expr(value)])
            self.numbers[var] = len(self.numbers)
        return {"parameters": shown, "bindings": bound, "result": self.expr(result)}

    def expr(self, expr: Any) -> list[Any]:
        """A list of the expression's kind and its parts; ``_READERS`` has one reader for each kind."""
        if tvm_api.is_var(expr):
            return ["variable", self.numbers[expr]]
        if tvm_api.is_constant(expr):
            self.tensors.append(expr.value.numpy())
            return ["constant", len(self.tensors) - 1]
        if tvm_api.is_tuple(expr):
            return ["tuple", [self.expr(part) for part in expr.fields]]
        if tvm_api.is_tuple_get_item(expr):
            return ["item", self.expr(expr.tuple_value), expr.index]
        if isinstance(expr, relax.ShapeExpr):
            return ["shape", [int(extent) for extent in expr.values]]
        if tvm_api.is_operator_call(expr):
            own = _OWN.get(expr.op.name)
            if own is not None:
                return ["own", expr.op.name, [self.expr(part) for part in expr.args], own.attrs_of(expr).to_node()]
            if expr.ty_args or not expr.op.name.startswith(_OPERATORS):
                raise ModelError(f"it became a call of {expr.op.name}, which cannot be compiled")
            return ["call", expr.op.name, [self.expr(part) for part in expr.args], self._attributes(expr.attrs)]
        return ["value", self._value(expr)]

    def _attributes(self, attributes: Any) -> list[Any] | None:
        if attributes is None:
            return None
        info = type(attributes).__tvm_ffi_type_info__
        if not info.type_key.startswith(_ATTRIBUTES):
            raise ModelError(f"it became a call with {info.type_key}, which cannot be compiled")
        fields = {entry.name: self._value(getattr(attributes, entry.name)) for entry in info.fields}
        return [info.type_key, fields]

    def _value(self, value: Any) -> Any:
        """A value of an attribute: plain ones as they are, all others as a list that begins with their kind."""
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, str):
            return str(value)
        if isinstance(value, (tirx.IntImm, tirx.FloatImm)):
            return ["number", value.value, str(value.ty.dtype)]
        if isinstance(value, _DTYPE):
            return ["type", str(value)]
        if isinstance(value, (list, tuple, tvm_api.tvm.ir.Array)):
            return ["list", *(self._value(part) for part in value)]
        raise ModelError(f"it became a call with a {type(value).__name__}, which cannot be compiled")


@dataclass
class _Receiver:
    """Builds the module again. ``known`` holds the variables bound so far, at the numbers that the sender gave them."""

    tensors: list[Array]
    known: list[Any] = field(default_factory=list)
    operators: frozenset[str] = field(default_factory=lambda: frozenset(tvm_api.operator_names()))

    def module(self, document: dict[str, Any]) -> Any:
        for name, shape, dtype in document["parameters"]:
            self.known.append(relax.Var(str(name), relax.TensorType([int(extent) for extent in shape], str(dtype))))

        def body(block: tvm_api.FunctionBlock) -> Any:
            for name, expr in document["bindings"]:
                self.known.append(block.emit(self.expr(expr), str(name)))
            return self.expr(document["result"])

        return tvm_api.replace_main(self.known, body)

    def expr(self, entry: list[Any]) -> Any:
        kind, *parts = entry
        return _READERS[kind](self, *parts)

    def call(self, name: str, args: list[Any], attributes: list[Any] | None) -> Any:
        if not name.startswith(_OPERATORS) or name not in self.operators:
            raise InternalError(f"a file became a call of {name}")
        made = None
        if attributes is not None:
            key, fields = attributes
            if not key.startswith(_ATTRIBUTES):
                raise InternalError(f"a file became attributes of type {key}")
            made = tvm_api.tvm.ir.make_node(key, **{str(field): self.value(value) for field, value in fields.items()})
        return relax.Call(tvm_api.tvm.ir.Op.get(name), [self.expr(arg) for arg in args], made)

    def own(self, name: str, args: list[Any], attributes: dict[str, Any]) -> Any:
        if name not in _OWN:
            raise InternalError(f"a file became a call of {name}")
        return _OWN[name](*map(self.expr, args), attrs=_OWN[name].attributes(**attributes))

    def value(self, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        kind, *parts = value
        if kind == "number":
            number, dtype = parts
            return tirx.FloatImm(dtype, number) if dtype.startswith(("float", "bfloat")) else tirx.IntImm(dtype, number)
        if kind == "type":
            return str(parts[0])
        return [self.value(part) for part in parts]


_READERS: Final[dict[str, Callable[..., Any]]] = {
    "variable": lambda reader, number: reader.known[number],
    "constant": lambda reader, number: relax.const(reader.tensors[number], str(reader.tensors[number].dtype)),
    "tuple": lambda reader, parts: relax.Tuple([reader.expr(part) for part in parts]),
    "item": lambda reader, part, index: relax.TupleGetItem(reader.expr(part), index),
    "shape": lambda _reader, extents: relax.ShapeExpr(extents),
    "call": _Receiver.call,
    "own": _Receiver.own,
    "value": lambda reader, value: reader.value(value),
}
_DTYPE: Final = type(tirx.IntImm("int64", 0).ty.dtype)


# The worker process: how it is started, limited and waited for.
#
# Reading a file takes PyTorch's operators and TVM's converters. They are native code, which a malicious file might
# crash, keep busy for good, or make allocate without end. In a process of its own that costs an error message.

Samples = Sequence[Sequence[Array]]

_MEMORY: Final = (1 << 30, 8)  # Bytes beyond what PyTorch and TVM take, plus so many for each byte of the file.
_SECONDS: Final = (40, 1 << 18)  # CPU seconds, plus one for each so many bytes of the file.
_PATIENCE: Final = 10  # Wall-clock seconds for each CPU second, as other programs want the processor, too.
_DYING: Final = 2  # Seconds that a process has to end by itself once its answer broke off.
WORKER: Final = "uaccel.frontend.torch.sandbox_worker"  # The module whose ``main`` the process runs.
_START: Final = f"import sys; sys.path[:] = sys.argv[1:]; from {WORKER} import main; main()"
# Environment variables that the process gets.
_KEPT: Final = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "LD_LIBRARY_PATH")


def import_isolated(path: Path, input_shapes: InputShapes) -> ImportedModel:
    """The model in a ``.pt2`` file, imported by a confined process."""
    data = read_file(path, LARGEST_FILE)
    shapes = {name: list(shape) for name, shape in input_shapes.items()}
    answer, tensors = _answer(path, data, {"task": "import", "shapes": shapes}, [])
    return unpacked(answer["model"], tensors, ModelFile(path.suffix.lower(), data))


def execute_isolated(path: Path, how: dict[str, Any], samples: Samples) -> tuple[str, list[list[Array]]]:
    """PyTorch's version, and for each sample the results of the program in the file.

    ``how`` is what the worker's ``_executed`` is asked; the first of ``samples`` is what bound inputs begin with."""
    values = [np.asarray(value) for sample in samples for value in sample]
    data = read_file(path, LARGEST_FILE)
    answer, results = _answer(path, data, {"task": "execute", **how}, values)
    count = len(results) // how["samples"]
    return str(answer["version"]), [results[first : first + count] for first in range(0, len(results), count)]


def _answer(
    path: Path, data: bytes, request: dict[str, Any], values: list[Array]
) -> tuple[dict[str, Any], list[Array]]:
    """Send one request to a new process, and raise its errors here.

    The request is in a file, not in a pipe, so that neither process can block while it writes to the other.
    """
    memory = limits.asked.memory or _MEMORY[0] + _MEMORY[1] * len(data)
    seconds = math.ceil(limits.asked.seconds or _SECONDS[0] + len(data) // _SECONDS[1])
    request |= {"path": str(path), "memory": memory, "seconds": seconds}
    with tempfile.TemporaryFile() as asked:
        write_frame(asked, request, [np.frombuffer(data, np.uint8), *values])
        asked.seek(0)
        status, answer, arrays = _run(asked.fileno(), memory, seconds)
    if status != 0 or answer is None:
        raise ModelError(f"{path} {_cause(status, memory, seconds)}")
    if "error" in answer:
        raise ModelError(str(answer["error"]))
    if "bug" in answer:
        where = str(answer["bug"])
        raise InternalError(f"reading {path} failed: {where.strip().splitlines()[-1]}") from RuntimeError(where)
    return answer, arrays


def _run(asked: int, memory: int, seconds: int) -> tuple[int, dict[str, Any] | None, list[Array]]:
    """The exit status, and the answer, None where there is no complete one.

    ``-I`` keeps environment variables and the current folder from adding modules; the search path is this process's.
    After a broken answer the process may be dying of a signal that says why. Killing it at once would hide that signal.
    """
    command = [sys.executable, "-I", "-B", "-c", _START, *(entry for entry in sys.path if Path(entry).is_absolute())]
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | {"OMP_NUM_THREADS": "1"}
    nowhere = subprocess.DEVNULL
    with subprocess.Popen(
        command, stdin=asked, stdout=subprocess.PIPE, stderr=nowhere, env=environment, start_new_session=True
    ) as process:
        clock = threading.Timer(seconds * _PATIENCE, process.kill)
        clock.start()
        try:
            assert process.stdout is not None
            answer, arrays = read_frame(process.stdout, memory)
            return process.wait(), answer, arrays
        except FrameError:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(_DYING), None, []
            process.kill()
            return process.wait(), None, []
        finally:
            clock.cancel()
            process.kill()


def _cause(status: int, memory: int, seconds: int) -> str:
    """Explains, for the user, why a process ended without an answer."""
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        return (
            f"takes more than {memory >> 20} MB or {seconds} seconds of a processor to read; no model for a "
            "microcontroller does: export a smaller one, or give it more by --limit-memory and --limit-seconds"
        )
    if status < 0:
        return f"crashes PyTorch or TVM, which read it (signal {-status}); {WANTED}"
    return f"cannot be read: a process of {sys.executable} for it ended with status {status}; {ADVICE}"
