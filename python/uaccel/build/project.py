"""Makes, builds and flashes firmware projects, and measures what their firmware takes.

A project is a folder of plain C and CMake around one archive; its Project API server does the work on it.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from uaccel.board import Board, UartConsole, load_board
from uaccel.board.types import MANIFEST, QemuRun
from uaccel.build.archive_reader import METADATA, Metadata, devices_source, hal_folders, read_metadata
from uaccel.build.board_json import FILE, board_json, read_board_json
from uaccel.build.elf import Linked, Sizes, object_sizes, read_linked
from uaccel.build.linker_script import MemoryNeeds, lay_out, linker_script, needs_of
from uaccel.build.object_cache import Count, build_by_recipe, counted
from uaccel.build.programs import find_command, find_program
from uaccel.build.project_api import OptionValue, ProjectServer, port_from_here
from uaccel.build.stack_usage import (
    SUFFIX,
    Graph,
    deepest,
    disassemble,
    frames_of,
    own_functions,
    pointed_in,
    read_graph,
)
from uaccel.errors import BoardError, ToolError, UaccelError, need
from uaccel.util import incoming
from uaccel.util.cache import Cache, cache_of_objects, programs_digest
from uaccel.util.files import PROJECT, UNFIT, data_dir, fill_folder, write_tar
from uaccel.util.text import c_string, cmake_list, cmake_string

# Files that a board decides: for CMake, for the C preprocessor, for the linker.


def board_files(board: Board, needs: MemoryNeeds) -> dict[str, str]:
    """The text of these files by path in the project; a model that does not fit is a :class:`BoardError`."""
    files = {"board/board.cmake": _cmake(board, needs), f"board/{board.file.name}": incoming.read_text(board.file)}
    if board.cpu.arch != "native":
        files["board/uaccel_board.h"] = _header(board)
        files["board/memory.ld"] = linker_script(board, needs, lay_out(board, needs))
    if needs.accelerators:
        files["board/devices.c"] = devices_source(board, needs.accelerators)
    return files


def _cmake(board: Board, needs: MemoryNeeds) -> str:
    lines = [
        f"# Board {board.name}: made from {board.file.name}; make a new project instead of editing it.",
        f"set(BOARD_NAME {cmake_string(board.name)})",
        f"set(BOARD_ARCH {cmake_string(board.cpu.arch)})",
        f"set(BOARD_TOOLCHAIN {cmake_string(board.cpu.toolchain)})",
        f"set(BOARD_FLAGS {cmake_list(board.cpu.flags)})",
        f"set(BOARD_LINK_FLAGS {cmake_list(board.cpu.link_flags)})",
        f"set(BOARD_PORTS {cmake_list(folder.name for folder in board.port.sources)})",
    ]
    if needs.accelerators:
        lines.append(f"set(BOARD_HAL {cmake_list(folder.name for folder in hal_folders(board))})")
    return "\n".join(lines) + "\n"


def _header(board: Board) -> str:
    lines = [
        f"/* Board {board.name}: made from {board.file.name}; make a new project instead of editing it. */",
        "#ifndef UACCEL_BOARD_H",
        "#define UACCEL_BOARD_H",
        "",
        *(f"#define UACCEL_BOARD_{name} {value}" for name, value in _macros(board).items()),
        "",
        "#endif",
    ]
    return "\n".join(lines) + "\n"


def _macros(board: Board) -> dict[str, str]:
    console = board.console
    macros: dict[str, int | str | bool] = {"NAME": board.name}
    if isinstance(console, UartConsole):
        macros |= {"CONSOLE_BASE": console.base, "CONSOLE_BAUD": console.baud, "CONSOLE_IRQ": console.irq}
        macros |= {"CONSOLE_CLOCK_HZ": console.clock_hz or board.timer.hz}
    macros |= {"INTERRUPTS": board.interrupts}
    macros |= {f"TIMER_{board.timer.kind.upper()}": True, "TIMER_HZ": board.timer.hz}
    macros |= {} if board.timer.base is None else {"TIMER_BASE": board.timer.base}
    macros |= {f"HAS_{feature.upper()}": True for feature in board.cpu.features}
    macros |= {name.upper(): value for name, value in board.settings.items()}
    return {name: _c_value(value) for name, value in macros.items()}


def _c_value(value: int | str | bool) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int):
        return f"{value}u" if value < 1 << 16 else f"{value:#x}u"
    return c_string(value)


# The overlay: what a board adds to a project, that is its own files and the sources of its port.


def board_overlay(board: Board, needs: MemoryNeeds, *, portable: bool = False) -> dict[str, bytes]:
    """The files by path in the project; :class:`~uaccel.errors.BoardError` where the model does not fit on the board.

    ``portable``: for any computer, and so without the folder of a user's own board file and what lies in it.
    """
    files = {name: text.encode() for name, text in board_files(board, needs).items()}
    folder = board.file.resolve().parent
    bundled = folder == data_dir("boards").resolve()
    files[FILE.as_posix()] = board_json(board, None if portable or bundled else folder).encode()
    hal = hal_folders(board) if needs.accelerators else []
    for port in (*board.port.sources, *hal):
        for source in [path for path in sorted(port.rglob("*")) if path.is_file() and path.name != MANIFEST]:
            files[f"firmware/ports/{port.name}/{source.relative_to(port).as_posix()}"] = incoming.read_bytes(source)
    return files


def archive_overlay(board: Board, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The overlay for the archive that holds ``files``, by path in it: any client then makes a project for this
    board."""
    overlay = board_overlay(board, needs_of(files), portable=True)
    return {f"{PROJECT}/{name}": content for name, content in overlay.items()}


