"""The files of a project that its board decides: for CMake, for the C preprocessor, for the linker."""

from __future__ import annotations

from uaccel.basics.sinks import c_string, cmake_list, cmake_string
from uaccel.board import Board, UartConsole
from uaccel.project.devices import devices_source, hal_folders
from uaccel.project.layout import Needs, lay_out
from uaccel.project.linker import linker_script


def board_files(board: Board, needs: Needs) -> dict[str, str]:
    """Their text by path in the project; a model that does not fit is a :class:`BoardError`."""
    files = {
        "board/board.cmake": _cmake(board, needs),
        f"board/{board.file.name}": board.file.read_text(encoding="utf-8"),
    }
    if board.cpu.arch != "native":
        files["board/uaccel_board.h"] = _header(board)
        files["board/memory.ld"] = linker_script(board, needs, lay_out(board, needs))
    if needs.accelerators:
        files["board/devices.c"] = devices_source(board, needs.accelerators)
    return files


def _cmake(board: Board, needs: Needs) -> str:
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
