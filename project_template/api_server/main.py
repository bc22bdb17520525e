"""Starting the server, and ending it: with the client, or with a signal."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from pathlib import Path
from types import FrameType

from .connection import Connection
from .errors import ClientGoneError
from .handler import Handler
from .programs import offer_python_programs
from .rpc import serve


def main(home: Path, arguments: list[str] | None = None) -> int:
    """Serve one client; the exit status."""
    parser = argparse.ArgumentParser(prog="microtvm_api_server.py", description="Project API server of this folder.")
    parser.add_argument("--read-fd", type=int, required=True, help="the descriptor that requests come from")
    parser.add_argument("--write-fd", type=int, required=True, help="the descriptor that replies go to")
    parser.add_argument("--debug", action="store_true", help="log every request and reply on stderr")
    options = parser.parse_args(arguments)
    logging.basicConfig(level="DEBUG" if options.debug else "INFO", stream=sys.stderr)
    signal.signal(signal.SIGTERM, stop)
    offer_python_programs()
    connection = Connection(options.read_fd, options.write_fd)
    handler = Handler(connection, home)
    try:
        serve(connection, handler.methods())
    except (ClientGoneError, KeyboardInterrupt):
        pass
    finally:
        handler.close_transport()
    return 0


def stop(_number: int, _frame: FrameType | None) -> None:
    """So that what is open is closed, and what runs is ended."""
    sys.exit(0)
