"""Guards calls of vendors' code, checks descriptions of accelerators, and asks them to plan for an objective."""

from __future__ import annotations

import math
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NoReturn

from uaccel.accelerator.description import C_SUFFIX, OBJECTIVES, Accelerator, Operation, complaint_about
from uaccel.board.accelerator_devices import CXX, DeviceBuild
from uaccel.errors import AcceleratorError, need
from uaccel.ops.exact import ROUNDINGS
from uaccel.util import incoming
from uaccel.util.form import Value
from uaccel.util.text import is_reserved

# Code of an accelerator's designers: an error in it becomes one line that names their file.

FAILURES = (Exception, SystemExit)  # Whatever a vendor's function may raise; a user's interrupt is not its fault.


_real_exit: Final = os._exit
_lock: Final = threading.Lock()
_guarded: int = 0  # Calls of vendors' code that go on now, in all threads.
_caller: Final[ContextVar[int]] = ContextVar("caller", default=0)  # The process, while it calls vendors' code.


def _refuse_exit(status: int) -> NoReturn:
    """Stands for ``os._exit`` meanwhile. Other threads, and processes that vendors' code forks off, end as they ask."""
    if _caller.get() == os.getpid():
        raise SystemExit(f"os._exit({status}) would end everything that uses the accelerator")
    _real_exit(status)


@contextmanager
def staying() -> Iterator[None]:
    """Keeps vendors' code from ending this process without a word; ``os._exit`` raises SystemExit instead."""
    global _guarded
    with _lock:
        _guarded += 1
        os._exit = _refuse_exit
    token = _caller.set(os.getpid())
    try:
        yield
    finally:
        _caller.reset(token)
        with _lock:
            _guarded -= 1
            if not _guarded:
                os._exit = _real_exit


@contextmanager
def vendors(folder: Path, what: str) -> Iterator[None]:
    """Guards a call of a vendor's function: its errors become an AcceleratorError; ``what`` says which it is."""
    try:
        with staying():
            yield
    except AcceleratorError:
        raise  # said already, and better
    except FAILURES as error:
        raise AcceleratorError(f"{folder}: {what} failed: {described(error, folder)}") from error


def described(error: BaseException, folder: Path) -> str:
    """The error in one line, with the last line of the vendor's files that it came through."""
    trace, line = error.__traceback__, ""
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if folder in file.parents:
            line = f" ({file.relative_to(folder)}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return f"{type(error).__name__}: {_message(error)}{line}"


