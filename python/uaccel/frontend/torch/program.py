"""What an exported program must be before it can be converted: of fixed shapes, and without state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from uaccel.errors import ModelError
from uaccel.model import Shape, TensorInfo, TensorSpec, unique_names
from uaccel.quiet import quiet

InputShapes = Mapping[str, Shape]
DTYPES = ("float16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool")
EVAL = "call model.eval() before exporting"


@dataclass(frozen=True)
class Program:
    """An exported program whose shapes are fixed; ``nodes`` maps the user's own node names to their numbers."""

    exported: Any
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    nodes: Mapping[str, int]


def checked(torch: Any, path: Path, exported: Any, input_shapes: InputShapes) -> Program:
    """The program with the inputs' shapes fixed; ModelError for what firmware cannot be."""
    exported = _fixed(torch, path, exported, input_shapes)
    nodes = [node.name for node in exported.graph.nodes if node.op == "call_function"]
    return Program(
        exported,
        _inputs(path, exported),
        _outputs(path, exported),
        {name: number for number, name in enumerate(nodes)},
    )


def user_inputs(exported: Any) -> list[Any]:
    """The placeholders of the tensors that a caller gives."""
    names = {
        spec.arg.name
        for spec in exported.graph_signature.input_specs
        if spec.kind.name == "USER_INPUT" and type(spec.arg).__name__ == "TensorArgument"
    }
    return [node for node in exported.graph.nodes if node.op == "placeholder" and node.name in names]


def info_of_value(value: Any) -> TensorInfo:
    """Of a tensor of PyTorch's, a real one or one that only has a shape."""
    return TensorInfo(tuple(int(extent) for extent in value.shape), str(value.dtype).removeprefix("torch."))


def _fixed(torch: Any, path: Path, exported: Any, input_shapes: InputShapes) -> Any:
    """The program itself, or exported again for the shapes that were given."""
    placeholders = user_inputs(exported)
    names = [node.name for node in placeholders]
    for name in input_shapes:
        if name not in names:
            raise ModelError(f'{path} has no input "{name}" for --input-shape; its inputs are: {", ".join(names)}')
    for spec in exported.graph_signature.input_specs:
        if type(spec.arg).__name__ == "SymIntArgument":
            raise ModelError(f'{path}: input "{spec.arg.name}" is a number that may vary; export with a fixed one')
    shapes = [_shape(path, node, input_shapes.get(node.name)) for node in placeholders]
    if all(not _dynamic(node) for node in placeholders):
        return exported
    return _exported_again(torch, path, exported, dict(zip(names, shapes, strict=True)))


def _dynamic(node: Any) -> list[int]:
    """The dimensions that may vary."""
    return [axis for axis, extent in enumerate(node.meta["val"].shape) if not isinstance(extent, int)]


def _shape(path: Path, node: Any, given: Shape | None) -> Shape:
    """The input's shape, where need be as the user gave it."""
    declared, loose = list(node.meta["val"].shape), _dynamic(node)
    text = f"[{','.join(map(str, declared))}]"
    if given is None and loose:
        which = ", ".join(f'{axis} ("{declared[axis]}")' for axis in loose)
        example = ",".join(str(extent) if isinstance(extent, int) else "1" for extent in declared)
        plural = "s" if len(loose) > 1 else ""
        raise ModelError(
            f'{path}: input "{node.name}" {text} has the dynamic dimension{plural} {which}; firmware needs every '
            f"extent fixed: export without dynamic_shapes, or add --input-shape {node.name}:{example}, "
            f"or with the extent{plural} you want"
        )
    if given is None:
        return tuple(declared)
    said = f"--input-shape {node.name}:{','.join(map(str, given))}"
    if len(given) != len(declared):
        raise ModelError(f'{path}: {said} has {len(given)} extents; input "{node.name}" is {text}')
    for axis, (extent, wanted) in enumerate(zip(declared, given, strict=True)):
        if isinstance(extent, int) and extent != wanted:
            raise ModelError(
                f'{path}: {said} contradicts the file: dimension {axis} of input "{node.name}" {text} '
                f"is fixed at {extent}"
            )
    return given


def _exported_again(torch: Any, path: Path, exported: Any, shapes: Mapping[str, Shape]) -> Any:
    """For samples of the shapes that are wanted; everything else that the caller may give stays as it was."""
    given = {node.name: torch.zeros(shapes[node.name], dtype=node.meta["val"].dtype) for node in user_inputs(exported)}
    values = [
        given.get(spec.arg.name, getattr(spec.arg, "value", None))
        for spec in exported.graph_signature.input_specs
        if spec.kind.name == "USER_INPUT"
    ]
    shown = ", ".join(f"{name}:{','.join(map(str, shape))}" for name, shape in shapes.items())
    try:
        with quiet():
            args, kwargs = torch.utils._pytree.tree_unflatten(values, exported.call_spec.in_spec)
            return torch.export.export(exported.module(), args, kwargs)
    except Exception as error:  # guards of the program, and whatever operators say about shapes
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        raise ModelError(f"{path} does not take inputs of {shown}: {lines[0]}") from error


def check_pure(path: Path, exported: Any) -> None:
    """That it only computes, which a program shows when it has been taken apart."""
    signature = exported.graph_signature
    changed = [*signature.buffers_to_mutate.values(), *getattr(signature, "parameters_to_mutate", {}).values()]
    changed += [f"input {name}" for name in signature.user_inputs_to_mutate.values()]
    if changed:
        statistics = any(name.endswith(("running_mean", "running_var", "num_batches_tracked")) for name in changed)
        advice = EVAL if statistics else "give state to the model as an input, and back as an output"
        raise ModelError(
            f"{path}: the program changes what it reads ({', '.join(changed)}); firmware keeps no state "
            f"between inferences: {advice}"
        )


def _inputs(path: Path, exported: Any) -> tuple[TensorSpec, ...]:
    specs = tuple(TensorSpec(node.name, info_of_value(node.meta["val"])) for node in user_inputs(exported))
    for spec in specs:
        if spec.info.dtype not in DTYPES:
            raise ModelError(f'{path}: input "{spec.name}" has type {spec.info.dtype}, which cannot be compiled')
        if spec.info.elements == 0:
            raise ModelError(f'{path}: input "{spec.name}" ({spec.info}) holds no elements; nothing to compute')
    return specs


def _outputs(path: Path, exported: Any) -> tuple[TensorSpec, ...]:
    values = {node.name: node.meta.get("val") for node in exported.graph.nodes}
    specs = []
    for number, spec in enumerate(exported.graph_signature.output_specs):
        value: Any = values.get(getattr(spec.arg, "name", ""))
        if spec.kind.name != "USER_OUTPUT" or not hasattr(value, "shape"):
            raise ModelError(f"{path}: output {number} is no tensor; return tensors only")
        if any(not isinstance(extent, int) for extent in value.shape):
            extents = ",".join(map(str, value.shape))
            raise ModelError(
                f'{path}: output "{spec.arg.name}" has the shape [{extents}], which depends on data; '
                "firmware needs every extent fixed"
            )
        specs.append(TensorSpec(spec.arg.name, info_of_value(value)))
    if not specs:
        raise ModelError(f"{path} has no outputs; nothing to compute")
    names = unique_names(spec.name for spec in specs)
    return tuple(replace(spec, name=name) for spec, name in zip(specs, names, strict=True))