def add_board(files: dict[str, bytes], board: Board) -> list[str]:
    """Add to an archive's files what a project for the board needs.

    If the model does not fit there, that is a warning: its C is of use elsewhere. The archive holds it, too, for who
    makes a project of it."""
    try:
        files |= archive_overlay(board, files)
    except BoardError as error:
        files[UNFIT] = str(error).encode()
        return [str(error)]
    return []


# Making a project of an archive, through the Project API server of a template, uaccel's or anybody's.


def create_project(files: Mapping[str, bytes], board: Board, folder: Path) -> None:
    """Make a project of an archive's ``files``, given by path. The folder must not hold anything yet."""
    with tempfile.TemporaryDirectory(prefix="uaccel-") as temporary:
        archive = Path(temporary) / "model.tar"
        with archive.open("wb") as stream:
            write_tar(stream, files)
        create_from_archive(archive, folder, board)


def create_from_archive(
    archive: Path,
    folder: Path,
    board: Board | None = None,
    *,
    template: Path | None = None,
    options: Mapping[str, OptionValue] | None = None,
    runtime: Path | None = None,
    protocol: str = "",
    energy_pin: Path | None = None,
) -> Metadata:
    """Make a project and return the archive's metadata; without a board it is for that of the compilation.

    ``runtime``: the folder of C sources that the template takes what it needs from; uaccel's own when left out, which
    has the layout of microTVM's, too. ``protocol``: what the firmware speaks in the place of sessions; ``energy_pin``:
    the C file with the pin that a power monitor watches then.
    """
    if runtime is not None and template is None:
        raise UaccelError("--standalone-crt is for the template that copies from it; give --template, or leave it away")
    if runtime is not None and not runtime.is_dir():
        raise UaccelError(f"--standalone-crt {runtime} is no folder; name one with TVM's C runtime, or leave it away")
    metadata = read_metadata(archive)
    if protocol and template is not None:
        raise UaccelError("--protocol is for uaccel's own template; leave it or --template away")
    if energy_pin is not None and not protocol:
        raise UaccelError(
            "--energy-pin is for MLPerf Tiny's energy mode; give --protocol mlperf-tiny, or leave it away"
        )
    if protocol and board is None and metadata.board is not None:
        board = load_board(metadata.board)
    if board is not None:
        _require_features(metadata, board)
    with (
        tempfile.TemporaryDirectory(prefix="uaccel-") as temporary,
        ProjectServer(template or data_dir("project_template"), options) as server,
    ):
        if board is not None:
            server.offer("board", board.name)
        if board is not None and server.takes("board_files"):
            overlay = board_overlay(board, needs_of({METADATA: metadata.text}))
            fill_folder(Path(temporary), overlay | (_benchmark(metadata, energy_pin) if protocol else {}))
            server.offer("board_files", temporary)
        server.generate_project(archive, folder, runtime or data_dir("firmware"))
    return metadata


