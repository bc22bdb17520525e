"""Programs with the kernels that are assembly or vectors, as users' compilers make them and users' linkers place them.

Assembly that counts from where it lies (ADR, LDR from PC) is right or wrong by the address of its function. So each
program is linked twice from the same objects: in one every section of code begins at a multiple of 4, in the other 2
bytes behind one, but for sections that state an alignment.
"""

from __future__ import annotations

import functools
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from codegen.levels import ON_A_BOARD, RUNS, Machine, Sampled, compare, sent, written
from kernels.drawn_others import OTHERS
from kernels.test_helium import Maker, module_of, sites
from support.device.boards import bare_elf, bare_port, board_with_tools
from support.models import drawn_layers
from support.models.drawn_layers import KINDS, Draw, Kind
from support.models.float_rows import ROWS, inputs_of, together
from support.models.kernel_zoo import (
    convolution,
    depthwise,
    fully_connected,
    grouped,
    large,
    one_scale,
    rows,
    same,
    samples_of,
    single,
    transposed,
    zoo_of,
)
from support.models.relax_modules import compiled_module
from support.oracle.oracle import Array, Tflm, random_inputs
from uaccel.board import Board
from uaccel.kernels import Option, Turn, Work
from uaccel.kernels.choice import Selection, target_of
from uaccel.pipeline import Compiled, compile_model
from uaccel.tvm_api.executor import Executor
from uaccel.util.favour import Favour

LEVELS = ("-O0", "-O1", "-Og", "-Os", "-O2", "-O3")
SECTIONS = ("-ffunction-sections",)
WAYS = ((), SECTIONS, (*SECTIONS, "-flto"), (*SECTIONS, "-fPIC"))
FAST = re.compile("_(dsp|helium|rvv|pairs)")
"""What the names of these kernels have in them."""
PADDING = (0, 2)
CONSTANTS = 1 << 20
"""Enough to be put where there is most room."""
APART = '-DUACCEL_CONSTANT=__attribute__((section(".rodata.uaccel_weights")))'
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", APART)


@dataclass
class Small(Draw):
    """Layers that an emulator computes soon."""

    most: int = 24

    def integer(self, low: int, high: int) -> int:
        return super().integer(low, min(high, low + 8))

    def channels(self, low: int = 8, high: int = 128) -> int:
        return super().channels(low, max(low, self.most))


def unclamped(draw: Draw, kernel: tuple[int, int], stride: int = 1) -> None:
    """Some kernels leave clamping to others."""
    draw.activation = lambda: "NONE"  # type: ignore[method-assign]
    drawn_layers.depthwise(draw, kernel, 12, stride=stride)
    del draw.activation


def linear(draw: Draw) -> None:
    """A sum that one rounding gives."""
    x = draw.model.input(f"x{draw.number}", (1, 23), "int8", scale=0.1890378, zero_point=-128)
    z = draw.model.input(f"z{draw.number}", (1, 23), "int8", scale=0.5, zero_point=4)
    y = draw.model.tensor(f"y{draw.number}", (1, 23), "int8", scale=0.2444751, zero_point=-128)
    draw.add("ADD", [x, z], y, {"fused_activation": "NONE", "pot_scale_int16": False})


NO_KERNELS = (
    "softmax",
    "pad and concatenate",
    "resize, bilinear",
    "resize, nearest",
    "transpose, blocks and slices",
)
SINGLES = {
    maker.__name__: single(maker)
    for maker in (convolution, same, rows, depthwise, fully_connected, one_scale, grouped, large, transposed)
}
LAYERS: Mapping[str, Kind] = {
    **{name: kind for name, kind in {**KINDS, **OTHERS}.items() if name not in NO_KERNELS},
    "depthwise 3x3, not clamped": (functools.partial(unclamped, kernel=(3, 3)), "int8"),
    "depthwise 3x3, strides, not clamped": (functools.partial(unclamped, kernel=(3, 3), stride=2), "int8"),
    "depthwise, lines": (functools.partial(unclamped, kernel=(3, 1)), "int8"),
    "add, one rounding": (linear, "int8"),
}


