"""Compares drawn calls of PyTorch's operators with PyTorch, many at a time: each is right, or refused in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from support.models.exported import Net, exported, imported, save, torch
from support.models.operands import Array
from support.models.torch_options import Call, overload
from support.oracle.onnx_differential import ABSENT, BROKEN, REFUSED, WRONG, difference, executed, fault
from uaccel.errors import ModelError

TOGETHER: Final = 30
NODE: Final = re.compile(r'operator \d+ \S+ \("([^"]*)"\): ')


def failures(calls: Sequence[Call], folder: Path) -> dict[str, str]:
    """The calls that are neither right nor refused nor without a reference, in words."""
    words = {call.name: call.words for call in calls}
    said = outcomes(calls, folder)
    return {words[name]: text for name, text in said.items() if text.startswith((WRONG, BROKEN))}


def outcomes(calls: Iterable[Call], folder: Path) -> dict[str, str]:
    """How each call ends: empty where it is right."""
    found: dict[str, str] = {}
    rows: list[tuple[Call, list[Array]]] = []
    for call in calls:
        wanted = eager(call)
        if wanted is None or any(value.size == 0 for value in wanted):
            found[call.name] = ABSENT
        else:
            rows.append((call, wanted))
    for start in range(0, len(rows), TOGETHER):
        found |= _together(rows[start : start + TOGETHER], folder)
    return found


def eager(call: Call) -> list[Array] | None:
    """What PyTorch computes; None where it refuses."""
    try:
        with torch.no_grad():
            result = call.compute([torch.from_numpy(value.copy()) for value in call.operands])
    except Exception:
        return None
    return [value.numpy() for value in (result if isinstance(result, (tuple, list)) else [result])]


def _together(rows: Sequence[tuple[Call, list[Array]]], folder: Path) -> dict[str, str]:
    if not rows:
        return {}
    try:
        return _compared(rows, folder)
    except ModelError as error:
        complaint = REFUSED + str(error).partition("unsupported: ")[2]
    except Exception as error:  # an internal fault, whatever it is
        complaint = fault(error, folder / "rows.pt2", len(rows))
    if len(rows) == 1:
        return {rows[0][0].name: complaint}
    middle = len(rows) // 2
    return _together(rows[:middle], folder) | _together(rows[middle:], folder)


def _compared(rows: Sequence[tuple[Call, list[Array]]], folder: Path) -> dict[str, str]:
    inputs = [torch.from_numpy(value.copy()) for call, _ in rows for value in call.operands]

    def compute(*values: Any) -> Any:
        rest, results = list(values), list[Any]()
        for call, _ in rows:
            mine, rest = rest[: len(call.operands)], rest[len(call.operands) :]
            made = call.compute(mine)
            results += made if isinstance(made, (tuple, list)) else [made]
        return tuple(results)

    try:
        program = exported(Net(compute).eval(), inputs)
        path = save(program, folder / "rows.pt2")
    except Exception as error:
        if len(rows) == 1:
            return {rows[0][0].name: ABSENT}
        raise RuntimeError("cannot be exported") from error
    try:
        model = imported(path)
    except ModelError as error:
        refused = _refused(rows, program, str(error))
        if not refused:
            raise
        return refused | _together([row for row in rows if row[0].name not in refused], folder)
    given = {spec.name: spec for spec in model.signature.inputs}
    values = [np.asarray(value) for value in inputs]
    results = iter(executed(model.module, values[: len(given)]))
    found = {}
    for call, wanted in rows:
        said = [difference(next(results), value) for value in wanted]
        found[call.name] = "".join(WRONG + text for text in said if text)
    return found


def _refused(rows: Sequence[tuple[Call, list[Array]]], program: Any, text: str) -> dict[str, str]:
    """Which calls an error names, and why; nodes of the program stand in the order of the calls."""
    parts = NODE.split(text)
    reasons = dict(zip(parts[1::2], parts[2::2], strict=True))
    nodes = iter([node for node in program.graph.nodes if node.op == "call_function"])
    found = {}
    for call, _ in rows:
        node = next((node for node in nodes if node.target is overload(call.operator)), None)
        if node is not None and node.name in reasons:
            found[call.name] = REFUSED + reasons[node.name].rstrip("; ")
    return found