def _benchmark(metadata: Metadata, pin: Path | None) -> dict[str, bytes]:
    """The files with which firmware speaks MLPerf Tiny's protocol and not that of sessions."""
    from uaccel.codegen.export.example import ENERGY, HEADER, NAME, PIN, header, why_not

    tensors = [metadata.at("uaccel", side) for side in ("inputs", "outputs")]
    reason = why_not(*tensors)
    need(not reason, f"--protocol {NAME} {reason}; leave it away", UaccelError)
    text = header(metadata.model, *tensors)
    if pin is None:
        return {f"board/{HEADER}": text.encode()}
    with incoming.reading(UaccelError, f"--energy-pin {pin}"):
        source = incoming.read_bytes(pin)
    return {f"board/{HEADER}": (text + ENERGY).encode(), f"board/{PIN}": source}


def _require_features(metadata: Metadata, board: Board) -> None:
    """Refuse a board whose CPU lacks what the kernels need: these were chosen when the model was compiled."""
    missing = [need for need in metadata.requires if need not in board.cpu.features and need != board.cpu.arch]
    if missing:
        raise BoardError(
            f"the model was compiled for board {metadata.board}, and its kernels need a CPU with {', '.join(missing)}; "
            f"{board.cpu.name} of board {board.name} has none: compile it again with --board {board.name}"
        )


# Building a project: with kept objects where that is possible, else through its Project API server.

NATIVE: Final = "native"  # The toolchain of firmware that is a process of this computer.


def _uncounted(_done: int, _total: int) -> None:
    pass


def build_project(
    folder: Path, *, observe: bool = False, count: Count = _uncounted, cache: Cache | None = None
) -> Path:
    """Configure and build; returns the build folder. ``observe`` builds with a hook after every layer.

    With a ``cache``, or a folder for objects, those are taken that other firmware needed before. What fails that way
    is built anew by the project's server, which says why.
    """
    require_tools(folder)
    cache = cache or cache_of_objects()
    build = folder / ("build-observe" if observe else "build")
    if cache is not None and build_by_recipe(folder, build, toolchain_of(folder), cache, count, observe=observe):
        return build
    with ProjectServer(folder, {"observe": observe}) as server, counted(build, count):
        server.build()
    return build


def build_any(folder: Path, options: Mapping[str, OptionValue], *, observe: bool, verbose: bool) -> dict[str, Any]:
    """Build a project of any template, and report that; a server that is not ours alone knows where the firmware is."""
    with ProjectServer(folder, options, show=verbose) as server:
        server.require_project("build")
        server.offer("verbose", verbose)
        if observe:
            server.require("observe", True)
        if server.is_ours:
            require_tools(folder)
        server.build()
        platform, ours = server.info.platform_name, server.is_ours
    firmware = str(firmware_of(folder / ("build-observe" if observe else "build"))) if ours else None
    return {"project": str(folder), "platform": platform, "firmware": firmware}


def require_tools(folder: Path) -> None:
    """Raise ToolError for a missing tool; the message says how to get it."""
    toolchain = toolchain_of(folder)
    if toolchain == NATIVE:
        find_program("C compiler")
    else:
        find_command(f"{toolchain}-gcc", "firmware for this board")
    find_program("ninja or make")
    find_program("cmake")


def programs_for(board: Board) -> list[Any]:
    """What is known of the programs that build firmware for a board, and of the emulator that runs it."""
    native = board.cpu.toolchain == NATIVE
    tools = [f"{'' if native else f'{board.cpu.toolchain}-'}{tool}" for tool in _TOOLS]
    others = ["cc", "c++", "clang"] if native else []
    emulators = [f"qemu-system-{run.system}" for run in board.runs if isinstance(run, QemuRun)]
    return programs_digest([*tools, *others, *emulators, "cmake", "ninja", "make"])


_TOOLS: Final = ("gcc", "g++", "objcopy", "objdump", "as", "ld", "ar")


def firmware_of(build: Path) -> Path:
    """The firmware in a build folder: a program for this computer, or an ELF file for a board."""
    elf = build / "firmware.elf"
    return elf if elf.is_file() else build / "firmware"


def toolchain_of(folder: Path) -> str:
    """The prefix of the compiler's name, as the project's board states it."""
    file = folder / "board" / "board.cmake"
    match = re.search(r'^set\(BOARD_TOOLCHAIN "(.+)"\)$', _text(file), re.MULTILINE)
    if match is None:
        raise ToolError(f"{file} names no BOARD_TOOLCHAIN; make the project anew with 'uaccel create'")
    return match[1]


