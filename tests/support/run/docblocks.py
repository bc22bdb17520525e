"""Code blocks of a Markdown page, and running them as a reader would.

What the info string means:

- ``sh``: the lines are commands, each must succeed;
- ``console``: lines that begin with ``$`` are commands, the lines after one are what it prints; ``...`` stands for
  anything;
- ``c FILE``, ``verilog FILE``, ``python FILE``, ``toml FILE``, ``json FILE``: a file that later blocks use;
- ``python``: run as a script;
- ``needs=NAME,...`` behind the language: left out, and told, where no such program or Python package is there;
- anything else (``text``, none) is for reading only.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINKED = (
    "Makefile",
    "tests",
    "boards",
    "firmware",
    "python",
    "project_template",
    "accelerators",
    "accelerator_template",
    "scripts",
    "pyproject.toml",
    "benchmarks",
    "CMakeLists.txt",
    ".venv",
)
TIMEOUT_SECONDS = 300


@dataclass(frozen=True)
class Block:
    """``line``: where the block begins in its page. ``needs``: programs and Python packages, with commas between."""

    line: int
    language: str
    file: str
    text: str
    needs: str = ""

    @property
    def lacks(self) -> str:
        """Why it cannot run here, if so."""
        for name in filter(None, self.needs.split(",")):
            if not (shutil.which(name) or importlib.util.find_spec(name)):
                return f"line {self.line}: {name} is not installed"
        return ""


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = []
    for match in BLOCK.finditer(text):
        language, _, file = match.group(1).strip().partition(" ")
        needs = file.removeprefix("needs=") if file.startswith("needs=") else ""
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(line, language, "" if needs else file.strip(), match.group(2), needs))
    return found


def run_page(page: Path, folder: Path) -> list[str]:
    """Run every block of a page in ``folder``, which looks like a checkout; why some could not be run.

    The blocks of an example are typed in its folder: a copy of it is there, without what they made before. What a page
    leaves running when one of its blocks fails is ended, where it wrote a ``*.pid`` file."""
    for name in LINKED:
        if (ROOT / name).exists():
            (folder / name).symlink_to(ROOT / name)
    if page.parent.parent == EXAMPLES:
        made = shutil.ignore_patterns(*(EXAMPLES / ".gitignore").read_text().split(), "__pycache__", ".pytest_cache")
        folder = folder / page.parent.relative_to(ROOT)
        shutil.copytree(page.parent, folder, ignore=made)
    try:
        for block in blocks(page):
            if not block.lacks:
                _do(block, folder, f"{page.relative_to(ROOT)}:{block.line}")
    except BaseException:
        for file in folder.glob("*.pid"):
            with suppress(ProcessLookupError, ValueError):
                os.kill(int(file.read_text()), signal.SIGTERM)
        raise
    return [block.lacks for block in blocks(page) if block.lacks]


def _do(block: Block, folder: Path, where: str) -> None:
    if block.file:
        (folder / block.file).write_text(block.text, encoding="utf-8")
    elif block.language == "python":
        _run(f'{sys.executable} -c "$BLOCK"', folder, where, {"BLOCK": block.text})
    elif block.language in ("sh", "console"):
        run_commands(block, folder, where)


def run_commands(block: Block, folder: Path, where: str) -> int:
    commands = commands_of(block)
    for command, expected in commands:
        output = _run(command, folder, where, {})
        if block.language == "console":
            assert matches(expected, output), f"{where}: {command}\nprinted\n{output}\ninstead of\n{expected}"
    return len(commands)


def commands_of(block: Block) -> list[tuple[str, str]]:
    if block.language == "sh":
        return [(line, "") for line in block.text.splitlines() if line.strip() and not line.startswith("#")]
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
    return [(part.partition("\n")[0], part.partition("\n")[2]) for part in parts]


def matches(expected: str, output: str) -> bool:
    """Trailing blanks do not count; ``...`` alone on a line, or within one, stands for anything."""
    pattern = ".*".join(re.escape(part) for part in _tidy(expected).split("..."))
    return re.fullmatch(pattern, _tidy(output), re.DOTALL) is not None


def _tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines()).strip()


def _run(command: str, folder: Path, where: str, extra: dict[str, str]) -> str:
    """The command's output; it must succeed. ``make`` runs in the checkout itself: it may install what that says."""
    folder = ROOT if command.startswith("make ") else folder
    bin_folder = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{bin_folder}:{os.environ['PATH']}", "COLUMNS": "100"} | extra
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{where}: {command}\nexit status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout
