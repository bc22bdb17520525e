"""The program of a ``.pt2`` file as PyTorch's ``ExportedProgram``, made by us of plain data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from uaccel.basics.quiet import quiet
from uaccel.errors import ModelError
from uaccel.frontend.checks import first_line, unsupported
from uaccel.frontend.torch.archive import WANTED, Stored, StoredTensor
from uaccel.frontend.torch.arguments import DTYPES, STORED
from uaccel.frontend.torch.conditions import check_conditions
from uaccel.frontend.torch.program import Program, check_unchanged, input_specs, output_specs
from uaccel.frontend.torch.program_file import FileInput
from uaccel.frontend.torch.rebuild import Builder, UnsupportedError
from uaccel.frontend.torch.serialised import MisfitError, need
from uaccel.frontend.torch.shapes import InputShapes, fixed_shapes
from uaccel.model import Shape


def exported_program(
    torch: Any, path: Path, stored: Stored, input_shapes: InputShapes, known: Callable[[Any], bool]
) -> Program:
    """For inputs of these shapes; ``known``: whether an operator has a converter."""
    check_unchanged(path, list(stored.program.changed))
    try:
        with quiet():
            return _Exported(torch, path, stored, input_shapes, known).program()
    except UnsupportedError as error:
        raise unsupported(path, error.problems) from error
    except MisfitError as error:
        raise ModelError(f"{path} cannot be read: its {error}; {WANTED}") from error


class _Exported:
    """The nodes, and what PyTorch wants to know beside them."""

    def __init__(
        self, torch: Any, path: Path, stored: Stored, input_shapes: InputShapes, known: Callable[[Any], bool]
    ) -> None:
        self._torch = torch
        self._path = path
        self._file = stored.program
        self._tensors = stored.tensors
        self._shapes, symbols = fixed_shapes(path, stored.program, input_shapes)
        check_conditions(path, self._file.conditions, self._shapes)
        self._builder = Builder(torch, symbols, known)
        self._state: dict[str, Any] = {}
        self._stored: dict[str, str] = {}

    def program(self) -> Program:
        names = [entry.name for entry in self._file.inputs if entry.name]
        need(len(set(names)) == len(names), "program has two inputs of one name")
        constants = {entry.name: self._constant(entry) for entry in self._file.inputs if entry.stored is not None}
        given = {name: self._given(name, shape) for name, shape in self._shapes.items()}
        inputs = input_specs(self._path, list(given.values()))
        results = self._builder.run(self._file.graph, constants | given, self._file.outputs)
        outputs = output_specs(self._path, results)
        self._builder.graph.output(tuple(results)).meta["val"] = tuple(node.meta["val"] for node in results)
        exported = self._exported(list(constants), list(given), results)
        return Program(exported, inputs, outputs, self._builder.numbers, self._stored)

    def _constant(self, entry: FileInput) -> Any:
        """Under a name that is ours, and so means nothing to PyTorch."""
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

    def _loaded(self, stored: StoredTensor) -> Any:
        """A copy, of bytes that the archive has checked to be enough."""
        kind = getattr(self._torch, STORED[stored.meta.dtype])
        content = bytearray(stored.content)
        need(DTYPES[stored.meta.dtype] != "bool" or max(content, default=0) < 2, "weights hold truths beside 0 and 1")
        flat = self._torch.frombuffer(content, dtype=kind) if content else self._torch.empty(0, dtype=kind)
        values = flat.as_strided(stored.meta.shape, stored.meta.strides, stored.meta.offset)
        return values.to(getattr(self._torch, DTYPES[stored.meta.dtype]))

    def _exported(self, constants: list[str], given: list[str], results: list[Any]) -> Any:
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
        made = [OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(node.name), None) for node in results]
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
            raise ModelError(f"{self._path}: PyTorch does not take it: {first_line(error)}; {WANTED}") from error
