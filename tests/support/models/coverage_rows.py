"""What becomes of a model of one TFLite operator, for every operator and the types that people use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from support.device.hostlib import compile_bytes
from support.models.flow import Choice, Loop
from support.models.hybrid_rows import ROWS as HYBRID_ROWS
from support.models.many import many
from support.models.rare_rows import rare_makers
from support.models.reference_rows import TYPES, makers
from support.models.stateful import Lstm, Ring, Svdf
from support.models.stateful_float import FloatCells, FloatLstm, FloatSvdf
from uaccel.errors import ModelError

KERNEL, TIR, INTEGERS, FLOAT, REFUSED = "CPU kernel", "TIR fallback", "TIR integers", "in float", "refused"
BY_BYTES = "float32 by int8 weights"
Cells = dict[str, str]
"""By type; of what is refused the reason stands behind a colon."""


def what_happens() -> dict[str, Cells]:
    """By operator. Of an operator with several forms the best outcome of a type counts."""
    found: dict[str, Cells] = defaultdict(dict)
    for operator, dtype, data in _models():
        outcome = _outcome(data, TIR if dtype == "float32" else INTEGERS)
        before = found[operator].get(dtype)
        if before is None or before.startswith(REFUSED):
            found[operator][dtype] = outcome
    return dict(found)


def _models() -> Iterator[tuple[str, str, bytes]]:
    for make in (*makers().values(), *rare_makers().values()):
        for dtype in TYPES:
            row = make(dtype)
            yield row.operator, dtype, many({row.operator: row})
    for name, row in HYBRID_ROWS.items():
        yield row.operator, BY_BYTES, many({name: row})
    yield "SVDF", "int8", Svdf().build()
    yield "SVDF", "float32", FloatSvdf().build()
    yield "SVDF", BY_BYTES, FloatSvdf(in_bytes=True).build()
    yield "UNIDIRECTIONAL_SEQUENCE_LSTM", "float32", FloatLstm().build()
    yield "UNIDIRECTIONAL_SEQUENCE_RNN", "float32", FloatCells("TANH").build()
    yield "BIDIRECTIONAL_SEQUENCE_RNN", "float32", FloatCells("TANH", both=True).build()
    yield "IF", "int8", Choice().build()
    yield "WHILE", "int8", Loop().build()
    for dtype in ("int8", "int16"):
        yield "UNIDIRECTIONAL_SEQUENCE_LSTM", dtype, Lstm(dtype).build()
        for name in ("VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE"):
            yield name, dtype, Ring(dtype).build()


def _outcome(data: bytes, lowered: str) -> str:
    """``lowered``: by TVM."""
    try:
        compiled = compile_bytes(data)
    except ModelError as error:
        return f"{REFUSED}: {_reason(str(error))}"
    if any("is computed in float" in warning for warning in compiled.model.warnings):
        return FLOAT
    families = {layer.kernel.family for layer in compiled.program.layers}
    return lowered if "tir" in families else KERNEL


def _reason(text: str) -> str:
    """Without the operator's name and the advice."""
    said = text.partition('"): ')[2] if " unsupported: " in text else text.partition(" has no plain C: ")[2] or text
    return said.partition(";")[0]
