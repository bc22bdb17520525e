"""States what a stored run must look like, so that a page can be made of it whoever wrote it.

Only what a page reads is stated. Parts may be missing, as far as pages do without them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from uaccel.build.board_json import TARGET
from uaccel.util.form import FLAG, INDEX, NUMBER, OBJECT, SHAPE, TEXT, WHOLE, Maybe, Named, Value, complaint, optional


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_scale(value: Any) -> bool:
    return _is_number(value) or (isinstance(value, list) and all(map(_is_number, value)))


def _is_histogram(value: Any) -> bool:
    """Whether it counts elements by their difference in steps."""
    if not isinstance(value, dict):
        return False
    steps = all(step.removeprefix("-").isdecimal() and len(step) < MOST_DIGITS for step in value)
    return steps and all(map(WHOLE.holds, value.values()))


MOST_DIGITS: Final = 20
SIGNED: Final = Value("a number", _is_number)
SCALE: Final = Value("a number or a list of numbers", _is_scale)
# Infinities and NaN, which JSON does not have, are written as text.
ANY_NUMBER: Final = Value("a number, or text", lambda value: isinstance(value, str) or _is_number(value))
HISTOGRAM: Final = Value("numbers of elements by difference", _is_histogram)
TEXTS: Final = [TEXT]
COUNT: Final = Maybe(WHOLE)


_TENSOR: Final = optional(shape=SHAPE, dtype=TEXT)
_LAYER: Final = {
    **dict.fromkeys(("name", "op", "engine", "reason"), TEXT),
    **optional(region=Maybe(TEXT), outputs=[SHAPE], seconds=Maybe(NUMBER)),
    **dict.fromkeys(("macs?", "code?", "cycles?", "instructions?", "cycles_estimated?"), COUNT),
    **dict.fromkeys(("engine_cycles?", "latency?"), COUNT),
}
_RAM: Final = dict.fromkeys(("arena?", "io?", "static?", "stack?", "session?", "total?"), COUNT)
_FLASH: Final = {
    **dict.fromkeys(("weights?", "code?", "startup?", "session?", "total?"), COUNT),
    "pools?": Maybe(Named(WHOLE)),
    "symbols?": Maybe([{"name": TEXT, "bytes": WHOLE, "part": TEXT}]),
}
_MODEL: Final = {**dict.fromkeys(("file", "format", "sha256"), TEXT), "bytes?": COUNT}
_VALUE: Final = {
    **dict.fromkeys(("tensor?", "memory?", "pool?", "view_of?"), Maybe(TEXT)),
    **dict.fromkeys(("first?", "last?"), Maybe(INDEX)),
    **dict.fromkeys(("bytes?", "offset?"), COUNT),
    **dict.fromkeys(("scale?", "zero_point?"), Maybe(SCALE)),
    **_TENSOR,
}
_IN_ARENA: Final = {"bytes": WHOLE, "offset": WHOLE, "first": INDEX, "last": INDEX}


def _is_tile(value: Any) -> bool:
    numbers = value[1:] if isinstance(value, list) and len(value) == TILE and isinstance(value[0], str) else [None]
    return all(map(WHOLE.holds, numbers))


TILE: Final = 5  # A memory, two addresses, two commands.
_TILE: Final = Value("a memory, two addresses and two commands", _is_tile)
_STEP: Final = {
    "name": TEXT,
    **dict.fromkeys(("inputs?", "outputs?", "functions?"), TEXTS),
    "view?": FLAG,
    "scratch?": WHOLE,
    "estimate?": Maybe(optional(instructions=NUMBER, cycles=NUMBER)),
    "choice?": Maybe({"options": TEXTS, "picked": TEXT, "why": TEXT}),
    "inner?": [{"name": TEXT, "reads": TEXTS, "outside": TEXTS, "results": TEXTS, "moved?": COUNT}],
    "on_chip?": [_TILE],
}
_APART: Final = {"layer": TEXT, "bytes": WHOLE, "offset": WHOLE, "pool?": TEXT}
_PLAN: Final = {
    "arena": WHOLE,
    "lower_bound": WHOLE,
    "steps": WHOLE,
    "blocks": [{"size": WHOLE, "first": INDEX, "last": INDEX}],
    "optimal?": FLAG,
    "live?": Maybe([WHOLE]),
    "scratch?": [{**_APART, "step": WHOLE}],
    "ahead?": [{**_APART, "first": INDEX, "last": INDEX}],
    "pools?": [{"name": TEXT, "bytes": WHOLE, "memory?": Maybe(TEXT)}],
}
_REJECTION: Final = {"accelerator": TEXT, "reason": TEXT}
_ENGINE: Final = {"name": TEXT, **optional(macs_per_cycle=Maybe(NUMBER), bytes_per_cycle=Maybe(NUMBER))}
_SLOW: Final = {
    **dict.fromkeys(("layer", "family", "reason", "remedy"), TEXT),
    "cycles": WHOLE,
    "fast_cycles": Maybe(WHOLE),
}
_STRUCTURE: Final = {
    "graph?": Maybe({"values?": Named(_VALUE), "layers?": [_STEP]}),
    "plan?": Maybe(_PLAN),
    "constants?": [{"symbol": TEXT, "bytes": WHOLE, "layers": TEXTS}],
    "decisions?": [{"name": TEXT, "rejections?": [_REJECTION]}],
    "engines?": [_ENGINE],
    "slow?": {"layers": [_SLOW], "share": NUMBER},
}
_TRACK: Final = {"tid": WHOLE, "args": {"name": TEXT}}
_SPAN: Final = {"tid": WHOLE, "ts": NUMBER, "dur": NUMBER, "args?": {"layer?": TEXT}}
_TRACE: Final = {"otherData?": {"note?": TEXT}, "traceEvents?": [{"name": TEXT, "ph": TEXT}]}
_SPOT: Final = {
    "function": TEXT,
    "loop": FLAG,
    **dict.fromkeys(("offset", "instructions", "times"), WHOLE),
    **dict.fromkeys(("cycles", "share"), NUMBER),
    "listing": TEXTS,
}
_DIFFERENCE: Final = {"output": TEXT, "index": SHAPE, "got": ANY_NUMBER, "expected": ANY_NUMBER}
_VERIFY: Final = {
    **dict.fromkeys(("bit_exact?", "within_tolerance?"), Maybe(FLAG)),
    **dict.fromkeys(("compared?", "samples?", "layers_compared?"), COUNT),
    **dict.fromkeys(("units?", "not_compared?"), Maybe(TEXT)),
    **dict.fromkeys(("snr_db?", "largest_difference?", "tolerance?"), Maybe(ANY_NUMBER)),
    "top_class_agrees?": Maybe(NUMBER),
    "tensors?": Maybe(TEXTS),
    "first_wrong_layer?": Maybe({"layer": TEXT, "engine": TEXT}),
    "first_difference?": Maybe(_DIFFERENCE),
    "differences?": Maybe([{"tensor": TEXT, "counts": HISTOGRAM, "what?": TEXT}]),
}
_LATENCY: Final = {
    **dict.fromkeys(("cycles?", "hz?", "cpu_alone?"), COUNT),
    **optional(ms=Maybe(NUMBER), estimated=Maybe(FLAG), parts=Maybe(Named(WHOLE)), missing=Maybe(TEXT)),
}
_POINT: Final = dict.fromkeys(("ram", "constants", "functions"), WHOLE) | {"estimate": NUMBER, "slower": SIGNED}
_RUN: Final = {
    "model": TEXT,
    "board": TEXT,
    "layers": [_LAYER],
    "ram": _RAM,
    "flash": _FLASH,
    "inputs": Named(_TENSOR),
    "outputs?": Named(_TENSOR),
    "accelerators?": TEXTS,
    "offloaded?": [OBJECT],
    "warnings?": TEXTS,
    "uaccel?": TEXT,
    **dict.fromkeys(("instructions?", "cycles_estimated?", "accelerator_cycles?"), COUNT),
    "seconds?": Maybe(NUMBER),
    "latency?": Maybe(_LATENCY),
    "frontier?": Maybe({"unit": TEXT, "points": [_POINT]}),
    "cycles_estimated_by?": Maybe(optional(core=Maybe(TEXT), missing=Maybe(TEXT))),
    "source?": Maybe({**_MODEL, "command": TEXT}),
    "target?": Maybe(TARGET),
    **_STRUCTURE,
    "trace?": Maybe(_TRACE),
    "sources?": Maybe(Named(TEXT)),
    "hot?": Maybe(Named(Maybe([_SPOT]))),
    "verify?": Maybe(_VERIFY),
}


def wrong_field(run: Mapping[str, Any]) -> str:
    """Says which field of a stored run is not as a run has it, what it is and what was wanted; empty if all are."""
    return complaint(run, _RUN) or _wrong_value(run) or _wrong_event(run)


# What an archive holds of it: places of C instead of C, and no command.
_PLACE: Final = Value(
    "a begin and an end", lambda value: isinstance(value, list) and len(value) == 2 and all(map(WHOLE.holds, value))
)
_ARCHIVED: Final = {**_STRUCTURE, "plans?": [OBJECT], "source": _MODEL, "sources?": Named([_PLACE])}
STRUCTURE_KEYS: Final = [key.rstrip("?") for key in _ARCHIVED]


def wrong_structure(data: Any) -> str:
    """Says what is wrong with the structure in an archive; empty if nothing is."""
    return complaint(data, _ARCHIVED) or _wrong_value(data)


def _wrong_value(run: Mapping[str, Any]) -> str:
    """What lies in the arena has a place and a time there."""
    for name, value in ((run.get("graph") or {}).get("values") or {}).items():
        if value.get("memory") == "arena" and value.get("first") is not None:
            wrong = complaint({key: value.get(key) for key in _IN_ARENA}, _IN_ARENA)
            if wrong:
                return f"graph.values[{name!r:.60}].{wrong}"
    return ""


def _wrong_event(run: Mapping[str, Any]) -> str:
    """Events of a trace differ in their fields by their kind."""
    for number, event in enumerate((run.get("trace") or {}).get("traceEvents") or ()):
        named = event["ph"] == "M" and event["name"] == "thread_name"
        wrong = complaint(event, _TRACK if named else _SPAN) if named or event["ph"] == "X" else ""
        if wrong:
            return f"trace.traceEvents[{number}].{wrong}"
    return ""
