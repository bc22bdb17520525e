"""Compares a run with what the model means: its outputs, tensors that outputs hide, and every layer by itself.

A layer is judged by the inputs that the device really gave it. So the first layer that is named is the one at fault,
and a layer that is right for wrong inputs is not blamed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from uaccel.accelerator import Accelerator
from uaccel.accelerator.description import Golden
from uaccel.accelerator.vendor import vendors
from uaccel.errors import AcceleratorError
from uaccel.model import Array, ImportedModel
from uaccel.ops.operator import operator_of
from uaccel.partition import EngineCall
from uaccel.pipeline import Compiled
from uaccel.runner.compare import (
    LAYERS_ROUND,
    Comparison,
    Mismatch,
    compare,
    histogram,
    moved,
    relative_distance,
    steps_between,
)
from uaccel.tvm_api import each_by_itself, is_call, is_region_call, is_var, main_bindings
from uaccel.tvm_api.executor import Executor
from uaccel.util.text import named

# Layers, each judged by the inputs that the device gave it.

Key = tuple[int, int]  # A layer's number, and which of its outputs.
Layers = Mapping[Key, Array]


@dataclass(frozen=True)
class WrongLayer:
    """Names the first layer in order of execution whose output is wrong for the inputs that it got.

    ``part_of``: the region that was cut to find it. ``covers``: the layers of the model that it computes.
    """

    index: int
    name: str
    op: str
    engine: str
    output: int
    mismatch: Mismatch
    sample: int = 0
    part_of: str = ""
    covers: tuple[str, ...] = ()
    together: tuple[str, ...] = ()  # Layers before it that cannot be judged apart from it.

    def __str__(self) -> str:
        whole = f", found by cutting region {self.part_of}," if self.part_of else ","
        whole = f", judged together with {', '.join(self.together)}," if self.together else whole
        return f'layer {self.index} "{self.name}" ({self.op} on {self.engine}){whole} element {self.mismatch}'


def layers_verdict(compared: int, wrong: WrongLayer | None) -> dict[str, Any]:
    """Gives what the JSON tells of ``--verify layers``."""
    if wrong is None:
        return {"layers_compared": compared, "first_wrong_layer": None}
    told = {
        "layer": wrong.name,
        **named(wrong, "op", "engine", "output", "sample"),
        **wrong.mismatch.to_json(),
        "part_of": wrong.part_of or None,
    } | ({"together_with": list(wrong.together)} if wrong.together else {})
    return {"layers_compared": compared, "first_wrong_layer": told}


def layers_of_bindings(module: Any) -> list[Any]:
    """Lists the variables of ``main`` that calls are bound to. Operator i of the lowered program computes variable i.
    Layers that the compiler added at the end, to copy an output, have no variable."""
    return [var for var, expression in main_bindings(module)[1] if is_call(expression)]


def bindings_of_layers(compiled: Compiled) -> dict[Key, tuple[Any, int]]:
    """Maps each output of a layer to the variable of ``main`` with its value, and which of its results that is.

    Operators and variables are paired by their order; the layers that copy outputs come last and find no partner. A
    layer that computes several operators gives only what other layers read."""
    operators = [operator for layer in compiled.program.layers for operator in layer.operators]
    variables = layers_of_bindings(compiled.model.module)
    made = {
        value.name: (var, i)
        for operator, var in zip(operators, variables, strict=False)
        for i, value in enumerate(operator.outputs)
    }
    return {
        (layer.index, i): made[value.name]
        for layer in compiled.program.layers
        for i, value in enumerate(layer.outputs)
        if value.name in made
    }


def exact_layers(compiled: Compiled, inputs: Sequence[Array]) -> dict[Key, Array]:
    """Executes the whole model and returns what each layer computes if all layers are right."""
    _, named = Executor(compiled.model.module, state=compiled.model.state, intermediates=True).run_all(inputs)
    return {key: named[var.name][i] for key, (var, i) in bindings_of_layers(compiled).items()}


class LayerMeanings:
    """Computes each layer from the inputs that a device gave it, and compares with what the device made of them.

    All layers are computed in one run of a module in which the value of every judged layer is a parameter: a layer that
    reads it gets the device's value, whatever the layer before should have computed. An error so never travels on.

    ``readable``: the outputs that the device shows. Values between them, such as views, are computed from those. A
    layer is judged only if all its outputs are shown, as one parameter stands for the whole result of its call.

    A layer whose vendor states its arithmetic in Python (``golden``) is compared with that, without tolerance. For
    those the module also returns the arguments of the call, which are the inputs that ``golden`` is given.
    """

    def __init__(self, compiled: Compiled, readable: Iterable[Key]) -> None:
        self._program = compiled.program
        self._initial = [entry.initial for entry in compiled.model.state]
        self._engines = layers_of_engines(compiled)
        places, seen = bindings_of_layers(compiled), set(readable)
        shown = {index for index, _ in places} - {index for index, i in places if (index, i) not in seen}
        self._keys = sorted(key for key in places if key[0] in shown)
        self._golden = [index for index in sorted(shown) if golden_of(self._engines.get(index)) is not None]
        given = list(dict.fromkeys(places[key][0] for key in self._keys))
        module = each_by_itself(compiled.model.module, given, [places[index, 0][0] for index in self._golden])
        self._executor = Executor(module)
        self._steps: dict[Key, Counter[int]] = {}

    def first_wrong(self, sample: int, inputs: Sequence[Array], computed: Layers) -> WrongLayer | None:
        """Finds the first wrong layer of one inference; ``computed`` is what the device's layers gave in it."""
        for key, (expected, tolerance) in self._expected(inputs, computed).items():
            self._steps.setdefault(key, Counter()).update(steps_between(computed[key], expected))
            mismatch = compare(computed[key], expected, tolerance)
            if mismatch is not None:
                layer = self._program.layers[key[0]]
                covers = tuple(covered.name for covered in layer.covers)
                return WrongLayer(*key[:1], layer.name, layer.op, layer.engine, key[1], mismatch, sample, covers=covers)
        return None

    def differences(self) -> list[dict[str, Any]]:
        """Counts over all samples so far, for each layer that is off anywhere, how many elements by how many steps."""
        layers = self._program.layers
        told = [(layers[key[0]], counts) for key, counts in self._steps.items() if set(counts) - {0}]
        return [
            histogram(layer.name, f"layer of {layer.engine}, for what it was given", counts) for layer, counts in told
        ]

    def _expected(self, inputs: Sequence[Array], computed: Layers) -> dict[Key, tuple[Array, float]]:
        """Returns the right value of each output and the tolerance for it, in the order of execution.

        The results of the module come in that order: first the layers, then the arguments of the golden ones. Replacing
        an entry of ``found`` does not move it, so golden layers keep their place."""
        results = iter(self._executor.run([*inputs, *self._initial, *(computed[key] for key in self._keys)]))
        found = {key: (next(results), tolerance_of(self._engines.get(key[0]))) for key in self._keys}
        for index in self._golden:
            call = self._engines[index]
            outputs = _by_golden(call, [next(results) for _ in call.region.inputs])
            found |= {(index, i): (value, 0) for i, value in enumerate(outputs)}
        return found


