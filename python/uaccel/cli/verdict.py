"""Shows what ``--verify`` found, as data and in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from uaccel.cli.output import new_table, show_lines
from uaccel.cli.tables import show_layers, show_memory, show_outputs
from uaccel.errors import escape_terminal

if TYPE_CHECKING:
    from rich.console import Console


def opinion_words(found: dict[str, Any]) -> str:
    words = []
    if found["elements"]:
        words.append(f"{found['equal']} of {found['elements']} elements equal")
    if found["one_step"]:
        words.append(f"{found['one_step']} one step apart")
    if found["more"]:
        words.append(f"{found['more']} more than one step apart")
    if found["largest_relative_difference"] is not None:
        words.append(f"floats within {float(found['largest_relative_difference']):.1e} of the largest")
    if found["no_number"]:
        samples = "1 sample" if found["no_number"] == 1 else f"{found['no_number']} samples"
        words.append(f"{samples} not compared: the model quantises 0 / 0 or the like")
    return f"with {found['runtime']}: {', '.join(words)}"


PROVES_LITTLE: Final = (
    "what was compared is constant, saturated, NaN or empty: this proves little; give inputs with --inputs"
)


def show_run(console: Console, report: dict[str, Any], *, every: bool = False) -> None:
    """Shows what a run gave: latency, layers, memory, outputs, and what was verified. ``every``: all layers."""
    show_layers(console, report, every=every)
    show_memory(console, report)
    show_lines(console, [("Inputs", note) for note in report.get("inputs_made", ())])
    show_outputs(console, report["outputs"])
    show_verified(console, report)
    show_against(console, report.get("against"))


def show_verified(console: Console, report: dict[str, Any]) -> None:
    if "verify" not in report:
        return
    lines = [("Verified", text) for text in _good(report["verify"])]
    show_lines(console, lines, style="green")
    if report["verify"]["proves_little"]:
        show_lines(console, [("Note", PROVES_LITTLE)])
    if report["verify"]["not_compared"]:
        show_lines(console, [("Note", report["verify"]["not_compared"])])
    if "data_sets" in report["verify"]:
        folders, samples = report["verify"]["data_sets"]["folders"], report["verify"]["samples"]
        begins = f"{', '.join(folders)} beside the model"
        show_lines(console, [("Samples", f"the first of {samples} are {begins}" if samples > 1 else f"it is {begins}")])
    for key in ("data_sets", "real_meaning", "runtime"):
        if report["verify"].get(key, {}).get("runtime"):
            show_lines(console, [("Compared", opinion_words(report["verify"][key]))])
    show_lines(console, [("Note", text) for text in silence_words(report["verify"]["no_opinion"])])


def show_against(console: Console, against: dict[str, Any] | None) -> None:
    """Shows a row for each layer that another library computes as well, sums, and the layers that it lacks."""
    if against is None:
        return
    library, total = against["library"], against["total"]
    table = new_table("Layer", ">uaccel", f">{library}", ">ratio", "equal")
    for row in against["layers"]:
        equal = {True: "yes", False: "no", None: "?"}[row["equal"]]
        table.add_row(escape_terminal(row["layer"]), *_costs(row), equal)
    table.add_row("together", *_costs(total), "yes" if against["outputs_equal"] else "no")
    console.print(table)
    lacks = [f"{row['layer']} ({row['ours']:,}): {row['reason']}" for row in against["missing"]]
    show_lines(console, [(f"{'' if number else 'Lacking'}", line) for number, line in enumerate(lacks)])


def _costs(row: dict[str, Any]) -> tuple[str, str, str]:
    return f"{row['ours']:,}", f"{row['theirs']:,}", "-" if row["ratio"] is None else f"{row['ratio']:.2f}"


def silence_words(silent: list[dict[str, Any]]) -> Iterator[str]:
    """Says for each runtime why it gave no opinion, and counts samples that it refused."""
    whole = [entry for entry in silent if entry["sample"] is None]
    yield from (f"{entry['runtime']} gave no opinion: {entry['why']}" for entry in whole)
    single = [entry for entry in silent if entry["sample"] is not None]
    if single:
        samples = "1 sample" if len(single) == 1 else f"{len(single)} samples"
        yield f"{single[0]['runtime']} refuses {samples}: {single[0]['why']}"


def _good(verify: dict[str, Any]) -> Iterator[str]:
    """Says what is right."""
    samples = "the sample" if verify["samples"] == 1 else f"{verify['samples']} samples"
    if verify["bit_exact"]:
        yield f"every output of {samples} equals the exact meaning"
    elif verify.get("within_tolerance"):  # absent where only a runtime disagrees
        yield f"{_near(verify)} of {samples}; {_how_far(verify)}"
    if verify["bit_exact"] and verify.get("tensors"):
        yield f"exact, too, where the outputs may not show an error: {', '.join(verify['tensors'])}"
    if verify.get("layers_compared") and verify["first_wrong_layer"] is None:
        count = verify["layers_compared"]
        yield "the layer is right" if count == 1 else f"{count} layers are right for what they were given"


def _near(verify: dict[str, Any]) -> str:
    if verify["units"] == "relative":
        return f"every output is within {verify['tolerance']:g} of the exact meaning"
    judged = "every layer that was judged" if verify["not_compared"] else "every layer"
    return (
        f"{judged} is as near to its meaning as its accelerator states"
        if "layers_compared" in verify
        else (f"every output is within the accelerator's tolerance of {verify['tolerance']:g}")
    )


def _how_far(verify: dict[str, Any]) -> str:
    """Says how far the outputs of the whole model are off."""
    unit = " steps" if verify["units"] == "steps" else " of the largest"
    parts = [f"the outputs differ by {verify['largest_difference']:.3g}{unit} at most"]
    if verify["snr_db"] is not None:
        parts.append(f"signal to noise {verify['snr_db']:.1f} dB")
    if verify["top_class_agrees"] is not None:
        parts.append(f"the top class agrees in {verify['top_class_agrees']:.0%}")
    return ", ".join(parts)
