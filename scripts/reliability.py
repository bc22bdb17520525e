"""Write docs/reference/reliability.md of what the campaigns have stored; ``--check`` only looks.

benchmarks/mutation.json, strangers.json and soak.json come from the commands that the page names.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "reference" / "reliability.md"
HEAD: Final = """\
# How reliable it is

*What has been tried to break uaccel, what came of it, and how do I try it again?* This page has figures: what was
tried, what was clean, what was found. `scripts/reliability.py`
writes it of the stored results. [SECURITY.md](https://github.com/uaccel/uaccel/blob/main/SECURITY.md) has the promises.
"""
CATALOGUES: Final = """\
## Catalogues

These run with `make test`. Each case ends in the right result or in one line, within the time and the memory that its
test states.

| catalogue | cases | test |
|---|---|---|
"""
FILES: Final = """\
## Files from strangers

Each file is damaged by structure, by a number that gives the same file again. A file that is read or refused in one
line is clean. A signal, a second line, an internal error, 60 seconds
or 2 GB is a fault. `make test-full` runs as many. The command runs as many as you like (`--count`):

```text
PYTHONPATH=tests .venv/bin/python tests/fuzz/strangers_campaign.py --write
```

| kind | tried | read | refused | faults | slowest |
|---|---|---|---|---|---|
"""
SOAK: Final = """\
## Sessions in a row

Each session starts the firmware anew, runs three samples and compares every byte of their outputs. Meanwhile bytes of
the line are flipped, lost and doubled. `desk` is the stand-in at a serial port.

```text
.venv/bin/python benchmarks/soak.py --board host --sessions 1000 --write
```

| board | sessions | faults of the line | right, ended in an error | wrong tensors | descriptors left | memory grown |
|---|---|---|---|---|---|---|
"""
MUTATION: Final = """\
## Planted faults

Would the tests notice? A fault of one token is planted (`<` becomes `<=`, `+` becomes `-`, 3 becomes 4), then the
tests of that file run. It counts as found where one fails. The faults are drawn from all
that the file can have, by the same seed each time. Those that change nothing are equivalent. The score is the share
that is found or equivalent.

```text
.venv/bin/python benchmarks/mutation.py --most 30 --write
```

| target, file | possible | tried | found | equivalent | left | score |
|---|---|---|---|---|---|---|
"""


def stored(name: str) -> dict[str, Any]:
    path = ROOT / "benchmarks" / f"{name}.json"
    values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return values


def table(rows: Iterable[Iterable[object]]) -> str:
    def cell(value: object) -> str:
        return f"{value:,}" if isinstance(value, int) else str(value)

    return "".join(f"| {' | '.join(map(cell, row))} |\n" for row in rows)


def catalogues() -> str:
    sys.path.insert(0, str(ROOT / "tests"))
    from support.hostile.hostile_hosts import HOSTS
    from support.hostile.misbehaviour import CASES

    return CATALOGUES + table(
        [
            ("what a device may do to its host", len(CASES), "`tests/session/test_misbehaviour.py`"),
            ("what a host may do to firmware", len(HOSTS), "`tests/session/test_hostile_hosts.py`"),
        ]
    )


def files() -> str:
    names = ("kind", "tried", "read", "refused", "faults", "seconds")
    rows = [[row[name] for name in names] for row in stored("strangers").values()]
    return FILES + table([*row[:-1], f"{row[-1]} s"] for row in rows)


def soak() -> str:
    rows = []
    for board, row in stored("soak").items():
        ended = f"{row['right']:,}, {row['errors']:,}"
        left = (row["wrong"], row["descriptors_left"], f"{row['grown'] >> 10} KB")
        rows.append([board, row["sessions"], row["faults_injected"], ended, *left])
    return SOAK + table(rows)


def mutation() -> str:
    rows = stored("mutation")
    counts = {
        name: [row["known"], row["tried"], row["found"], row["equivalent"], _left(row)] for name, row in rows.items()
    }
    lines = table([f"{name}, `{rows[name]['file']}`", *count, _score(*count)] for name, count in counts.items())
    total = [sum(column) for column in zip(*counts.values(), strict=True)]
    lines += table([("all", *total, _score(*total))]) if total else ""
    missing = [target.name for target in _targets() if target.name not in rows]
    lines += f"\nWithout figures so far: {', '.join(missing)}.\n" if missing else ""
    said = [f"- {name}, line {one['line']}: {_change(one)}. {_why(one)}\n" for name, one in _survivors(rows)]
    return MUTATION + lines + ("\nThose that no test finds:\n\n" + "".join(said) if said else "")


def _targets() -> tuple[Any, ...]:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    targets: tuple[Any, ...] = importlib.import_module("mutation").TARGETS
    return targets


def _score(_possible: int, tried: int, _found: int, _equivalent: int, left: int) -> str:
    """How many of them tests find, or nothing could find."""
    return f"{100 * (tried - left) // tried} %"


def _left(row: dict[str, Any]) -> int:
    return int(row["tried"] - row["found"] - row["equivalent"])


def _survivors(rows: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(name, one) for name, row in rows.items() for one in row["survived"]]


def _change(one: dict[str, Any]) -> str:
    return f"`{one['was']}` becomes `{one['becomes']}`"


def _why(one: dict[str, Any]) -> str:
    return str(one.get("reason", "Nobody has looked into it yet."))


def page() -> str:
    return "\n".join((HEAD, catalogues(), files(), soak(), mutation()))


def main() -> int:
    parser = argparse.ArgumentParser(description="Write docs/reference/reliability.md.")
    parser.add_argument("--check", action="store_true", help="write nothing, tell whether the page differs")
    text = page()
    if parser.parse_args().check:
        same = PAGE.exists() and PAGE.read_text(encoding="utf-8") == text
        print("" if same else f"{PAGE.relative_to(ROOT)} differs: run scripts/reliability.py")
        return 0 if same else 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