def _message(error: BaseException) -> str:
    """The line of a message that counts: the last one if it begins with a traceback, as TVM's do, else the first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return "no message"
    return lines[-1] if lines[0].startswith("Traceback") else lines[0]


# Checks of a description before any model is compiled: the type and sense of each field.

Wrong = Callable[[str], AcceleratorError]
REACHES: Final = re.compile("uaccel_hal|TVMDevice")  # Found in a driver that has a device.
MOST_VARIANTS: Final = 32
MOST_ALIGNED: Final = 4096  # Bytes: what addresses of emulated devices keep (firmware/ports/hal_host/hal.c).
PASSES: Final = ("before_partition", "on_region", "after_lowering")


def _is_none_or_callable(value: Any) -> bool:
    return value is None or callable(value)


def _is_base(value: Any) -> bool:
    return isinstance(value, Path) and (value == Path() or (value.is_absolute() and value.is_dir()))


# Fields of a description, and of each of its operations, that can be judged alone.
_FIELDS: Final = {
    "description": Value(
        "a line that says what it is",
        lambda value: isinstance(value, str) and bool(value.strip()) and value.isprintable(),
    ),
    "folder": Value("a pathlib.Path, or nothing: the file's own folder", lambda value: isinstance(value, Path)),
    "stream": Value("a function that takes a Region and returns Lowered", _is_none_or_callable),
    "objective": Value("a function that takes 'latency' or 'energy'", _is_none_or_callable),
    "alignment": Value(
        f"a power of two, {MOST_ALIGNED} bytes at most",
        lambda value: _is_integer(value) and 1 <= value <= MOST_ALIGNED and not value & (value - 1),
    ),
    "tolerance": Value("a number from 0, which claims exactness", lambda value: _is_number(value) and value >= 0),
    "memories": Value('names and sizes in bytes, for example {"rows": 4096}', lambda value: isinstance(value, Mapping)),
    "parameters": Value('values by name, for example {"played": (5, 12)}', lambda value: isinstance(value, Mapping)),
    "unit": Value("a function that makes the state of its instructions", callable),
    "page": Value("a URL, or a file's path from its folder", lambda value: isinstance(value, str)),
    "base": Value("the absolute path of the folder whose C files it shares", _is_base),
    "device_build": Value("DeviceBuild", lambda value: isinstance(value, DeviceBuild)),
}
_OF_OPERATION: Final = {
    "doc": Value("text", lambda value: isinstance(value, str)),
    "check": Value("a function that returns a reason or None", callable),
    **dict.fromkeys(("lower", "cost", "expand"), Value("a function, or None", _is_none_or_callable)),
}


def validate(accelerator: Accelerator, file: Path) -> None:
    """Raises AcceleratorError with one line that names the file, if anything in the description is wrong."""

    def wrong(what: str) -> AcceleratorError:
        return AcceleratorError(f"{file}: {what}")

    _validate_name(accelerator.name, wrong)
    _validate_fields(accelerator, _FIELDS, "", wrong)
    memories: Mapping[Any, Any] = accelerator.memories
    for name, size in memories.items():
        if not isinstance(name, str) or not _is_integer(size) or size < 1:
            raise wrong(f"memories has {name!r}: {size!r}; wanted a name and its size in bytes")
    for hook in PASSES:
        for change in _list(hook, getattr(accelerator, hook), "passes", wrong):
            need(callable(change), f"{hook} holds {change!r}; wanted passes, which take a module and return one", wrong)
    _validate_parameters(accelerator.parameters, wrong)
    _validate_operations(accelerator, wrong)
    _validate_instructions(accelerator, wrong)
    _validate_files(accelerator, wrong)


def _validate_name(name: Any, wrong: Wrong) -> None:
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", name) or name == "cpu" or is_reserved(name):
        raise wrong(
            f"the accelerator's name {name!r} cannot be used; "
            "wanted lower-case letters, digits and underscores, a letter first, no word of C and not 'cpu'"
        )


def _validate_fields(owner: Any, known: Mapping[str, Value], whose: str, wrong: Wrong) -> None:
    for name, wanted in known.items():
        value = getattr(owner, name)
        need(wanted.holds(value), f"{name}{whose} is {value!r}; wanted {wanted.words}", wrong)


def _validate_parameters(parameters: Mapping[Any, Any], wrong: Wrong) -> None:
    for name, values in parameters.items():
        good = isinstance(values, (tuple, list)) and all(_is_integer(v) or isinstance(v, str) for v in values)
        if (
            not isinstance(name, str)
            or not name.isidentifier()
            or not good
            or len(set(values)) != len(values)
            or not values
        ):
            raise wrong(
                f"parameters has {name!r}: {values!r}; wanted a name and its values, numbers or words, each once"
            )
    count = math.prod(len(values) for values in parameters.values())
    if count > MOST_VARIANTS:
        raise wrong(f"parameters has {count} combinations of values; wanted {MOST_VARIANTS} at most")


def _validate_instructions(accelerator: Any, wrong: Wrong) -> None:
    complaint = complaint_about(_list("instructions", accelerator.instructions, "Instruction(...)s", wrong))
    if complaint is not None:
        raise wrong(complaint)
    if accelerator.instructions and accelerator.devices:
        raise wrong("it has instructions and a device; describe what is in the core and what is on the bus apart")


def _validate_operations(accelerator: Any, wrong: Wrong) -> None:
    operations = _list("operations", accelerator.operations, "Operation(...)s", wrong)
    need(operations, "it has no operations; list at least one, or nothing can be offloaded", wrong)
    for operation in operations:
        if not isinstance(operation, Operation):
            raise wrong(f"operations holds {operation!r}; wanted Operation(...)s")
        _validate_operation(accelerator, operation, wrong)
    repeated = _repeated(operation.name for operation in operations)
    need(not repeated, f"two operations are called '{repeated}'; names must differ", wrong)


def _validate_operation(accelerator: Accelerator, operation: Any, wrong: Wrong) -> None:
    name = operation.name
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
        raise wrong(f"an operation is called {name!r}; wanted letters, digits and underscores, a letter first")
    _validate_fields(operation, _OF_OPERATION, f" of operation '{name}'", wrong)
    roundings = _list(f"roundings of operation '{name}'", operation.roundings, "roundings", wrong)
    if not roundings or any(rounding not in ROUNDINGS for rounding in roundings):
        raise wrong(f"roundings of operation '{name}' is {roundings!r}; wanted some of {', '.join(ROUNDINGS)}")
    if operation.lower is None and accelerator.stream is None:
        raise wrong(f"operation '{name}' has no 'lower', and the accelerator no 'stream' that would take it")


def _validate_files(accelerator: Any, wrong: Wrong) -> None:
    base = accelerator.base
    reaches = any(REACHES.search(incoming.read_text(path, errors="replace")) for path in accelerator.drivers)
    for part, what, files, is_needed in (
        ("driver", "driver", accelerator.drivers, True),
        ("device", "device model", accelerator.devices, reaches),
        ("unit", "instructions' model", accelerator.units, bool(accelerator.instructions)),
    ):
        if is_needed and not any(path.suffix in (C_SUFFIX, *CXX) for path in files):
            shared = f" or {base / part}" if base != Path() else ""
            raise wrong(f"its {what} is missing: no C file in {accelerator.folder / part}{shared}")
    complaint = accelerator.device_build.complaint()
    if complaint is not None:
        raise wrong(complaint)
    headers = _list("headers", accelerator.headers, "names of files", wrong)
    need(headers, "headers is empty; name the driver's headers that declare what 'lower' calls", wrong)
    for header in headers:
        if not isinstance(header, str) or not re.fullmatch(r"[\w.+/-]+", header, re.ASCII):
            raise wrong(f"headers holds {header!r}; wanted names of files, of letters, digits, '.', '_', '+' and '-'")
        if f"driver/{header}" not in accelerator.files:
            raise wrong(f"its header {header} is missing in {accelerator.folder / 'driver'}")


def _list(name: str, value: Any, of: str, wrong: Wrong) -> Sequence[Any]:
    """The value, if it is a sequence; text is one as well, but is never meant."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        raise wrong(f"{name} is {value!r}; wanted a list of {of}")
    return value


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return _is_integer(value) or (isinstance(value, float) and math.isfinite(value))


