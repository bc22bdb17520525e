"""Holds what can be held of the pages' words: README.md and docs/*.md; ``make lint`` runs it.

All pages together stay below a number of words. No sentence is longer than 25 words or begins with a word that hangs in
the air. One sentence in seven may be passive. A thing has one name, that of the glossary. CHANGELOG.md is held to the
same. No table has more than seven columns; the pages of ``docs/reference/`` are held to that as well.

Prose is what is no table, no code block and no comment. A piece of code in a line counts as one word.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
CHANGES: Final = ROOT / "CHANGELOG.md"
MOST_WORDS: Final = 25_000
LONGEST_SENTENCE: Final = 25
MOST_COLUMNS: Final = 7
MOST_PASSIVE: Final = 1 / 7
FEWEST_JUDGED: Final = 20  # sentences; of fewer a share says little
HANGING: Final = ("Of ", "Those ", "By what ", "By which ", "From which ", "For what ")
GLOSSARY: Final = {
    "workspace": "arena",
    r"co-?processor": "accelerator",
    r"emulation model|simulation model": "device model",
    r"intermediate buffer|temporary buffer": "scratch",
    r"off-?loads? to": "computes on",
    "quantiz": "quantis",
    "optimiz": "optimis",
    "normaliz": "normalis",
}  # what is not said, and the word that is

_LEFT_OUT: Final = re.compile(r"^```.*?^```$|<!--.*?-->", re.MULTILINE | re.DOTALL)
_PICTURE: Final = re.compile(r"!\[[^\]]*\]\([^)]*\)")
_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)|<https?://\S+>")
_CODE: Final = re.compile(r"`[^`]+`")
_ITEM: Final = re.compile(r"^\s*(?:[-*]|\d+\.)\s+")
_END: Final = re.compile(r"(?<=[.!?])[\"*)]*\s+")
_IRREGULAR: Final = (
    "built|chosen|cut|done|drawn|driven|fed|found|given|held|kept|known|laid|left|lost|made|meant|met|paid|put|read|run|"
    "said|seen|sent|set|shown|split|spread|taken|told|written"
)
_PASSIVE: Final = re.compile(
    rf"\b(?:is|are|was|were|be|been|being) (?:(?:not|never|always|only|also|then|still|already|\w+ly) )*"
    rf"(?:\w{{2,}}ed|{_IRREGULAR})\b"
)
_SHORT: Final = re.compile(r"\b(e\.g|i\.e|etc|vs|Fig)\.")


def read() -> list[Path]:
    """The pages that people read from their beginning to their end."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def lines(text: str) -> Iterator[tuple[int, str]]:
    """Number and text of each line of prose; empty ones stand for what lies between."""
    blank = _LEFT_OUT.sub(lambda found: "\n" * found[0].count("\n"), text)
    for number, line in enumerate(blank.split("\n"), 1):
        yield number, "" if line.lstrip().startswith("|") else line


def plain(text: str) -> str:
    """Prose as it is read: links by their words, code as one word."""
    linked = _LINK.sub(lambda found: found[1] or "link", _PICTURE.sub("", text))
    return _SHORT.sub(r"\1", _CODE.sub("CODE", linked))


def words(text: str) -> int:
    """How many words of prose a page has."""
    return sum(len(plain(line).split()) for _, line in lines(text))


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Each sentence with the line where its paragraph begins."""
    paragraph: list[str] = []
    first = 0
    for number, line in [*lines(text), (0, "")]:
        head = line.startswith("#")
        if paragraph and (not line.strip() or head or _ITEM.match(line)):
            joined = plain(" ".join(paragraph))
            yield from ((first, sentence) for sentence in _END.split(joined) if sentence.strip())
            paragraph = []
        if line.strip() and not head:
            first = first if paragraph else number
            paragraph.append(_ITEM.sub("", line).strip())


def problems(text: str) -> Iterator[str]:
    """What is wrong in the sentences of a page, each with its line."""
    for line, sentence in sentences(text):
        length = len([word for word in sentence.split() if re.search(r"\w", word)])
        if length > LONGEST_SENTENCE:
            yield f"{line}: a sentence of {length} words, wanted at most {LONGEST_SENTENCE}: {sentence}"
        if sentence.lstrip('"*(_').startswith(HANGING):
            yield f"{line}: a sentence begins with a word that hangs in the air: {sentence}"
        for unsaid, said in GLOSSARY.items():
            if found := re.search(unsaid, sentence, re.IGNORECASE):
                yield f'{line}: "{found[0]}", wanted "{said}" as elsewhere: {sentence}'


def passive(text: str) -> Iterator[str]:
    """A page of which too large a part is passive."""
    spoken = [sentence for _, sentence in sentences(text)]
    found = [sentence for sentence in spoken if _PASSIVE.search(sentence)]
    if len(spoken) >= FEWEST_JUDGED and len(found) > MOST_PASSIVE * len(spoken):
        yield f"1: {len(found)} of {len(spoken)} sentences are passive, wanted at most one in seven: {found[0]}"


def wide_tables(text: str) -> Iterator[str]:
    """Tables with too many columns, by their head."""
    blank = _LEFT_OUT.sub(lambda found: "\n" * found[0].count("\n"), text).split("\n")
    for number, (line, below) in enumerate(pairwise(blank), 1):
        if re.fullmatch(r"\|[-:| ]+\|", below.strip()) and line.startswith("|"):
            columns = below.count("|") - 1
            if columns > MOST_COLUMNS:
                yield f"{number}: a table of {columns} columns, wanted at most {MOST_COLUMNS}"


def main(arguments: list[str]) -> int:
    pages = [Path(word).resolve() for word in arguments] or read()
    reference = () if arguments else sorted((ROOT / "docs" / "reference").glob("*.md"))
    texts = {page: page.read_text(encoding="utf-8") for page in (*pages, *reference)}
    spoken = {**texts, CHANGES: CHANGES.read_text(encoding="utf-8")}
    judged = pages if arguments else [*pages, CHANGES]
    found = [f"{page}:{problem}" for page in judged for problem in (*problems(spoken[page]), *passive(spoken[page]))]
    found += [f"{page}:{problem}" for page, text in texts.items() for problem in wide_tables(text)]
    total = sum(words(texts[page]) for page in pages)
    if total > MOST_WORDS:
        found.append(f"{len(pages)} pages have {total:,} words of prose, wanted at most {MOST_WORDS:,}")
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
