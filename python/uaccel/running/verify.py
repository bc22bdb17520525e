"""Whether a run is what the model means: its outputs, the tensors that outputs hide, and where asked every layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from numpy.typing import NDArray

from uaccel.accelerator import Accelerator
from uaccel.model import ImportedModel
from uaccel.ops.base import operator_of
from uaccel.pipeline import Compiled
from uaccel.running.compare import Comparison, compare
from uaccel.running.layers import Key, LayerMeanings, WrongLayer, bindings_of_layers, tolerance_of
from uaccel.tvm_api import is_var, main_bindings
from uaccel.tvm_api.executor import Executor

Array = NDArray[Any]
Samples = Sequence[Sequence[Array]]
Computed = Sequence[Mapping[Key, Array]]
"""What layers gave, for each sample; empty where nothing was read."""
RELAX_HIDES: Final = frozenset(
    f"relax.{name}"
    for name in ("nn.softmax", "nn.log_softmax", "argmax", "argmin", "sigmoid", "tanh", "erf", "clip", "sign")
)


class Reference:
    """What a model means, executed on this computer; built when it is first asked."""

    def __init__(self, model: ImportedModel, module: Any = None) -> None:
        self.model = model
        self._module = model.module if module is None else module
        self._executor: Executor | None = None

    def run(self, inputs: Sequence[Array], *, continues: bool = False) -> tuple[list[Array], dict[str, list[Array]]]:
        """The outputs, and the values of all bindings by name; with ``continues`` from the state of the run before."""
        if self._executor is None:
            self._executor = Executor(self._module, state=self.model.state, intermediates=True, keep=True)
        if not continues:
            self._executor.reset()
        return self._executor.run_all(inputs)

    @classmethod
    def of(cls, compiled: Compiled) -> Reference:
        """The model as it was imported, before any pass."""
        return cls(compiled.model, compiled.stages["import"])


@dataclass(frozen=True)
class Watched:
    """Layers that are read, and the tensors of the model that they must give: (binding, output) by key."""

    tensors: Mapping[Key, tuple[str, int]] = field(default_factory=dict)

    @property
    def layers(self) -> list[int]:
        return sorted({layer for layer, _ in self.tensors})


def is_exact(compiled: Compiled) -> bool:
    """Whether every engine that computes something claims the model's own arithmetic."""
    used = compiled.partitioned.calls.values()
    return all(tolerance_of(call) == 0 and not (call.operation and call.operation.golden) for call in used)


def before_what_hides(compiled: Compiled) -> Watched:
    """The inputs of operators that hide differences, as far as a layer of the device gives them."""
    places = _places(compiled)
    producers = {value.name: (layer, i) for layer in compiled.program.layers for i, value in enumerate(layer.outputs)}
    bindings = bindings_of_layers(compiled)
    expressions = dict(main_bindings(compiled.model.module)[1])
    found: dict[Key, tuple[str, int]] = {}
    for (index, i), (var, _) in bindings.items():
        if i or not _hides(expressions[var]):
            continue
        value = next(iter(compiled.program.layers[index].inputs), None)
        layer, output = producers.get(value.name, (None, 0)) if value is not None else (None, 0)
        while layer is not None and layer.is_view and layer.inputs:
            layer, output = producers.get(layer.inputs[0].name, (None, 0))
        if layer is not None and not layer.is_view and (layer.index, output) in places:
            found[layer.index, output] = places[layer.index, output]
    return Watched(found)


def every_layer(compiled: Compiled) -> Watched:
    """All that stand for a tensor of the model."""
    return Watched(_places(compiled))


def _hides(expr: Any) -> bool:
    operator = operator_of(expr)
    hidden = operator is not None and operator.hides_differences
    return (hidden or getattr(expr.op, "name", "") in RELAX_HIDES) and any(map(is_var, expr.args))


def _places(compiled: Compiled) -> dict[Key, tuple[str, int]]:
    """By output of a layer, the (binding, output) of the model as it was imported that has the same value."""
    kept, turned = _kept(compiled), compiled.partitioned.turned
    found = {}
    for key, (var, i) in bindings_of_layers(compiled).items():
        origin = compiled.partitioned.stands_for.get((var.name, i))
        if origin in kept and var.name not in turned and _alike(kept[origin], types_of(var)[i]):
            found[key] = origin
    return found


def _kept(compiled: Compiled) -> dict[tuple[str, int], Any]:
    """The types of the imported model's tensors, by (binding, output); none after a vendor's pass over the module, who
    may mean other things by the names."""
    if any(accelerator.before_partition for accelerator in compiled.accelerators):
        return {}
    bindings = main_bindings(compiled.stages["import"])[1]
    return {(str(var.name), i): type_ for var, _ in bindings for i, type_ in enumerate(types_of(var))}


def types_of(var: Any) -> list[Any]:
    return list(getattr(var.ty, "fields", [var.ty]))


def _alike(one: Any, other: Any) -> bool:
    return bool(one.dtype == other.dtype) and [int(n) for n in one.shape.values] == [int(n) for n in other.shape.values]


