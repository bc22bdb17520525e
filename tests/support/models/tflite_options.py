"""Which options table each TFLite operator carries, and how to write one from a plain dictionary.

The `tflite` package has one `<Table>Add<Field>` function per field. Their names follow from the operator's
and the field's, so a lookup replaces a function per operator; only tables that several operators share are
listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tflite

OptionValue = bool | int | float | str | Sequence[int] | Sequence[float]

_SHARED_TABLES = {
    "AVERAGE_POOL_2D": "Pool2DOptions",
    "MAX_POOL_2D": "Pool2DOptions",
    "L2_POOL_2D": "Pool2DOptions",
    "MEAN": "ReducerOptions",
    "SUM": "ReducerOptions",
    "REDUCE_ALL": "ReducerOptions",
    "REDUCE_ANY": "ReducerOptions",
    "REDUCE_MAX": "ReducerOptions",
    "REDUCE_MIN": "ReducerOptions",
    "REDUCE_PROD": "ReducerOptions",
    "MINIMUM": "MaximumMinimumOptions",
    "MAXIMUM": "MaximumMinimumOptions",
    "L2_NORMALIZATION": "L2NormOptions",
    "SVDF": "SVDFOptions",
    "CONV_3D_TRANSPOSE": "Conv3DOptions",
    "UNIDIRECTIONAL_SEQUENCE_RNN": "SequenceRNNOptions",
}
_TEXTS = ("container", "shared_name")
_TABLES = {name.lower(): name for name in vars(tflite.BuiltinOptions) if name.endswith("Options")}
_ALIASES = {"fused_activation": "fused_activation_function"}
ENUMS: Mapping[str, type] = {
    "padding": tflite.Padding,
    "fused_activation_function": tflite.ActivationFunctionType,
    "mode": tflite.MirrorPadMode,
    "weights_format": tflite.FullyConnectedOptionsWeightsFormat,
    "output_type": tflite.TensorType,
    "out_type": tflite.TensorType,
    "in_data_type": tflite.TensorType,
    "out_data_type": tflite.TensorType,
    "quantized_bias_type": tflite.TensorType,
    "idx_out_type": tflite.TensorType,
    "key_dtype": tflite.TensorType,
    "value_dtype": tflite.TensorType,
    "kernel_type": tflite.LSTMKernelType,
    "combiner": tflite.CombinerType,
    "type": tflite.LSHProjectionType,
}


def options_table(operator: str) -> str | None:
    """The name of the operator's options table, or None for operators that have none, as RELU."""
    return _SHARED_TABLES.get(operator) or _TABLES.get(operator.replace("_", "").lower() + "options")


def _field(table: str, name: str) -> str:
    camel = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    if not hasattr(tflite, f"{table}Add{camel}"):
        prefix = f"{table}Add"
        known = sorted(key[len(prefix) :] for key in vars(tflite) if key.startswith(prefix))
        raise ValueError(f"option {name!r} is not in {table}; it has {', '.join(known) or 'no fields'}")
    return camel


def _number(name: str, value: bool | int | float | str) -> Any:
    if not isinstance(value, str):
        return value
    enum: type | None = ENUMS.get(name)
    known = {key.upper(): number for key, number in vars(enum).items()} if enum is not None else {}
    if value.upper() not in known:
        raise ValueError(f"option {name!r} cannot be {value!r}")
    return known[value.upper()]


def _write_vector(builder: Any, table: str, field: str, values: Sequence[int] | Sequence[float]) -> int:
    getattr(tflite, f"{table}Start{field}Vector")(builder, len(values))
    for value in reversed(values):
        (builder.PrependInt32 if isinstance(value, int) else builder.PrependFloat32)(value)
    return int(builder.EndVector())


def write_options(builder: Any, operator: str, options: Mapping[str, OptionValue]) -> tuple[int, int]:
    """Write the operator's options; returns the union's type and the table's offset, 0 and 0 for none.

    Fields have the schema's names in snake case (`stride_w`, `keep_dims`); `fused_activation` is short for
    `fused_activation_function`. Enumerations are given by name. What is left out keeps the schema's default.
    """
    table = options_table(operator)
    if table is None:
        if options:
            raise ValueError(f"{operator} takes no options, got {sorted(options)}")
        return 0, 0
    named = {_ALIASES.get(name, name): value for name, value in options.items()}
    written: list[tuple[str, Any]] = []
    for name, value in named.items():
        field = _field(table, name)
        if isinstance(value, Sequence) and not isinstance(value, str):
            written.append((field, _write_vector(builder, table, field, value)))
        elif isinstance(value, str) and name in _TEXTS:
            written.append((field, builder.CreateString(value)))
        else:
            written.append((field, _number(name, value)))
    getattr(tflite, f"{table}Start")(builder)
    for field, number in written:
        getattr(tflite, f"{table}Add{field}")(builder, number)
    return int(getattr(tflite.BuiltinOptions, table)), int(getattr(tflite, f"{table}End")(builder))
