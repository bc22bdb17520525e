"""Holds what can be held of the package's words; ``make lint`` runs it.

Every module and every public class has a docstring. No docstring begins with a word that hangs in the air ("Of", "By",
"For", "From", "Those"), and no sentence of a docstring, comment or error begins as none of a page may. Such a sentence
has at most 40 words. What is said of a constant is a comment, not a string below it. No module has over 600 lines.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts.check_pages import HANGING as NO_OPENINGS
from scripts.check_pages import sentences

PACKAGE: Final = Path(__file__).resolve().parent.parent / "python" / "uaccel"
LONGEST_MODULE: Final = 600
LONGEST_SENTENCE: Final = 40  # Words: names in double back ticks make a docstring's sentence longer than a page's.
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


def comments(text: str) -> Iterator[tuple[int, str]]:
    """The comments that stand on lines of their own, those of following lines as one, each with its first line."""
    lines: dict[int, str] = {}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and token.line.lstrip().startswith("#"):
            lines[token.start[0]] = token.string.lstrip("#")
    for number in lines:
        if number - 1 not in lines:
            end = next(line for line in range(number, number + len(lines) + 1) if line not in lines)
            yield number, "\n".join(lines[line].removeprefix(" ") for line in range(number, end))


def errors(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The texts of what is raised, their parts between semicolons as sentences; a value in one counts as a word."""
    for node in ast.walk(tree):
        for part in node.exc.args if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) else ():
            pieces = part.values if isinstance(part, ast.JoinedStr) else [part]
            words = [piece.value if isinstance(piece, ast.Constant) else "`value`" for piece in pieces]
            yield part.lineno, "".join(map(str, words)).replace("; ", ". ")


def spoken(tree: ast.Module, text: str) -> Iterator[tuple[int, str]]:
    """The sentences of docstrings, comments and errors. Indented lines are examples or tables, and no sentences."""
    said = [(line, docstring) for line, _, docstring, _ in documented(tree) if docstring]
    said += errors(tree)
    for first, words in (*said, *comments(text)):
        flat = re.sub(r"^(?: {4}| {2}- ).*$", "", words.replace("``", "`"), flags=re.MULTILINE)
        yield from ((first + line - 1, sentence) for line, sentence in sentences(flat))


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
    for line, sentence in spoken(tree, text):
        length = len([word for word in sentence.split() if re.search(r"\w", word)])
        if length > LONGEST_SENTENCE:
            yield f"{line}: a sentence of {length} words, wanted at most {LONGEST_SENTENCE}: {sentence}"
        if sentence.startswith(NO_OPENINGS):
            yield f"{line}: a sentence begins with a word that hangs in the air: {sentence}"
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
