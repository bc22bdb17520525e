"""What TVM's stock lowering of a TFLite model takes on a board: instructions of one inference, counted by QEMU.

    .venv/bin/python scripts/stock_tvm.py MODEL.tflite [...] -o benchmarks/stock_tvm.json

The model is imported by TVM's own front end, which keeps quantised operators as dequantise, float operator, quantise.
TVM legalises every one of them, and uaccel's printer makes C of the TIR, without any of uaccel's integer operators or
kernels. Constants are folded first, as TVM's own pipelines do; operators are not fused. Results differ from the model's
in the last bits, and are not compared.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import tflite
import tvm
from tvm import relax
from tvm.relax.frontend.tflite import from_tflite

from uaccel.board import load_board
from uaccel.codegen.generate import generate
from uaccel.codegen.options import EmitOptions
from uaccel.errors import UaccelError
from uaccel.frontend import import_model
from uaccel.lower.from_relax import lower
from uaccel.lower.placement import place
from uaccel.model import ImportedModel, c_identifier
from uaccel.partition import Wishes, partition
from uaccel.pipeline import Compiled
from uaccel.runner.compiled import run_compiled


def stock_model(path: Path) -> ImportedModel:
    """The model with TVM's module in the place of uaccel's."""
    ours = import_model(path)
    module: Any = from_tflite(tflite.Model.GetRootAsModel(path.read_bytes(), 0))
    module = tvm.transform.Sequential([relax.transform.FoldConstant(), relax.transform.CanonicalizeBindings()])(module)
    return replace(ours, module=module, tensors={}, origins={})


def compiled(path: Path, board: str) -> Compiled:
    """Everything behind the import as for any model."""
    model = stock_model(path)
    partitioned = partition(model, [], Wishes())
    program = lower(partitioned, f"stock_{c_identifier(path.stem)}".lower(), cpu_fallback=False)
    generated = generate(program, place(program), EmitOptions(), board, f"scripts/stock_tvm.py {path.name}")
    return Compiled(generated, {"import": model.module}, partitioned)


def measure(path: Path, board: str) -> dict[str, Any]:
    """Instructions, and the memory that it takes; null with the reason where it does not come to that."""
    unknown: dict[str, Any] = {"instructions": None, "arena": None}
    try:
        made = compiled(path, board)
        unknown["arena"] = made.placement.arena
        sample = [np.zeros(spec.info.shape, spec.info.dtype) for spec in made.model.signature.inputs]
        with tempfile.TemporaryDirectory(prefix="uaccel-stock-") as folder:
            run = run_compiled(made, load_board(board), [sample], Path(folder) / "project", print).run
    except UaccelError as error:
        return unknown | {"why": str(error)}
    return {"instructions": run.instructions, "arena": made.placement.arena, "why": ""}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL.tflite")
    parser.add_argument("--board", default="mps2_an386")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    found = {path.stem: measure(path, given.board) for path in given.models}
    document = {"board": given.board, "tvm": tvm.__version__, "models": found}
    text = json.dumps(document, indent=2) + "\n"
    print(text)
    if given.output is not None:
        given.output.write_text(text)


if __name__ == "__main__":
    main()