def _text(file: Path) -> str:
    with incoming.reading(ToolError, file, "wanted a firmware project, as 'uaccel create' makes"):
        return incoming.read_text(file)


# Flashing a project's board, through its Project API server.


def flash_any(folder: Path, options: Mapping[str, OptionValue], *, port: str, verbose: bool) -> dict[str, Any]:
    """Flash the board of a project of any template, and report that: whether it needs to be flashed, and its name, as
    far as the server is ours."""
    with ProjectServer(folder, options, show=verbose) as server:
        if port:
            server.require("port", port_from_here(port))
        server.offer("verbose", verbose)
        server.flash()
        platform, ours = server.info.platform_name, server.is_ours
    board = read_board_json(folder) if ours else None
    told = {"board": None, "flashed": True} if board is None else {"board": board.name, "flashed": bool(board.flash)}
    return {"project": str(folder), "platform": platform, **told}


# Footprint: what a project's firmware takes of its board, read from what the compiler and the linker made.


@dataclass(frozen=True)
class Footprint:
    """Holds ``code`` and ``static`` RAM of the model without weights and arena, and what the session server adds.

    Only linked firmware for a board tells the rest, which is None or empty for firmware that is a process. ``startup``
    is the flash of the port's start-up code, ``stack`` a bound that no inference exceeds. ``layers`` has the bytes of
    code of each layer, by name.
    """

    code: int
    static: int
    session: Sizes
    startup: int | None = None
    stack: int | None = None
    layers: Mapping[str, int] = field(default_factory=dict)
    linked: Linked | None = None


def footprint(folder: Path, build: Path, model: str, *, arena: int, io: int) -> Footprint:
    """The footprint of built firmware. In a process the sections of object files are counted: ``io`` bytes of inputs
    and outputs belong to the application, and so does an arena that is passed in."""
    if (build / "firmware.elf").is_file():
        return _of_board(folder, build, model)
    weights = tuple(f"tvmgen_{model}_weights.{language}" for language in ("c", "S"))
    own = object_sizes([path for path in objects(build, "model") if path.stem not in weights])
    application = object_sizes(objects(build, "firmware"))
    inside = arena if own.ram >= arena else 0
    rest = application.ram - io - (arena - inside)
    return Footprint(own.flash, own.ram - inside, Sizes(application.flash, rest))


def objects(build: Path, target: str) -> list[Path]:
    """The object files of a CMake target, which are called .o on this computer and .obj for a board."""
    return sorted(path for path in build.glob(f"CMakeFiles/{target}.dir/**/*") if path.suffix in (".o", ".obj"))


def _of_board(folder: Path, build: Path, model: str) -> Footprint:
    linked = read_linked(build)
    graph = read_graph(sorted(build.glob(f"CMakeFiles/*.dir/**/*{SUFFIX}")))
    code = disassemble(build / "firmware.elf", f"{toolchain_of(folder)}-objdump")
    inference = [title for title in graph if re.search(rf"tvmgen_{model}_describe\.c:run$", title)]
    pointed = pointed_in(graph, f"tvmgen_{model}.c")
    stack = deepest(graph, inference[0], frames_of(code), pointed) if len(inference) == 1 else None
    return Footprint(
        code=linked.flash_of("code", "rodata"),
        static=linked.ram_of("static"),
        session=Sizes(linked.flash_of("session"), linked.ram_of("session")),
        startup=linked.flash_of("startup"),
        stack=None if stack is None else stack + code.interrupt,
        layers=_layers(graph, linked, model),
        linked=linked,
    )


def _layers(graph: Graph, linked: Linked, model: str) -> dict[str, int]:
    """Bytes of code by layer, for layers that share no function with another one. Only functions of the model's own
    file count: kernels are shared by their nature."""
    roots: dict[str, list[str]] = {}
    for title in graph:
        if match := re.search(rf"tvmgen_{model}\.c:layer_(\w+)$", title):
            roots.setdefault(match[1].removesuffix("_on_cpu"), []).append(title)
    sizes = {row.name: row.bytes for row in linked.flash if row.part == "code"}
    executor = {title: function for title, function in graph.items() if f"tvmgen_{model}.c:" in title}
    own = own_functions(executor, roots)
    return {
        name: sum(sizes[function] for function in functions)
        for name, functions in own.items()
        if functions is not None and all(function in sizes for function in functions)
    }
