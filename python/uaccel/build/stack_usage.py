"""How much stack each function takes."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

# Who calls whom and with how large a frame, as GCC says it beside each object (``-fcallgraph-info=su``).

_NODE: Final = re.compile(r'^node: \{ title: "([^"]+)" label: "([^"\\]+)([^"]*)"', re.MULTILINE)
_EDGE: Final = re.compile(r'^edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"', re.MULTILINE)
_FRAME: Final = re.compile(r"(\d+) bytes \((static|dynamic,bounded)\)")
INDIRECT: Final = "__indirect_call"
SUFFIX: Final = ".ci"


@dataclass
class Function:
    """``frame``: None where it depends on what happens at run time. ``name`` is that of the symbol."""

    name: str
    frame: int | None
    calls: list[str] = field(default_factory=list)


# By a title that is the name of a function that others may call, and holds the file where none may.
Graph = Mapping[str, Function]


def read_graph(files: Iterable[Path]) -> dict[str, Function]:
    """The functions that these files define."""
    graph: dict[str, Function] = {}
    for file in files:
        text = file.read_text(encoding="utf-8", errors="replace")
        for title, name, rest in _NODE.findall(text):
            if " bytes (" in rest:
                match = _FRAME.search(rest)
                graph[title] = Function(_symbol(title, name), int(match[1]) if match else None)
        for source, target in _EDGE.findall(text):
            if source in graph:
                graph[source].calls.append(target)
    return graph


def _symbol(title: str, label: str) -> str:
    """What the compiler made of a function for one of its callers has a title with a suffix."""
    return title.rpartition(":")[2] or label


def deepest(
    graph: Graph,
    start: str,
    others: Callable[[str], int | None],
    pointed: Callable[[str], Iterable[str]] = lambda title: (),
) -> int | None:
    """The most stack that a call of ``start`` takes; None where that is unknown: recursion, calls by pointer, frames
    whose size is. ``others`` tells it of functions that the graph does not hold, or of which it knows no frame since
    they are assembly; ``pointed`` gives the functions that another one may call by pointer.
    """
    known: dict[str, int | None] = {}
    under_way: set[str] = set()

    def calls_of(title: str, function: Function) -> list[str]:
        """A call by pointer is one of everything that it may reach; of nothing known, unless that is told."""
        targets = list(pointed(title)) if INDIRECT in function.calls else []
        named = [call for call in function.calls if call != INDIRECT or not targets]
        return list(dict.fromkeys([*named, *targets]))

    def at_least(bound: int | None, other: int | None) -> int | None:
        return bound if bound is None or other is None else max(bound, other)

    def depth(title: str) -> int | None:
        if title in known:
            return known[title]
        if title in under_way:
            return None
        if title not in graph:
            known[title] = others(title)
            return known[title]
        under_way.add(title)
        function = graph[title]
        below = [depth(call) for call in calls_of(title, function)]
        under_way.remove(title)
        depths = [value for value in below if value is not None]
        whole = function.frame is not None and len(depths) == len(below)
        known[title] = (function.frame or 0) + max(depths, default=0) if whole else None
        if function.frame == 0:  # or written in assembly, of which the compiler knows nothing
            known[title] = at_least(known[title], others(function.name))
        return known[title]

    return depth(start)


def pointed_in(graph: Graph, file: str) -> Callable[[str], list[str]]:
    """In a file that takes the addresses of its own functions alone: those that nothing calls by name."""
    called = {target for function in graph.values() for target in function.calls}
    loose = [title for title in graph if f"{file}:" in title and title not in called]
    return lambda title: loose if f"{file}:" in title else []


def own_functions(graph: Graph, roots: Mapping[str, Sequence[str]]) -> dict[str, list[str] | None]:
    """For each name the functions that its roots (titles) need, as symbols; None where it shares one with another."""
    reached = {name: set(_reached(graph, titles)) for name, titles in roots.items()}
    users: dict[str, int] = {}
    for titles in reached.values():
        for title in titles:
            users[title] = users.get(title, 0) + 1
    return {
        name: None if any(users[title] > 1 for title in titles) else sorted(graph[title].name for title in titles)
        for name, titles in reached.items()
    }


def _reached(graph: Graph, titles: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    todo = [title for title in titles if title in graph]
    while todo:
        title = todo.pop()
        if title not in seen:
            seen.add(title)
            yield title
            todo += [call for call in graph[title].calls if call in graph]


# How much stack a function of the compiler's libraries takes: these have no call graph, but there is their code.
#
# The bound is rough: all that a function takes of the stack anywhere counts, as if it were never given back.

_FUNCTION: Final = re.compile(r"^[0-9a-f]+ <([^>]+)>:$")
_INSTRUCTION: Final = re.compile(r"^\s*[0-9a-f]+:\t([a-z][a-z0-9.]*)(?:\t.*)?$")  # Data among the code looks otherwise.
_TARGET: Final = re.compile(r"<([^>+]+)(\+0x[0-9a-f]+)?>")
_WORD: Final = 4
OWN_ASSEMBLY: Final = ("uaccel_dsp_", "uaccel_helium_", "uaccel_rvv_")
_REGISTER: Final = re.compile(r"([a-z]+)(\d+)")


@dataclass(frozen=True)
class Code:
    """The instructions of each function, as (operator, line); empty where there is no disassembler."""

    functions: dict[str, list[tuple[str, str]]]
    is_arm: bool

    @property
    def interrupt(self) -> int:
        """What the processor pushes onto the stack that it interrupts, and what that may take to be aligned.

        A Cortex-M pushes 8 words; and where floating point registers are in use, those and the status, 18 more.
        RISC-V pushes nothing.
        """
        if not self.is_arm:
            return 0
        uses_floats = any(operator.startswith("v") for lines in self.functions.values() for operator, _ in lines)
        return (27 if uses_floats else 9) * _WORD


def disassemble(elf: Path, objdump: str) -> Code:
    try:
        done = subprocess.run(
            [objdump, "-d", "--no-show-raw-insn", str(elf)], capture_output=True, text=True, check=False
        )
    except OSError:
        return Code({}, is_arm=False)
    functions: dict[str, list[tuple[str, str]]] = {}
    lines: list[tuple[str, str]] = []
    for line in done.stdout.splitlines():
        if match := _FUNCTION.match(line):
            lines = functions.setdefault(match[1], [])
        elif match := _INSTRUCTION.match(line):
            lines.append((match[1], line.partition(":")[2]))
    return Code(functions, is_arm="elf32-littlearm" in done.stdout)


def frames_of(code: Code) -> Callable[[str], int | None]:
    """``library_frames``, and of our own kernels in assembly, which jump to nowhere else, all that they take."""
    libraries = library_frames(code)

    def frame(name: str) -> int | None:
        if not name.startswith(OWN_ASSEMBLY):
            return libraries(name)
        taken = [_taken(operator, text) for operator, text in code.functions.get(name, [])]
        return sum(value for value in taken if value is not None)

    return frame


def library_frames(code: Code) -> Callable[[str], int | None]:
    """What a call of a function of the firmware takes; None where its code does not tell."""
    functions = code.functions
    under_way: set[str] = set()

    @cache
    def frame(name: str) -> int | None:
        if name not in functions or name in under_way:
            return None
        under_way.add(name)
        taken = [_taken(operator, text) for operator, text in functions[name]]
        callees = {target for _, text in functions[name] if (target := _callee(text)) not in ("", name)}
        below = [frame(callee) for callee in sorted(callees)]
        under_way.remove(name)
        known = [value for value in (*taken, *below) if value is not None]
        if len(known) < len(taken) + len(below):
            return None
        return sum(known[: len(taken)]) + max(known[len(taken) :], default=0)

    return frame


def _callee(text: str) -> str:
    """The function that an instruction goes to, if it leaves its own."""
    match = _TARGET.search(text)
    return match[1] if match and match[2] is None else ""


def _taken(operator: str, text: str) -> int | None:
    """Bytes of the stack; None for what makes them unknown: a call by pointer, a frame of any size."""
    operator, operands = operator.removesuffix(".w"), text.split(None, 1)[1:]
    rest = re.split(r"[@;<#](?![0-9-])", operands[0])[0].strip() if operands else ""
    if operator in ("push", "vpush") or (operator.startswith("stmdb") and rest.startswith("sp!")):
        return sum(_registers(group) for group in re.findall(r"\{(.*?)\}", rest))
    if operator.startswith("str") and (match := re.search(r"\[sp, #-(\d+)\]!", rest)):
        return int(match[1])
    if operator in ("sub", "subs", "subw", "add", "addw", "addi", "c.addi16sp", "mv", "mov") and rest.startswith("sp"):
        return _moved(operator, rest)
    if operator in ("ldr", "mov") and rest.startswith("pc"):
        return None
    by_pointer = operator in ("blx", "jalr") or (operator in ("bx", "jr") and rest not in ("lr", "ra"))
    return None if by_pointer and "<" not in text else 0


def _moved(operator: str, rest: str) -> int | None:
    """The stack pointer by a constant; towards the top costs nothing."""
    match = re.search(r",\s*#?(-?\d+)$", rest)
    if match is None:
        return None
    down = int(match[1]) if operator.startswith("sub") else -int(match[1])
    return max(0, down)


def _registers(group: str) -> int:
    """Bytes of {r4, r6-r8, d8}."""
    total = 0
    for part in group.split(","):
        begin, _, last = part.strip().partition("-")
        first, end = _REGISTER.fullmatch(begin), _REGISTER.fullmatch(last)
        count = int(end[2]) - int(first[2]) + 1 if first and end else 1
        total += count * (2 * _WORD if begin.startswith("d") else _WORD)
    return total
