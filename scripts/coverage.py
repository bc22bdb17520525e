"""Write docs/reference/coverage.md: what becomes of every operator of every front end.

    .venv/bin/python scripts/coverage.py

tests/docs/test_coverage.py holds the page against the code. What ONNX operators do comes from the record of their
official tests (scripts/onnx_node_tests.py).
"""

from __future__ import annotations

import functools
import importlib
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from uaccel.frontend.converters import EXACT, FALLBACK, FOLDED, REFUSED, Coverage, table

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "coverage.md"
RECORD = ROOT / "tests" / "frontend" / "onnx" / "node_tests.json"
NO_TENSORS = (
    "Sequence",
    "Optional",
    "String",
    "Regex",
    "ConcatFromSequence",
    "SplitToSequence",
    "Tfidf",
    "ImageDecoder",
)
CONTROL = ("If", "Loop", "Scan")
KERNELS = {"MatMulNBits"}  # of Microsoft's operators on floats
LONGEST = 110

HEAD = """# Coverage

*What becomes of each operator of a model?* This page is generated (`scripts/coverage.py`); a test holds it
against the code.

- **CPU kernel**: integers as the model file means them, by C written for it, or bytes that only move.
- **TIR fallback**: TVM's lowering of the float operator, as plain C. Where a model quantises around it, the integers
  are dequantised, the operator computes in float, and its result is quantised.
- **TIR integers**: TVM's lowering of integer operators, as plain C: integers as the model file means them.
- **known at import**: computed while the model is read; no code is left.
- **refused**: an error at import that names the node and the reason.
"""
ONNX_HEAD = """[models.md](../models.md#onnx) says which files; opsets up to {opset}. Of the {total:,} official tests on
types that can be compiled (onnx {version}), {passed:,} pass, {refused} are refused and {wrong} differ. The notes count
them for each operator that is neither refused as a whole nor known at import."""
TORCH_HEAD = """[models.md](../models.md#pytorch) says which files. ATen's operators that have a converter; others
PyTorch takes apart into these, or they are refused by name, as is what depends on data."""
TFLITE_HEAD = """Each cell says what becomes of a model of this one operator and type. `in float`: it is quantised and
computed in float, with a warning. [models.md](../models.md#operators) says more."""
FIRST_TYPES = ("float32", "int8", "int16")
UNTRIED = "there is a converter; no model here tries it"


def tflite() -> str:
    """By what becomes of a model of each operator; of those without one, whether there is a converter."""
    import tflite as schema

    sys.path.insert(0, str(ROOT / "tests"))
    happens: dict[str, dict[str, str]] = importlib.import_module("support.models.coverage_rows").what_happens()
    lines = ["| operator | float32 | int8 | int16 | other types | notes |", "|---|---|---|---|---|---|"]
    names = (name for name in vars(schema.BuiltinOperator) if name.isupper() and "STABLEHLO" not in name)
    for name in sorted(set(names) - {"CUSTOM", "DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES"}):
        lines.append(_tflite_row(name, happens.get(name) or dict.fromkeys(FIRST_TYPES, _without_model(name))))
    table_of_all = "\n".join(lines)
    return f"## TFLite\n\n{TFLITE_HEAD}\n\n{table_of_all}\n"


def _tflite_row(name: str, cells: dict[str, str]) -> str:
    """Reasons stand in the notes where nothing of the operator is taken."""
    first = [cells.get(dtype, "").partition(":")[0] or "–" for dtype in FIRST_TYPES]
    taken = [dtype for dtype, how in cells.items() if dtype not in FIRST_TYPES and not how.startswith(REFUSED)]
    reasons = [how.partition(": ")[2] for how in cells.values()]
    note = reasons[0].replace("|", "\\|") if all(reasons) else ""
    note = note if len(note) <= LONGEST else f"{note[: LONGEST - 1]}…"
    return f"| `{name}` | {' | '.join(first)} | {', '.join(taken)} | {note} |"


def _without_model(name: str) -> str:
    from uaccel.frontend.checks import NO_CONVERTER
    from uaccel.frontend.tflite.converter import CONVERTERS
    from uaccel.frontend.tflite.importer import HELD

    known = name in (*CONVERTERS.names, *HELD)
    return f"–: {UNTRIED}" if known else f"{REFUSED}: {NO_CONVERTER}"


def onnx() -> str:
    """By the record of the official tests, and by what has converters."""
    from onnx import defs

    record: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    names = {schema.name for schema in defs.get_all_schemas() if schema.domain == "" and not schema.deprecated}
    rows = [_standard(name, record["operators"].get(name)) for name in names]
    rows += [*_microsoft(), *_learned()]
    counts = Counter(record["counts"])
    head = ONNX_HEAD.format(
        opset=defs.onnx_opset_version(),
        version=record["onnx"],
        total=counts.total(),
        passed=counts["compiled"],
        refused=counts["refused"],
        wrong=counts["wrong"] + counts["executed"],
    )
    return f"## ONNX\n\n{head}\n\n{table(rows)}\n"


