"""Runs firmware on boards that QEMU emulates, and counts the instructions exactly."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import tempfile
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from uaccel.board import Board, QemuRun, RttConsole
from uaccel.build.archive_reader import DeviceModel
from uaccel.build.board_json import qemu_words
from uaccel.build.children import start
from uaccel.build.elf import symbols
from uaccel.build.programs import FoundProgram, find_command
from uaccel.errors import BoardError, DeviceError, ToolError
from uaccel.session.connect import ProcessTransport, first_words, for_board
from uaccel.session.debug_probe import Area, GdbMemory, RttTransport
from uaccel.session.device_models import (
    DeviceOptions,
    PluginSource,
    Ram,
    build_plugin,
    code_address,
    device_options,
    plugin_words,
    ports_folder,
)
from uaccel.session.transport import Transport

# Counting plugin: exact instruction counts under QEMU.


class Blocks(NamedTuple):
    """States where the plugin writes which instructions were executed: to ``file``, at the first ``marks`` readings.

    ``slow``: the memories that the CPU waits for, each as the numbers that the plugin takes."""

    file: Path
    marks: int
    slow: Sequence[Sequence[int]] = ()


def plugin_for(qemu: FoundProgram) -> Path:
    """The plugin, built at first use; :class:`ToolError` where this QEMU takes none or no compiler is there."""
    folder = ports_folder("qemu_plugin")
    return build_plugin(PluginSource("count", "the counting plugin", [folder / "count.c"], [folder]), qemu)


def plugin_options(plugin: Path, firmware: Path, blocks: Blocks | None = None) -> list[str]:
    """The plugin's words for QEMU's command line; none if the firmware lacks the symbols that the plugin needs."""
    at = symbols(firmware)
    wanted = {
        "function": "uaccel_port_instructions",
        "window": "uaccel_count_window",
        "skip": "uaccel_uncounted_start",
        "until": "uaccel_uncounted_end",
    }
    if not all(symbol in at for symbol in wanted.values()):
        return []
    values = {option: at[symbol] for option, symbol in wanted.items()}
    more: dict[str, int | str] = {} if blocks is None else {"blocks": str(blocks.file), "marks": blocks.marks}
    if blocks is not None and blocks.slow:
        more["flash"] = "+".join(":".join(map(str, memory)) for memory in blocks.slow)
    return plugin_words(plugin, values | {"function": code_address(values["function"])} | more)


# Emulated boards: QEMU's command line for a board, a transport to it, and a board with a port for other programs.

# How instructions are counted. ``plugin``: exactly. ``time``: by QEMU's clock, which then advances by a nanosecond
# for each; exact but for a tick of the board's timer and what interrupts take, and slow. ``auto``: by the plugin if it
# can be built, else by the clock. ``off`` is fastest.
Counting = Literal["auto", "plugin", "time", "off"]
INSTRUCTIONS_PER_SECOND: Final = 1e9  # With -icount shift=0 an instruction takes 2**0 nanoseconds of QEMU's clock.
_BY_THE_CLOCK: Final = ("-icount", "shift=0")
START_SECONDS: Final = 10.0
STOP_SECONDS: Final = 5.0


def qemu_run(board: Board) -> QemuRun:
    """The board file's settings for QEMU."""
    for run in board.runs:
        if isinstance(run, QemuRun):
            return run
    raise BoardError(f"{board.file}: board {board.name} does not run under QEMU: there is no [run.qemu]")


def qemu_command(
    board: Board, firmware: Path, *, chardev: str, counting: Counting = "auto", blocks: Blocks | None = None
) -> list[str]:
    """The command that runs ``firmware``; ``chardev`` is the host's side of the console without an id, for example
    ``stdio,signal=off``."""
    run = qemu_run(board)
    qemu = find_command(f"qemu-system-{run.system}", "running emulated boards")
    words = qemu_words(run, chardev, str(firmware), board.console)
    return [*qemu.command, *words, *counting_options(counting, qemu, firmware, blocks)]


