"""Draws single nodes with every option and type of an ONNX operator, from its schema; ONNX Runtime is the oracle.

The schema says which versions an operator has, which attributes, which types each operand may have, and how many
operands there may be. ``support.models.onnx_forms`` adds what it cannot say.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from support.models.onnx_forms import OLDEST, ONE, SWITCH, TWO, Form
from support.models.onnx_more_forms import FORMS
from support.models.onnx_rows import Given, Row
from support.models.operands import Array
from uaccel.frontend.onnx.graph import DTYPES, RANDOM, SIZED, SMALLER

NEWEST: Final = 26  # The latest opset that ONNX Runtime reads.

# Operators that choose by comparison give a bound or another operand in the place of NaN: one comparison an element,
# where a runtime that hands NaN on needs two. Runtimes, too, differ with the type.
CHOOSING: Final = {
    *("ArgMax", "ArgMin", "Clip", "GlobalMaxPool", "HardSigmoid", "HardSwish", "Hardmax", "LpPool", "Max", "MaxPool"),
    *(
        "MaxRoiPool",
        "Min",
        "ReduceLogSumExp",
        "ReduceMax",
        "ReduceMin",
        "Relu",
        "Sign",
        "TopK",
        "AveragePool",
        "GlobalAveragePool",
        "GlobalLpPool",
    ),
}
# Operators whose results for infinities and NaN (f), or for extremes of integers (i, u), are not defined: numbers that
# the other type cannot hold, sums that overflow, and where ONNX Runtime goes through float64.
BOUNDED: Final = {
    **dict.fromkeys(("Cast", "CastLike", "LogSoftmax", "OneHot"), "f"),
    **{f"Reduce{name}": "iu" for name in ("L1", "L2", "LogSum", "LogSumExp", "SumSquare", "Sum", "Mean", "Prod")},
    **dict.fromkeys(("Mod", "Pow", "Shrink"), "iu"),
}
# Types whose results are not compared: ONNX Runtime cuts exponentials of integers off, by each of its loops otherwise.
UNDEFINED: Final = {"ReduceLogSumExp": "iu"}
# Steps that integers may be apart: sums of floats in another order, cut off.
STEPS: Final = {"Resize": 1}

# Values of attributes, by their names.

NAMED: Final[dict[str, list[Any]]] = {
    **dict.fromkeys(
        (
            *("keepdims", "exclusive", "reverse", "ceil_mode", "count_include_pad", "fmod", "largest"),
            *("transA", "transB"),
            *("select_last_index", "noop_with_empty_axes", "saturate", "detect_negative", "detect_positive", "upper"),
            *("align_corners", "storage_order", "linear_before_reset", "center_point_box", "interleaved"),
        ),
        SWITCH,
    ),
    "alpha": [None, 0.3, 1.7],
    "beta": [None, 0.4, 0.0],
    "gamma": [None, 1.3],
    "epsilon": [None, 1e-2],
    "lambd": [None, 1.5],
    "bias": [None, 0.3],
    "approximate": [None, "none", "tanh"],
    "direction": ["LEFT", "RIGHT"],
    "to": [1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13],
    "stash_type": [None, 1],
    "round_mode": [None],
    "sorted": [None, 1],  # the order of others is not defined
    **{
        name: [None]
        for name in (
            *("auto_pad", "seed", "coordinate_transformation_mode", "p", "block_size", "output_dtype", "precision"),
            *("kernel_shape", "pads", "strides", "dilations", "group", "output_padding", "output_shape"),
        )
    },
}

# The draw.


@dataclass(frozen=True, eq=False)
class Drawn:
    """Holds one node with its opset, what its inputs get at run time, and the words by which a difference is told."""

    name: str
    opset: int
    row: Row
    feeds: Mapping[str, Array]
    types: Mapping[str, str]

    @property
    def words(self) -> str:
        options = dict(self.row.attributes)
        shapes = [
            "-"
            if entry is None
            else f"{getattr(entry, 'dtype', '')}{list(getattr(entry, 'shape', ()))}"
            + ("" if isinstance(entry, Given) else f"={entry.tolist()}" if entry.size < 9 else "=...")
            for entry in self.row.inputs
        ]
        return f"{self.name}: {self.row.op}({', '.join(shapes)}) {options}"


def operators() -> list[str]:
    """The standard operators of ONNX that work on tensors."""
    from onnx import defs

    found = {schema.name for schema in defs.get_all_schemas() if schema.domain == "" and not schema.deprecated}
    return sorted(name for name in found - NOT_TAKEN if not name.startswith(NO_TENSORS))


NO_TENSORS: Final = ("Sequence", "Optional", "String", "Regex", "ConcatFrom", "SplitTo", "Tfidf", "TfIdf", "Image")
# Operators whose result has a shape that depends on data, is random, or is known at import; those without a converter.
NOT_TAKEN: Final = {*RANDOM, *SMALLER, *SIZED, "Constant", "Shape", "Size", "DeformConv", "MelWeightMatrix", "Det"}


def definitions(op: str) -> list[Any]:
    """The schemas of an operator from the oldest opset that is read to the newest that is compared, by their opset."""
    from onnx import defs

    found: dict[int, Any] = {}
    for opset in range(OLDEST, NEWEST + 1):
        try:
            schema = defs.get_schema(op, opset, "")
        except defs.SchemaError:
            continue
        if not schema.deprecated:
            found.setdefault(schema.since_version, (opset, schema))
    return list(found.values())


def drawn(op: str, most: int = 48) -> Iterator[Drawn]:
    """Nodes of an operator. Its newest definition has all types, and up to ``most`` choices of options a form."""
    versions = definitions(op)
    for opset, schema in versions:
        newest = schema is versions[-1][1]
        for place, entry in enumerate(_forms(op, schema)):
            first, last = max(opset, entry.since), min(entry.until, _last(versions, opset))
            if first > last:
                continue
            rng = np.random.default_rng(zlib.crc32(f"{op}/{opset}/{place}".encode()))
            assigned = list(_types(schema, entry))
            for number, types in enumerate(assigned):
                if number and not newest and rng.random() < 0.7:
                    continue
                some = most if number == 0 and newest else 6 if number == 0 else 3
                for turn, options in enumerate(_options(schema, entry, some, rng)):
                    if options.get("antialias") and types.get("T1") == "int8":
                        continue  # ONNX Runtime cuts these sums off as if they were uint8
                    if op == "GridSample" and "int" in types["T1"] and options.get("mode") != "nearest":
                        continue  # the reference rounds the weights of integers to 0 and 1
                    for hostile in (False, True):
                        if hostile and (entry.calm or (turn + number) % 2):
                            continue
                        kind = "hostile" if hostile else "usual"
                        used = first if turn % 2 else last
                        name = f"{op}_{used}_{place}_{number}_{turn}_{kind}"
                        yield _draw(name, used, schema, entry, types, options, hostile)


def _last(versions: list[Any], opset: int) -> int:
    later = [other for other, _ in versions if other > opset]
    return later[0] - 1 if later else NEWEST


def _forms(op: str, schema: Any) -> Sequence[Form]:
    if op in FORMS:
        return FORMS[op]
    return ONE if schema.min_input == 1 else TWO


def _types(schema: Any, entry: Form) -> Iterator[dict[str, str]]:
    """Choices of a type for each type variable: the first of each, then each other type of one of them."""
    allowed: dict[str, list[str]] = {}
    for place, operand in enumerate(entry.operands):
        formal = _formal(schema, place)
        if operand is None or formal is None:
            continue
        names = [_name(text) for text in sorted(formal.types)]
        no = UNDEFINED.get(schema.name, "")
        some = [name for name in _ORDER if name in names and np.dtype(name).kind not in no]
        known = allowed.get(formal.type_str, some)
        allowed[formal.type_str] = [name for name in known if name in some]
    if not all(allowed.values()):
        return
    first = {key: names[0] for key, names in allowed.items()}
    yield first
    for key, names in allowed.items():
        for name in names[1:]:
            yield {**first, key: name}


_ORDER: Final = ("float32", *(name for name in DTYPES if name != "float32"))


def _name(text: str) -> str:
    inner = text.removeprefix("tensor(").removesuffix(")")
    return {"float": "float32", "double": "float64"}.get(inner, inner)


def _formal(schema: Any, place: int) -> Any:
    if not schema.inputs:
        return None
    return schema.inputs[min(place, len(schema.inputs) - 1)]


def _options(schema: Any, entry: Form, most: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Choices of values for all attributes: every one, or as many as asked, in which each value comes up."""
    values: dict[str, Sequence[Any]] = {}
    for name in sorted(schema.attributes):
        if name not in entry.attributes and name not in NAMED:
            raise LookupError(f"{schema.name}.{name} has no values")
        values[name] = entry.attributes.get(name, NAMED.get(name, [None]))
    count = int(np.prod([len(each) for each in values.values()], dtype=np.int64))
    if count <= most:
        return [dict(zip(values, choice, strict=True)) for choice in itertools.product(*values.values())]
    shuffled = [
        [each[place % len(each)] for place in rng.permutation(max(most, len(each)))] for each in values.values()
    ]
    return [dict(zip(values, choice, strict=True)) for choice in zip(*(each[:most] for each in shuffled), strict=True)]