@dataclass
class Each:
    """At each site a kernel of these families that no site has had yet, if there is one."""

    had: set[str] = field(default_factory=set)

    def new(self, labels: Sequence[str]) -> str | None:
        return next((label for label in labels if FAST.search(label) and label not in self.had), None)

    def left(self, names: Sequence[str], model: Compiled) -> list[str]:
        """Of the layers with these names, those that have a new one."""
        layers = zip(names, model.program.layers, strict=True)
        return [name for name, layer in layers if layer.choice and self.new(layer.choice.options)]

    def __call__(self, site: str, options: Sequence[Option], work: Work) -> tuple[int, str]:
        labels = [option.label for option in options]
        label = self.new(labels) or labels[0]
        self.had.add(label)
        return labels.index(label), ""


Values = list[list[Array]]
Made = tuple[Compiled, Callable[[], tuple[Values, Values]]]
"""A model; its inputs, and its outputs."""


def drawn(names: Sequence[str], selection: Selection, name: str, most: int = 24) -> Made:
    """A layer of each kind, the same whatever stands beside it; TFLite Micro gives their bytes."""
    draw = Small(11, most=most)
    for each in names:
        maker, draw.dtype = LAYERS[each]
        draw.random = np.random.default_rng((most, list(LAYERS).index(each)))
        maker(draw)
    data = draw.model.build()

    def values() -> tuple[Values, Values]:
        inputs, reference = random_inputs(data, 7, RUNS), Tflm(data)
        return inputs, [reference.run(sample) for sample in inputs]

    with tempfile.NamedTemporaryFile(suffix=".tflite") as file:
        Path(file.name).write_bytes(data)
        return compile_model(file.name, board="host", selection=selection, name=name), values


def rounded(names: Sequence[str], selection: Selection, name: str) -> Made:
    """Layers that round in single precision."""
    infos, module = zoo_of(7, makers=[SINGLES[each] for each in names])
    return by_meaning(module, samples_of(7, infos, RUNS), selection, name)


def floats(names: Sequence[str], selection: Selection, name: str) -> Made:
    rows = {each: ROWS[each] for each in names}
    return by_meaning(together(rows), [inputs_of(rows, seed) for seed in range(RUNS)], selection, name)


def odd(names: Sequence[str], selection: Selection, name: str) -> Made:
    maker = Maker(0)
    every = sites(maker)
    found = [every[int(each)] for each in names]
    inputs = [[maker.int8(shape) for shapes, _ in found for shape in shapes] for _ in range(RUNS)]
    return by_meaning(module_of(found), inputs, selection, name)


def by_meaning(module: Any, inputs: Values, selection: Selection, name: str) -> Made:
    def values() -> tuple[Values, Values]:
        executor = Executor(module)
        return inputs, [executor.run(sample) for sample in inputs]

    return compiled_module(module, selection=selection, name=name), values


Source = Callable[[Sequence[str], Selection, str], Made]
EACH_IN_TURN: dict[str, tuple[Source, Sequence[str]]] = {
    "layers": (drawn, list(LAYERS)),
    "wide layers": (functools.partial(drawn, most=64), list(LAYERS)),
    "single precision": (rounded, list(SINGLES)),
}
FIRST_CHOICE: dict[str, tuple[Source, Sequence[str]]] = {
    "floats": (floats, list(ROWS)),
    "odd layers": (odd, [str(number) for number in range(len(sites(Maker(0))))]),
}


@functools.cache
def programs(board: str, what: str) -> list[Sampled]:
    """Models of small layers in which each of the kernels has its turn."""
    target = target_of(board_with_tools(board))
    if what in FIRST_CHOICE:
        source, names = FIRST_CHOICE[what]
        model, values = source(names, Selection(target), "m")
        return [Sampled(model, *values(), bits=True)]
    each, made = Each(), list[Sampled]()
    source, everything = EACH_IN_TURN[what]
    for favour in (Favour.speed, Favour.size):
        model, _ = source(everything, Selection(target, Turn(0), favour), "m")
        names = each.left(everything, model)
        while names:
            model, values = source(names, Selection(target, each, favour), f"m{len(made)}")
            made.append(Sampled(model, *values()))
            names = each.left(names, model)
    return made