def layers_of_engines(compiled: Compiled) -> dict[int, EngineCall]:
    """Maps the number of each offloaded layer to its call of an accelerator."""
    expressions = dict(main_bindings(compiled.model.module)[1])
    calls = compiled.partitioned.calls
    found = {index: expressions[var] for (index, _), (var, _) in bindings_of_layers(compiled).items()}
    return {index: calls[expr.op.name_hint] for index, expr in found.items() if is_region_call(expr)}


def tolerance_of(call: EngineCall | None) -> float:
    """Returns how many steps of its output a layer may be off: its operation's tolerance, else its accelerator's."""
    if call is None:
        return 0
    own = call.operation.tolerance if call.operation is not None else None
    return call.accelerator.tolerance if own is None else own


def golden_of(call: EngineCall | None) -> Golden | None:
    return call.operation.golden if call is not None and call.operation is not None else None


def _by_golden(call: EngineCall, inputs: list[Array]) -> list[Array]:
    """Calls the vendor's ``golden`` for a region's inputs, and checks the types of what it returns."""
    golden = golden_of(call)
    assert golden is not None
    assert call.operation is not None
    what = f"golden of operation '{call.operation.name}', given {call.layer},"
    with vendors(call.accelerator.folder, what):
        made = golden(call.region, inputs)
    outputs = [np.asarray(value) for value in (made if isinstance(made, (list, tuple)) else [made])]
    wanted = [tensor.info for tensor in call.region.outputs]
    seen = [f"{value.dtype} {list(value.shape)}" for value in outputs]
    if [(value.shape, str(value.dtype)) for value in outputs] != [(info.shape, info.dtype) for info in wanted]:
        raise AcceleratorError(
            f"{call.accelerator.folder}: {what} returned {', '.join(seen) or 'nothing'}; "
            f"wanted {', '.join(map(str, wanted))}"
        )
    return outputs


