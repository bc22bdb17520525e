"""Runs the whole compiler, stage by stage: import, simplify, partition, lower, plan memory, generate C."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from uaccel.accelerator import Accelerator
from uaccel.codegen.generate import Generated, generate, io_bytes
from uaccel.codegen.options import EmitOptions, names_of, regenerate_command
from uaccel.codegen.weights import Constants, PrefetchPlan, StoresFor, ahead_of, constants_of, given_stores, own_stores
from uaccel.errors import ModelError, UaccelError
from uaccel.frontend import import_model
from uaccel.kernels.choice import ANY_CPU, Selection
from uaccel.lower.accelerator_layer import Known
from uaccel.lower.from_relax import lower
from uaccel.lower.kernel_swaps import place_small, place_with_less_scratch
from uaccel.lower.placement import Placement, place
from uaccel.lower.plan_search import PartitionPlan, cheapest, kept_on_cpu
from uaccel.lower.program import Program
from uaccel.lower.rows.schedule import Chains
from uaccel.lower.rows.wish import RamWish, by_rows
from uaccel.lower.shared_tables import share_tables
from uaccel.lower.slow_layers import require_fast
from uaccel.memory import Pool, Rooms, Store
from uaccel.model import ImportedModel, Shape, c_identifier
from uaccel.partition import Partitioned, PartitionRequest, Wishes, divided, preferred, question_of
from uaccel.partition.partition import float_advice
from uaccel.partition.passes.simplify import simplify
from uaccel.util import text
from uaccel.util.favour import Favour
from uaccel.util.text import CPU

Progress = Callable[[str], None]


MANY = 100_000  # Objects that are made until Python looks for cycles among them, while a model is compiled.


@contextmanager
def _few_collections() -> Iterator[None]:
    """Lets Python look for cycles of objects rarely. Planning makes millions of objects that live on and have none, and
    looking took a fifth of its time."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], MANY) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _quiet(_step: str) -> None:
    pass


def _of_no_board(_arena: int, _io: int, _pools: Mapping[str, int], _accelerators: Sequence[str]) -> Sequence[Store]:
    return ()


@dataclass(frozen=True)
class Compiled:
    """Holds everything that one compilation knows; reports and archives pick what they need.

    ``stages`` holds the Relax module after each stage; every one of them can be executed and means the same. A notebook
    shows its layers as a table.
    """

    generated: Generated
    stages: Mapping[str, Any]
    partitioned: Partitioned
    selection: Selection = ANY_CPU
    plans: Sequence[PartitionPlan] = ()  # The plans that ``choose = "cost"`` compared.
    notes: Sequence[str] = ()  # What the board made necessary.

    @property
    def model(self) -> ImportedModel:
        return self.partitioned.model

    @property
    def program(self) -> Program:
        return self.generated.program

    @property
    def placement(self) -> Placement:
        return self.generated.placement

    @property
    def options(self) -> EmitOptions:
        return self.generated.options

    @property
    def board(self) -> str:
        return self.generated.board

    @property
    def accelerators(self) -> Sequence[Accelerator]:
        """All accelerators that were asked, whether they compute something or not."""
        return self.partitioned.accelerators

    @property
    def offloads(self) -> bool:
        """Whether accelerators compute anything."""
        return any(decision.engine != CPU for decision in self.partitioned.decisions)

    @property
    def kept_on_cpu(self) -> str:
        """The reason in words, where comparing plans gave the CPU everything; empty otherwise."""
        return "" if self.offloads else kept_on_cpu(self.plans)

    @property
    def warnings(self) -> list[str]:
        """Warnings about the model, about who computes it, and about what the board made necessary."""
        return [*self.model.warnings, *([self.kept_on_cpu] if self.kept_on_cpu else []), *self.notes]

    def _repr_html_(self) -> str:
        """A table for notebooks: who computes which layer, and how; and the memory that is known."""
        rows = [
            (layer.name, one.engine, layer.macs, layer.reason)
            for one in self.program.layers
            for layer in (one.covers or (one,))
        ]
        memory = f"arena {self.placement.arena:,} bytes of RAM, weights {self.generated.weight_bytes:,} bytes of flash"
        below = [f"{self.model.name} for board {self.board}: {memory}", *self.warnings]
        return text.table(("Layer", "Engine", "Multiply-accumulates", "How"), rows, below)


