"""docs/reference/commands.md from the commands' own help: every option; run it to write the page."""

from __future__ import annotations

import re
from pathlib import Path

from typer.testing import CliRunner

from uaccel.cli.app import make_app

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "commands.md"
HEAD = """# Every option of every command

*What can I say to a command?* This page holds what `--help-all` says, or `--help` where that has all.
`python scripts/commands_page.py` writes it. [cli.md](../cli.md) tells what commands do, what they print, and what
their exit statuses mean.
"""
_WIDTH = 100


def page() -> str:
    """The whole text."""
    return HEAD + "".join(
        f"\n## `{' '.join(words)}`\n\n```text\n{told}\n```\n" for words, told in commands(("uaccel",))
    )


def commands(words: tuple[str, ...]) -> list[tuple[tuple[str, ...], str]]:
    """A command and those below it, each with its help."""
    options = {"COLUMNS": str(_WIDTH), "TERMINAL_WIDTH": str(_WIDTH)}
    told = ""
    for flag in ("--help", "--help-all"):
        if not told or flag in told:
            said = [*words[1:], flag]
            done = CliRunner().invoke(make_app(), said, prog_name="uaccel", env=options, terminal_width=_WIDTH)
            told = done.output.strip()
    listed = told.partition("\nCommands:\n")[2]
    below = re.findall(r"^  (\S+)", listed, re.MULTILINE)
    return [(words, told), *(row for name in below for row in commands((*words, name)))]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
