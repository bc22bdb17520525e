"""Results of sweeps that never ran, as lines of a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&"
PEAK = 1_000_000


def line(model: str, board: str, engines: Sequence[str] = (), **said: Any) -> dict[str, Any]:
    """As ``uaccel sweep`` writes it; ``said`` are its fields, those of its row by ``tags`` and ``options``."""
    tags, options = said.pop("tags", {}), said.pop("options", {})
    words = [f"{key}={value}" for key, value in (*options.items(), *tags.items())]
    title = " ".join([model, f"on {board}", f"with {'+'.join(engines) or 'cpu'}", *words])
    row = {"model": f"models/{model}.tflite", "board": board, "accelerators": list(engines), "options": options}
    told: dict[str, Any] = {
        "digest": title,
        "title": title,
        "row": row | {"tags": tags, "repetition": 0},
        "status": "right",
        "figures": {},
        "error": "",
        "exit_status": 0,
        "log": "",
        "attempts": 1,
        "took": 1.5,
        "worker": "",
        "label": "",
        "report": {},
    }
    return told | said


def figures(instructions: int, cycles: int = 0) -> dict[str, float]:
    return {"instructions": instructions, "accelerator_cycles": cycles, "ram.total": 20_000 + instructions % 977}


def sweep(factor: float = 1.0) -> list[dict[str, Any]]:
    """Three models on two boards with and without an accelerator; one row is wrong, one failed; and a space."""
    rows = []
    for i, model in enumerate(("kws", "ic", "ad")):
        for board in ("mps2_an386", "host"):
            for engines in ((), ("matrix8",)):
                count = (i + 1) * (200_000 if engines else PEAK)
                known = figures(round(count * factor), 5000 if engines else 0) if board != "host" else {}
                rows.append(line(model, board, engines, figures=known | {"flash.total": 1000.0 * (i + 1)}))
    rows[5] |= {"status": "failed", "figures": {}, "error": "no room for it", "log": "first\n" * 40 + "last words"}
    rows[9] |= {"status": "wrong", "error": "conv_2: 3 of 9 bytes differ"}
    return rows + space()


def space(name: str = "ROWS") -> list[dict[str, Any]]:
    """Cycles fall and utilisation falls as a machine grows, but for points that nobody would take."""
    found = []
    for rows in (4, 8, 16, 32):
        for ports in (1, 2, 3):
            cycles = 400_000 // rows + 1000 * ports
            known = figures(1000, cycles) | {"utilisation": 0.9 - rows / 64 - 0.01 * (ports == 2), "bytes_moved": 77.0}
            found.append(line("kws", "mps2_an386", ("npu",), tags={name: rows, "PORTS": ports}, figures=known))
    return found


def write(path: Path, rows: Sequence[Mapping[str, Any]], label: str = "") -> Path:
    path.write_text("".join(json.dumps({**row, "label": label}) + "\n" for row in rows), encoding="utf-8")
    return path
