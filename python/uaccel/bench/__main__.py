"""Set up a stand-in for a board, and do to it what is done to boards: ``python -m uaccel.bench``."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from uaccel.bench.desk import NAME, ORDERS, PORT, Desk, give_order, is_set_up
from uaccel.errors import DeviceError, UaccelError
from uaccel.toolchain.children import EndedError, ending_signals

START_SECONDS: Final = 30.0
LOG: Final = "desk.log"
ABOUT: Final = "Set up a stand-in for a board in a folder DIR, and do to it what is done to boards."
MARK: Final = "uaccel.bench: error: "


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0, or that of the error."""
    options = _parser().parse_args(arguments)
    try:
        with ending_signals():
            _obey(options)
    except UaccelError as error:
        print(f"{MARK}{error}", file=sys.stderr)
        return error.exit_status
    except EndedError as ended:
        return ended.status
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m uaccel.bench", description=ABOUT)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    helps = {
        "start": "set up a stand-in in a folder, and leave it running",
        "serve": "the same, but stay with it until it is stopped",
        "flash": "write firmware to it and start it",
        "reset": "press its reset button",
        "plug": "put its USB cable in",
        "unplug": "pull its USB cable out",
        "on": "switch its power on",
        "off": "switch its power off",
        "stop": "clear the desk",
    }
    for name, text in helps.items():
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("folder", type=Path, metavar="DIR")
        if name in ("start", "serve"):
            command.add_argument("--board", default="netduino_plus_2", help="what it stands in for (%(default)s)")
        if name == "flash":
            command.add_argument("elf", type=Path, metavar="ELF")
    return parser


def _obey(options: argparse.Namespace) -> None:
    if options.command == "serve":
        with Desk(options.folder, options.board) as desk:
            desk.wait()
    elif options.command == "start":
        _start(options.folder, options.board)
    else:
        assert options.command in ORDERS
        words = [str(options.elf.resolve())] if options.command == "flash" else []
        give_order(options.folder, [options.command, *words])
        if options.command == "flash":
            print(f"{options.elf}: written and started")


def _start(folder: Path, board: str) -> None:
    """In a process of its own, which outlives this one."""
    folder.mkdir(parents=True, exist_ok=True)
    if is_set_up(folder):
        raise DeviceError(f"a desk is set up in {folder} already: python -m uaccel.bench stop {folder}")
    command = [sys.executable, "-m", "uaccel.bench", "serve", str(folder), "--board", board]
    with (folder / LOG).open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    deadline = time.monotonic() + START_SECONDS
    while not is_set_up(folder):
        if process.poll() is not None or time.monotonic() > deadline:
            lines = (folder / LOG).read_text(encoding="utf-8").strip().splitlines()
            raise DeviceError(
                lines[-1].removeprefix("uaccel.bench: error: ") if lines else f"no desk came up in {folder}"
            )
        time.sleep(0.05)
    print(f"board file: {folder / NAME}.toml\nport: {folder / PORT}")


if __name__ == "__main__":
    sys.exit(main())