class Build(NamedTuple):
    """A compiler for the board, and what it is asked for."""

    board: str
    compiler: str
    level: str
    also: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join((self.board, self.compiler, self.level, *self.also))

    @property
    def command(self) -> list[str]:
        cpu = board_with_tools(self.board).cpu
        if self.compiler == "gcc":
            return [f"{cpu.toolchain}-gcc", *cpu.flags, self.level, *self.also]
        library = Path(output(f"{cpu.toolchain}-gcc", "-print-file-name=libc.a").strip()).resolve()
        include = library.parent.parent / "include"
        return ["clang", f"--target={cpu.toolchain}", *cpu.flags, "-isystem", str(include), self.level, *self.also]

    def objects(self, models: Sequence[Sampled], source: Path, target: Path) -> list[Path]:
        """The executors; what is left for the linker to optimise is joined and made code of."""
        made = []
        for name in (one.model.program.name for one in models):
            made.append(target / f"{name}.o")
            output(*self.command, *STRICT, f"-I{source}", "-c", source / f"tvmgen_{name}.c", "-o", made[-1])
        if "-flto" not in self.also:
            return made
        joined = target / "joined.o"
        if self.compiler == "gcc":
            command = [word for word in self.command if not word.startswith("--specs")]
            output(*command, "-flto=2", "-r", "-flinker-output=nolto-rel", "-nostdlib", *made, "-o", joined)
        else:
            cpu, level = board_with_tools(self.board).cpu, self.level[2:] if self.level[2:].isdigit() else "2"
            (plugin,) = Path(output("clang", "-print-resource-dir").strip()).parents[1].glob("LLVMgold.so")
            options = [f"-plugin-opt={each}" for each in (f"O{level}", f"mcpu={cpu.name}", "-function-sections")]
            output(f"{cpu.toolchain}-ld", "-r", "-plugin", plugin, *options, *made, "-o", joined)
        return [joined]


def output(*command: str | Path) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), f"{' '.join(map(str, command))}: {done.stderr[:3000]}"
    return done.stdout


@functools.cache
def common(board_name: str, what: str, folder: Path) -> tuple[list[Path], Path]:
    """What all builds share: objects of the port, the application and the constants, and a linker script."""
    board, models = board_with_tools(board_name), programs(board_name, what)
    folder.mkdir(parents=True)
    executors = {f"tvmgen_{one.model.program.name}" for one in models}
    sources = [path for path in written(Machine(board=board_name), models, folder) if path.stem not in executors]
    ports, flags, script = bare_port(board, folder, CONSTANTS)
    made = [folder / f"{number}.o" for number in range(len(sources) + len(ports))]
    for source, target in zip([*sources, *ports], made, strict=True):
        own = [*flags, f"-I{folder}", ON_A_BOARD, APART]
        output(f"{board.cpu.toolchain}-gcc", *board.cpu.flags, "-O1", *own, "-c", source, "-o", target)
    return made, script


def check(build: Build, what: str, source: Path, target: Path) -> None:
    """Compile the kernels, place them in each way, run them, compare."""
    board, models = board_with_tools(build.board), programs(build.board, what)
    source = source / build.board / what
    others, script = common(build.board, what, source)
    objects, wanted = build.objects(models, source, target), sum(one.out_bytes for one in models)
    for padding in PADDING:
        placed = target / f"{padding}.ld"
        placed.write_text(_placed(script.read_text(), objects, padding, board))
        elf = bare_elf(board, [*objects, *others], placed, placed.with_suffix(".elf"))
        got = sent(board, elf, wanted, f"{build}, {padding} bytes of padding")
        compare(Machine(board=build.board), models, got)


def _placed(script: str, objects: Sequence[Path], padding: int, board: Board) -> str:
    """The linker script, with each section of these objects' code by itself, and room for the addresses of -fPIC."""
    lines = []
    for file in objects:
        listed = output(f"{board.cpu.toolchain}-objdump", "-h", file)
        sections = re.findall(r"^ *\d+ (\.text\S*) ", listed, re.MULTILINE)
        lines += [f". = ALIGN(4) + {padding}; *{file.name}({section})" for section in sections]
    code, data = "*(.text .text.*)", "*(.data .data.*)"
    assert lines, objects
    assert code in script
    assert data in script
    return script.replace(code, "\n".join([*lines, code])).replace(data, f"*(.got .got.*) {data}")
