"""An independent judge of a plan: it shares no code with the planner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from uaccel.errors import InternalError
from uaccel.memory.block import Block, Overlap, Plan, validate


def check(blocks: Sequence[Block], plan: Plan, overlaps: Sequence[Overlap] = ()) -> None:
    """Raise InternalError if the plan would let a block be overwritten, misaligned or placed outside the arena."""
    validate(blocks, overlaps)
    distances = {(overlap.low, overlap.high): overlap.distance for overlap in overlaps}
    for block in blocks:
        _check_place(block, plan)
    unknown = sorted(set(plan.offsets) - {block.name for block in blocks})
    if unknown:
        raise InternalError(f"memory plan: offset for '{unknown[0]}', which is not among the blocks")
    by_offset = sorted((block for block in blocks if block.size), key=lambda block: plan.offsets[block.name])
    for index, low in enumerate(by_offset):
        end = plan.offsets[low.name] + low.size
        for high in by_offset[index + 1 :]:
            if plan.offsets[high.name] >= end:
                break
            if not any(_stays_behind(*pair, plan, distances) for pair in ((low, high), (high, low))):
                _check_disjoint_in_time(low, high, plan)


def _stays_behind(low: Block, high: Block, plan: Plan, distances: Mapping[tuple[str, str], int]) -> bool:
    """Whether ``low`` may overlap ``high`` and begins far enough before it."""
    distance = distances.get((low.name, high.name))
    return distance is not None and plan.offsets[high.name] - plan.offsets[low.name] >= distance


def _check_place(block: Block, plan: Plan) -> None:
    if block.name not in plan.offsets:
        raise InternalError(f"memory plan: no offset for block '{block.name}'")
    offset = plan.offsets[block.name]
    if offset % block.alignment:
        raise InternalError(
            f"memory plan: block '{block.name}' lies at offset {offset}; it must be a multiple of {block.alignment}"
        )
    if offset < 0 or offset + block.size > plan.size:
        raise InternalError(
            f"memory plan: block '{block.name}' takes bytes {offset} to {offset + block.size}; "
            f"the arena has {plan.size}"
        )


def _check_disjoint_in_time(low: Block, high: Block, plan: Plan) -> None:
    step = max(low.first, high.first)
    if step <= min(low.last, high.last):
        raise InternalError(
            f"memory plan: blocks '{low.name}' and '{high.name}' are both live at step {step} "
            f"and share byte {plan.offsets[high.name]}"
        )
