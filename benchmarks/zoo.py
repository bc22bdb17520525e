"""The known models: whether each compiles, what it needs, and whether its firmware is right.

    python benchmarks/zoo.py                 get and compile what has no figures yet; all of it with --again
    python benchmarks/zoo.py --run           verify each on the host besides, and count cycles on emulated boards
    python benchmarks/zoo.py micro-alexa     this one alone, anew

The figures go into python/uaccel/zoo/models.json, which ``uaccel models`` shows. Files are kept in build/zoo.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from uaccel.errors import UaccelError
from uaccel.zoo.known import LIST, KnownModel, fetch, find_model, known_models

FOLDER: Final = Path(__file__).resolve().parents[1] / "build" / "zoo"
BOARDS: Final = ("mps2_an386", "mps2_an500", "mps3_an547")
SECONDS: Final = 900
MOST_MACS: Final = 50_000_000
USUAL: Final = 1e-4  # Of the peak: what the order of float sums explains.
# Kinds of refusal, by what the error says; the first that fits counts.
KINDS: Final = (
    ("custom operator", r"custom operator"),
    ("open shape", r"has the dynamic"),
    ("contradiction", r"coefficients for"),
    ("operator", r"unsupported: "),
    ("other", r""),
)


def measure(model: KnownModel, path: Path) -> dict[str, Any]:
    """What a model needs, in this process: bytes of RAM without stack, and of flash without code."""
    from uaccel.codegen.generate import io_bytes
    from uaccel.runner.job import Job
    from uaccel.runner.options import read_shapes

    begun = time.process_time()
    compiled = Job.of(path, BOARDS[0], input_shapes=read_shapes(model.options[1::2], "")).compiled()
    placement = compiled.placement
    return {
        "layers": len(compiled.program.layers),
        "macs": sum(one.macs for layer in compiled.program.layers for one in (layer.covers or (layer,))),
        "ram": placement.arena + placement.state + io_bytes(compiled.program, compiled.options),
        "state": placement.state,
        "flash": compiled.generated.weight_bytes,
        "seconds": round(time.process_time() - begun, 1),
    }


def refusal(error: str, path: Path) -> dict[str, str]:
    words = error.replace(str(path), path.name)
    return {"kind": next(kind for kind, pattern in KINDS if re.search(pattern, words)), "error": words}


def compiled(model: KnownModel, path: Path) -> dict[str, Any]:
    """What a process of its own measures, within a time; why uaccel refuses the model, else."""
    command = [sys.executable, __file__, "--child", model.name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return {"needs": None, "refused": None}  # not known
    if done.returncode != 0:
        raise SystemExit(f"{model.name}: {done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def child(name: str) -> None:
    model = find_model(name)
    path = FOLDER / model.file
    found: dict[str, Any] = {"needs": None, "refused": None}
    try:
        found["needs"] = measure(model, path)
    except UaccelError as error:
        found["refused"] = refusal(str(error), path)
    print(json.dumps(found))


def run(model: KnownModel, path: Path, board: str, *words: str) -> dict[str, Any]:
    """What ``uaccel run --json`` writes, or the error that it ends in."""
    command = [sys.executable, "-m", "uaccel", "run", str(path), "--board", board, "--json", *words, *model.options]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return {"error": {"message": f"takes longer than {SECONDS} s"}}
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def verified(model: KnownModel, path: Path) -> str:
    """What a verified run on the host says."""
    report = run(model, path, "host", "--verify")
    if "verify" in report:
        return judged(report["verify"]) + unsteadiness(model, path, report["verify"])
    return str(report["error"]["message"]).replace(str(path), path.name)


def judged(verdict: dict[str, Any]) -> str:
    """How the firmware compares with the model's own runtime, and how many samples that answered.

    Without a runtime it is the model's meaning, which shares the import with the firmware."""
    word = "within" if verdict["bit_exact"] or verdict.get("within_tolerance") else "wrong, differs by"
    runtime, silent = verdict.get("runtime"), verdict["no_opinion"]
    if runtime is None:
        return f"no runtime: {silent[-1]['why']}" if silent else "no runtime"
    judge, steps = verdict["against"][-1], runtime["elements"] - runtime["equal"]
    parts = [f"{steps:,} of {runtime['elements']:,} integers off"] if steps else []
    apart = runtime["largest_relative_difference"] or 0
    parts += [f"{word} {apart:.1e} of the peak"] if apart else []
    refused = sum(entry["sample"] is not None for entry in silent)
    some = f", {verdict['samples'] - refused} of {verdict['samples']} samples" if refused else ""
    return f"{' and '.join(parts) or 'equal'}: {judge}{some}"


