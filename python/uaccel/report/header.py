"""What ran where, whether it is right, and what it takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uaccel.report.run import Run
from uaccel.report.section import Section
from uaccel.report.words import count, joined, percent, seconds, shape, size

FLASH_KINDS, RAM_KINDS = ("flash",), ("ram", "tcm")


def section(run: Run) -> Section:
    return Section("summary", "Summary", "summary.html", summary(run))


def summary(run: Run) -> dict[str, Any]:
    """What the header shows, which comparisons show of every run."""
    data, source, target = run.data, run.section("source"), run.section("target")
    verdict, good = verdict_words(data.get("verify"))
    return {
        "model": data["model"],
        "source": source,
        "file_size": size(source.get("bytes")),
        "inputs": [_tensor(name, spec) for name, spec in data["inputs"].items()],
        "outputs": [_tensor(name, spec) for name, spec in data.get("outputs", {}).items()],
        "board": data["board"],
        "target": target,
        "engines": [_engine(run, name) for name in run.engines],
        "verdict": verdict,
        "good": good,
        "times": times(run),
        "memory": [_flash(run), _ram(run)],
        "warnings": data.get("warnings", ()),
        "uaccel": data.get("uaccel", ""),
    }


def _tensor(name: str, spec: Mapping[str, Any]) -> str:
    return f"{name}: {spec.get('dtype', '')} {shape(spec.get('shape', ()))}"


def _engine(run: Run, name: str) -> dict[str, Any]:
    steps = [step for step in run.steps if step.engine == name]
    macs, every = sum(step.macs for step in steps), sum(step.macs for step in run.steps)
    layers = sum(len(step.rows) for step in steps)
    share = f", {percent(macs, every)} of the products" if every else ""
    return {"name": name, "class": run.engine_class(name), "words": f"{layers} layer{'s' * (layers != 1)}{share}"}


def verdict_words(verify: Mapping[str, Any] | None) -> tuple[str, bool | None]:
    """In words, and whether it is good; None where nothing was compared."""
    if not verify:
        return "Not verified: this run was not compared with anything (--verify does).", None
    elements, samples = count(verify.get("compared")), verify.get("samples", 1)
    many = "one sample" if samples == 1 else f"{samples} samples"
    compared = f"{elements} elements of {many} were compared with the model's exact meaning"
    if verify.get("tensors"):
        compared += f", beside the outputs: {joined(verify['tensors'])}"
    if verify.get("layers_compared"):
        compared += f"; {verify['layers_compared']} layers were each held to what they were given"
    compared += "."
    if verify.get("not_compared"):
        compared += f" Not compared: {verify['not_compared']}."
    if verify.get("bit_exact") and not verify.get("first_wrong_layer"):
        return f"Every bit is as it should be: {compared}", True
    if verify.get("within_tolerance"):
        unit = "steps" if verify.get("units") == "steps" else "of the largest"
        far = f"the largest difference is {verify.get('largest_difference')} {unit}"
        return f"Within what the accelerators state: {far}. {compared}", True
    return f"Wrong: {_wrong(verify)}. {compared}", False


def _wrong(verify: Mapping[str, Any]) -> str:
    layer, first = verify.get("first_wrong_layer"), verify.get("first_difference")
    if layer:
        return f"the first wrong layer is {layer['layer']} on {layer['engine']}"
    if first:
        where = ",".join(map(str, first["index"]))
        return f"{first['output']}[{where}] is {first['got']}, expected {first['expected']}"
    return "outputs differ"


def times(run: Run) -> list[tuple[str, str]]:
    """Of one inference, as far as each is known."""
    data = run.data
    device = data.get("accelerator_cycles") or 0
    by = run.section("cycles_estimated_by")
    found = []
    if data.get("cycles_estimated") is not None:
        found.append(("CPU cycles", f"about {count(data['cycles_estimated'])}, estimated for {by.get('core', '')}"))
    elif by.get("missing"):
        found.append(("CPU cycles", f"not estimated: {by['missing']}"))
    if data.get("instructions") is not None:
        found.append(("CPU instructions", f"{count(data['instructions'])}, counted"))
    if data.get("accelerators"):
        found.append(("Accelerator cycles", count(device)))
    if data.get("cycles_estimated") is not None and run.hz:
        took = (data["cycles_estimated"] + device) / run.hz
        clock = f"at {run.hz / 1e6:g} MHz" + (", accelerators at the same clock" if device else "")
        found.append(("Time", f"about {seconds(took)} {clock}"))
    if data.get("seconds") is not None and not run.section("target").get("emulated"):
        found.append(("Measured", f"{seconds(data['seconds'])}, the fastest inference"))
    return found


def _flash(run: Run) -> dict[str, Any]:
    flash = run.section("flash")
    parts = [(name, flash.get(key)) for name, key in (("weights", "weights"), ("code", "code"))]
    beside = [("start-up", flash.get("startup")), ("test application", flash.get("session"))]
    return _gauge(run, "Flash", flash.get("total"), parts, beside, FLASH_KINDS)


def _ram(run: Run) -> dict[str, Any]:
    ram = run.section("ram")
    names = (("arena", "arena"), ("inputs and outputs", "io"), ("static data", "static"), ("stack", "stack"))
    parts = [(name, ram.get(key)) for name, key in names]
    return _gauge(run, "RAM", ram.get("total"), parts, [("test application", ram.get("session"))], RAM_KINDS)


def _gauge(
    run: Run,
    name: str,
    total: int | None,
    parts: list[tuple[str, Any]],
    beside: list[tuple[str, Any]],
    kinds: tuple[str, ...],
) -> dict[str, Any]:
    """``total`` against all memories of these kinds; parts that are not known are left away."""
    memories = [memory for memory in run.section("target").get("memories", ()) if memory["kind"] in kinds]
    available = sum(memory["bytes"] for memory in memories) or None
    known = [(part, size(bytes_)) for part, bytes_ in parts if bytes_ is not None]
    used = total if total is not None else sum(bytes_ or 0 for _, bytes_ in parts)
    return {
        "name": name,
        "total": size(used) if total is not None else f"{size(used)} and what only a linker knows",
        "parts": known,
        "beside": [(part, size(bytes_)) for part, bytes_ in beside if bytes_],
        "available": size(available) if available else "",
        "memories": joined(f"{memory['name']} {size(memory['bytes'])}" for memory in memories),
        "share": min(100.0, 100 * used / available) if available else None,
        "percent": percent(used, available) if available else "",
        "over": bool(available and used > available),
    }
