"""Compares drawn ONNX nodes with ONNX Runtime, many at a time: each is computed rightly, or refused in words."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from support.device.hostlib import HostModel
from support.models.onnx_options import STEPS, Drawn
from support.models.onnx_rows import model_of, session_of
from uaccel.errors import ModelError
from uaccel.frontend import import_model
from uaccel.pipeline import compile_model
from uaccel.tvm_api import relax, tirx, tvm
from uaccel.tvm_api.defined import defined

Array = npt.NDArray[Any]
TOGETHER: Final = 40  # Nodes in one model.
Execute = Callable[[Path, Mapping[str, Array]], list[Array]]
NODE: Final = re.compile(r'node \d+ \w+ \("([^"]+)"\): ')
# ONNX's evaluator is not asked for these: it rounds a resize otherwise than any runtime, and pools too many axes.
RUNTIME_ALONE: Final = {"Resize", "GlobalMaxPool"}
REFUSED, ABSENT, WRONG, BROKEN = "refused: ", "no reference", "wrong: ", "broken: "


def reference(drawn: Drawn) -> list[Array] | None:
    """What ONNX Runtime computes; where it lacks the operator or the type, ONNX's own evaluator. None: neither does."""
    import onnx
    from onnx.reference import ReferenceEvaluator

    try:
        model = single(drawn)
    except Exception:  # no node by ONNX's own rules
        return None
    try:
        return [np.asarray(value) for value in session_of(model).run(None, dict(drawn.feeds))]
    except Exception as error:
        lacking = "NOT_IMPLEMENTED" in str(error) or "not a registered function" in str(error)
        if not lacking or drawn.row.op in RUNTIME_ALONE:
            return None
    try:
        outputs = onnx.shape_inference.infer_shapes(model, strict_mode=True).graph.output
        kinds = [onnx.helper.tensor_dtype_to_np_dtype(entry.type.tensor_type.elem_type) for entry in outputs]
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = ReferenceEvaluator(model).run(None, dict(drawn.feeds))
        return [np.asarray(value).astype(kind) for value, kind in zip(made, kinds, strict=True)]
    except Exception:
        return None


def single(drawn: Drawn) -> Any:
    return model_of({drawn.name: drawn.row}, drawn.opset, {})


def failures(rows: Sequence[Drawn], folder: Path, *, in_c: bool = False) -> dict[str, str]:
    """The rows that are neither right nor refused nor without a reference, in words."""
    words = {row.name: row.words for row in rows}
    said = outcomes(rows, folder, in_c=in_c)
    return {words[name]: text for name, text in said.items() if text.startswith((WRONG, BROKEN))}


def outcomes(rows: Iterable[Drawn], folder: Path, *, in_c: bool = False) -> dict[str, str]:
    """How each row ends: empty where it is right. ``in_c``: as generated C computes it, else as TVM executes it."""
    execute = _in_c if in_c else _by_tvm
    found: dict[str, str] = {}
    groups: dict[int, list[Drawn]] = defaultdict(list)
    wanted: dict[str, list[Array]] = {}
    for row in rows:
        expected = reference(row)
        if expected is None:
            found[row.name] = ABSENT
            continue
        wanted[row.name] = expected
        groups[row.opset].append(row)
    for group in groups.values():
        for start in range(0, len(group), TOGETHER):
            found |= _together(group[start : start + TOGETHER], wanted, folder, execute)
    return found


def _together(rows: Sequence[Drawn], wanted: dict[str, list[Array]], folder: Path, execute: Execute) -> dict[str, str]:
    """One model of all rows; those that are refused are left out then, and a fault is searched by halves."""
    if not rows:
        return {}
    try:
        return _compared(rows, wanted, folder, execute)
    except ModelError as error:
        said = _refusals(str(error))
        names = {row.name for row in rows}
        if said and said.keys() <= names:
            rest = [row for row in rows if row.name not in said]
            return {name: REFUSED + text for name, text in said.items()} | _together(rest, wanted, folder, execute)
        complaint = REFUSED + str(error)
    except Exception as error:  # an internal fault, whatever it is
        complaint = fault(error, folder / "rows.onnx", len(rows))
    if len(rows) == 1:
        return {rows[0].name: complaint}
    middle = len(rows) // 2
    parts = (_together(half, wanted, folder, execute) for half in (rows[:middle], rows[middle:]))
    return {name: said for part in parts for name, said in part.items()}


