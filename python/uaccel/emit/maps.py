"""Where inputs and outputs lie that the workspace holds: microTVM's functions, which the application asks."""

from __future__ import annotations

from uaccel.ctext.layout import wrapped
from uaccel.emit.address import address
from uaccel.emit.feed import held_of
from uaccel.emit.options import EmitOptions, Names
from uaccel.lower.placement import Placement
from uaccel.lower.program import Program, Value


def maps(program: Program, placement: Placement, names: Names, options: EmitOptions) -> str:
    """Nothing where the tensors are memory of the application's own."""
    if not options.workspace_io:
        return ""
    return "\n".join(
        _map(names, options, what, list(zip(members, values, strict=True)), placement)
        for what, members, values in (
            ("inputs", held_of(program, names.inputs), program.held),
            ("outputs", names.outputs, program.outputs),
        )
    )


def map_heads(names: Names, options: EmitOptions) -> list[str]:
    """Without the semicolon; as the header declares them and the executor defines them."""
    return [
        wrapped(f"struct {names.prefix}_{what} {names.prefix}_map_{what}", _parameters(names, options))
        for what in ("inputs", "outputs")
    ]


def _parameters(names: Names, options: EmitOptions) -> list[str]:
    return [f"struct {names.prefix}_workspace_pools *workspace_pools"] if options.given_pools else []


def _map(names: Names, options: EmitOptions, what: str, tensors: list[tuple[str, Value]], placement: Placement) -> str:
    head = map_heads(names, options)[what == "outputs"]
    nothing = ", ".join("NULL" for _ in tensors) or "0"
    lines = [head, "{", f"    struct {names.prefix}_{what} {what} = {{{nothing}}};"]
    places = [(member, placement.places[value.name]) for member, value in tensors]
    if not options.given_pools:
        lines += [f"    {what}.{member} = {address(place, options)};" for member, place in places]
    elif not places:
        lines.append("    (void)workspace_pools;")
    for pool in options.given_pools if places else ():
        inside = [(member, place) for member, place in places if place.pool in ("", pool)]
        if inside:
            lines += [
                f"    if (workspace_pools != NULL && workspace_pools->{pool} != NULL) {{",
                f"        uint8_t *const {options.array(names, pool)} = workspace_pools->{pool};",
                *(f"        {what}.{member} = {address(place, options)};" for member, place in inside),
                "    }",
            ]
    return "\n".join([*lines, f"    return {what};", "}", ""])
