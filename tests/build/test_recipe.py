"""Objects that were made before give the same firmware, to the byte, and none that is out of date."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

import pytest

from support.device.boards import board_with_tools
from support.models.networks import OWN
from uaccel.accelerator import load_accelerator
from uaccel.board import load_board
from uaccel.build.object_cache import Compilation, Objects, Sources
from uaccel.build.project import build_project, create_project, firmware_of, footprint
from uaccel.errors import UaccelError
from uaccel.pipeline import compile_model
from uaccel.runner.compiled import archive_of
from uaccel.util.cache import Cache, Key

GESTURE, MIXED = OWN / "gesture.tflite", OWN / "mixed.tflite"


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """But in the caches of the tests themselves."""
    monkeypatch.delenv("UACCEL_OBJECTS")


@pytest.fixture
def compiled_anew(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sources that were given to a compiler and then kept."""
    names: list[str] = []
    keep = Objects._keep

    def kept(self: Objects, key: Key, one: Compilation) -> None:
        names.append(one.source.name)
        keep(self, key, one)

    monkeypatch.setattr(Objects, "_keep", kept)
    return names


@lru_cache
def files_of(board: str, accelerator: str, model: Path) -> Mapping[str, bytes]:
    return archive_of(compile_model(model, board=board, accelerators=[load_accelerator(accelerator)]))


def project_of(folder: Path, board: str, accelerator: str, model: Path = GESTURE) -> Path:
    target = load_board(board) if board == "host" else board_with_tools(board)
    create_project(files_of(board, accelerator, model), target, folder)
    return folder


def built(project: Path, cache: Cache | None, *, observe: bool = False) -> bytes:
    for folder in ("build", "build-observe"):
        shutil.rmtree(project / folder, ignore_errors=True)
    return firmware_of(build_project(project, observe=observe, cache=cache)).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(("board", "accelerator"), [("host", "matrix8"), ("mps2_an386", "npu")])
def test_firmware_is_the_same_to_the_byte(
    board: str, accelerator: str, tmp_path: Path, compiled_anew: list[str]
) -> None:
    cache = Cache(tmp_path / "kept")
    one, other = (project_of(tmp_path / name, board, accelerator) for name in ("one", "other"))
    assert built(one, cache) == built(other, None)
    assert "uaccel_frame.c" in compiled_anew
    told = [footprint(folder, folder / "build", "gesture", arena=0, io=0) for folder in (one, other)]
    assert told[0] == told[1]
    compiled_anew.clear()
    assert built(one, cache, observe=True) == built(other, None, observe=True)
    assert "uaccel_watch.c" in compiled_anew
    assert "uaccel_frame.c" not in compiled_anew, "it knows nothing of the hook"
    compiled_anew.clear()
    assert built(other, cache) == built(one, None)
    assert footprint(other, other / "build", "gesture", arena=0, io=0) == told[0]
    assert compiled_anew == []


@pytest.mark.slow
def test_other_models_and_accelerators_share_the_session_server(tmp_path: Path, compiled_anew: list[str]) -> None:
    cache = Cache(tmp_path / "kept")
    built(project_of(tmp_path / "one", "host", "matrix8"), cache)
    assert len(compiled_anew) > 20
    compiled_anew.clear()
    other = project_of(tmp_path / "other", "host", "npu_small", MIXED)
    with_cache = built(other, cache)
    assert with_cache == built(other, None)
    assert {name for name in compiled_anew if name.startswith("uaccel_")} == set()
    assert {entry.kind for entry in cache.kept()} == {"object", "recipe"}


def _edit(project: Path, file: str, old: str, new: str) -> None:
    text = (project / file).read_text()
    assert old in text
    (project / file).write_text(text.replace(old, new, 1))


