"""Executes Relax modules on this computer, and lets them call functions of Python."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from uaccel.errors import ModelError
from uaccel.model import Array, StateSpec
from uaccel.tvm_api import (
    main_bindings,
    relax,
    relax_substitute,
    structural_equal,
    structural_hash,
    te,
    tirx,
    tvm,
    with_all_bindings,
)
from uaccel.tvm_api.bounds import guarded
from uaccel.tvm_api.defined import defined
from uaccel.tvm_api.extremes import TvmRefusalError, refusals

# The exact meaning of a module, executed by TVM on this computer: what ``--verify`` compares with.

KEPT: Final = 4  # Built modules that a process keeps: rows of a sweep that differ only in the board share one.
_kept: OrderedDict[tuple[int, bool], tuple[Any, Any]] = OrderedDict()


class Executor:
    """Runs a Relax module, built for this computer; ``main`` takes and returns numpy arrays.

    The ``state`` of a model is kept from run to run; ``reset`` goes back to the beginning. With ``keep`` a module that
    equals one built before is not built again.
    """

    def __init__(
        self, module: Any, *, state: Sequence[StateSpec] = (), intermediates: bool = False, keep: bool = False
    ) -> None:
        self._initial = [entry.initial for entry in state]
        bindings = main_bindings(module)[1] if intermediates else []
        self.names = [var.name for var, _ in bindings]
        self._fields = [(var.name, len(getattr(var.ty, "fields", [var]))) for var, _ in bindings]
        self._vm = _kept_machine(module, intermediates) if keep else _machine(module, intermediates)
        self.reset()

    def reset(self) -> None:
        """Set the state to what it is before the first run."""
        self._state = list(self._initial)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs."""
        return self.run_all(inputs)[0]

    def intermediates(self, inputs: Sequence[Array]) -> list[Array]:
        """Every binding's value, in the order of ``names``; a tuple's fields one by one."""
        return [value for values in self.run_all(inputs)[1].values() for value in values]

    def run_all(self, inputs: Sequence[Array]) -> tuple[list[Array], dict[str, list[Array]]]:
        """The outputs, and every binding's values where ``intermediates`` were asked for."""
        given = [tvm.runtime.tensor(np.asarray(value, order="C")) for value in (*inputs, *self._state)]
        results = _arrays(self._vm["main"](*given))
        values = iter(results[len(results) - sum(count for _, count in self._fields) :])
        named = {name: [next(values) for _ in range(count)] for name, count in self._fields}
        results = results[: len(results) - sum(map(len, named.values()))]
        outputs = len(results) - len(self._state)
        self._state = results[outputs:]
        return results[:outputs], named


def _kept_machine(module: Any, intermediates: bool) -> Any:
    key = (structural_hash(module), intermediates)
    of, machine = _kept.get(key, (None, None))
    if of is None or not structural_equal(of, module):
        machine = _machine(module, intermediates)
    _kept[key] = module, machine
    _kept.move_to_end(key)
    while len(_kept) > KEPT:
        _kept.popitem(last=False)
    return machine


def _machine(module: Any, intermediates: bool) -> Any:
    """The built module; what TVM cannot build is a ModelError, since the firmware may do well without TVM."""
    try:
        with refusals():
            legal = relax.transform.LegalizeOps()(with_all_bindings(module) if intermediates else module)
            for name, function in list(legal.functions.items()):  # this process executes them: no data may end it
                if isinstance(function, tirx.PrimFunc):
                    legal[name] = defined(guarded(function))
            return relax.VirtualMachine(_built(legal), tvm.cpu())
    except TvmRefusalError as error:
        raise ModelError(
            f"TVM cannot execute this model on this computer, so there is nothing to verify with: {error}; "
            "run it without --verify, and compare its outputs with the model's own runtime"
        ) from error


# Passes of TVM and levels of LLVM that make loops faster. They take half of the time of a build, which is many times
# that of the few runs that follow. LLVM's vectoriser, which begins at level 2, also makes code of a few loops that LLVM
# itself then finds invalid.
SPARED: Final = ("HoistIfThenElse", "InsertHoistIfThenElse", "StmtSimplify", "RemoveNoOp")
TARGET: Final = {"kind": "llvm", "opt-level": 1}


def _built(legal: Any) -> Any:
    """The module built by LLVM for this computer."""
    with tvm.transform.PassContext(disabled_pass=[f"{place}.{name}" for place in ("tirx", "s_tir") for name in SPARED]):
        return relax.build(legal, target=tvm.target.Target(TARGET))


def computed(calls: Mapping[Any, Any]) -> dict[Any, Array]:
    """Executes calls of constants and of each other, by the variables that they are bound to, in one program."""
    builder, made = relax.BlockBuilder(), dict[Any, Any]()
    with builder.function("main", []):
        with builder.dataflow():
            for var, call in calls.items():
                made[var] = builder.emit(relax_substitute(call, made))
            result = builder.emit_output(relax.Tuple([*made.values()]))
        builder.emit_func_output(result)
    executor = Executor(builder.get())
    return dict(zip(calls, map(np.asarray, executor.run([])), strict=True))


def _arrays(result: Any) -> list[Array]:
    if hasattr(result, "numpy"):
        return [result.numpy()]
    return [array for entry in result for array in _arrays(entry)]


# Functions of Python that an executed module calls, and digests that tell modules apart.

Computed = Callable[[Sequence[Array]], Sequence[Array]]


def calling(
    function: Computed, name: str, inputs: list[Any], outputs: Sequence[tuple[tuple[int, ...], str]]
) -> list[Any]:
    """TE tensors that ``function`` computes when the module runs on this computer; each function needs its own
    ``name``."""
    symbol = f"uaccel.called.{name}"

    def packed(*tensors: Any) -> None:
        values = function([np.array(tensor.numpy()) for tensor in tensors[: len(inputs)]])
        for tensor, value in zip(tensors[len(inputs) :], values, strict=True):
            tensor.copyfrom(np.ascontiguousarray(value).reshape(tuple(tensor.shape)))

    tvm.register_global_func(symbol, packed, override=True)
    shapes, dtypes = [shape for shape, _ in outputs], [dtype for _, dtype in outputs]
    made = te.extern(
        shapes, inputs, lambda ins, outs: tirx.call_packed(symbol, *ins, *outs), name="called", dtype=dtypes
    )
    return [made] if len(shapes) == 1 else list(made)


def digest_of(module: Any) -> str:
    """A digest of a module's structure, which is the same whatever its variables are called."""
    return f"{structural_hash(module) & (1 << 64) - 1:016x}"
