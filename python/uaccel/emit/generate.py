"""All generated files of one model."""

from __future__ import annotations

from dataclasses import dataclass

from uaccel.emit.describe import build_id, describe
from uaccel.emit.header import header
from uaccel.emit.headers import kernel_files
from uaccel.emit.options import EmitOptions, Names, names_of
from uaccel.emit.provenance import provenance
from uaccel.emit.source import ACCELERATOR_HEADER, source
from uaccel.emit.weights import Array, ConstantPool, weights_header, weights_source
from uaccel.lower.program import Program
from uaccel.memory.placement import Placement


@dataclass(frozen=True)
class Generated:
    """``sources`` and ``headers`` map file names to text; ``kernels`` are the kernel headers they include.

    ``build`` tells this code from any other: running firmware says it.
    """

    names: Names
    sources: dict[str, str]
    private_headers: dict[str, str]
    public_headers: dict[str, str]
    description: dict[str, str]
    kernels: tuple[str, ...]
    arrays: tuple[Array, ...]
    weight_bytes: int
    build: bytes


def generate(program: Program, placement: Placement, options: EmitOptions, command: str) -> Generated:
    names = names_of(program, options)
    pool = ConstantPool(program, names)

    def about(what: str) -> str:
        return provenance(program, what, command)

    code = source(program, placement, names, options, pool, about(f"The executor of {program.name}."))
    weights = weights_source(names, pool.arrays, about(f"The constants of {program.name}."))
    declarations = weights_header(names, pool.arrays, about(f"The constants of {program.name}; private."))
    public = header(program, placement, names, options, about(f"The interface of {program.name}."))
    calls = [call for layer in program.layers for variant in layer.forms for call in variant.kernel.calls]
    kernels = sorted(
        {call.header for call in calls if call.header} | ({ACCELERATOR_HEADER} if program.engines else set())
    )
    build = build_id((code, weights, declarations, public, *kernel_files(kernels).values()))
    description = describe(program, placement, names, options, build, about(f"{program.name} as data."))
    return Generated(
        names=names,
        sources={f"{names.prefix}.c": code, f"{names.prefix}_weights.c": weights},
        private_headers={f"{names.prefix}_weights.h": declarations},
        public_headers={names.header: public},
        description={f"{names.prefix}_describe.c": description},
        kernels=tuple(kernels),
        arrays=tuple(pool.arrays),
        weight_bytes=pool.size,
        build=build,
    )
