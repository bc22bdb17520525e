"""Random layers on the CPU against CMSIS-NN, by kind of layer, and small networks of such layers: measure, print median
and worst ratio, and compare with the stored result.

    python benchmarks/layers.py                      measure and compare
    python benchmarks/layers.py --write              measure and store
    python benchmarks/layers.py --write --peer TOOL  the same, and measure CMSIS-NN again
    python benchmarks/layers.py --seed 7 --peer TOOL measure other layers, and store nothing

tests/support/models/drawn_layers.py states which layers are drawn, by seeds that stay; kernels are tuned to none of
them. The networks are those of tests/support/models/drawn_networks.py.
Instructions of one inference, counted exactly under QEMU: of a layer with all that it takes in the firmware, and of
CMSIS-NN's function for it, at the better of -O2 and -O3, with sums of weights prepared beforehand. TOOL is a program
that is given MODEL --board B --json and prints for each layer the instructions as ``best``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from run import uaccel

from support.models.drawn_layers import KINDS, drawn
from support.models.drawn_networks import NETWORKS, network

RESULTS = Path(__file__).with_name("layers.json")
BOARDS = ("mps2_an386", "mps3_an547")
SEED, COUNT = 2026, 8
SLACK = 0.02
OF_NETWORKS = "network: "
ALL = (*KINDS, *(f"{OF_NETWORKS}{name}" for name in NETWORKS))


def measured(path: Path, board: str) -> list[int]:
    report = uaccel("run", str(path), "--board", board, "--verify", "--samples", "1")
    if not report["verify"]["bit_exact"]:
        raise SystemExit(f"{path.stem} on {board} is not exact")
    taken: list[int] = [layer["instructions"] for layer in report["layers"] if layer["instructions"]]
    return taken


def by_peer(tool: Path, path: Path, board: str, work: Path) -> list[int]:
    command = [sys.executable, str(tool), str(path), "--board", board, "--json", "--work", str(work)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [layer["best"] for layer in json.loads(done.stdout)["layers"] if "best" in layer]


def row(ours: list[int], peer: list[int]) -> dict[str, Any]:
    ratios = [round(one / other, 3) for one, other in zip(ours, peer, strict=True)]
    return {"median": round(statistics.median(ratios), 3), "worst": max(ratios), "instructions": ours, "cmsis_nn": peer}


def whole(ours: list[int], peer: list[int]) -> dict[str, Any]:
    """All of a network's layers; those that only give bytes another shape count for neither."""
    part = round(sum(ours) / sum(peer), 3)
    return {"median": part, "worst": part, "instructions": [sum(ours)], "cmsis_nn": [sum(peer)]}


def measure(
    kind: str, board: str, stored: dict[str, Any], tool: Path | None, folder: Path, seed: int = SEED
) -> dict[str, Any]:
    path = folder / f"{kind.replace(' ', '_').replace(',', '').replace(':', '')}.tflite"
    name = kind.removeprefix(OF_NETWORKS)
    path.write_bytes(drawn(kind, seed, COUNT) if name == kind else network(name))
    known = stored.get(board, {}).get(kind, {}).get("cmsis_nn")
    if tool is None and known is None:
        raise SystemExit(
            f"{RESULTS.name} has no figures of CMSIS-NN for {kind} on {board}; measure them with --peer TOOL"
        )
    peer: list[int] = known if tool is None else by_peer(tool, path, board, folder)
    ours = measured(path, board)
    return row(ours, peer) if name == kind else whole(ours, peer)


def differences(results: dict[str, Any], stored: dict[str, Any]) -> list[str]:
    return [
        f"{kind} on {board}: layer {number} took {before} instructions, takes {now}"
        for board, rows in results.items()
        for kind, figures in rows.items()
        for number, (now, before) in enumerate(
            zip(figures["instructions"], stored[board][kind]["instructions"], strict=True)
        )
        if abs(now - before) > SLACK * before
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="store the result")
    parser.add_argument("--peer", type=Path, metavar="TOOL", help="measure CMSIS-NN with this program")
    parser.add_argument("--seed", type=int, default=SEED, help="of the layers; those of another are not stored")
    parser.add_argument("--board", action="append", choices=BOARDS, help="this board alone")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="these kinds alone")
    given = parser.parse_args()
    if given.seed != SEED and (given.write or not given.peer):
        parser.error(f"--seed {given.seed}: these layers are not stored; give --peer, and no --write")
    stored = json.loads(RESULTS.read_text())["boards"] if RESULTS.is_file() else {}
    results: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for board in given.board or BOARDS:
            for kind in given.kinds or ALL:
                figures = measure(kind, board, stored, given.peer, Path(folder), given.seed)
                results.setdefault(board, {})[kind] = figures
                print(f"{board:<12}{kind:<38}median {figures['median']:<7}worst {figures['worst']}", flush=True)
    if given.write:
        merged = {board: {**stored.get(board, {}), **results.get(board, {})} for board in BOARDS}
        text = json.dumps({"seed": SEED, "layers": COUNT, "boards": merged}, indent=1)
        RESULTS.write_text(text + "\n")
        return 0
    changed = differences(results, stored) if given.seed == SEED else []
    for line in changed:
        print(f"differs from {RESULTS.name}: {line}", file=sys.stderr)
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
