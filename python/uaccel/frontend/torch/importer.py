"""An exported PyTorch program becomes a Relax module of float operators, quantised where the program is."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from uaccel.errors import ModelError
from uaccel.frontend.torch import archive, arithmetic, attention, moves, normalise, pool, quantised
from uaccel.frontend.torch.convert import Context
from uaccel.frontend.torch.decompose import decomposed
from uaccel.frontend.torch.package import torch_package
from uaccel.frontend.torch.program import InputShapes, Program, check_pure, checked, user_inputs
from uaccel.frontend.torch.walk import Walk
from uaccel.model import ImportedModel, ModelFile, Origin, Signature, TensorSpec, UniqueNames, c_identifier
from uaccel.quiet import quiet
from uaccel.tvm_api import ModuleBuilder, TorchConverter, main_bindings, relax, with_names

CONVERTER_MODULES = (arithmetic, attention, moves, normalise, pool, quantised)


def import_torch(path: Path, input_shapes: InputShapes | None = None) -> ImportedModel:
    """Read, check and convert; every operator that cannot be converted is named in one error."""
    exported, data = archive.load(path)
    torch = torch_package()
    program = checked(torch, path, exported, input_shapes or {})
    flat = decomposed(torch, path, program.exported)
    check_pure(path, flat)
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
        builder = ModuleBuilder()
        parameters = {
            node: relax.Var(c_identifier(spec.name), relax.TensorType(spec.info.shape, spec.info.dtype))
            for node, spec in zip(user_inputs(self.flat), self.program.inputs, strict=True)
        }
        with builder.function(list(parameters.values())) as block:
            context = Context(torch, block, dict(parameters))
            context.values.update(self._weights())
            walk = Walk(context, TorchConverter(block.builder), self.program.nodes, frozenset(parameters.values()))
            for node in self.flat.graph.nodes:
                if node.op == "call_function" and node.users:
                    walk.visit(node)
            block.finish(relax.Tuple([]) if walk.problems else self._results(context))
        if walk.problems:
            listing = "; ".join(walk.problems)
            raise ModelError(f"cannot import {self.path}: {len(walk.problems)} unsupported: {listing}")
        self._describe(context, parameters)
        return self._named(builder.module, walk)

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

    def _results(self, context: Context) -> Any:
        results = [context.expr(node) for node in self._output_nodes()]
        return results[0] if len(results) == 1 else relax.Tuple(results)

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

    def _named(self, module: Any, walk: Walk) -> Any:
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
