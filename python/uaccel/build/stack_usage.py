"""Bounds the stack that a function takes, with all that it calls.

GCC's call graph has the frames of what is compiled; functions of libraries and assembly are read from the disassembly.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from uaccel.util import incoming

# Call graph: who calls whom, with how large a frame. GCC writes it beside each object (``-fcallgraph-info=su``).

_NODE: Final = re.compile(r'^node: \{ title: "([^"]+)" label: "([^"\\]+)([^"]*)"', re.MULTILINE)
_EDGE: Final = re.compile(r'^edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"', re.MULTILINE)
_FRAME: Final = re.compile(r"(\d+) bytes \((static|dynamic,bounded)\)")
INDIRECT: Final = "__indirect_call"
SUFFIX: Final = ".ci"


@dataclass
class Function:
    """Describes a function: its symbol, its frame in bytes (None where that is known at run time only), its calls."""

    name: str
    frame: int | None
    calls: list[str] = field(default_factory=list)


# Functions by GCC's title: the name of a global function; ``file:name`` of a static one.
Graph = Mapping[str, Function]


def read_graph(files: Iterable[Path]) -> dict[str, Function]:
    """The functions that these files define."""
    graph: dict[str, Function] = {}
    for file in files:
        text = incoming.read_text(file, errors="replace")
        for title, name, rest in _NODE.findall(text):
            if " bytes (" in rest:
                match = _FRAME.search(rest)
                graph[title] = Function(_symbol(title, name), int(match[1]) if match else None)
        for source, target in _EDGE.findall(text):
            if source in graph:
                graph[source].calls.append(target)
    return graph


def _symbol(title: str, label: str) -> str:
    """The symbol of a title: without the file, but with the suffix of a clone (``.constprop.0``), which labels lack."""
    return title.rpartition(":")[2] or label


def deepest(
    graph: Graph,
    start: str,
    others: Callable[[str], int | None],
    pointed: Callable[[str], Iterable[str]] = lambda title: (),
) -> int | None:
    """The most stack that a call of ``start`` takes; None where that is unknown: recursion, calls by pointer, frames
    of unknown size.

    It is the frame of a function and the deepest of its callees, depth first, each function once. ``others`` gives the
    stack of functions that the graph does not hold, and of those in assembly, whose frame the compiler takes for 0.
    ``pointed`` gives the functions that another one may call by pointer.
    """
    known: dict[str, int | None] = {}
    under_way: set[str] = set()

    def calls_of(title: str, function: Function) -> list[str]:
        """The calls of a function. One by pointer stands for calls of all that it may reach; where nobody knows these,
        it stays as a callee without a known depth."""
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
    """The callees by pointer of a file that takes addresses of its own functions only: those never called by name."""
    called = {target for function in graph.values() for target in function.calls}
    loose = [title for title in graph if f"{file}:" in title and title not in called]
    return lambda title: loose if f"{file}:" in title else []


def own_functions(graph: Graph, roots: Mapping[str, Sequence[str]]) -> dict[str, list[str] | None]:
    """Gives for each name the symbols of the functions that its roots (titles) reach; None where another name reaches
    one of them, too."""
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


# Stack of functions without a call graph, those of the compiler's libraries: read from the disassembly.
#
# The bound is rough: every instruction of a function that takes stack counts once, as if nothing were given back before
# the function ends. It holds for compiled code, which moves the stack pointer by constants and in no loop. Where a
# frame of variable size or a call by pointer is seen, the answer is None.

_FUNCTION: Final = re.compile(r"^[0-9a-f]+ <([^>]+)>:$")
_INSTRUCTION: Final = re.compile(r"^\s*[0-9a-f]+:\t([a-z][a-z0-9.]*)(?:\t.*)?$")  # Data among the code looks otherwise.
_TARGET: Final = re.compile(r"<([^>+]+)(\+0x[0-9a-f]+)?>")
_WORD: Final = 4
OWN_ASSEMBLY: Final = ("uaccel_dsp_", "uaccel_helium_", "uaccel_rvv_")
_REGISTER: Final = re.compile(r"([a-z]+)(\d+)")


@dataclass(frozen=True)
class FunctionCode:
    """Holds the instructions of each function, as (operator, line); none where there is no disassembler."""

    functions: dict[str, list[tuple[str, str]]]
    is_arm: bool

    @property
    def interrupt(self) -> int:
        """Bytes that the processor pushes onto the stack that it interrupts, and what that may take to be aligned.

        A Cortex-M pushes 8 words, and one more to align the frame to 8 bytes. Where floating point is used, 18 more
        follow: s0 to s15, the status and a reserved word. RISC-V pushes nothing by itself.
        """
        if not self.is_arm:
            return 0
        uses_floats = any(operator.startswith("v") for lines in self.functions.values() for operator, _ in lines)
        return (27 if uses_floats else 9) * _WORD


def disassemble(elf: Path, objdump: str) -> FunctionCode:
    """The code of an ELF file by function, as objdump prints it."""
    try:
        done = subprocess.run(
            [objdump, "-d", "--no-show-raw-insn", str(elf)], capture_output=True, text=True, check=False
        )
    except OSError:
        return FunctionCode({}, is_arm=False)
    functions: dict[str, list[tuple[str, str]]] = {}
    lines: list[tuple[str, str]] = []
    for line in done.stdout.splitlines():
        if match := _FUNCTION.match(line):
            lines = functions.setdefault(match[1], [])
        elif match := _INSTRUCTION.match(line):
            lines.append((match[1], line.partition(":")[2]))
    return FunctionCode(functions, is_arm="elf32-littlearm" in done.stdout)


def frames_of(code: FunctionCode) -> Callable[[str], int | None]:
    """Works as ``library_frames``, but also for our kernels in assembly. These jump within themselves only, so that a
    computed jump is no call there: what they push is all that they take."""
    libraries = library_frames(code)

    def frame(name: str) -> int | None:
        if not name.startswith(OWN_ASSEMBLY):
            return libraries(name)
        taken = [_taken(operator, text) for operator, text in code.functions.get(name, [])]
        return sum(value for value in taken if value is not None)

    return frame


def library_frames(code: FunctionCode) -> Callable[[str], int | None]:
    """The stack that a call of a function of the firmware takes, with the deepest of its callees; None where its code
    does not tell. Recursion is unknown, too."""
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
    """The function whose first instruction this one refers to; empty for places within functions."""
    match = _TARGET.search(text)
    return match[1] if match and match[2] is None else ""


def _taken(operator: str, text: str) -> int | None:
    """Bytes of stack that an instruction takes; None for what makes them unknown: a call by pointer (one without a
    target in angle brackets), or a stack pointer that is computed."""
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
    """Bytes by which the stack pointer moves down; None unless by a constant. Moving up, a return of stack, is 0."""
    match = re.search(r",\s*#?(-?\d+)$", rest)
    if match is None:
        return None
    down = int(match[1]) if operator.startswith("sub") else -int(match[1])
    return max(0, down)


def _registers(group: str) -> int:
    """Bytes of a list of registers such as {r4, r6-r8, d8}: 8 for each d register, 4 for any other."""
    total = 0
    for part in group.split(","):
        begin, _, last = part.strip().partition("-")
        first, end = _REGISTER.fullmatch(begin), _REGISTER.fullmatch(last)
        count = int(end[2]) - int(first[2]) + 1 if first and end else 1
        total += count * (2 * _WORD if begin.startswith("d") else _WORD)
    return total