# Outputs of the model, and tensors before operators that hide differences.
#
# An argmax or a saturated sigmoid may give the right output for a wrong input. So the tensors before such operators are
# compared as well, as far as a layer of the device computes them.

Samples = Sequence[Sequence[Array]]
Computed = Sequence[Mapping[Key, Array]]  # What layers gave, for each sample; empty where nothing was read.
# Float operators of Relax for which many inputs have one output; integer ones say so in ``hides_differences``.
RELAX_HIDES: Final = frozenset(
    f"relax.{name}"
    for name in ("nn.softmax", "nn.log_softmax", "argmax", "argmin", "sigmoid", "tanh", "erf", "clip", "sign")
)


class Reference:
    """Executes the exact meaning of a model on this computer; the module is built at the first run."""

    def __init__(self, model: ImportedModel) -> None:
        self.model = model
        self._executor: Executor | None = None

    def run(self, inputs: Sequence[Array], *, continues: bool = False) -> tuple[list[Array], dict[str, list[Array]]]:
        """Returns the outputs, and the values of all bindings by name.

        With ``continues`` the model goes on from the state of the run before, else from its initial state."""
        if self._executor is None:
            self._executor = Executor(self.model.module, state=self.model.state, intermediates=True, keep=True)
        if not continues:
            self._executor.reset()
        return self._executor.run_all(inputs)

    @classmethod
    def of(cls, compiled: Compiled) -> Reference:
        """Makes the reference of a compiled model: the model as it was imported, before any pass."""
        return cls(replace(compiled.model, module=compiled.stages["import"]))


Tensors = Mapping[Key, tuple[str, int]]  # The tensor of the model, (binding, output), that outputs of layers equal.


def before_what_hides(compiled: Compiled) -> Tensors:
    """Selects the first inputs of operators that hide differences, as far as a layer of the device computes them.

    Views are followed back to the layer that wrote the bytes."""
    places = tensors_of_layers(compiled)
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
    return found


def _hides(expr: Any) -> bool:
    operator = operator_of(expr)
    hidden = operator is not None and operator.hides_differences
    return (hidden or getattr(expr.op, "name", "") in RELAX_HIDES) and any(map(is_var, expr.args))


def tensors_of_layers(compiled: Compiled) -> Tensors:
    """Maps an output of a layer to the (binding, output) of the imported model with the same value.

    Left out are tensors that passes made anew or whose axes they reordered (``turned``): their type or their order
    differs, and elements could not be compared one by one."""
    kept, turned = _kept(compiled), compiled.partitioned.turned
    found = {}
    for key, (var, i) in bindings_of_layers(compiled).items():
        origin = compiled.partitioned.stands_for.get((var.name, i))
        if origin in kept and var.name not in turned and _alike(kept[origin], types_of(var)[i]):
            found[key] = origin
    return found


