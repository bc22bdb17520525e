"""Run TFLite models on other runtimes: TFLite Micro, the reference for every byte, and LiteRT to cross-check.

Both are optional: a test that asks for an absent one is skipped with the reason.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt
import pytest

from support.models.tflite_view import ModelView, TensorInfo, view
from support.oracle.random_inputs import random_inputs

__all__ = ["Array", "LiteRt", "TensorInfo", "Tflm", "random_inputs", "run_litert", "run_tflm"]

Array = npt.NDArray[Any]

_ARENA_SPARE = 4 << 20


class Tflm:
    """TFLite Micro's interpreter over one model, kept for many inputs.

    What `tensor` can give back after `run`, through the wheel's GetTensor with all tensors preserved:

    - inputs, every tensor that an operator writes, and constants, each with its own shape and dtype, as a
      copy. The linear memory planner gives each tensor its own bytes, so an intermediate survives what
      comes after it;
    - not a tensor that no operator writes or reads: its bytes are undefined, so `tensor` refuses;
    - not an index outside the model: the wheel reads past its table unchecked, so `tensor` refuses;
    - not kernel scratch (the accumulators inside a layer), nor anything before the first `run`.

    Shapes are those of the file: TFLite Micro knows no dynamic ones. The wheel prints its reasons to stderr
    and raises a RuntimeError that does not repeat them. Its own guess of the arena, ten times the file, is
    too small for tiny models.
    """

    def __init__(self, data: bytes, *, arena_size: int | None = None) -> None:
        package = pytest.importorskip("tflite_micro", reason="the reference, tflite-micro, is not installed")
        runtime = package.runtime
        self.view: ModelView = view(data)
        self._interpreter: Any = runtime.Interpreter.from_bytes(
            data,
            arena_size=10 * len(data) + _ARENA_SPARE if arena_size is None else arena_size,
            intrepreter_config=runtime.InterpreterConfig.kPreserveAllTensors,
        )
        self._has_run = False

    def run(self, inputs: Sequence[npt.ArrayLike]) -> list[Array]:
        """The outputs for one set of inputs, in the model's order."""
        _check_count(self.view, inputs)
        for position, value in enumerate(inputs):
            self._interpreter.set_input(np.asarray(value), position)
        self._interpreter.invoke()
        self._has_run = True
        return [np.asarray(self._interpreter.get_output(k)) for k in range(len(self.view.output_indices))]

    def tensor(self, index: int) -> Array:
        """One tensor as the last `run` left it; the class says which there are."""
        if not self._has_run:
            raise ValueError("no tensor has a value before the first run")
        if index not in self._readable():
            raise ValueError(f"tensor {index} is not an input, a constant or written by an operator")
        return np.asarray(self._interpreter.GetTensor(index, 0)["tensor_data"])

    def intermediates(self) -> dict[int, Array]:
        """Every tensor that an operator writes, outputs too, by tensor index in the order of execution."""
        return {index: self.tensor(index) for index in self.view.computed_indices}

    def _readable(self) -> set[int]:
        constants = {tensor.index for tensor in self.view.tensors if tensor.is_constant}
        return {*self.view.input_indices, *self.view.computed_indices, *constants}


class LiteRt:
    """LiteRT's interpreter over one model, with its optimised or its reference kernels, never a delegate."""

    def __init__(self, data: bytes, *, kernels: Literal["optimised", "reference"] = "reference") -> None:
        pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
        litert = importlib.import_module("ai_edge_litert.interpreter")
        resolvers = litert.OpResolverType
        resolver = {
            "reference": resolvers.BUILTIN_REF,
            "optimised": resolvers.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        }
        self.view: ModelView = view(data)
        self._interpreter: Any = litert.Interpreter(
            model_content=data,
            num_threads=1,
            experimental_op_resolver_type=resolver[kernels],
        )
        self._interpreter.allocate_tensors()

    def run(self, inputs: Sequence[npt.ArrayLike]) -> list[Array]:
        """The outputs for one set of inputs, in the model's order."""
        _check_count(self.view, inputs)
        for index, value in zip(self.view.input_indices, inputs, strict=True):
            self._interpreter.set_tensor(index, np.asarray(value))
        self._interpreter.invoke()
        return [np.asarray(self._interpreter.get_tensor(index)) for index in self.view.output_indices]


@overload
def run_tflm(data: bytes, inputs: Sequence[npt.ArrayLike], *, intermediates: Literal[False] = False) -> list[Array]: ...
@overload
def run_tflm(
    data: bytes, inputs: Sequence[npt.ArrayLike], *, intermediates: Literal[True]
) -> tuple[list[Array], dict[int, Array]]: ...
def run_tflm(
    data: bytes, inputs: Sequence[npt.ArrayLike], *, intermediates: bool = False
) -> list[Array] | tuple[list[Array], dict[int, Array]]:
    """One run on TFLite Micro: the outputs and, if asked, all that operators write, by tensor index."""
    interpreter = Tflm(data)
    outputs = interpreter.run(inputs)
    return (outputs, interpreter.intermediates()) if intermediates else outputs


def run_litert(
    data: bytes, inputs: Sequence[npt.ArrayLike], *, kernels: Literal["optimised", "reference"] = "reference"
) -> list[Array]:
    """One run on LiteRT, whose bytes differ from TFLite Micro's where it rounds otherwise."""
    return LiteRt(data, kernels=kernels).run(inputs)


def _check_count(model: ModelView, inputs: Sequence[npt.ArrayLike]) -> None:
    if len(inputs) != len(model.input_indices):
        raise ValueError(f"the model has {len(model.input_indices)} inputs, got {len(inputs)}")