SERVER = "firmware/runtime/uaccel_server.c"
PROTOCOL = "firmware/include/uaccel_protocol.h"
SHADOW = """#include_next <features.h>
#ifndef SHADOW
#define SHADOW
__attribute__((used)) static const char shadow[] = "shadow";
#endif
"""
EDITS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a source": (lambda project: _edit(project, SERVER, "#include", "int more;\n#include"), "uaccel_server.c"),
    "a header": (lambda project: _edit(project, PROTOCOL, "_FLAG_OBSERVE 1u", "_FLAG_OBSERVE 2u"), "uaccel_server.c"),
    "a header that comes first": (
        lambda project: (project / "firmware/runtime/uaccel_protocol.h").write_text(
            (project / PROTOCOL).read_text().replace("_FLAG_OBSERVE 2u", "_FLAG_OBSERVE 4u")
        ),
        "uaccel_server.c",
    ),
    "a macro": (
        lambda project: _edit(project, "cmake/native.cmake", "BODY_BYTES=4096", "BODY_BYTES=2048"),
        "uaccel_frame.c",
    ),
    "one more source": (
        lambda project: (project / "firmware/runtime/more.c").write_text("int uaccel_more = 1;\n"),
        "more.c",
    ),
    "an option": (lambda project: _edit(project, "CMakeLists.txt", '"-O2"', '"-O1"'), "matrix8_device.c"),
    "a header that the compiler's would include": (
        lambda project: (project / "board/features.h").write_text(SHADOW),
        "uaccel_server.c",
    ),
}


FEW = ("a source", "a header", "one more source")


@pytest.mark.slow
@pytest.mark.parametrize("edits", [FEW, pytest.param(tuple(EDITS), marks=pytest.mark.slow)], ids=["few", "all"])
def test_what_was_changed_is_compiled(edits: tuple[str, ...], tmp_path: Path, compiled_anew: list[str]) -> None:
    cache = Cache(tmp_path / "kept")
    project = project_of(tmp_path / "project", "host", "matrix8")
    before = built(project, cache)
    for what in edits:
        edit, compiled = EDITS[what]
        compiled_anew.clear()
        edit(project)
        after = built(project, cache)
        assert compiled in compiled_anew, what
        assert after != before, what
        before = after
    assert edits == FEW or before == built(project, None)


@pytest.mark.parametrize("file", [pytest.param(SERVER, marks=pytest.mark.slow), "CMakeLists.txt"])
def test_what_cannot_be_built_is_said_as_ever(file: str, tmp_path: Path) -> None:
    project = project_of(tmp_path / "project", "host", "matrix8")
    (project / file).write_text("this is nothing")
    said = []
    for cache in (None, Cache(tmp_path / "kept")):
        with pytest.raises(UaccelError) as raised:
            built(project, cache)
        said.append(str(raised.value))
    assert said[0] == said[1]
    assert "building the firmware failed" in said[0] or "configuring the firmware failed" in said[0]


def two_headers_of_one_name(project: Path) -> list[Path]:
    """The folders that have them: whose is included last depends on which is looked into first."""
    for folder in ("one", "two"):
        (project / folder).mkdir()
        (project / folder / "x.h").write_text(f"#undef WHICH\n#define WHICH {folder}\n")
        (project / folder / "y.h").write_text('#include "x.h"\n')
    includes = "".join(f"#include {name}\n" for name in ('"one/y.h"', '"two/y.h"', "<x.h>", "<stdint.h>"))
    (project / "a.c").write_text(f"{includes}int WHICH;\n")
    return [project / "one", project / "two"]


def test_who_includes_what_counts_and_not_only_what_is_included(tmp_path: Path) -> None:
    places = two_headers_of_one_name(tmp_path)
    first, other = (Sources(tmp_path).closure(tmp_path / "a.c", folders) for folders in (places, places[::-1]))
    assert first is not None
    assert other is not None
    assert first.texts == other.texts
    assert set(first.edges) ^ set(other.edges) == {("a.c", "<x.h", "one/x.h"), ("a.c", "<x.h", "two/x.h")}
    assert ("a.c", "<stdint.h", "") in first.edges