def _standard(name: str, entry: dict[str, Any] | None) -> Coverage:
    from uaccel.frontend.onnx.graph import RANDOM

    if name in ("Constant", "Shape", "Size"):
        return Coverage(name, FOLDED)
    if name in RANDOM:
        return Coverage(name, REFUSED, "its result is random")
    if name.startswith(NO_TENSORS):
        return Coverage(name, REFUSED, "works on sequences, optional values, text or files")
    if entry is None:
        return _untested(name)
    passed, wrong = len(entry["passed"]), len(entry["wrong"])
    total = passed + wrong + len(entry["refused"]) + len(entry["executed"])
    reasons = sorted({_reason(name, text) for text in (*entry["refused"].values(), *entry["executed"].values())})
    reasons += [f"{wrong} with other values (of infinities, NaN, float16)"] if wrong else []
    notes = [f"{passed} of {total} tests", *reasons]
    if name in CONTROL:
        return Coverage(name, EXACT, "; ".join(["C of `if` and `while`", *notes]))
    if passed:
        return Coverage(name, *_how(name in _quantised("support.models.onnx_islands"), notes))
    return Coverage(name, REFUSED, "; ".join(reasons))


def _how(quantised: bool, notes: list[str]) -> tuple[str, str]:
    return (EXACT, "; ".join(["float: TIR fallback", *notes])) if quantised else (FALLBACK, "; ".join(notes))


@functools.cache
def _quantised(module: str) -> set[str]:
    """The operators that the tests hold integers of uaccel's to."""
    sys.path.insert(0, str(ROOT / "tests"))
    found: set[str] = importlib.import_module(module).operators_with_integers()
    return found


def torch() -> str:
    """By the converters of ours, and TVM's."""
    from uaccel.frontend.torch.converter import CONVERTERS
    from uaccel.tvm_api import relax
    from uaccel.tvm_api.converters import TorchConverter

    known = TorchConverter(relax.BlockBuilder())
    names = {name.removeprefix("aten.").partition(".")[0] for name in CONVERTERS.names if name.startswith("aten.")}
    names |= {name.partition(".")[0] for name in known.operators() if name.partition(".")[2]}
    rows = [Coverage(name, *_how(name in _quantised("frontend.torch.torch_islands"), [])) for name in names]
    return f"## PyTorch\n\n{TORCH_HEAD}\n\n{table(rows)}\n"


def _untested(name: str) -> Coverage:
    from uaccel.frontend.onnx.converter import CONVERTERS
    from uaccel.tvm_api.converters import knows_onnx_operator

    known = name in CONVERTERS.names or knows_onnx_operator(name)
    return Coverage(name, FALLBACK, "no test in scope") if known else Coverage(name, REFUSED, "there is no converter")


def _reason(name: str, text: str) -> str:
    """The words that do not belong to one test."""
    for words in (" has no plain C: ", " cannot be in C: "):
        if words in text:
            return text.partition(words)[2].partition(";")[0]
    text = text.split(f"{name} (", 1)[-1].partition("): ")[2] or text
    text = text.replace("; rewrite the layer with supported operators", "").replace("|", "\\|").replace("\n", " ")
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _microsoft() -> list[Coverage]:
    from uaccel.frontend.onnx.converter import CONVERTERS

    own = {name.removeprefix("com.microsoft.") for name in CONVERTERS.names if name.startswith("com.microsoft.")}
    kernels = own & KERNELS
    found = [Coverage(f"com.microsoft.{name}", *_how(name.startswith("Q"), [])) for name in own - kernels]
    return [*found, *(Coverage(f"com.microsoft.{name}", EXACT) for name in kernels)]


def _learned() -> list[Coverage]:
    """Of models that are no networks."""
    from onnx import defs

    from uaccel.frontend.checks import NO_CONVERTER
    from uaccel.frontend.onnx.converter import CONVERTERS
    from uaccel.frontend.onnx.graph import LEARNING

    names = {schema.name for schema in defs.get_all_schemas() if schema.domain == LEARNING and not schema.deprecated}
    full = {f"{LEARNING}.{name}" for name in names} | {name for name in CONVERTERS.names if name.startswith(LEARNING)}
    return [
        Coverage(name, FALLBACK) if name in CONVERTERS.names else Coverage(name, REFUSED, NO_CONVERTER) for name in full
    ]


def page() -> str:
    return "\n".join([HEAD, tflite(), onnx(), torch()])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE} written")
