"""Lists how the runtimes of the models' formats may differ from firmware. What no row covers is a failure.

A row says for which operators and types of which runtimes, by how much, and why. ``docs/testing.md`` shows the rows to
users, and ``tests/runner/test_differences.py`` shows for each row that the difference exists and stays within it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from uaccel.model import ImportedModel

INTEGERS: Final = frozenset({"int8", "uint8", "int16", "uint16"})  # Wider ones have no scale: they are decisions.
FLOATS: Final = frozenset({"float32", "float64"})
HALF: Final = frozenset({"float16"})
ONNX: Final = ("onnxruntime", "torch")
ANY: Final = ("tflite-micro", "litert", *ONNX)
WARNED: Final = "(warned)"  # Stands among the operators of a model that the report warns of.
COMPARISONS: Final = ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")
HYBRID: Final = "float32 as int8"  # Stands among the types of a model whose weights are bytes and activations floats.
# What a runtime computes wrongly, so that it is not asked: by runtime, operator and type.
FAULTS: Final = {
    ("tflite-micro", "SPACE_TO_BATCH_ND", "int8"): "it pads with the stored 0, which is not the zero point",
    ("tflite-micro", "UNIDIRECTIONAL_SEQUENCE_LSTM", HYBRID): "it leaves zeros where weights are bytes",
    ("tflite-micro", "ADD", "int32"): "it leaves the activation of integer sums out",
    **{("tflite-micro", op, "int16"): "it compares int16 without scales" for op in COMPARISONS},
    ("litert", "LOCAL_RESPONSE_NORMALIZATION", "float32"): "it leaves the last channel of each window out",
    **{("litert", op, "int16"): "its table of 513 values overflows" for op in ("EXP", "LOG", "RSQRT")},
    **{("litert", "REDUCE_PROD", kind): "its integer products overflow" for kind in ("int8", "int16")},
}


@dataclass(frozen=True)
class Allowance:
    """Says how far outputs may be from a reference.

    ``steps``: how many steps an element may be off, of at most a share ``off`` of all elements. A share ``farther`` may
    be off by more. ``relative`` is for outputs without a scale: the difference by the largest value. ``measured``: what
    the runtime's own answers move by is allowed as well."""

    steps: int = 0
    off: float = 0.0
    farther: float = 0.0
    relative: float = 0.0
    measured: bool = False

    def __str__(self) -> str:
        steps = f"{self.steps} step{'s' * (self.steps != 1)} in {self.off:.0%} of the elements"
        moves = ", or as far as the runtime's own answer moves" if self.measured else ""
        parts = [f"{self.relative:g} of the largest{moves}"] if self.relative else []
        parts += [steps] if self.off and self.steps else []
        parts += [f"more in {self.farther:.0%}" if self.steps else f"any in {self.farther:.0%}"] if self.farther else []
        return "; ".join(parts)

    def __or__(self, other: Allowance) -> Allowance:
        return Allowance(
            max(self.steps, other.steps),
            max(self.off, other.off),
            max(self.farther, other.farther),
            max(self.relative, other.relative),
            self.measured or other.measured,
        )


@dataclass(frozen=True)
class Documented:
    """Describes one difference. ``operators``: names in the file, empty for all. ``option``: when it shows."""

    runtimes: tuple[str, ...]
    operators: frozenset[str]
    types: frozenset[str]
    option: str
    allowed: Allowance
    reason: str