def fault(error: Exception, path: Path, count: int) -> str:
    """What an internal error is called: none where one node's compilation, which comes before a run, is refused."""
    with contextlib.suppress(Exception):  # the fault itself, once more
        try:
            if count == 1:
                compile_model(path, board="host")
        except ModelError as refusal:
            return REFUSED + str(refusal)
    return BROKEN + f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[-1][:200]}"


def _refusals(text: str) -> dict[str, str]:
    parts = NODE.split(text)
    return dict(zip(parts[1::2], (part.rstrip("; ") for part in parts[2::2]), strict=True))


def _compared(rows: Sequence[Drawn], wanted: dict[str, list[Array]], folder: Path, execute: Execute) -> dict[str, str]:
    path = folder / "rows.onnx"
    types = {f"{row.name}/out{place}": value.dtype for row in rows for place, value in enumerate(wanted[row.name])}
    model = model_of({row.name: row.row for row in rows}, rows[0].opset, types)
    path.write_bytes(model.SerializeToString())
    feeds = {name: value for row in rows for name, value in row.feeds.items()}
    results = iter(execute(path, feeds))
    found = {}
    for row in rows:
        steps = STEPS.get(row.row.op, 0)
        said = [difference(next(results), value, steps=steps) for value in wanted[row.name]]
        found[row.name] = "".join(WRONG + text for text in said if text)
    return found


def _by_tvm(path: Path, feeds: Mapping[str, Array]) -> list[Array]:
    imported = import_model(path)
    return executed(
        imported.module, [feeds[entry.name].astype(entry.info.dtype) for entry in imported.signature.inputs]
    )


def _in_c(path: Path, feeds: Mapping[str, Array]) -> list[Array]:
    compiled = compile_model(path, board="host")
    return HostModel(compiled)(*(feeds[entry.name] for entry in compiled.model.signature.inputs))


def executed(module: Any, inputs: Sequence[Array]) -> list[Array]:
    """What TVM executes, built without optimisation: a campaign builds thousands of loops that run once."""
    legal = relax.transform.LegalizeOps()(module)
    for name, function in list(legal.functions.items()):
        if isinstance(function, tirx.PrimFunc):
            legal[name] = defined(function)
    built = relax.build(legal, target=tvm.target.Target({"kind": "llvm", "opt-level": 0}))
    result = relax.VirtualMachine(built, tvm.cpu())["main"](*(tvm.runtime.tensor(np.array(value)) for value in inputs))
    return [value.numpy() for value in ([result] if hasattr(result, "numpy") else result)]


def difference(got: Array, wanted: Array, *, steps: int = 0, relative: float = 1e-5) -> str:
    """What is wrong with a result, empty where nothing is: integers equal, floats near, infinities and NaN alike."""
    half = wanted.dtype == np.float16
    if half:
        wanted, relative = wanted.astype(np.float32), 4e-3
    if (got.shape, got.dtype) != (wanted.shape, wanted.dtype):
        return f"{got.dtype} {list(got.shape)}, wanted {wanted.dtype} {list(wanted.shape)}"
    if wanted.dtype.kind == "f":
        finite = np.abs(wanted[np.isfinite(wanted)].astype(np.float64))
        scale = min(float(finite.max(initial=0.1)), 1e30)
        near = np.isclose(got.astype(np.float64), wanted.astype(np.float64), relative, relative * scale, equal_nan=True)
    else:
        near = got == wanted if not steps else np.abs(got.astype(np.int64) - wanted.astype(np.int64)) <= steps
    if near.all():
        return ""
    first = tuple(np.argwhere(~near)[0]) if near.ndim else ()
    return f"{(~near).sum()} of {near.size}, first {got[first]!r}, wanted {wanted[first]!r}"
