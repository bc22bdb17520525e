"""The verdict on a run; kept by what was run, what went in and what came out, it need not be found twice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from uaccel.cache import Cache, Key
from uaccel.model import Array
from uaccel.running.arrays import arrays_digest
from uaccel.running.compare import Verdict
from uaccel.running.execute import Measured
from uaccel.running.prepare import Prepared
from uaccel.running.request import RunRequest
from uaccel.running.steps import Steps

if TYPE_CHECKING:
    from uaccel.running.layers import WrongLayer

KIND: Final = "verdict"
VERDICT: Final = "verdict.json"


def judged(
    request: RunRequest,
    prepared: Prepared,
    measured: Measured,
    step: Steps,
    cache: Cache | None,
    *,
    cuts: bool = True,
) -> Verdict:
    """Of the same bytes the same; what is wrong is looked into each time, with ``cuts`` by running it in pieces."""
    key = _key(request, prepared, measured) if cache is not None and prepared.key is not None else None
    entry = cache.find(key) if cache is not None and key is not None else None
    wishes = request.wishes
    seed = {"seed": wishes.seed if wishes.more_samples else None}
    if entry is not None:
        report = entry.json(VERDICT)
        entry.close()
        return Verdict(report | seed)
    step("execute the exact meaning and compare")
    verdict = _found(request, prepared, measured, step, cuts)
    if cache is not None and key is not None and not verdict.complaint:
        about = f"{prepared.firmware.name} for {request.board.name}"
        cache.add(key, {VERDICT: json.dumps(verdict.report).encode()}, about)
    return replace(verdict, report=verdict.report | seed)


def _found(request: RunRequest, prepared: Prepared, measured: Measured, step: Steps, cuts: bool) -> Verdict:
    from uaccel.running.inside import first_wrong_when_cut
    from uaccel.running.opinions import opinions
    from uaccel.running.verdict import judge

    wishes, compiled = request.wishes, prepared.compiled

    def again(names: tuple[str, ...]) -> WrongLayer | None:
        return first_wrong_when_cut(
            request.what(), names, measured.samples, step, port=wishes.port, flashes=wishes.flashes
        )

    verdict = judge(compiled, measured, every_layer=wishes.every_layer, again=again if cuts else None)
    imported = replace(compiled.model, module=compiled.stages["import"])
    found = opinions(imported, request.model, measured.samples, measured.outputs)
    return replace(verdict, report=verdict.report | found)


def _key(request: RunRequest, prepared: Prepared, measured: Measured) -> Key:
    assert prepared.key is not None
    return (
        Key(KIND)
        .add("model", prepared.key.digest)
        .add("layers", request.wishes.every_layer)
        .add("sequence", measured.run.sequence)
        .add("unread", measured.unread)
        .add("samples", arrays_digest(measured.samples))
        .add("outputs", arrays_digest(measured.outputs))
        .add("computed", [[sorted(row), arrays_digest([_in_order(row)])] for row in measured.computed])
    )


def _in_order(row: Mapping[tuple[int, int], Array]) -> list[Array]:
    return [row[key] for key in sorted(row)]
