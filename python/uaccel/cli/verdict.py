"""What ``--verify`` found, as data and in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from uaccel.model import ImportedModel
    from uaccel.running.diagnosis import WrongLayer
    from uaccel.running.execute import Difference
    from uaccel.running.second_opinion import Opinion
    from uaccel.session.batch import BatchRun
    from uaccel.session.tensors import Array


def verdict(difference: Difference | None) -> dict[str, Any]:
    return {"bit_exact": difference is None, "first_difference": difference.to_json() if difference else None}


def judged(
    model: ImportedModel, samples: list[list[Array]], run: BatchRun, tolerance: float
) -> tuple[dict[str, Any], str]:
    """The verdict on what ran, and what is wrong in words: nothing where accelerators are as near as they state."""
    from uaccel.running.execute import first_difference

    exact = first_difference(model, samples, run)
    beyond = first_difference(model, samples, run, tolerance) if tolerance else exact
    return verdict(exact) | tolerated(tolerance, beyond), difference_words(beyond) if beyond is not None else ""


def tolerated(tolerance: float, beyond: Difference | None) -> dict[str, Any]:
    """For accelerators that are not exact by design: whether the result is as near as they state."""
    return {"tolerance": tolerance, "within_tolerance": beyond is None} if tolerance else {}


def layers_verdict(compared: int, wrong: WrongLayer | None) -> dict[str, Any]:
    """Of ``--verify layers``."""
    from uaccel.telling.report import json_number

    told = None
    if wrong is not None:
        mismatch = wrong.mismatch
        told = {
            "layer": wrong.name,
            "op": wrong.op,
            "engine": wrong.engine,
            "output": wrong.output,
            "index": list(mismatch.index),
            "expected": json_number(mismatch.expected),
            "got": json_number(mismatch.got),
            "differing": mismatch.differing,
            "size": mismatch.size,
        }
    return {"layers_compared": compared, "first_wrong_layer": told}


def opinion(found: Opinion | None) -> dict[str, Any]:
    """What the model's own runtime says of the run, where it says anything."""
    return {} if found is None else {"runtime": found.to_json()}


def opinion_words(found: dict[str, Any]) -> str:
    words = []
    if found["elements"]:
        words.append(f"{found['equal']} of {found['elements']} elements equal")
    if found["one_step"]:
        words.append(f"{found['one_step']} one step apart")
    if found["more"]:
        words.append(f"{found['more']} more than one step apart")
    if found["largest_relative_difference"] is not None:
        words.append(f"floats within {found['largest_relative_difference']:.1e} of the largest")
    return f"with {found['runtime']}: {', '.join(words)}"


def difference_words(difference: Difference) -> str:
    where = ",".join(map(str, difference.index))
    return (
        f'verification failed: sample {difference.sample}, output "{difference.output}" element [{where}] '
        f"is {difference.got}, expected {difference.expected}"
    )


def show_verified(console: Console, report: dict[str, Any]) -> None:
    from uaccel.cli.tables import show_lines

    verify = report.get("verify", {})
    runs = "the run" if report["runs"] == 1 else f"all {report['runs']} runs"
    if verify.get("bit_exact"):
        show_lines(console, [("Verified", f"every output of {runs} equals the exact meaning")], style="green")
    elif verify.get("within_tolerance"):
        text = f"every output of {runs} is within the accelerator's tolerance of {verify['tolerance']:g}"
        show_lines(console, [("Verified", text)], style="green")
    if verify.get("layers_compared") and verify["first_wrong_layer"] is None:
        text = f"what {verify['layers_compared']} layers computed equals the exact meaning, too"
        show_lines(console, [("Verified", text)], style="green")
    if "runtime" in verify:
        show_lines(console, [("Compared", opinion_words(verify["runtime"]))])