@_few_collections()
def compile_model(
    path: str | Path,
    *,
    board: str,
    selection: Selection = ANY_CPU,
    name: str = "",
    options: EmitOptions | None = None,
    accelerators: Sequence[Accelerator] = (),
    wishes: Wishes | None = None,
    cpu_fallback: bool = False,
    command: Callable[[str], str] | None = None,
    input_shapes: Mapping[str, Shape] | None = None,
    state: Sequence[str] = (),
    state_from: Path | None = None,
    memories: Sequence[Pool] = (),
    rooms: Rooms = _of_no_board,
    progress: Progress = _quiet,
) -> Compiled:
    """Compile a model file to generated sources; ``name`` becomes part of every C name.

    ``selection``: the board's CPU, whose features kernels may use, and who picks among kernels.
    ``accelerators`` in the order of preference; with ``cpu_fallback`` the CPU computes what they fail at.
    ``command`` returns the command line that generates the same again, given the model's name in C. ``input_shapes``:
    of inputs whose shape the file leaves open. ``state``: words ``OUT=IN``, an output that is an input of the next
    inference; ``state_from`` holds what it begins with. ``memories``: the board's, the preferred one first, with what
    is free of each; a workspace that fits into none of those on the chip is divided. ``rooms`` tells what its memories
    have free for constants.
    """
    path, options = Path(path), options or EmitOptions()
    progress("import")
    model = import_model(path, input_shapes, state, state_from)
    stages = {"import": model.module}
    progress("simplify")
    model = replace(model, module=simplify(model.module, drops=not any(one.keeps_channels for one in accelerators)))
    model = replace(model, warnings=(*model.warnings, *float_advice(model)))
    stages["simplify"] = model.module
    progress("partition")
    partitioned, plans, known = _partitioned(
        question_of(model, accelerators, wishes or Wishes(), selection), selection, progress
    )
    stages |= partitioned.stages
    progress("lower")
    identifier, count = c_identifier(name or model.name).lower(), _counting(progress)
    program = lower(partitioned, identifier, cpu_fallback=cpu_fallback, selection=selection, known=known, count=count)
    progress("plan memory")
    program, placement, notes = _placed(program, selection, options, memories)
    placement, options = _in_pools(program, placement, options, memories)
    if options.require_fast:
        require_fast(program, selection)
    progress("emit C")
    again = command(program.name) if command else regenerate_command(path.name, board, program.name, options.words)

    def stores_at(placement: Placement) -> StoresFor:
        return _stores_for(program, placement, options, rooms, selection, board)

    placement, constants, ahead = _with_constants(program, placement, options, stores_at)
    generated = generate(program, placement, options, board, again, constants, ahead)
    return Compiled(generated, stages, partitioned, selection, plans, notes)


def _placed(
    lowered: Program, selection: Selection, options: EmitOptions, memories: Sequence[Pool]
) -> tuple[Program, Placement, Sequence[str]]:
    """The program and its arena, with a note where the board's memories took more layers by rows than was asked for."""
    wish = _ram_wish(lowered, options)
    program, placement = _planned(lowered, selection, wish)
    limit = None if options.pools else _least_room(program, placement, wish, memories)
    if limit is None or wish.limit is not None or wish.whole or selection.favour is Favour.speed:
        return program, placement, ()
    try:
        smaller, smaller_placement = _planned(lowered, selection, replace(wish, limit=limit))
    except ModelError:  # The board is too small; whoever makes a project says so.
        return program, placement, ()
    note = (
        f"an arena of {placement.arena:,} bytes does not fit on the board; with more layers by rows it takes "
        f"{smaller_placement.arena:,}, for more time (see 'uaccel explain'); --whole-layers leaves them whole"
    )
    return smaller, smaller_placement, (note,)


def _planned(program: Program, selection: Selection, wish: RamWish) -> tuple[Program, Placement]:
    program = place_small(by_rows(program, selection, wish), selection, workspace_io=wish.workspace_io)
    program, placement = place_with_less_scratch(program, selection.target, workspace_io=wish.workspace_io)
    return share_tables(program), placement


