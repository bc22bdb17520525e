"""Every layer that a device computed, against what it should have made of the inputs that it really got.

So blame falls on the layer that is wrong, and on none after it that is right for a wrong input.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.accelerator.description import Golden
from uaccel.accelerator.vendor import vendors
from uaccel.errors import AcceleratorError
from uaccel.partition import EngineCall
from uaccel.pipeline import Compiled
from uaccel.running.compare import Mismatch, compare, histogram, steps_between
from uaccel.telling.figures import json_number
from uaccel.tvm_api import each_by_itself, is_call, is_region_call, main_bindings
from uaccel.tvm_api.executor import Executor

Array = NDArray[Any]
Key = tuple[int, int]
"""A layer's number, and which of its outputs."""
Layers = Mapping[Key, Array]


@dataclass(frozen=True)
class WrongLayer:
    """The first layer in order of execution whose output is wrong for the inputs that it got.

    ``part_of``: the region that was cut to find it.
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
    together: tuple[str, ...] = ()
    """Layers before it that were judged as one with it."""

    def __str__(self) -> str:
        whole = f", found by cutting region {self.part_of}," if self.part_of else ","
        whole = f", judged together with {', '.join(self.together)}," if self.together else whole
        return f'layer {self.index} "{self.name}" ({self.op} on {self.engine}){whole} element {self.mismatch}'


def layers_verdict(compared: int, wrong: WrongLayer | None) -> dict[str, Any]:
    """Of ``--verify layers``."""
    if wrong is None:
        return {"layers_compared": compared, "first_wrong_layer": None}
    mismatch = wrong.mismatch
    told = {
        "layer": wrong.name,
        "op": wrong.op,
        "engine": wrong.engine,
        "output": wrong.output,
        "sample": wrong.sample,
        "index": list(mismatch.index),
        "expected": json_number(mismatch.expected),
        "got": json_number(mismatch.got),
        "differing": mismatch.differing,
        "size": mismatch.size,
        "part_of": wrong.part_of or None,
    } | ({"together_with": list(wrong.together)} if wrong.together else {})
    return {"layers_compared": compared, "first_wrong_layer": told}


def layers_of_bindings(module: Any) -> list[Any]:
    """The variables of ``main`` that became layers: layer i is that of variable i. Layers that the compiler added at
    the end, to copy an output, are not among them."""
    return [var for var, expression in main_bindings(module)[1] if is_call(expression)]


def bindings_of_layers(compiled: Compiled) -> dict[Key, tuple[Any, int]]:
    """By output of a layer the variable of ``main`` and which of its results it is. A layer that computes several
    operators gives only what others read."""
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
    """What every layer computes where all of them are right."""
    _, named = Executor(compiled.model.module, state=compiled.model.state, intermediates=True).run_all(inputs)
    return {key: named[var.name][i] for key, (var, i) in bindings_of_layers(compiled).items()}


class LayerMeanings:
    """What each layer makes of given inputs, and whether a device made the same of them.

    ``readable``: what the device shows; the rest, views and the like, is computed from that.
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
        """Of one inference, by what each layer was given in it."""
        for key, (expected, tolerance) in self._expected(inputs, computed).items():
            self._steps.setdefault(key, Counter()).update(steps_between(computed[key], expected))
            mismatch = compare(computed[key], expected, tolerance)
            if mismatch is not None:
                layer = self._program.layers[key[0]]
                covers = tuple(covered.name for covered in layer.covers)
                return WrongLayer(*key[:1], layer.name, layer.op, layer.engine, key[1], mismatch, sample, covers=covers)
        return None

    def differences(self) -> list[dict[str, Any]]:
        """Of all samples so far, for each layer that is off anywhere: how many elements by how many steps."""
        layers = self._program.layers
        told = [(layers[key[0]], counts) for key, counts in self._steps.items() if set(counts) - {0}]
        return [
            histogram(layer.name, f"layer of {layer.engine}, for what it was given", counts) for layer, counts in told
        ]

    def _expected(self, inputs: Sequence[Array], computed: Layers) -> dict[Key, tuple[Array, float]]:
        """With what a layer may differ by."""
        results = iter(self._executor.run([*inputs, *self._initial, *(computed[key] for key in self._keys)]))
        found = {key: (next(results), tolerance_of(self._engines.get(key[0]))) for key in self._keys}
        for index in self._golden:
            call = self._engines[index]
            outputs = _by_golden(call, [next(results) for _ in call.region.inputs])
            found |= {(index, i): (value, 0) for i, value in enumerate(outputs)}
        return found


def layers_of_engines(compiled: Compiled) -> dict[int, EngineCall]:
    """By the number of the layer."""
    expressions = dict(main_bindings(compiled.model.module)[1])
    calls = compiled.partitioned.calls
    found = {index: expressions[var] for (index, _), (var, _) in bindings_of_layers(compiled).items()}
    return {index: calls[expr.op.name_hint] for index, expr in found.items() if is_region_call(expr)}


def tolerance_of(call: EngineCall | None) -> float:
    """What a layer may differ by, in steps of its output."""
    if call is None:
        return 0
    own = call.operation.tolerance if call.operation is not None else None
    return call.accelerator.tolerance if own is None else own


def golden_of(call: EngineCall | None) -> Golden | None:
    return call.operation.golden if call is not None and call.operation is not None else None


def _by_golden(call: EngineCall, inputs: list[Array]) -> list[Array]:
    """What the vendor says that their arithmetic makes of it."""
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
