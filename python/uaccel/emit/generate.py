"""All generated files of one model."""

from __future__ import annotations

from dataclasses import dataclass

from uaccel.emit.ahead import HEADER as FETCH
from uaccel.emit.ahead import NOTHING, Ahead
from uaccel.emit.describe import build_id, describe
from uaccel.emit.header import header
from uaccel.emit.headers import firmware_headers
from uaccel.emit.options import EmitOptions, Names, names_of
from uaccel.emit.provenance import provenance
from uaccel.emit.source import source
from uaccel.emit.stores import Constants, bytes_of, constants_of
from uaccel.emit.weights import Array, weights_header, weights_source
from uaccel.lower.placement import Placement
from uaccel.lower.program import Program
from uaccel.memory import Store


@dataclass(frozen=True)
class Generated:
    """Generated code and what is known of it: all that a packager (``packagers/``) is given.

    Files map names to text. ``firmware_headers`` are those of ``firmware/`` that it includes. ``build`` tells this code
    from any other: running firmware says it.
    """

    program: Program
    placement: Placement
    options: EmitOptions
    board: str
    names: Names
    sources: dict[str, str]
    private_headers: dict[str, str]
    public_headers: dict[str, str]
    firmware_headers: dict[str, str]
    description: dict[str, str]
    arrays: tuple[Array, ...]
    build: bytes
    stores: tuple[Store, ...] = ()
    ahead: Ahead = NOTHING

    @property
    def weight_bytes(self) -> int:
        """Constants in flash."""
        return sum(array.data.nbytes for array in self.arrays)

    @property
    def constant_pools(self) -> dict[str, int]:
        """The bytes of constants in each memory that they are divided among; empty where they are not."""
        return bytes_of(self.arrays, self.stores)

    @property
    def copied_bytes(self) -> int:
        """Of constants that start-up copies into RAM."""
        return sum(self.constant_pools.get(store.name, 0) for store in self.stores if store.copied)


def generate(
    program: Program,
    placement: Placement,
    options: EmitOptions,
    board: str = "host",
    command: str = "",
    constants: Constants | None = None,
    ahead: Ahead = NOTHING,
) -> Generated:
    """``command`` makes the same again. ``constants`` are those of the program, by default in one memory; ``ahead``:
    which of them are copied before their layers run."""
    names = names_of(program, options)
    constants = constants_of(program, names) if constants is None else constants
    arrays, stores = constants.arrays, constants.stores

    def about(what: str) -> str:
        return provenance(program, what, command)

    code = source(program, placement, names, options, constants.pool, ahead, about(f"The executor of {program.name}."))
    weights = weights_source(names, arrays, about(f"The constants of {program.name}."))
    declarations = weights_header(names, arrays, about(f"The constants of {program.name}; private."))
    sizes = bytes_of(arrays, stores)
    public = header(program, placement, names, options, sizes, about(f"The interface of {program.name}."))
    firmware = firmware_headers(program, *([FETCH] if ahead else []))
    build = build_id((code, weights, declarations, public, *firmware.values()))
    description = describe(program, placement, names, options, build, about(f"{program.name} as data."))
    return Generated(
        program=program,
        placement=placement,
        options=options,
        board=board,
        names=names,
        sources={f"{names.prefix}.c": code, f"{names.prefix}_weights.c": weights},
        private_headers={f"{names.prefix}_weights.h": declarations},
        public_headers={names.header: public},
        firmware_headers=firmware,
        description={f"{names.prefix}_describe.c": description},
        arrays=arrays,
        build=build,
        stores=stores,
        ahead=ahead,
    )