def _least_room(program: Program, placement: Placement, wish: RamWish, memories: Sequence[Pool]) -> int | None:
    """The bytes within which all fits into the board's memories, if it does not now; None if it does. The arena may be
    divided unless an accelerator must reach all of it."""
    sizes = [pool.size for pool in memories if pool.size is not None]
    if not sizes:
        return None
    in_reach = placement.arena <= max(sizes) or not program.engines
    fits = in_reach and wish.apart + placement.arena <= sum(sizes)
    return None if fits else min(sum(sizes), wish.apart + max(sizes))


def _in_pools(
    program: Program, placement: Placement, options: EmitOptions, memories: Sequence[Pool]
) -> tuple[Placement, EmitOptions]:
    """Divide the arena among the pools that were asked for. Without any, it is divided among the board's memories if
    none on the chip holds it all. With accelerators it stays in one piece, as they must reach all of it."""
    if options.pools:
        return place(program, workspace_io=options.workspace_io, pools=options.pools), options
    whole = any(placement.arena <= (pool.size or 0) for pool in memories if not pool.spare)
    if whole or program.engines or len(memories) < 2:
        return placement, options
    try:
        parts = place(program, workspace_io=options.workspace_io, pools=memories)
    except UaccelError:  # the board is too small; who makes a project says so
        return placement, options
    used = tuple(pool for pool in memories if parts.pools[pool.name])
    return (parts, replace(options, pools=used, own_pools=True)) if len(used) > 1 else (placement, options)


def _with_constants(
    program: Program, placement: Placement, options: EmitOptions, stores_at: Callable[[Placement], StoresFor]
) -> tuple[Placement, Constants, PrefetchPlan]:
    """The constants with their memories, and which of them are copied ahead into the arena. If any are, the arena is
    planned again with room for them, and the constants with what memory that leaves."""
    names = names_of(program, options)
    found = constants_of(program, names, stores_at(placement))
    ahead = ahead_of(program, found, options.constant_pools)
    if not ahead:
        return placement, found, ahead
    blocks = ahead.blocks(program)
    placement = place(program, workspace_io=options.workspace_io, pools=options.pools, ahead=blocks)
    taken = placement.arena + placement.state + io_bytes(program, options)
    if options.ram is not None and taken > options.ram:
        raise UaccelError(
            f"--ram {options.ram:,}: {taken:,} bytes are needed with constants that are copied ahead, up to "
            f"{max(blocks.values()):,} for a layer; give more, or a smaller :fetch=BYTES"
        )
    return placement, constants_of(program, names, stores_at(placement)), ahead


def _stores_for(
    program: Program, placement: Placement, options: EmitOptions, rooms: Rooms, selection: Selection, board: str
) -> StoresFor:
    """The memories for constants: those that were asked for, or those of the board that are worth while."""
    parts = placement.pools if len(placement.pools) > 1 else {}
    engines = [engine.name for engine in program.engines]
    free = rooms(placement.arena, io_bytes(program, options), parts, engines)
    if options.constant_pools:
        given = given_stores(program, options.constant_pools, free, board)
        return lambda pool: given
    return lambda pool: own_stores(program, pool, free, selection, saves_ram=options.ram is not None)


def _partitioned(
    question: PartitionRequest, selection: Selection, progress: Progress
) -> tuple[Partitioned, tuple[PartitionPlan, ...], Known]:
    """Partition by preference in one step, or by cost as the best of some whole plans."""
    if not question.accelerators or question.wishes.choose != "cost":
        return divided(question, preferred(question)), (), {}
    progress("compare plans")
    found = cheapest(question, selection)
    return found.best, found.compared, found.known


def _counting(progress: Progress) -> Callable[[int, int], None]:
    """The function that counts how far a step is, if ``progress`` shows that; else one that does nothing."""
    found: Callable[[int, int], None] = getattr(progress, "count", lambda done, total: None)
    return found


def _ram_wish(program: Program, options: EmitOptions) -> RamWish:
    state = sum(entry.spec.spec.info.size for entry in program.state)
    fed = Chains(program).feedable if options.feed and not options.workspace_io else None
    apart = io_bytes(program, options) + state - (fed.info.size if fed is not None else 0)
    ahead = any(pool.fetch is not None for pool in options.constant_pools)  # Layers by rows have no constants copied.
    return RamWish(options.ram, apart, options.feed, options.workspace_io, options.whole_layers or ahead)