def compiled(project: Path, cache: Cache, *options: str) -> bytes:
    """``a.c`` with these options, taken where it is kept."""
    words = " ".join(options)
    wanted = Compilation.of(f"gcc {words} -MD -MT a.o -MF a.o.d -o a.o -c {project / 'a.c'}", project.parent)
    assert wanted is not None
    assert Objects(cache, project, project.parent).make(wanted)
    return wanted.made.read_bytes()


@pytest.fixture
def small(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def test_an_object_is_not_shared_where_another_header_is_found_first(small: Path, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "kept")
    one, two = (f"-I{folder}" for folder in two_headers_of_one_name(small))
    first, other, again = (compiled(small, cache, *folders) for folders in ((one, two), (two, one), (one, two)))
    assert b"one" in first
    assert b"two" in other
    assert again == first
    assert len(cache.kept()) == 2


def test_an_object_is_not_shared_where_a_header_shadows_the_compilers(small: Path, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "kept")
    one, two = (f"-I{folder}" for folder in two_headers_of_one_name(small))
    before = compiled(small, cache, one, two)
    (small / "two" / "features.h").write_text(SHADOW)
    assert b"shadow" not in before
    assert b"shadow" in compiled(small, cache, one, two)


def test_a_macro_counts_where_another_one_has_it(small: Path, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "kept")
    (small / "a.c").write_text("int x = UACCEL_A;\n")
    made = [compiled(small, cache, "-DUACCEL_A=UACCEL_B", f"-DUACCEL_B={value}") for value in (1, 2, 1)]
    assert made[0] == made[2] != made[1]
    compiled(small, cache, "-DUACCEL_A=UACCEL_B", "-DUACCEL_B=1", "-DUACCEL_C=3")
    assert len(cache.kept()) == 2, "nothing mentions the third"


def test_a_file_that_a_macro_names_counts(small: Path, tmp_path: Path) -> None:
    """So kernels include their bodies: by a header that includes what the macro stands for at that time."""
    cache = Cache(tmp_path / "kept")
    (small / "by.h").write_text("#include BODY\n#undef BODY\n")
    bodies = '#define BODY "one.h"\n#include "by.h"\n# define BODY "two.h"\n#include "by.h"\n'
    (small / "a.c").write_text(bodies)
    (small / "one.h").write_text("int one;\n")
    made = []
    for name in ("alpha", "beta", "alpha"):
        (small / "two.h").write_text(f"int {name};\n")
        made.append(compiled(small, cache))
        assert name.encode() in made[-1]
    assert made[0] == made[2]
    assert len(cache.kept()) == 2
    closure = Sources(small).closure(small / "a.c", [])
    assert closure is not None
    assert {("by.h", '"one.h', "one.h"), ("by.h", '"two.h', "two.h")} <= set(closure.edges)


def test_a_macro_of_the_command_that_names_a_file_is_not_trusted(small: Path, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "kept")
    (small / "a.c").write_text('#ifndef BODY\n#define BODY "one.h"\n#endif\n#include BODY\n')
    (small / "one.h").write_text("int one;\n")
    for name in ("alpha", "beta"):
        (small / "two.h").write_text(f"int {name};\n")
        assert name.encode() in compiled(small, cache, "'-DBODY=\"two.h\"'")
    assert cache.kept() == []


@pytest.mark.parametrize(
    "line",
    [
        "#include HEADER",
        '#define HEADER OTHER\n#define OTHER "x.h"\n#include HEADER',
        '#define HEADER "x.h"\n#define HEADER \\\n "y.h"\n#include HEADER',
        "#define HEADER(x) <x>\n#include HEADER(x.h)",
        "#include_next <x.h>",
        "const char *when = __DATE__;",
        "#if __has_include(<x.h>)",
        '__asm__(".incbin \\"x\\"");',
        ' .include "x"',
    ],
)
def test_what_a_key_cannot_hold_is_never_shared(line: str, tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int a;\n")
    assert Sources(tmp_path).closure(tmp_path / "a.c", []) is not None
    (tmp_path / "a.c").write_text(f"int a;\n{line}\n")
    assert Sources(tmp_path).closure(tmp_path / "a.c", []) is None