def verify(
    reference: Reference,
    samples: Samples,
    outputs: Samples,
    *,
    tolerance: float = 0,
    sequence: bool = False,
    watched: Watched | None = None,
    computed: Computed = (),
) -> Comparison:
    """Outputs of every sample, and the watched tensors, against the model's meaning."""
    found = Comparison(tolerance)
    names = [spec.name for spec in reference.model.signature.outputs]
    hidden = watched.tensors if watched is not None else {}
    for number, (inputs, got) in enumerate(zip(samples, outputs, strict=True)):
        wanted, named = reference.run(inputs, continues=sequence and number > 0)
        for name, expected, value in zip(names, wanted, got, strict=True):
            found.add(number, name, expected, value)
        shown = computed[number] if number < len(computed) else {}
        for key in sorted(shown.keys() & hidden.keys()):
            binding, output = hidden[key]
            found.add(number, binding, named[binding][output], shown[key], kind="tensor")
    return found


def first_wrong_layer(
    compiled: Compiled, samples: Samples, computed: Computed, differences: list[dict[str, Any]] | None = None
) -> WrongLayer | None:
    """Of all samples, by what each layer really got. ``differences`` is filled with how far layers are off."""
    if not computed or not computed[0]:
        return None
    meanings = LayerMeanings(compiled, computed[0])
    for number, (inputs, shown) in enumerate(zip(samples, computed, strict=False)):
        wrong = meanings.first_wrong(number, inputs, shown)
        if wrong is not None:
            break
    else:
        wrong = None
    if differences is not None:
        differences += meanings.differences()
    return wrong


def changed_meaning(compiled: Compiled, reference: Reference, samples: Samples, tolerance: float = 0) -> str:
    """What a vendor's pass or ``expand`` makes of the model, where that is something else; empty where it is right.

    Modules before and after are executed, so that no device is needed to tell."""
    passes = [a for a in compiled.accelerators if a.before_partition or a.on_region]
    if not passes and not any(call.operation and call.operation.expand for call in compiled.partitioned.calls.values()):
        return ""
    module = compiled.stages.get("partition", compiled.model.module)
    kept, types = _kept(compiled), {str(var.name): types_of(var) for var, _ in main_bindings(module)[1]}
    same = {key: origin for key, origin in compiled.partitioned.stands_for.items() if origin in kept}
    same = {key: origin for key, origin in same.items() if _alike(kept[origin], types[key[0]][key[1]])}
    partitioned = Reference(compiled.model, module)
    for number, inputs in enumerate(samples):
        wanted, named = reference.run(inputs)
        outputs, values = partitioned.run(inputs)
        for (name, i), (binding, j) in same.items():
            mismatch = compare(values[name][i], named[binding][j], tolerance)
            if mismatch is not None:
                return f"{_whose(compiled, binding)}: sample {number}, tensor {binding}, {mismatch}"
        for spec, got, expected in zip(compiled.model.signature.outputs, outputs, wanted, strict=True):
            mismatch = compare(got, expected, tolerance)
            if mismatch is not None:
                names = ", ".join(
                    _home((*a.before_partition, *a.on_region), a) for a in passes or compiled.accelerators
                )
                where = f'sample {number}, output "{spec.name}"'
                return f"a pass of {names} changes what the model means: {where}, {mismatch}"
    return ""


def _whose(compiled: Compiled, origin: str) -> str:
    """Whose doing the value is that stands for a binding of the model."""
    for call in compiled.partitioned.calls.values():
        if origin in {name for covered in call.covers for name in covered.results}:
            functions: Sequence[Any]
            what, functions = "an on_region pass", call.accelerator.on_region
            if call.operation is not None and call.operation.expand:
                what, functions = f"expand of operation '{call.operation.name}'", [call.operation.expand]
            return f"{_home(functions, call.accelerator)}: {what} changes what the model means"
    return "the compiler changes what the model means; please report it with the model"


def _home(functions: Sequence[Any], accelerator: Accelerator) -> str:
    """The file of a vendor's functions; where they are somebody else's, the file that names them."""
    files = [Path(function.__code__.co_filename) for function in functions if hasattr(function, "__code__")]
    own = [file for file in files if file.is_relative_to(accelerator.folder)]
    return str(next(iter(own), accelerator.folder / "accelerator.py"))


def find_inside(wrong: WrongLayer, run: Callable[[tuple[str, ...]], WrongLayer | None]) -> WrongLayer:
    """A region that is wrong, cut in two again and again: the layer of the model whose result is the first wrong one.

    ``run`` compiles with regions that end after the named layers, runs that, and gives the first wrong layer."""
    layers, region = list(wrong.covers), wrong.name
    found = wrong
    while len(layers) > 1:
        middle = len(layers) // 2
        before = wrong.covers[: wrong.covers.index(layers[0])]
        cuts = (*before[-1:], layers[middle - 1], layers[-1])
        again = run(cuts)
        if again is None or not set(again.covers) & set(layers):
            return found  # in pieces it is right: the region as a whole is at fault
        found = _part_of(again, region)
        inside = [name for name in layers if name in again.covers]
        if len(inside) == len(layers):
            return found
        layers = inside
    return found


def _part_of(wrong: WrongLayer, region: str) -> WrongLayer:
    return replace(wrong, part_of=region)