def unsteadiness(model: KnownModel, path: Path, verdict: dict[str, Any]) -> str:
    """Where a runtime differs by more than floats usually do: how far it moves by itself, for inputs that round
    otherwise. A model that moves as far has no better answer for such samples."""
    from uaccel.frontend import import_model
    from uaccel.runner.firmware import tensor_types
    from uaccel.runner.options import read_shapes
    from uaccel.runner.runtimes import own_moves
    from uaccel.runner.samples import SAMPLES, default_samples

    if (verdict.get("runtime", {}).get("largest_relative_difference") or 0) <= USUAL:
        return ""
    imported = import_model(path, read_shapes(model.options[1::2], ""))
    samples = default_samples(tensor_types(imported.signature.inputs), SAMPLES)
    moves = max((move.relative for row in own_moves(imported, path, samples) for move in row), default=0.0)
    return f", which moves by {moves:.1e} itself" if moves else ""


def cycles(model: KnownModel, path: Path, macs: int) -> dict[str, int | None]:
    """Cycles by board; None where it does not fit, or where emulation would take too long."""
    boards = BOARDS if macs <= MOST_MACS else ()
    return {board: run(model, path, board).get("cycles_estimated") if board in boards else None for board in BOARDS}


def inputs_of(path: Path) -> list[dict[str, Any]]:
    """The inputs as the format's own reader sees them; an open extent is null."""
    if path.suffix == ".onnx":
        import onnx

        graph = onnx.load(path, load_external_data=False).graph
        constants = {one.name for one in graph.initializer}
        types = [(one.name, one.type.tensor_type) for one in graph.input if one.name not in constants]
        kind = onnx.helper.tensor_dtype_to_np_dtype
        return [
            {
                "name": name,
                "dtype": str(kind(of.elem_type)),
                "shape": [d.dim_value if d.dim_value > 0 else None for d in of.shape.dim],
            }
            for name, of in types
        ]
    from ai_edge_litert.interpreter import Interpreter

    return [
        {
            "name": one["name"],
            "dtype": one["dtype"].__name__,
            "shape": [n if n >= 0 else None for n in one["shape_signature"].tolist()],
        }
        for one in Interpreter(str(path)).get_input_details()
    ]


def store(name: str, found: dict[str, Any]) -> None:
    """Writes one model's figures, so that an interrupted benchmark goes on where it was."""
    document = json.loads(LIST.read_text(encoding="utf-8"))
    row = next(one for one in document["models"] if one["name"] == name)
    row |= found
    LIST.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--run", action="store_true", help="run and verify on the host, too")
    parser.add_argument("--again", action="store_true", help="also what has figures already")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", metavar="MODEL", help="these models alone")
    given = parser.parse_args()
    if given.child:
        child(given.child)
        return
    models = [find_model(name) for name in given.names] or known_models()
    for model in sorted(models, key=lambda one: one.bytes):  # an interrupted run has most of them
        anew = given.again or bool(given.names)
        path = fetch(model, FOLDER)
        found: dict[str, Any] = {"inputs": inputs_of(path)}
        if anew or (model.needs is None and model.refused is None):
            found |= compiled(model, path)
        needs = found.get("needs") or model.needs
        if given.run and needs and (anew or model.verified is None):
            found |= {"verified": verified(model, path), "cycles": cycles(model, path, needs["macs"])}
        store(model.name, found)
        print(model.name, json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
