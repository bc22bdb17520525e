"""A row for each kind of place that names go to: what it makes of hostile ones."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from support.device.hostlib import kernel_folders
from support.hostile.hostile import HALF, HOSTILE
from uaccel.errors import UaccelError, escape_terminal, one_line
from uaccel.util.files import data_dir
from uaccel.util.text import c_string, cmake_list, cmake_string, code_span, comment_safe, is_reserved, shown_json, table

NAMES = list(HOSTILE.values())


def run(*command: str | Path, folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b""), done.stderr[:2000]
    assert not (folder / "pwned").exists()
    return done.stdout.decode()


def in_c(folder: Path) -> list[str]:
    """As string literals, each with itself in a comment before it; one program prints them all."""
    lines = [f"    /* {comment_safe(name)} */\n    show({c_string(name)}, {len(name.encode())});" for name in NAMES]
    head = "#include <stdio.h>\nstatic void show(const char *text, unsigned bytes)\n{\n"
    show = '    (void)fwrite(text, 1, bytes, stdout);\n    (void)fwrite("\\377", 1, 1, stdout);\n}\n'
    (folder / "names.c").write_text(f"{head}{show}int main(void)\n{{\n{chr(10).join(lines)}\n    return 0;\n}}\n")
    warnings = ("-std=c99", "-Wall", "-Wextra", "-Wcomment", "-Wtrigraphs", "-pedantic", "-Wno-overlength-strings")
    run("gcc", *warnings, "-Werror", "names.c", "-o", "names", folder=folder)
    done = subprocess.run([folder / "names"], capture_output=True, check=True)
    return [part.decode() for part in done.stdout.split(b"\377")[:-1]]


CMAKE_NAMES = [name for name in NAMES if "\0" not in name]
ELEMENTS = [name for name in CMAKE_NAMES if not re.search(r"[\[\]]|\\$", name)]
"""CMake has no way to say the others: in a list it joins what stands between brackets, or behind a backslash."""


def in_cmake(folder: Path) -> list[str]:
    lines = ["cmake_minimum_required(VERSION 3.16)"]
    for number, name in enumerate(CMAKE_NAMES):
        lines += [f"set(NAME {cmake_string(name)})", f'file(WRITE "{folder}/{number}" "${{NAME}}")']
    return read_back(folder, lines, len(CMAKE_NAMES))


def in_a_list_of_cmake(folder: Path) -> list[str]:
    lines = ["cmake_minimum_required(VERSION 3.16)", f"set(ALL {cmake_list(ELEMENTS)})", "set(NUMBER 0)"]
    lines += ["foreach(NAME IN LISTS ALL)", f'  file(WRITE "{folder}/${{NUMBER}}" "${{NAME}}")']
    lines += ['  math(EXPR NUMBER "${NUMBER} + 1")', "endforeach()"]
    return read_back(folder, lines, len(ELEMENTS))


def read_back(folder: Path, lines: list[str], count: int) -> list[str]:
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    (folder / "names.cmake").write_bytes("\n".join(lines).encode())
    run("cmake", "-P", folder / "names.cmake", folder=folder)
    return [(folder / str(number)).read_bytes().decode() for number in range(count)]


def in_json(folder: Path) -> list[str]:
    text = shown_json(json.dumps(NAMES, ensure_ascii=False))
    assert text.isprintable()
    found: list[str] = json.loads(text)
    return found


class _Cells(HTMLParser):
    """The texts of a page, and its tags."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_code_in_markdown_is_code() -> None:
    markdown = pytest.importorskip("markdown", reason="Markdown is not installed")
    names = [name for name in [*NAMES, "`", "a``b`c", "`x"] if name.strip()]
    for name in names:
        cells = _Cells()
        cells.feed(markdown.markdown(f"before {code_span(name)} after"))
        cells.close()
        assert cells.tags == {"p", "code"}
        assert "".join(cells.texts) == f"before {one_line(name).strip()} after"


def test_a_page_has_the_tags_of_its_table_alone() -> None:
    names = [*NAMES, "<script>touch pwned</script>", "&lt;b&gt;", "' onclick='touch pwned"]
    cells = _Cells()
    cells.feed(table(names, [names], names))
    cells.close()
    assert cells.tags == {"table", "tr", "th", "td", "div"}
    assert cells.texts == [escape_terminal(name) for name in names] * 3


@pytest.mark.parametrize(
    ("sink", "names"),
    [(in_c, NAMES), (in_cmake, CMAKE_NAMES), (in_a_list_of_cmake, ELEMENTS), (in_json, NAMES)],
    ids=["C", "CMake", "a list of CMake's", "JSON"],
)
def test_a_name_is_a_name_there(sink: Callable[[Path], list[str]], names: list[str], tmp_path: Path) -> None:
    for got, wanted in zip(sink(tmp_path), names, strict=True):
        assert got == wanted


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_terminal_obeys_nothing(kind: str) -> None:
    name = HOSTILE[kind]
    for text in (escape_terminal(name), one_line(name), str(UaccelError(name)), str(UaccelError(f"{name}\n{name}"))):
        assert text.isprintable()
    assert escape_terminal(name) == "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)


def test_half_of_a_pair_goes_everywhere(tmp_path: Path) -> None:
    for text in (
        escape_terminal(HALF),
        one_line(HALF),
        shown_json(json.dumps(HALF, ensure_ascii=False)),
        comment_safe(HALF),
    ):
        assert text.encode().decode() == text
    assert c_string(HALF) == '"half of a pair \\077\\077"'


HEADERS = ("stddef.h", "stdbool.h", "stdint.h", "string.h", "math.h")
COMPILERS = {
    "gcc": (),
    "clang": (),
    "powerpc-linux-gnu-gcc": (),
    "arm-none-eabi-gcc": ("-mcpu=cortex-m55", "-mfloat-abi=hard"),
    "riscv64-unknown-elf-gcc": ("-march=rv32imac", "-mabi=ilp32", "--specs=picolibc.specs"),
}
IN_THEIR_PLACE_ALONE = {"vector", "pixel"}
"""Of PowerPC's AltiVec: words of the language where a type can stand."""


@pytest.mark.parametrize("standard", ["c99", "gnu17"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_what_headers_define_is_reserved(compiler: str, standard: str, tmp_path: Path) -> None:
    """Of those that generated code includes: a member of a structure called so would be something else."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    firmware = data_dir("firmware")
    ours = [path.name for path in (firmware / "include").glob("*.h") if path.name != "uaccel_port.h"]
    text = "".join(f"#include <{name}>\n" for name in HEADERS) + "".join(f'#include "{name}"\n' for name in ours)
    (tmp_path / "all.c").write_text(f'{text}#include "uaccel_weights.h"\n')
    folders = [f"-I{folder}" for folder in (firmware / "include", *kernel_folders())]
    command = [compiler, *COMPILERS[compiler], f"-std={standard}", *folders, "-dM", "-E", str(tmp_path / "all.c")]
    macros = re.findall(r"^#define ([A-Za-z]\w*)(?: |$)", run(*command, folder=tmp_path), re.MULTILINE)
    assert len(macros) > 50
    assert [name for name in macros if not is_reserved(name) and name not in IN_THEIR_PLACE_ALONE] == []