def _kept(compiled: Compiled) -> dict[tuple[str, int], Any]:
    """Gives the types of the imported model's tensors by (binding, output). After a vendor's pass over the module it is
    empty: the pass may use the same names for other values."""
    if any(accelerator.before_partition for accelerator in compiled.accelerators):
        return {}
    bindings = main_bindings(compiled.stages["import"])[1]
    return {(str(var.name), i): type_ for var, _ in bindings for i, type_ in enumerate(types_of(var))}


def types_of(var: Any) -> list[Any]:
    return list(getattr(var.ty, "fields", [var.ty]))


def _alike(one: Any, other: Any) -> bool:
    return bool(one.dtype == other.dtype) and [int(n) for n in one.shape.values] == [int(n) for n in other.shape.values]


MOST_ROOM: Final = 1e-3  # A model that rounding moves by more is compared as strictly as with this.


def verify(
    reference: Reference,
    samples: Samples,
    outputs: Samples,
    *,
    tolerance: float = 0,
    sequence: bool = False,
    watched: Tensors | None = None,
    computed: Computed = (),
) -> Comparison:
    """Compares the outputs of every sample, and the watched tensors, with the model's meaning.

    Floats of a deep network may differ by more than usual though every layer is right. So where floats do, they are
    compared again, with room for what :func:`rounding` finds."""
    found = Comparison(tolerance, varied=_varied(samples))
    hidden = watched or {}
    meant = _meant(reference, samples, sequence=sequence)
    for again in (False, True):
        for number, (values, got) in enumerate(zip(meant, outputs, strict=True)):
            for spec, value in zip(reference.model.signature.outputs, got, strict=True):
                found.add(number, spec.name, values[spec.name, "output"][0], value)
            shown = computed[number] if number < len(computed) else {}
            for key in sorted(shown.keys() & hidden.keys()):
                binding, output = hidden[key]
                found.add(number, binding, values[binding, "tensor"][output], shown[key], kind="tensor")
        if again or found.beyond is None or not isinstance(found.beyond.mismatch.expected, float):
            break
        room = rounding(reference, samples, meant, sequence=sequence)
        found = Comparison(tolerance, varied=found.varied, rounding=room)
    return found


# All that a model computes, by name and kind ("output", "tensor"): for a tuple several arrays.
Meant = dict[tuple[str, str], list[Array]]


def _meant(reference: Reference, samples: Samples, *, sequence: bool) -> list[Meant]:
    """What the model means for each sample."""
    names, found = [spec.name for spec in reference.model.signature.outputs], list[Meant]()
    for number, inputs in enumerate(samples):
        wanted, named = reference.run(inputs, continues=sequence and number > 0)
        row = {(name, "tensor"): values for name, values in named.items()}
        found.append(row | {(name, "output"): [value] for name, value in zip(names, wanted, strict=True)})
    return found


def rounding(
    reference: Reference, samples: Samples, meant: Sequence[Meant], *, sequence: bool = False
) -> dict[tuple[str, str], float]:
    """How far float32's rounding may move each tensor, relative to its largest value: measured, not guessed.

    The inputs move by one rounding, up or down, and ``LAYERS_ROUND`` times what that does is room. There is none
    where integers are computed, as a float moved over the middle of two of them makes a whole step."""
    if any(
        value.dtype.kind in "iu" and value.itemsize < 4 for row in meant for values in row.values() for value in values
    ):
        return {}
    rng, found = np.random.default_rng(0), dict[tuple[str, str], float]()
    other_samples = [[moved(value, rng) for value in inputs] for inputs in samples]
    for row, other in zip(meant, _meant(reference, other_samples, sequence=sequence), strict=True):
        for key, values in row.items():
            share = max(map(relative_distance, values, other[key]), default=0.0)
            found[key] = max(found.get(key, 0.0), min(LAYERS_ROUND * share, MOST_ROOM))
    return found


