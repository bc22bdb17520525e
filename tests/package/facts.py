"""What users see of uaccel, as plain data: archives, keys of JSON, help, public names, the order of kernels.

    python tests/package/facts.py --write "why they change"     make tests/package/facts.json anew

`facts.json` is the stored answer. It changes only on purpose, and says why.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import inspect
import io
import json
import os
import platform
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
STORED: Final = Path(__file__).with_name("facts.json")
MODELS: Final = ROOT / "tests" / "models"

NETWORKS: Final = ("branches", "gesture", "int16", "mixed", "residual", "stream")
BOARDS: Final = ("host", "mps2_an385", "mps2_an386", "mps3_an547", "qemu_riscv32v")
ACCELERATORS: Final = ("conveyor", "dot4", "matrix8", "npu", "npu_flash", "npu_small", "npu_tiny", "nuc_fpga")
PUBLIC: Final = (
    "uaccel",
    "uaccel.accelerator",
    "uaccel.accelerator.tensor",
    "uaccel.bench",
    "uaccel.board",
    "uaccel.memory",
    "uaccel.streams",
    "uaccel.testing",
)
LOADED: Final = ("distributed", "numpy", "onnx", "onnxruntime", "pytest", "serial", "torch", "tvm")

Fact = Callable[[], Any]


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def content(name: str, data: bytes) -> bytes:
    """A file's bytes without the project's version; of an ``.npz`` its members: not all Pythons write zips alike."""
    from uaccel.version import __version__

    if name.endswith(".npz"):
        with zipfile.ZipFile(io.BytesIO(data)) as arrays:
            return b"\0".join(part for one in arrays.namelist() for part in (one.encode(), arrays.read(one)))
    return data.replace(__version__.encode(), b"VERSION")


def archive(model: str, board: str, accelerators: tuple[str, ...] = (), **options: Any) -> dict[str, str]:
    """The digest of each folder of an archive: bytes that depend on uaccel and on nothing of this computer."""
    from uaccel.api import compile as compile_file
    from uaccel.runner.compiled import archive_of

    compiled = compile_file(MODELS / f"{model}.tflite", board, accelerators, name="net", **options)
    folders: dict[str, list[bytes]] = {}
    for name, data in sorted(archive_of(compiled).items()):
        folder = name.rpartition("/")[0] or name
        folders.setdefault(folder, []).extend((name.encode(), content(name, data)))
    return {folder: digest(b"\0".join(parts)) for folder, parts in folders.items()}


def said_by(*words: str) -> str:
    """What a command writes to stdout, in a terminal of 100 columns."""
    environment = os.environ | {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "UACCEL_CACHE": "off"}
    command = [sys.executable, "-m", "uaccel", *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True, cwd=ROOT)
    return done.stdout


def help_of(*words: str) -> list[str]:
    """The lines of a command's help, and of the help with rare options."""
    told = said_by(*words, "--help")
    return [*told.splitlines(), *(said_by(*words, "--help-all").splitlines() if "--help-all" in told else ())]


def public_names(module: str) -> dict[str, str]:
    """Each public name of a module with its signature, and what a class has."""
    loaded = importlib.import_module(module)
    found = {}
    for name in sorted(loaded.__all__):
        value = getattr(loaded, name)
        try:
            signature = str(inspect.signature(value))
        except (TypeError, ValueError):
            signature = ""
        signature = re.sub(r"uaccel\.[a-z_0-9.]+\.([A-Za-z_]+)|\bat 0x[0-9a-f]+", r"\1", signature)
        members = [one for one in dir(value) if not one.startswith("_")] if inspect.isclass(value) else []
        found[name] = " ".join([signature, *members])
    return found


def kernel_order() -> dict[str, list[str]]:
    """For each operator the offers of kernels, in the order in which they are asked."""
    from uaccel.kernels import registry

    return {
        name: [f"{one.rank} {'+'.join(one.requires)} {one.favour or ''} {one.weight_bits}" for one in offers]
        for name, offers in sorted(registry._OFFERS.items())
    }


def loaded_by(statement: str) -> list[str]:
    """Which heavy packages a process has loaded after a statement."""
    program = (
        f"import sys\n{statement}\nprint(*sorted({set(LOADED)!r} & {{name.split('.')[0] for name in sys.modules}}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.split()


def help_facts() -> dict[str, Fact]:
    with contextlib.redirect_stderr(io.StringIO()):
        from uaccel.cli.app import make_app

        app = make_app()
    commands = [one.name or getattr(one.callback, "__name__", "") for one in app.registered_commands]
    names = sorted(str(name) for name in [*commands, *(one.name for one in app.registered_groups)])
    return {"help": help_of, **{f"help {name}": partial(help_of, name) for name in names}}


def archive_facts() -> dict[str, Fact]:
    rows: dict[str, Fact] = {}
    for model, board in product(NETWORKS, BOARDS):
        rows[f"archive {model} {board}"] = partial(archive, model, board)
    for model, name in product(("gesture", "residual"), ACCELERATORS):
        rows[f"archive {model} host {name}"] = partial(archive, model, "host", (name,), cpu_fallback=True)
    for favour, model, board in product(("speed", "size", "ram"), ("residual", "int16"), ("mps2_an386", "mps3_an547")):
        rows[f"archive {model} {board} favour {favour}"] = partial(archive, model, board, favour=favour)
    return rows


def all_facts() -> dict[str, Fact]:
    rows: dict[str, Fact] = {f"names {module}": partial(public_names, module) for module in PUBLIC}
    rows |= {
        "kernels": kernel_order,
        "loads uaccel": partial(loaded_by, "import uaccel"),
        "loads the command line": partial(loaded_by, "import uaccel.cli.app"),
        "loads the pytest plugin": partial(loaded_by, "import uaccel.testing.plugin"),
    }
    return rows | help_facts() | archive_facts()


def stored() -> dict[str, Any]:
    """What `facts.json` holds: `made_with`, `changes` and `facts`."""
    found: dict[str, Any] = json.loads(STORED.read_text(encoding="utf-8"))
    return found


def made_with() -> dict[str, str]:
    """Versions of what a compiler's decisions may follow besides uaccel itself."""
    import numpy
    import tvm

    return {"machine": platform.machine(), "numpy": numpy.__version__, "tvm": tvm.__version__}


def main(arguments: list[str]) -> int:
    """Write all facts anew, with the reason."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", metavar="REASON", required=True, help="why what users see changes")
    reason = parser.parse_args(arguments).write
    changes = stored()["changes"] if STORED.exists() else []
    facts = {name: fact() for name, fact in all_facts().items()}
    text = json.dumps({"made_with": made_with(), "changes": [*changes, reason], "facts": facts}, indent=1)
    STORED.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