def devices_behind(board: Board, firmware: Path, models: Sequence[DeviceModel]) -> DeviceOptions:
    """QEMU's options that run these device models behind the board."""
    run = qemu_run(board)
    qemu = find_command(f"qemu-system-{run.system}", "running emulated boards")
    shared = run.ram_origin is not None and run.ram_length is not None
    ram = Ram(run.ram_origin or 0, run.ram_length or 0) if shared else None
    return device_options(models, qemu, ram, firmware)


def counting_options(counting: Counting, qemu: FoundProgram, firmware: Path, blocks: Blocks | None = None) -> list[str]:
    """QEMU's options for a way of counting; :func:`counted_per_second` says how to read the board's clock then."""
    if counting == "off":
        return []
    if counting != "time":
        try:
            return plugin_options(plugin_for(qemu), firmware, blocks)
        except ToolError:
            if counting == "plugin":
                raise
    return [*_BY_THE_CLOCK]


def counted_per_second(command: Sequence[str]) -> float | None:
    """The rate of a clock that advances with instructions alone; None if the command gives no such clock."""
    return INSTRUCTIONS_PER_SECOND if _BY_THE_CLOCK[0] in command else None


class QemuTransport(ProcessTransport):
    """Emulates a board for one session: QEMU starts and ends with it, and its console is a pipe."""

    def __init__(
        self,
        board: Board,
        firmware: Path,
        *,
        counting: Counting = "auto",
        devices: Sequence[DeviceModel] = (),
        blocks: Blocks | None = None,
    ) -> None:
        command = qemu_command(board, firmware, chardev="stdio,signal=off", counting=counting, blocks=blocks)
        self._devices = devices_behind(board, firmware, devices)
        super().__init__([*command, *self._devices.words], f"board {board.name} under QEMU")
        self.instructions_per_second = counted_per_second(command)

    def _end(self) -> None:
        self._process.terminate()  # QEMU does not end when its input does
        super()._end()
        self._devices.remove()


def emulated(
    board: Board, firmware: Path, *, devices: Sequence[DeviceModel] = (), blocks: Blocks | None = None
) -> Transport:
    """Emulates a board for one session, through its UART or its rings in RAM."""
    transport = QemuTransport(board, firmware, devices=devices, blocks=blocks)
    return through_rings(transport, board.ram_areas) if isinstance(board.console, RttConsole) else transport


def through_rings(transport: Transport, areas: Sequence[Sequence[int]]) -> Transport:
    """A line through the rings in RAM. ``transport`` leads to QEMU's debugger stub; ``areas`` are origins and lengths
    of RAM."""
    try:
        line = RttTransport(GdbMemory(transport), [Area(*area) for area in areas])
    except BaseException:
        transport.close()
        raise
    line.instructions_per_second = transport.instructions_per_second
    return line


