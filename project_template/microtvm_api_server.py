"""The Project API server of this folder: makes projects of the template, builds them, flashes them, talks to firmware.

    python microtvm_api_server.py --read-fd N --write-fd M [--debug]

serves JSON-RPC 2.0, one object a line, over two inherited pipes: what microTVM's clients speak. Any Python from 3.8 on
runs it, without packages. `uaccel create`, `build`, `flash` and `run` are such a client; whoever has none uses CMake:

    cmake -B build && cmake --build build
"""

import sys
from pathlib import Path

HOME = Path(__file__).resolve().parent


def serve() -> int:
    """Its parts lie in the folder beside this file."""
    sys.dont_write_bytecode = True  # a project and a template hold sources alone
    sys.path.insert(0, str(HOME))
    from api_server.main import main

    return main(HOME)


if __name__ == "__main__":
    sys.exit(serve())
