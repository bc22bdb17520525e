"""Board files as TOML: the lines of keys, and files that are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.device.board_files import HOST, complaint, load
from uaccel.board.toml_table import key_lines


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a = 1\nb 2\n",
            "bench.toml:2: not valid TOML: Expected '=' after a key in a key/value pair (column 3)",
        ),
        ("a = 1\na = 2\n", "bench.toml:2: not valid TOML: Cannot overwrite a value (column 6)"),
        ('a = "', "bench.toml:1: not valid TOML: Unterminated string"),
        (b"a = 1\n# caf\xe9\n", "bench.toml:2: not UTF-8 text, as TOML must be"),
        (
            "a = " + "[" * 100_000,
            "bench.toml:1: not a board file: values are nested too deeply",
        ),
        ("a = " + "9" * 5000, "bench.toml:1: not a board file: an integer has more than 64 bits"),
        ("stack = 0x" + "f" * 5000, "bench.toml:1: not a board file: an integer has more than 64 bits"),
        ("stack = inf", "bench.toml:1: not a board file: a float is no finite number"),
        ("", "bench.toml:1: the file lacks 'cpu': wanted a table [cpu]"),
    ],
)
def test_a_file_that_is_no_toml(tmp_path: Path, text: str | bytes, message: str) -> None:
    assert complaint(tmp_path, text).startswith(message)


def test_byte_order_mark_and_dos_line_ends_do_no_harm(tmp_path: Path) -> None:
    assert load(tmp_path, b"\xef\xbb\xbf" + HOST.replace("\n", "\r\n").encode()).port.name == "host"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("# head\n\na = 1\n", {("a",): 3}),
        ("a.b.c = 1", {("a",): 1, ("a", "b"): 1, ("a", "b", "c"): 1}),
        ("\"x y\" = 1\n'p.q'.r = 2", {("x y",): 1, ("p.q",): 2, ("p.q", "r"): 2}),
        ("a = [ # one\n  1,\n  [2],\n]\nb = 2", {("a",): 1, ("b",): 5}),
        ('a = """\nb = 1\n[c]\n"""\nd = 1', {("a",): 1, ("d",): 5}),
        ("a = '''\nb = 1\n'''\nc = 1", {("a",): 1, ("c",): 4}),
        ('a = "# [x] \\" = {"\nb = 1', {("a",): 1, ("b",): 2}),
        ("a = { b = 1, c = [1, 2] }\nd = 1", {("a",): 1, ("d",): 2}),
        ("[s] # note\nk = 1.5", {("s",): 1, ("s", "k"): 2}),
        ("[a.b]\nc = 1\n[a]\nd = 1", {("a",): 3, ("a", "b"): 1, ("a", "b", "c"): 2, ("a", "d"): 4}),
        (
            "[[m]]\nx = 1\n[[m]]\nx = 2\n[m.sub]\ny = 3",
            {
                ("m",): 1,
                ("m", 0): 1,
                ("m", 0, "x"): 2,
                ("m", 1): 3,
                ("m", 1, "x"): 4,
                ("m", 1, "sub"): 5,
                ("m", 1, "sub", "y"): 6,
            },
        ),
    ],
)
def test_lines_of_keys(text: str, lines: dict[tuple[str | int, ...], int]) -> None:
    assert key_lines(text) == lines
