"""An exported PyTorch program becomes a Relax module of float operators, quantised where the program is."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from uaccel.basics.quiet import quiet
from uaccel.frontend.budget import read_file
from uaccel.frontend.torch import archive
from uaccel.frontend.torch.convert import Context
from uaccel.frontend.torch.decompose import decomposed
from uaccel.frontend.torch.exported import exported_program
from uaccel.frontend.torch.package import register_torchao, torch_package
from uaccel.frontend.torch.program import Program, check_pure, user_inputs
from uaccel.frontend.torch.program_file import Argument, FileGraph, FileInput, FileNode, FileProgram
from uaccel.frontend.torch.records import LARGEST_FILE
from uaccel.frontend.torch.serialised import TensorMeta
from uaccel.frontend.torch.shapes import InputShapes
from uaccel.frontend.torch.walk import TorchWalk, known_operators
from uaccel.frontend.walk import parameters_of
from uaccel.model import Array, ImportedModel, ModelFile, Origin, Signature, TensorSpec, UniqueNames
from uaccel.tvm_api import main_bindings, with_names


def import_torch(path: Path, input_shapes: InputShapes | None = None) -> ImportedModel:
    """Read, check and convert, in this process; files that nobody vouches for belong into ``isolated``'s."""
    return import_bytes(path, read_file(path, LARGEST_FILE), input_shapes or {})


def import_bytes(path: Path, data: bytes, input_shapes: InputShapes) -> ImportedModel:
    """``data`` is what the file at ``path`` holds. Every operator that cannot be converted is named in one error."""
    torch = torch_package()
    program = read_program(torch, path, data, input_shapes)
    flat = decomposed(torch, path, program.exported)
    check_pure(path, flat, program.stored)
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
    )


def read_program(torch: Any, path: Path, data: bytes, input_shapes: InputShapes) -> Program:
    stored = archive.read(path, data)
    if stored.program.uses("torchao"):
        register_torchao()
    return exported_program(torch, path, stored, input_shapes, known_operators())


def rehearse() -> None:
    """Have PyTorch load what it loads when it is first needed: afterwards this process may lose the right to."""
    torch = torch_package()
    tensor = TensorMeta(7, (1,), (1,), 0)
    own = FileNode(
        "torch.ops.aten.relu.default", (Argument("self", 1, ("as_tensor", {"name": "x"})),), ("y",), False, "y"
    )
    changing = replace(own, target="torch.ops.aten.relu_.default", results=("z",), name="z")
    given, result = FileInput("x", None, ("as_tensor", {"name": "x"})), ("as_tensor", {"name": "z"})
    graph = FileGraph((), (), (own, changing), {"x": tensor}, frozenset())
    stored = archive.Stored(FileProgram(graph, (given,), (result,), (), {}), {})
    program = exported_program(torch, Path("rehearsal"), stored, {}, known_operators())
    decomposed(torch, Path("rehearsal"), program.exported)


def execute(path: Path, data: bytes, samples: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """What PyTorch computes of the file's program, for samples of one shape."""
    torch = torch_package()
    program = archive.read(path, data).program
    names = [entry.name for entry in program.inputs if entry.stored is None and entry.name]
    shapes = {name: value.shape for name, value in zip(names, samples[0], strict=True)}
    exported = read_program(torch, path, data, shapes).exported
    rows = []
    with quiet(), torch.no_grad():
        for sample in samples:
            values = [torch.from_numpy(value.copy()) for value in sample]
            rows.append(torch.fx.Interpreter(exported.graph_module).run(*exported.state_dict.values(), *values))
    return [[value.numpy() for value in row] for row in rows]


@dataclass
class _Import:
    """``flat`` is the program in operators that can be converted."""

    path: Path
    program: Program
    flat: Any
    tensors: dict[str, TensorSpec] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)
    signature: Signature = field(default_factory=lambda: Signature((), ()))

    def convert(self, torch: Any) -> Any:
        """The module; it fills the other members."""
        nodes = user_inputs(self.flat)
        parameters = parameters_of(self.program.inputs)
        context = Context(torch, values=dict(zip(nodes, parameters, strict=True)) | self._weights())
        walk = TorchWalk(path=self.path, context=context, numbers=self.program.nodes, outputs=self._output_nodes())
        called = [node for node in self.flat.graph.nodes if node.op == "call_function" and node.users]
        module = walk.module(parameters, called)
        self._describe(context, dict(zip(nodes, parameters, strict=True)))
        return self._named(module, walk)

    def _weights(self) -> dict[Any, Any]:
        """The placeholders of parameters, buffers and constants, and attributes of the graph: PyTorch's tensors."""
        stores: list[Mapping[str, Any]] = [self.flat.state_dict, self.flat.constants]
        targets = {spec.arg.name: str(spec.target) for spec in self.flat.graph_signature.input_specs if spec.target}
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

    def _describe(self, context: Context, parameters: Mapping[Any, Any]) -> None:
        """The signature, with what the integers of inputs and outputs stand for."""
        inputs = [
            replace(spec, quantisation=context.quantised.get(node))
            for node, spec in zip(parameters, self.program.inputs, strict=True)
        ]
        outputs = [
            replace(spec, quantisation=context.quantised.get(node))
            for node, spec in zip(self._output_nodes(), self.program.outputs, strict=True)
        ]
        self.signature = Signature(tuple(inputs), tuple(outputs))
        names = [var.name for var in parameters.values()]
        self.tensors.update(zip(names, inputs, strict=True))

    def _named(self, module: Any, walk: TorchWalk) -> Any:
        """What each node computes is called ``conv2d_3``, and where every binding comes from is noted."""
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
