"""What less RAM costs of the models that this is asked of: ``uaccel compile --frontier`` of each.

    python benchmarks/frontier.py            compare with what is stored
    python benchmarks/frontier.py --write    store it; scripts/frontier_plot.py then draws it

Of each model the points [bytes of RAM, estimated cycles], with the input whole, and where it can be fed row by row.
Nothing is run, so every computer gives the same. The reference models are those of ``UACCEL_MODELS``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from models.field import field
from uaccel.codegen.options import EmitOptions
from uaccel.errors import ModelError
from uaccel.runner.job import Job, frontier_report

RESULTS = Path(__file__).with_name("frontier.json")
BOARD = "mps2_an386"
REFERENCE = ("kws", "ic", "vww", "sww")
NETWORKS = {"mobilenet_v1": 100, "mobilenet_v2": None}
"""With so many classes, where the published number does not fit the board's flash."""


def points(job: Job) -> list[list[int]]:
    return [[point["ram"], point["estimate"]] for point in frontier_report(job)["points"]]


def measure(path: Path) -> dict[str, list[list[int]]]:
    """``fed`` is left out where the first input cannot come by rows."""
    job = Job.of(path, BOARD, options=EmitOptions(workspace_io=True))
    found = {"whole": points(job)}
    try:
        found["fed"] = points(replace(job, options=replace(job.options, feed=True)))
    except ModelError as error:
        print(f"{path.stem}: {error}")
    return found


def measured() -> dict[str, Any]:
    models: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(os.environ["UACCEL_MODELS"]) / f"{name}.tflite" for name in REFERENCE]
        for name, classes in NETWORKS.items():
            paths.append(Path(folder) / f"{name}.tflite")
            paths[-1].write_bytes(field(name).build(None, classes, 1.0, 7))
        for path in paths:
            models[path.stem] = measure(path)
            ends = {how: (rows[0], rows[-1]) for how, rows in models[path.stem].items()}
            print(f"{path.stem}: {ends}", flush=True)
    return {"board": BOARD, "models": models}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="store the result")
    given = parser.parse_args()
    if "UACCEL_MODELS" not in os.environ:
        sys.exit("frontier.py: UACCEL_MODELS names the folder of the reference models; it is not set")
    found = measured()
    if given.write:
        RESULTS.write_text(text_of(found), encoding="utf-8")
        return 0
    if found != json.loads(RESULTS.read_text(encoding="utf-8")):
        sys.exit(f"frontier.py: the figures differ from {RESULTS.name}; look at them, then store them with --write")
    return 0


def text_of(found: dict[str, Any]) -> str:
    """A row for each list of points."""
    models = [
        f'    "{name}": {{\n'
        + ",\n".join(f'      "{how}": {json.dumps(rows)}' for how, rows in kinds.items())
        + "\n    }"
        for name, kinds in found["models"].items()
    ]
    return f'{{\n  "board": "{found["board"]}",\n  "models": {{\n' + ",\n".join(models) + "\n  }\n}\n"


if __name__ == "__main__":
    sys.exit(main())
