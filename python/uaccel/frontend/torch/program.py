"""What a program must be before it can be converted: of fixed shapes, and without state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from uaccel.errors import ModelError
from uaccel.frontend.checks import need_elements, need_type
from uaccel.model import TensorInfo, TensorSpec, unique_names

DTYPES = ("float16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool")
EVAL = "call model.eval() before exporting"


@dataclass(frozen=True)
class Program:
    """An exported program of fixed shapes; ``nodes`` maps the names of the file's own operators to their numbers.

    ``stored``: what the file calls its tensors, by what the program calls them.
    """

    exported: Any
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    nodes: Mapping[str, int]
    stored: Mapping[str, str]


def user_inputs(exported: Any) -> list[Any]:
    """The placeholders of the tensors that a caller gives."""
    names = set(exported.graph_signature.user_inputs)
    return [node for node in exported.graph.nodes if node.op == "placeholder" and node.name in names]


def info_of_value(value: Any) -> TensorInfo:
    """Of a tensor of PyTorch's, a real one or one that only has a shape."""
    return TensorInfo(tuple(int(extent) for extent in value.shape), str(value.dtype).removeprefix("torch."))


def check_pure(path: Path, exported: Any, stored: Mapping[str, str]) -> None:
    """That it only computes, which a program shows when it has been taken apart."""
    signature = exported.graph_signature
    changed = [*signature.buffers_to_mutate.values(), *getattr(signature, "parameters_to_mutate", {}).values()]
    inputs = [f"input {name}" for name in signature.user_inputs_to_mutate.values()]
    check_unchanged(path, [*(stored.get(name, name) for name in changed), *inputs])


def check_unchanged(path: Path, changed: list[str]) -> None:
    if changed:
        statistics = any(name.endswith(("running_mean", "running_var", "num_batches_tracked")) for name in changed)
        advice = EVAL if statistics else "give state to the model as an input, and back as an output"
        raise ModelError(
            f"{path}: the program changes what it reads ({', '.join(changed)}); firmware keeps no state "
            f"between inferences: {advice}"
        )


def input_specs(path: Path, nodes: list[Any]) -> tuple[TensorSpec, ...]:
    specs = tuple(TensorSpec(node.name, info_of_value(node.meta["val"])) for node in nodes)
    for spec in specs:
        need_type(spec.info.dtype, DTYPES, f'{path}: input "{spec.name}"')
        need_elements(spec.info, f'{path}: input "{spec.name}"')
    return specs


def output_specs(path: Path, nodes: list[Any]) -> tuple[TensorSpec, ...]:
    specs = []
    for number, node in enumerate(nodes):
        value: Any = getattr(node, "meta", {}).get("val")
        if not hasattr(value, "shape"):
            raise ModelError(f"{path}: output {number} is no tensor; return tensors only")
        specs.append(TensorSpec(node.name, info_of_value(value)))
    if not specs:
        raise ModelError(f"{path} has no outputs; nothing to compute")
    names = unique_names(spec.name for spec in specs)
    return tuple(replace(spec, name=name) for spec, name in zip(specs, names, strict=True))
