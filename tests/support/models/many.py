"""Several independent operators in one model: one compilation for many rows of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from support.models.single_op import Activation, Constant, argument
from support.models.tflite_writer import ModelBuilder, OptionValue

__all__ = ["Row", "many"]


@dataclass(frozen=True)
class Row:
    """One operator with inputs and outputs of its own, all of which the model has too."""

    operator: str
    inputs: Sequence[Activation | Constant | None]
    outputs: Sequence[Activation]
    options: Mapping[str, OptionValue] = field(default_factory=dict)


def many(rows: Mapping[str, Row] | Sequence[Row]) -> bytes:
    """The file; the tensors of a row have its name, or number, so that a failure says which row it was."""
    model = ModelBuilder()
    named = rows if isinstance(rows, Mapping) else {f"row {number}": row for number, row in enumerate(rows)}
    for name, row in named.items():
        arguments = [argument(model, f"{name}: input {i}", given) for i, given in enumerate(row.inputs)]
        results = [
            model.tensor(f"{name}: output {i}", out.shape, out.dtype, scale=out.scale, zero_point=out.zero_point)
            for i, out in enumerate(row.outputs)
        ]
        model.op(row.operator, arguments, results, row.options)
        for result in results:
            model.output(result)
    return model.build()