ROWS: Final = (
    Documented(
        ANY,
        frozenset(),
        FLOATS,
        "float outputs",
        Allowance(relative=1e-4, measured=True),
        "floats are added in another order, and functions have other last bits; decisions amplify that",
    ),
    Documented(
        ("tflite-micro", "litert"),
        frozenset({"LOGISTIC"}),
        FLOATS,
        "`LOGISTIC` below -9",
        Allowance(relative=1.25e-4),
        "the runtime computes exp(x) there, which is exp(-9) too much at most; firmware computes the sigmoid",
    ),
    Documented(
        ONNX,
        frozenset(),
        HALF,
        "half precision",
        Allowance(steps=1, off=0.5, farther=0.05, relative=0.02),
        "the runtime rounds each result to float16, and firmware computes in float32",
    ),
    Documented(
        ("onnxruntime",),
        frozenset({"DynamicQuantizeLSTM"}),
        FLOATS,
        "`DynamicQuantizeLSTM`",
        Allowance(relative=0.05),
        "the runtime rounds activations of dynamic recurrent layers to eight bits, and firmware keeps floats",
    ),
    Documented(
        ("onnxruntime",),
        frozenset({"MatMulNBits"}),
        FLOATS,
        "`MatMulNBits` of `accuracy_level` 4",
        Allowance(relative=0.02),
        "the runtime rounds activations to eight bits, and firmware keeps floats",
    ),
    Documented(
        ("litert",),
        frozenset(),
        INTEGERS,
        "requantisation",
        Allowance(steps=1, off=0.5, farther=0.02),
        "LiteRT rounds once where TensorFlow Lite Micro, and so firmware, rounds twice",
    ),
    Documented(
        ("tflite-micro", "litert"),
        frozenset({WARNED}),
        INTEGERS,
        "layers that the report warns of",
        Allowance(steps=1, off=0.5, farther=0.02),
        "a quantised operator without integer arithmetic is computed in float and rounded once",
    ),
    Documented(
        ("tflite-micro", "litert"),
        frozenset({"DIV"}),
        INTEGERS,
        "`DIV`: quotients far below half a step",
        Allowance(steps=255, off=0.1),
        "TensorFlow Lite Micro shifts by more than 31 bits, which C leaves undefined; firmware gives zero",
    ),
    Documented(
        ("tflite-micro", "litert"),
        frozenset({"CAST"}),
        frozenset({"uint8", "uint16", "uint32"}),
        "`CAST` of negative floats to unsigned",
        Allowance(steps=1 << 32, off=1.0),
        "C leaves the result undefined",
    ),
    Documented(
        ONNX,
        frozenset(),
        INTEGERS,
        "integers between quantisation steps",
        Allowance(steps=1, off=0.5, farther=0.02),
        "the runtime computes in float32 and rounds what is half a step to either side; firmware rounds the real value",
    ),
)


def allowance(model: ImportedModel, runtime: str, *, half: bool = False) -> Allowance:
    """Joins the rows that apply to some operator and type of a model. ``half``: whether the runtime computes in halves,
    which no longer shows in the imported model."""
    found = Allowance()
    operators = {origin.op for origin in model.origins.values()}
    types = {spec.info.dtype for spec in (*model.signature.outputs, *model.tensors.values())} | (
        HALF if half else set()
    )
    for row in applying(operators, types, runtime):
        found |= row.allowed
    return found


def fault(model: ImportedModel, runtime: str) -> str:
    """Says what the runtime is known to compute wrongly in this model; empty for nothing."""
    operators = {origin.op for origin in model.origins.values()}
    types = {spec.info.dtype for spec in model.tensors.values()} | ({HYBRID} if _is_hybrid(model) else set())
    rows = FAULTS.items()
    return next((why for (who, op, kind), why in rows if who == runtime and op in operators and kind in types), "")


def _is_hybrid(model: ImportedModel) -> bool:
    """Says whether some layer of floats has weights of bytes, for which activations become bytes as well."""
    from uaccel.tvm_api import is_operator_call, main_bindings

    calls = (expr for _, expr in main_bindings(model.module)[1] if is_operator_call(expr))
    return any(call.op.name == "uaccel.quantize_rows" for call in calls)


def applying(operators: Iterable[str], types: Iterable[str], runtime: str) -> list[Documented]:
    """Returns the rows for a runtime and a model with these operators and types of tensors."""
    names, kinds = frozenset(operators), frozenset(types)
    return [
        row
        for row in ROWS
        if runtime in row.runtimes and row.types & kinds and (not row.operators or row.operators & names)
    ]
