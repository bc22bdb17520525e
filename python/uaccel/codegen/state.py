"""Prints what generated code has for a model that remembers: its own state, and states in memory of the caller's."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Final

from uaccel.codegen.options import Names
from uaccel.codegen.weights import ConstantPool
from uaccel.lower.placement import STATE_MARK, Placement, state_alignment
from uaccel.lower.program import Program, StateValue
from uaccel.util.c_text import quote_comment, wrap_call

# A state is memory of a fixed size: the tensors at their offsets, and at its end a mark. ``init`` writes the mark, and
# a run refuses memory without it, so that what another model saved, or memory that nobody set, is no state.

# Layers that write to a place which a run computes, by their own operators and by those of the model file.
WRITERS: Final = frozenset(["scatter_elements", "scatter_nd", "DYNAMIC_UPDATE_SLICE"])
NEAREST: Final = """\
/* A computed position beyond the end of a cache means its last place: a full cache is written there, and a run never
 * writes outside of it. */
"""

FIELD: Final = "own_state"
GIVEN: Final = "state"  # The parameter of functions that are given a state.


def state_size(names: Names) -> str:
    return f"{names.macro}_STATE_SIZE"


def state_id(program: Program, placement: Placement) -> int:
    """The mark: a digest of the model file, and of which tensors lie where. Builds of one model whose states have the
    same layout share it, so one takes the state that another saved."""
    tensors = [
        (
            entry.spec.spec.name,
            entry.before.info.dtype,
            entry.before.info.shape,
            placement.places[entry.before.name].offset,
        )
        for entry in program.state
    ]
    text = json.dumps([program.model.digest, tensors])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:STATE_MARK], "little")


def state_interface(program: Program, placement: Placement, names: Names, parameters: Sequence[str]) -> str:
    """The header's part on state; empty for a model without. ``parameters``: those of the run function."""
    if not program.state:
        return ""
    macro, prefix = names.macro, names.prefix
    tensors = "".join(f"{_line(entry)}\n" for entry in program.state)
    places = any(WRITERS & {layer.op, layer.origin.op} for layer in program.layers)
    return f"""/* Bytes of a state, in which the model keeps what one inference leaves to the next: */
{tensors}{NEAREST if places else ""}#define {state_size(names)} {placement.state}
/* What the address of a state is a multiple of; its size is one, too. */
#define {macro}_STATE_ALIGNMENT {state_alignment(program)}
/* A state ends with this number, which differs for another model file or other places of the tensors. */
#define {macro}_STATE_ID 0x{state_id(program, placement):08X}u
#define {macro}_OTHER_STATE (-4) /* run: the memory holds no state of this model; {prefix}_init begins one */

/* Begin anew: the state is set to what it holds before the first inference, which does so by itself. After
 * an inference that failed, the state means nothing until then. */
void {prefix}_reset(void);

/* Where the state of {prefix}_run lies. To save it, copy its bytes; to restore it, copy them back. */
void *{prefix}_state(void);

/* Several streams: each has a state in memory of yours. This begins a stream, the first time and anew. */
void {prefix}_init(void *{GIVEN});

/* One inference of a stream: as {prefix}_run, with that state. */
{run_with_head(names, parameters)};
"""


def run_with_head(names: Names, parameters: Sequence[str]) -> str:
    return wrap_call(f"int32_t {names.prefix}_run_with", [f"void *{GIVEN}", *parameters])


def _line(entry: StateValue) -> str:
    spec = entry.spec.spec
    quantisation = f", {spec.quantisation}" if spec.quantisation else ""
    return f"/*   {quote_comment(spec.name)}: {spec.info}{quantisation} */"


def state_memory(program: Program, placement: Placement, names: Names, pool: ConstantPool) -> str:
    """The executor's part: the array of its own state, and the functions that begin a state."""
    if not program.state:
        return ""
    prefix = names.prefix
    fills = "\n".join(f"    {_fill(entry, placement, pool)}" for entry in program.state)
    return f"""#ifndef UACCEL_STATE
#define UACCEL_STATE
#endif

/* What lasts from one inference to the next; UACCEL_STATE may place it in a memory of your choice. */
static UACCEL_STATE UACCEL_ALIGNED({program.alignment}) uint8_t {FIELD}[{state_size(names)}];
static bool {FIELD}_is_set;
#define STATE(offset) ((void *)((uint8_t *){GIVEN} + (offset)))

void {prefix}_init(void *{GIVEN})
{{
    const uint32_t mark = {names.macro}_STATE_ID;
{fills}
    memcpy(STATE({placement.state - STATE_MARK}), &mark, sizeof mark);
}}

static bool is_state(const void *{GIVEN})
{{
    uint32_t mark;
    memcpy(&mark, (const uint8_t *){GIVEN} + {placement.state - STATE_MARK}, sizeof mark);
    return mark == {names.macro}_STATE_ID;
}}

void {prefix}_reset(void)
{{
    {prefix}_init({FIELD});
    {FIELD}_is_set = true;
}}

void *{prefix}_state(void)
{{
    if (!{FIELD}_is_set) {{
        {prefix}_reset();
    }}
    return {FIELD};
}}
"""


def _fill(entry: StateValue, placement: Placement, pool: ConstantPool) -> str:
    offset, size = placement.places[entry.before.name].offset, entry.before.info.size
    symbol = pool.first_value(entry)
    if symbol:
        return f"memcpy(STATE({offset}), {symbol}, {size});"
    return f"memset(STATE({offset}), {entry.spec.initial.tobytes()[0]}, {size});"


def state_check(names: Names) -> list[str]:
    """The run function's check that it is given a state of this model."""
    return [f"    if (!is_state({GIVEN})) {{", f"        return {names.macro}_OTHER_STATE;", "    }"]


def run_of_own_state(names: Names, parameters: Sequence[str]) -> str:
    """The run function of a model with a state: it runs with the executor's own."""
    arguments = [f"{names.prefix}_state()", *(parameter.rpartition("*")[2] for parameter in parameters)]
    call = wrap_call(f"    return {names.prefix}_run_with", arguments)
    return f"\n{wrap_call(f'int32_t {names.prefix}_run', parameters)}\n{{\n{call};\n}}\n"
