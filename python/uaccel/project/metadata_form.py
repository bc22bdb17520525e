"""The form of ``metadata.json`` of an archive, as far as uaccel reads it."""

from __future__ import annotations

from typing import Any, Final

from uaccel.project.forms import (
    FLAG,
    INDEX,
    NUMBER,
    OBJECT,
    SHAPE,
    TEXT,
    WHOLE,
    Fields,
    Maybe,
    Named,
    Rows,
    complaint,
    digits,
)

_SIZES: Final = Named(Fields({"size": WHOLE}))
_MAIN: Final = Fields(
    {
        "workspace_size_bytes": WHOLE,
        "constants_size_bytes": WHOLE,
        "io_size_bytes": WHOLE,
        "inputs": _SIZES,
        "outputs": _SIZES,
    }
)
_TENSORS: Final = Named(Fields({"shape": SHAPE, "dtype": TEXT}))
_COVERED: Final = Fields(
    {**dict.fromkeys(("name", "op", "reason", "tensor"), TEXT), "operator": INDEX, "macs": WHOLE, "shape": SHAPE}
)
_LAYER: Final = Fields(
    {
        **dict.fromkeys(("name", "op", "engine", "reason", "refused", "tensor", "variant"), TEXT),
        **dict.fromkeys(("index", "macs"), WHOLE),
        "operator": INDEX,
        "covers": Rows(_COVERED),
        "outputs": Rows(Fields({"shape": SHAPE, "dtype": TEXT})),
        "commands": Rows(TEXT),
    },
    optional=("commands",),
)
_MEANING: Final = Fields(
    {
        "layer": WHOLE,
        "tensors": Rows(Fields({"name": TEXT, "result": WHOLE})),
        "watched": Rows(WHOLE),
        "with": Rows(WHOLE),
        "tolerance": NUMBER,
        "golden": FLAG,
    }
)
_OWN: Final = Fields(
    {
        "board": TEXT,
        "workspace_io": FLAG,
        "favour": TEXT,
        "model": Fields(
            {"name": TEXT, "file": Maybe(TEXT), "file_sha256": Maybe(digits(64)), "sha256": digits(64)}, loose=True
        ),
        "build": digits(16),
        "inputs": _TENSORS,
        "outputs": _TENSORS,
        "arena": Fields({"lower_bound": WHOLE}),
        "pools": Maybe(Rows(Fields({"name": TEXT, "bytes": WHOLE}))),
        "constant_pools": Maybe(Rows(Fields({"name": TEXT, "bytes": WHOLE, "copied": FLAG}))),
        "requires": Rows(TEXT),
        "device_constants": WHOLE,
        "accelerators": Rows(Fields({"name": TEXT, "tolerance": NUMBER, "device": FLAG}, optional=("device",))),
        "layers": Rows(_LAYER),
        "meanings": Rows(_MEANING),
        "warnings": Rows(TEXT),
        "state": Fields({"bytes": WHOLE, "tensors": _TENSORS}),
    },
    loose=True,  # what reads a key says so where it is missing
)
_MODULE: Final = Fields({"memory": Fields({"functions": Fields({"main": Rows(_MAIN)})})})
FOREIGN: Final = Fields({"modules": Named(OBJECT, in_c=True)}, loose=True)
OWN: Final = Fields({"modules": Named(_MODULE, in_c=True), "uaccel": _OWN}, loose=True)


def wrong_with(document: dict[str, Any]) -> str:
    """What is not as it should be, and where; empty where all is. Of another compiler's archive there are no facts."""
    return complaint(document, OWN if "uaccel" in document else FOREIGN)