def _draw(
    name: str, opset: int, schema: Any, entry: Form, types: Mapping[str, str], options: Mapping[str, Any], hostile: bool
) -> Drawn:
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    inputs: list[Given | Array | None] = []
    feeds = {}
    for place, operand in enumerate(entry.operands):
        if operand is None:
            inputs.append(None)
            continue
        dtype = types[_formal(schema, place).type_str]
        wild = hostile and operand.values is None and np.dtype(dtype).kind not in BOUNDED.get(schema.name, "")
        array = operand.array(dtype, rng, wild)
        if schema.name in ("Cast", "CastLike") and array.dtype.kind == "f":
            array = np.abs(array)  # C leaves it undefined what a negative float is as an unsigned integer
        if schema.name == "Pow" and np.dtype(types[_formal(schema, 0).type_str]).kind != "f":
            array = np.abs(array)  # a negative power of 0 is infinite, which no integer is
        if schema.name in CHOOSING and array.dtype.kind == "f":
            array = np.where(np.isnan(array), np.asarray(3, array.dtype), array)
        if array.dtype.kind == "f" and schema.name in ("GlobalMaxPool", "MaxPool"):
            # A window of -inf alone: ONNX Runtime gives the lowest finite number where it dilates or pads.
            array = np.maximum(array, np.finfo(array.dtype).min)
        inputs.append(array if operand.stored else Given(array.shape, str(array.dtype)))
        if not operand.stored:
            feeds[f"{name}/in{place}"] = array
    attributes = {key: value for key, value in options.items() if value is not None}
    return Drawn(name, opset, Row(schema.name, inputs, attributes, entry.outputs), feeds, types)
