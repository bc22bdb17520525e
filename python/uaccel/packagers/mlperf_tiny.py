"""The header by which firmware speaks MLPerf Tiny's serial protocol: which model it is, and what its data mean."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from uaccel.basics.words import BENCHMARK_HEADER

NAME: Final = "mlperf-tiny"
HEADER: Final = BENCHMARK_HEADER
PIN: Final = "uaccel_mlperf_tiny_pin.c"
ENERGY: Final = """#define UACCEL_MLPERF_ENERGY
/* The project's: drives the pin that the power monitor watches, low (0) or high (1). The first call is at the start. */
void uaccel_mlperf_tiny_pin(unsigned high);
"""
MODELS: Final = {
    (1, 32, 32, 3): ("ic01", "IMAGES"),
    (1, 96, 96, 3): ("vww01", "IMAGES"),
    (1, 49, 10, 1): ("kws01", "AS_THEY_ARE"),
    (1, 640): ("ad01", "REAL_NUMBERS"),
    (1, 30, 1, 40): ("sww01", "AS_THEY_ARE"),
}
"""The benchmark's, by the shape of their input. Other models have their own name, and data as they are."""
TYPES: Final = {
    "int8": ("int8_t", 1, -128, 127),
    "uint8": ("uint8_t", 1, 0, 255),
    "int16": ("int16_t", 2, -32768, 32767),
    "int32": ("int32_t", 4, 0, 0),
    "float32": ("float", 4, 0, 0),
}


def why_not(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> str:
    """Why a model cannot be benchmarked; empty where it can. Tensors as JSON tells them."""
    if len(inputs) != 1 or len(outputs) != 1:
        return f"is for models of one input and one output, not {len(inputs)} and {len(outputs)}"
    strange = [tensor["dtype"] for tensor in (*inputs.values(), *outputs.values()) if tensor["dtype"] not in TYPES]
    return f"has no tensors of type {strange[0]}" if strange else ""


def header(name: str, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> str:
    """Of a model that can be."""
    (given,), (made,) = inputs.values(), outputs.values()
    model, data = MODELS.get(tuple(given["shape"]), (name, "AS_THEY_ARE"))
    if given["dtype"] != "int8" or (data == "REAL_NUMBERS" and made["shape"] != given["shape"]):
        data = "AS_THEY_ARE"
    kind, size, lowest, highest = TYPES[given["dtype"]]
    count = math.prod(given["shape"])
    rows = {
        "MODEL": f'"{model}"',
        "DATA": data,
        "DATA_BYTES": 4 * count if data == "REAL_NUMBERS" else size * count,
        "INPUT_TYPE": kind,
        "INPUT_COUNT": count,
        "INPUT_SCALE": real(given["scale"]),
        "INPUT_ZERO_POINT": int(given["zero_point"] or 0),
        "INPUT_LOWEST": f"({lowest})",
        "INPUT_HIGHEST": highest,
        "OUTPUT_TYPE": TYPES[made["dtype"]][0],
        "OUTPUT_COUNT": math.prod(made["shape"]),
        "OUTPUT_SCALE": real(made["scale"]),
        "OUTPUT_ZERO_POINT": int(made["zero_point"] or 0),
    }
    lines = [f"#define UACCEL_MLPERF_{name} {value}" for name, value in rows.items()]
    return "\n".join(["/* What MLPerf Tiny's runner is told of this model. */", *lines, ""])


def real(scale: Any) -> str:
    """Of C's type float, and the same number."""
    return f"{float(np.float32(1.0 if scale is None else scale))!r}f"