def _varied(samples: Samples) -> bool:
    """Says whether any sample differs from the first one; repeated runs of one sample do not."""
    return any(
        not np.array_equal(one, other) for row in samples[1:] for one, other in zip(samples[0], row, strict=True)
    )


def first_wrong_layer(
    compiled: Compiled, samples: Samples, computed: Computed, differences: list[dict[str, Any]] | None = None
) -> WrongLayer | None:
    """Finds the first wrong layer of the first sample that has one, by what each layer really got.

    ``differences`` is filled with how far layers are off."""
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
    """Says what a vendor's pass or ``expand`` changed in the meaning of the model; empty where nothing changed.

    The modules before and after are both executed here, without a device. Tensors that both have are compared
    before the outputs: one that differs tells whose function made it, which an output would not."""
    passes = [a for a in compiled.accelerators if a.before_partition or a.on_region]
    if not passes and not any(call.operation and call.operation.expand for call in compiled.partitioned.calls.values()):
        return ""
    module = compiled.stages.get("partition", compiled.model.module)
    kept, types = _kept(compiled), {str(var.name): types_of(var) for var, _ in main_bindings(module)[1]}
    same = {key: origin for key, origin in compiled.partitioned.stands_for.items() if origin in kept}
    same = {key: origin for key, origin in same.items() if _alike(kept[origin], types[key[0]][key[1]])}
    partitioned = Reference(replace(compiled.model, module=module))
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
    """Says which vendor's function, and in which file, computes the value that stands for a binding of the model."""
    for call in compiled.partitioned.calls.values():
        if origin in {name for covered in call.covers for name in covered.results}:
            functions: Sequence[Any]
            what, functions = "an on_region pass", call.accelerator.on_region
            if call.operation is not None and call.operation.expand:
                what, functions = f"expand of operation '{call.operation.name}'", [call.operation.expand]
            return f"{_home(functions, call.accelerator)}: {what} changes what the model means"
    return "the compiler changes what the model means; please report it with the model"


def _home(functions: Sequence[Any], accelerator: Accelerator) -> str:
    """Returns the file of a vendor's functions; where they come from elsewhere, the file that names them."""
    files = [Path(function.__code__.co_filename) for function in functions if hasattr(function, "__code__")]
    own = [file for file in files if file.is_relative_to(accelerator.folder)]
    return str(next(iter(own), accelerator.folder / "accelerator.py"))


def find_inside(wrong: WrongLayer, run: Callable[[tuple[str, ...]], WrongLayer | None]) -> WrongLayer:
    """Finds the layer of the model at fault in a wrong region, by bisection.

    ``run`` compiles with regions that end after the named layers, runs that, and gives the first wrong layer.

    ``layers`` always is a stretch of the region that holds the fault. Each round cuts before it, in its middle and at
    its end, so that the halves are regions of their own. A half is again judged by the inputs that it really got;
    therefore the first wrong piece holds the fault, and the piece is the next stretch. The search ends at one layer,
    where a piece cannot be cut (one operation covers all of it), or where the pieces are right and only the whole is
    wrong. Each round shortens the stretch. Where all cuts take effect it is halved, so that n layers take about log2(n)
    compilations and runs."""
    layers, region = list(wrong.covers), wrong.name
    found = wrong
    while len(layers) > 1:
        middle = len(layers) // 2
        before = wrong.covers[: wrong.covers.index(layers[0])]
        cuts = (*before[-1:], layers[middle - 1], layers[-1])
        again = run(cuts)
        if again is None or not set(again.covers) & set(layers):
            return found  # in pieces it is right: the fault shows in the larger region alone
        found = replace(again, part_of=region)
        inside = [name for name in layers if name in again.covers]
        if len(inside) == len(layers):
            return found  # the cuts had no effect
        layers = inside
    return found