class EmulatedBoard:
    """Emulates a board with a port: its console is a TCP port or a terminal. A context manager.

    ``port`` can be opened by :meth:`uaccel.Session.open` or any serial program.
    """

    def __init__(
        self,
        board: Board,
        firmware: Path,
        *,
        console: Literal["tcp", "pty"] = "tcp",
        counting: Counting = "auto",
        devices: Sequence[DeviceModel] = (),
    ) -> None:
        self.name = f"board {board.name} under QEMU"
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - closed by stop()
        ours, theirs = socket.socketpair()
        listener = socket.create_server(("127.0.0.1", 0)) if console == "tcp" else None
        chardev = "pty" if listener is None else f"socket,fd={listener.fileno()},server=on,wait=off,nodelay=on"
        control = ["-chardev", f"socket,id=control,fd={theirs.fileno()}", "-mon", "chardev=control,mode=control"]
        behind = devices_behind(board, firmware, devices)
        command = [*qemu_command(board, firmware, chardev=chardev, counting=counting), *control, *behind.words]
        inherited = [end.fileno() for end in (theirs, listener) if end is not None]
        try:
            self._process = _start(command, inherited, self._words)
        finally:
            theirs.close()
            if listener is not None:
                scheme = "rtt" if isinstance(board.console, RttConsole) else "socket"
                port = for_board(board, f"{scheme}://127.0.0.1:{listener.getsockname()[1]}")
                listener.close()
        self._stop = weakref.finalize(self, _stop, self._process, ours, self._words, behind)
        self._control = _Control(ours, self._last_words)
        self.port: str = port if console == "tcp" else self._terminal()

    @property
    def pid(self) -> int:
        """QEMU's process number."""
        return self._process.pid

    def reset(self) -> None:
        """Presses the board's reset button. QEMU may answer before it resets the board: this waits until it has."""
        self._control.call("system_reset", until="RESET")

    def stop(self) -> None:
        """Switches the board off. May be called again."""
        self._stop()

    def __enter__(self) -> EmulatedBoard:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _terminal(self) -> str:
        for chardev in self._control.call("query-chardev"):
            match = re.match(r"pty:(/\S+)", str(chardev.get("filename", "")))
            if match is not None:
                return match[1]
        raise DeviceError(f"{self.name} tells no terminal for its console")

    def _last_words(self) -> str:
        try:
            status = self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            return "it does not answer"
        return f"exit status {status}: {first_words(self._words)}"


def _start(command: Sequence[str], inherited: Sequence[int], words: Any) -> subprocess.Popen[bytes]:
    try:
        return start(
            command, stdin=subprocess.DEVNULL, stdout=words, stderr=words, pass_fds=inherited, start_new_session=True
        )
    except OSError as error:
        raise DeviceError(f"cannot start {command[0]}: {error.strerror}") from error


def _stop(process: subprocess.Popen[bytes], control: socket.socket, words: Any, behind: DeviceOptions) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    control.close()
    words.close()
    behind.remove()


class _Control:
    """Speaks on QEMU's control channel (QMP): JSON objects, one a line."""

    def __init__(self, line: socket.socket, last_words: Any) -> None:
        self._line = line
        self._last_words = last_words
        self._buffer = b""
        # Events since the last call began.
        self._seen: set[str] = set()
        self._deadline = time.monotonic() + START_SECONDS
        self._receive("QMP")
        self.call("qmp_capabilities")

    def call(self, command: str, *, until: str | None = None) -> Any:
        """Calls a command, and returns its result. ``until`` names the event that ends its work, which may come before
        or after the result."""
        self._seen.clear()
        self._deadline = time.monotonic() + START_SECONDS
        try:
            self._line.sendall(json.dumps({"execute": command}).encode() + b"\n")
        except OSError as error:
            raise DeviceError(f"QEMU has ended: {self._last_words()}") from error
        value = self._receive("return")
        while until is not None and until not in self._seen:
            self._receive("event")
        return value

    def _receive(self, key: str) -> Any:
        """The value of the next message with a key; events that come before are noted."""
        while True:
            while b"\n" not in self._buffer:
                self._buffer += self._take()
            line, self._buffer = self._buffer.split(b"\n", 1)
            message = json.loads(line)
            if "event" in message and not message.get("data", {}).get("guest"):  # not one that the firmware caused
                self._seen.add(message["event"])
            if "error" in message:
                raise DeviceError(f"QEMU refuses: {message['error'].get('desc', message['error'])}")
            if key in message:
                return message[key]

    def _take(self) -> bytes:
        self._line.settimeout(max(0.01, self._deadline - time.monotonic()))
        try:
            data = self._line.recv(1 << 16)
        except TimeoutError:
            raise DeviceError(f"QEMU does not answer within {START_SECONDS:g} s") from None
        except OSError:
            data = b""
        if not data:
            raise DeviceError(f"QEMU has ended: {self._last_words()}")
        return data
