"""Holds what can be held of the package's words; ``make lint`` runs it.

Every module and every public class has a docstring. No docstring begins with a word that hangs in the air ("Of", "By",
"For", "From", "Those"). What is said of a constant is a comment, not a string below it. No module is longer than 600
lines.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).resolve().parent.parent / "python" / "uaccel"
LONGEST_MODULE: Final = 600
HANGING: Final = ("Of", "By", "For", "From", "Those")

Named = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def documented(tree: ast.Module) -> Iterator[tuple[int, str, str | None, bool]]:
    """Line, name and docstring of all that can have one, and whether it must."""
    yield 1, "the module", ast.get_docstring(tree), True
    for node in ast.walk(tree):
        if isinstance(node, Named):
            public = isinstance(node, ast.ClassDef) and not node.name.startswith("_") and node in tree.body
            yield node.lineno, node.name, ast.get_docstring(node), public


def strings_below_constants(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        body = getattr(node, "body", [])
        for above, below in pairwise(body) if isinstance(body, list) else ():
            text = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
            if isinstance(above, (ast.Assign, ast.AnnAssign)) and text:
                yield below.lineno


def problems(text: str) -> Iterator[str]:
    """What is wrong in the text of one module, each with its line."""
    lines = text.count("\n")
    if lines > LONGEST_MODULE:
        yield f"{lines}: the module has {lines} lines, wanted at most {LONGEST_MODULE}: give a topic its own module"
    tree = ast.parse(text)
    for line, name, docstring, needed in documented(tree):
        first = (docstring or "").split(maxsplit=1)[:1]
        if needed and not first:
            yield f"{line}: {name} has no docstring"
        elif first and first[0] in HANGING:
            yield f'{line}: the docstring of {name} begins with "{first[0]}": say what it is or does'
    for line in strings_below_constants(tree):
        yield f"{line}: a string below a constant: make it a comment"


def main(arguments: list[str]) -> int:
    folders = [Path(word) for word in arguments] or [PACKAGE]
    files = [file for folder in folders for file in ([folder] if folder.is_file() else sorted(folder.rglob("*.py")))]
    found = [f"{file}:{problem}" for file in files for problem in problems(file.read_text(encoding="utf-8"))]
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
