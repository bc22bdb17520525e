"""Small faults of a source file in C or Python: one token each is another one."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

SWAPS: Final = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "+": "-",
    "-": "+",
    "*": "+",
    "/": "*",
    "//": "*",
    "%": "+",
    "<<": ">>",
    ">>": "<<",
    "&": "|",
    "|": "&",
    "^": "&",
    "&&": "||",
    "||": "&&",
    "!": "",
    "+=": "-=",
    "-=": "+=",
    "|=": "&=",
    "&=": "|=",
    "++": "--",
    "--": "++",
    "and": "or",
    "or": "and",
    "not": "",
    "True": "False",
    "False": "True",
    "min": "max",
    "max": "min",
    "break": "continue",
    "continue": "break",
    "any": "all",
    "all": "any",
    "true": "false",
    "false": "true",
}
C_TOKEN: Final = re.compile(
    r"/\*.*?\*/|//[^\n]*|^[ \t]*#(?:\\\n|[^\n])*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'"
    r"|->|\+\+|--|<<=|>>=|<<|>>|[<>=!+\-*/|&^%]=|&&|\|\||\d+\.\d*\w*|0[xX][0-9a-fA-F]+[uUlL]*|\d+[uUlL]*|\w+|[^\s\w]",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Mutant:
    """``begin`` to ``end`` of the text becomes ``new``."""

    begin: int
    end: int
    new: str
    line: int

    def of(self, text: str) -> str:
        return text[: self.begin] + self.new + text[self.end :]

    def told(self, text: str) -> dict[str, str | int]:
        """Where it is, and what becomes of the line."""
        first, last = text.rfind("\n", 0, self.begin) + 1, text.find("\n", self.end)
        after = text[first : self.begin] + self.new + text[self.end : last]
        return {"line": self.line, "was": text[first:last].strip(), "becomes": after.strip()}


def mutants(text: str, *, python: bool) -> list[Mutant]:
    tokens = _python_tokens(text) if python else _c_tokens(text)
    return [
        Mutant(begin, begin + len(word), new, text.count("\n", 0, begin) + 1)
        for begin, word, before in tokens
        if (new := _other(word, before)) is not None
    ]


def _other(word: str, before: str) -> str | None:
    """What a token becomes; ``before`` is the one before it."""
    if word in ("*", "&") and not (before[-1:].isalnum() or before[-1:] in ")]_"):
        return None  # of a pointer, or of many arguments
    if word in ("*", "&") and before in ("uint8_t", "int8_t", "int32_t", "uint32_t", "void", "char", "const"):
        return None
    if number := re.fullmatch(r"(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)", word):
        return f"{int(number[1], 0) + 1}{number[2]}"
    return SWAPS.get(word)


def _c_tokens(text: str) -> Iterator[tuple[int, str, str]]:
    before = ""
    for match in C_TOKEN.finditer(text):
        word = match[0]
        if word.lstrip().startswith(("/*", "//", "#", '"', "'")):
            continue
        yield match.start(), word, before
        before = word


def _python_tokens(text: str) -> Iterator[tuple[int, str, str]]:
    """Without annotations, which mean nothing when it runs."""
    lines = [0]
    for line in text.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    spared = [
        (lines[node.lineno - 1] + node.col_offset, lines[node.end_lineno - 1] + node.end_col_offset)
        for node in _annotations(ast.parse(text))
        if node.end_lineno is not None and node.end_col_offset is not None
    ]
    before = ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        begin = lines[token.start[0] - 1] + token.start[1]
        wanted = token.type in (tokenize.OP, tokenize.NAME, tokenize.NUMBER)
        if wanted and not any(first <= begin < last for first, last in spared):
            yield begin, token.string, before
        before = token.string if wanted else before


def _annotations(tree: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        found = [getattr(node, name, None) for name in ("annotation", "returns")]
        yield from (one for one in found if isinstance(one, ast.expr))
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield from node.decorator_list