def _repeated(names: Iterable[str]) -> str:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return ""


# The objective for which accelerators plan their work: to save time, or bytes moved.


def planning_for(objective: str, accelerators: Sequence[Accelerator]) -> list[Accelerator]:
    """The accelerators for an objective: those that can plan for it do; it is an error if none can."""
    if objective not in OBJECTIVES:
        raise AcceleratorError(f"objective '{objective}' is unknown; wanted {' or '.join(OBJECTIVES)}")
    if objective == OBJECTIVES[0] or not accelerators:
        return list(accelerators)
    if all(accelerator.objective is None for accelerator in accelerators):
        names = ", ".join(accelerator.name for accelerator in accelerators)
        raise AcceleratorError(
            f"objective {objective}: {names} cannot plan for it; 'uaccel accelerators --json' tells which can"
        )
    return [_planning_for(objective, accelerator) for accelerator in accelerators]


def _planning_for(objective: str, accelerator: Accelerator) -> Accelerator:
    if accelerator.objective is None:
        return accelerator
    what = f"objective('{objective}')"
    with vendors(accelerator.folder, what):
        other = accelerator.objective(objective)
    if not isinstance(other, Accelerator):
        raise AcceleratorError(
            f"{accelerator.folder}: {what} returned {type(other).__name__}; wanted the Accelerator that plans for it"
        )
    if other.folder == Path():
        other = replace(other, folder=accelerator.folder)
    if (other.name, other.folder) != (accelerator.name, accelerator.folder):
        raise AcceleratorError(
            f"{accelerator.folder}: {what} returned '{other.name}' of {other.folder}; "
            f"wanted '{accelerator.name}' of the same folder"
        )
    validate(other, accelerator.folder)
    return other
