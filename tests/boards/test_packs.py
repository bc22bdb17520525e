"""`uaccel new board NAME --pack FILE`: chips out of CMSIS-Packs, which the tests make."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from boards.linked import check_linked, link
from support.device.boards import board_with_tools
from support.run.command import Call, call_in
from uaccel.board import PyOcdFlash, load_board
from uaccel.board.chips import CORES
from uaccel.board.cmsis_pack import DEEPEST, LARGEST, MOST_ELEMENTS, chip_in_pack, packs_folder
from uaccel.errors import BoardError
from uaccel.session.connect import for_board

M4F = '<processor Dcore="Cortex-M4" Dfpu="SP_FPU" Dclock="120000000"/>'
FLASH = '<memory id="IROM1" start="0x08000000" size="0x80000" startup="1" default="1"/>'
RAM = '<memory id="IRAM1" start="0x20000000" size="0x10000" default="1"/>'
WRITER = '<algorithm name="Flash/own.FLM" start="0x08000000" size="0x80000" default="1"/>'
USUAL = M4F + FLASH + RAM + WRITER


def described(devices: str) -> str:
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<package><devices>{devices}</devices></package>\n'


def family(facts: str, devices: str) -> str:
    return described(f'<family Dfamily="Own" Dvendor="Nobody:1">{facts}{devices}</family>')


def one(facts: str = USUAL) -> str:
    return family("", f'<device Dname="OWN123">{facts}</device>')


def pack(file: Path, text: str | bytes, name: str = "Nobody.Own_DFP.pdsc") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, text)
        archive.writestr("Flash/own.FLM", b"\x7fELF")
    return file


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    return call_in(capfd)


def test_a_board_of_a_pack_links_and_is_flashed_with_it(call: Call, tmp_path: Path) -> None:
    pack(tmp_path / "packs" / "own dfp.pack", one())
    done = call("new", "board", "mine", "--pack", "packs/own dfp.pack", "--json")
    assert (done.status, done.report) == (0, {"board": "mine", "target": "own123", "files": ["mine.toml"]})
    board = load_board("./mine.toml")
    assert board.flash == PyOcdFlash("own123", (), "packs/own dfp.pack")
    assert board.cpu.flags == CORES["cortex-m4f"].flags
    assert [(memory.origin, memory.length) for memory in board.memories] == [
        (0x08000000, 512 << 10),
        (0x20000000, 64 << 10),
    ]
    where = str(tmp_path / "packs" / "own%20dfp.pack")
    assert for_board(board, "rtt://pyocd").endswith(f"?ram=0x20000000:0x10000&target=own123&pack={where}")
    board_with_tools(str(board.file))
    check_linked(board, link(board, tmp_path / "project"))


def mainline(more: str) -> str:
    return USUAL.replace(M4F, f'<processor Dcore="Cortex-M33" {more}/>')


@pytest.mark.parametrize(
    ("processor", "core"),
    [
        ('Dcore="Cortex-M0"', "cortex-m0"),
        ('Dcore="Cortex-M0+"', "cortex-m0plus"),
        ('Dcore="Cortex-M3" Dfpu="NO_FPU"', "cortex-m3"),
        ('Dcore="Cortex-M4" Dfpu="0"', "cortex-m4"),
        ('Dcore="Cortex-M4" Dfpu="1"', "cortex-m4f"),
        ('Dcore="Cortex-M7"', "cortex-m7"),
        ('Dcore="Cortex-M7" Dfpu="SP_FPU"', "cortex-m7f"),
        ('Dcore="Cortex-M7" Dfpu="DP_FPU"', "cortex-m7fd"),
        ('Dcore="Cortex-M33" Dfpu="SP_FPU" Ddsp="DSP"', "cortex-m33f"),
        ('Dcore="Cortex-M33" Ddsp="DSP"', "cortex-m33d"),
        ('Dcore="Cortex-M33" Dfpu="SP_FPU" Ddsp="NO_DSP"', "cortex-m33"),
        ('Dcore="Cortex-M55" Dfpu="DP_FPU" Dmve="FP_MVE"', "cortex-m55"),
    ],
)
def test_the_processor(processor: str, core: str, tmp_path: Path) -> None:
    facts = USUAL.replace(M4F, f"<processor {processor}/>")
    assert chip_in_pack(pack(tmp_path / "a.pack", one(facts)), "", "").core == core


@pytest.mark.parametrize("core", ["cortex-m7", "cortex-m33", "cortex-m33d", "cortex-m55"])
@pytest.mark.sample(1)
def test_cores_that_only_packs_have_link(core: str, call: Call, tmp_path: Path) -> None:
    pack(tmp_path / "a.pack", one())
    assert call("new", "board", "mine", "--pack", "a.pack", "--core", core).status == 0
    board = board_with_tools("./mine.toml")
    check_linked(board, link(board, tmp_path / "project"))


K = 1 << 10


@pytest.mark.parametrize(
    ("facts", "code", "ram"),
    [
        # What the algorithm writes of it, and nothing of what it does not.
        (WRITER.replace('size="0x80000"', 'size="0x40000"'), (0x08000000, 256 * K), [(0x20000000, 64 * K)]),
        # An inner fact takes the outer one's place.
        (RAM.replace('size="0x10000"', 'size="0x8000"'), None, [(0x20000000, 32 * K)]),
        # Neighbours are one memory, and the largest is first; what is not usual is left out, and so are aliases.
        (
            '<memory name="B" access="rwx" start="0x20010000" size="65536" default="1"/>'
            '<memory name="C" access="rw" start="0x30000000" size="0x40000" default="1"/>'
            '<memory name="D" access="rw" start="0x38000000" size="0x40000"/>'
            '<memory name="E" access="rwx" start="0x10000000" size="0x90000" default="1" alias="C"/>',
            None,
            [(0x30000000, 256 * K), (0x20000000, 128 * K)],
        ),
        # The start-up code's flash, wherever it lies; option bytes are none.
        (
            '<memory name="Low" access="rx" start="0x0" size="0x80000"/>'
            '<algorithm name="low.FLM" start="0" size="0x80000"/>'
            '<memory name="Options" access="rx" start="0x1FF00000" size="0x100"/>'
            '<algorithm name="options.FLM" start="0x1FF00000" size="0x100"/>',
            None,
            [(0x20000000, 64 * K)],
        ),
        # Other tools' algorithms, and other processors' memories.
        ('<algorithm name="x" style="CMSIS" start="0" size="0x90000000"/>', None, [(0x20000000, 64 * K)]),
        ('<memory Pname="other" id="IRAM2" start="0x1000" size="0x9000" default="1"/>', None, [(0x20000000, 64 * K)]),
    ],
)
def test_the_memories(facts: str, code: tuple[int, int] | None, ram: list[tuple[int, int]], tmp_path: Path) -> None:
    outer = USUAL if not facts.startswith('<algorithm name="Flash') else USUAL.replace(WRITER, "")
    text = family(outer, f'<subFamily DsubFamily="S"><device Dname="OWN123">{facts}</device></subFamily>')
    chip = chip_in_pack(pack(tmp_path / "a.pack", text), "own123", "")
    assert (chip.code, list(chip.ram)) == (code or (0x08000000, 512 * K), ram)


TWO_CORES = (
    '<processor Pname="cm7" Dcore="Cortex-M7" Dfpu="DP_FPU"/><processor Pname="cm4" Dcore="Cortex-M4" Dfpu="SP_FPU"/>'
    '<memory Pname="cm7" name="Big" access="rwx" start="0x24000000" size="0x80000" default="1"/>'
    '<memory Pname="cm4" name="Small" access="rwx" start="0x10000000" size="0x20000" default="1"/>' + FLASH + WRITER
)


def test_one_of_two_processors(tmp_path: Path) -> None:
    file = pack(tmp_path / "a.pack", one(TWO_CORES))
    assert [chip_in_pack(file, "", core).ram[0][0] for core in ("cortex-m7fd", "cortex-m4f")] == [
        0x24000000,
        0x10000000,
    ]
    with pytest.raises(BoardError, match=r"has several processors; choose one with --core: cortex-m7fd or cortex-m4f$"):
        chip_in_pack(file, "", "")


def test_two_alike_are_one(tmp_path: Path) -> None:
    cores = "".join(f'<processor Pname="core{core}" Dcore="Cortex-M0+"/>' for core in range(2))
    assert chip_in_pack(pack(tmp_path / "a.pack", one(USUAL.replace(M4F, cores))), "", "").core == "cortex-m0plus"


def test_a_variant_is_a_device(tmp_path: Path) -> None:
    text = family(USUAL, '<device Dname="OWN1"><variant Dvariant="OWN1-Big(rev 2)"/></device>')
    assert chip_in_pack(pack(tmp_path / "a.pack", text), "own1-big(rev 2)", "").pyocd == "own1_big_rev_2_"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--target", "own124"], "no device in a.pack is called 'own124'; did you mean 'own123'?"),
        ([], "a.pack has 2 devices: OWN123, OWN9; name one with --target"),
        (["--target", "z"], "no device in a.pack is called 'z' (it has OWN123, OWN9)"),
        (
            ["--target", "own9"],
            "a.pack: device OWN9 has no processor that uaccel is for (Cortex-A7); say with --core which is near",
        ),
        (["--target", "own123", "--core", "m4"], "no core is called 'm4' (known: cortex-m0, "),
        (["--target", "own123", "--with-port"], "--with-port copies drivers, and a board with --target has none; "),
    ],
)
def test_what_a_user_mistakes(words: list[str], complaint: str, call: Call, tmp_path: Path) -> None:
    other = USUAL.replace(M4F, '<processor Dcore="Cortex-A7"/>')
    devices = f'<device Dname="OWN123">{USUAL}</device><device Dname="OWN9">{other}</device>'
    pack(tmp_path / "a.pack", family("", devices))
    done = call("new", "board", "mine", "--pack", "a.pack", *words)
    assert done.status == 1
    assert done.complaint.startswith(complaint)
    assert not Path("mine.toml").exists()


ENTITIES = '<!DOCTYPE package [<!ENTITY a SYSTEM "file:///etc/passwd">]><package>&a;</package>'
DEEP = "<a>" * (DEEPEST + 1) + "</a>" * (DEEPEST + 1)
HUGE = '<memory start="0xFFFFFFFF" size="0x10" name="H" access="rw" default="1"/>'


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (ENTITIES, "it declares a document type, which no pack needs"),
        (ENTITIES.replace('SYSTEM "file:///etc/passwd"', '"aaaa"'), "it declares a document type"),
        ("<package>&a;</package>", "it is no XML (undefined entity: "),
        ("<package>", "it is no XML (no element found: "),
        ("", "it is no XML (no element found: "),
        ('<?xml version="1.0" encoding="none"?><package/>', "its encoding cannot be read (unknown encoding: none)"),
        (DEEP, f"its elements lie more than {DEEPEST} deep"),
        (one("<memory/>" * MOST_ELEMENTS), f"it has more than {MOST_ELEMENTS:,} elements about devices"),
        (family("", '<device Dname="a&quot;&#10;x"/>'), "it has a device of the name 'a\"\\nx'"),
        (family("", "<device/>"), "it has a device of the name ''"),
        (one(USUAL + HUGE), "device OWN123 has 16 bytes at 0xffffffff, beyond 32 bits"),
        (one(USUAL + HUGE.replace("0x10", "1e9")), "has a memory or algorithm of '1e9' where a number belongs"),
        (one(USUAL + HUGE.replace("0x10", "9" * 5000)), "where a number belongs"),
        (
            one(M4F + RAM + WRITER),
            "has no flash that an algorithm of the pack writes; use 'uaccel new board NAME --like",
        ),
        (one(M4F + FLASH + RAM), "has no flash that an algorithm of the pack writes"),
        (one(M4F + FLASH + WRITER), "has no RAM that the pack tells of"),
        (one(FLASH + RAM + WRITER), "has no processor that uaccel is for (none)"),
        (described(""), "a.pack describes no device; wanted a pack of a chip's maker (a DFP)"),
        (one(USUAL.replace("0x08000000", "0x08000010")), "memory 'flash' (0x08000010 to 0x0808000f) begins with the"),
    ],
)
def test_hostile_descriptions(text: str, complaint: str, call: Call, tmp_path: Path) -> None:
    pack(tmp_path / "a.pack", text)
    done = call("new", "board", "mine", "--pack", "a.pack")
    assert done.status == 1
    assert complaint in done.complaint
    assert not Path("mine.toml").exists()


def truncated(file: Path) -> None:
    file.write_bytes(pack(file, one()).read_bytes()[:-40])


def damaged(file: Path) -> None:
    data = bytearray(pack(file, one()).read_bytes())
    data[60] ^= 0xFF
    file.write_bytes(data)


def encrypted(file: Path) -> None:
    data = bytearray(pack(file, one()).read_bytes())
    data[6] |= 1
    data[data.index(b"PK\1\2") + 8] |= 1
    file.write_bytes(data)


def two(file: Path) -> None:
    pack(file, one())
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("Other.pdsc", one())


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (truncated, "cannot read a.pack: File is not a zip file; wanted a CMSIS-Pack, which is a zip file with a "),
        (damaged, "cannot read a.pack: "),
        (encrypted, "a.pack: the description in it is encrypted; wanted"),
        (two, "a.pack has 3 files, 2 of them descriptions; wanted"),
        (lambda file: pack(file, one(), "folder/a.pdsc"), "a.pack has 2 files, 0 of them descriptions; wanted"),
        (lambda file: file.write_bytes(b""), "cannot read a.pack: File is not a zip file; wanted"),
        (lambda file: file.mkdir(), "cannot read a.pack: Is a directory; wanted"),
        (lambda file: None, "cannot read a.pack: No such file or directory; wanted"),
        (lambda file: pack(file, b" " * (LARGEST + 1)), "a.pack: the description in it has more than 64 MiB; wanted"),
    ],
    ids=["truncated", "damaged", "encrypted", "two", "folder", "empty", "directory", "absent", "bomb"],
)
def test_hostile_files(make: object, complaint: str, call: Call, tmp_path: Path) -> None:
    assert callable(make)
    make(tmp_path / "a.pack")
    done = call("new", "board", "mine", "--pack", "a.pack")
    assert done.status == 1
    assert done.complaint.startswith(complaint), done.complaint


def test_a_pack_of_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uaccel.board.cmsis_pack.MOST_FILES", 1)
    pack(tmp_path / "a.pack", one())
    with pytest.raises(BoardError, match=r"a\.pack has 2 files; wanted at most 1$"):
        chip_in_pack(tmp_path / "a.pack", "", "")


def test_installed_packs_are_found_by_the_target_alone(call: Call, tmp_path: Path) -> None:
    """The newest that has it; one that was fetched in part is passed over."""
    folder = tmp_path / "share" / "cmsis-pack-manager" / "Nobody" / "Own_DFP"
    pack(folder / "1.9.0.pack", one())
    pack(folder / "1.10.0.pack", one(USUAL.replace("0x10000", "0x20000")))
    (folder / "1.11.0.pack").write_bytes(b"PK")
    assert call("new", "board", "mine", "--target", "OWN123").status == 0
    board = load_board("./mine.toml")
    assert board.flash == PyOcdFlash("own123"), "pyOCD finds the pack itself"
    assert board.memories[1].length == 128 << 10


@pytest.mark.parametrize(
    ("system", "folder"),
    [
        ("linux", "/home/me/.local/share/cmsis-pack-manager"),
        ("darwin", "/home/me/Library/Application Support/cmsis-pack-manager"),
        ("win32", "/home/me/local/cmsis-pack-manager/cmsis-pack-manager"),
    ],
)
def test_where_they_are(system: str, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uaccel.board.cmsis_pack.sys", SimpleNamespace(platform=system))
    for name, value in {"HOME": "/home/me", "LOCALAPPDATA": "/home/me/local"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert packs_folder() == Path(folder)


def test_pyocd_reads_the_same(tmp_path: Path) -> None:
    """Its name of the target, and memories in its map."""
    reader = pytest.importorskip("pyocd.target.pack.cmsis_pack")
    names = pytest.importorskip("pyocd.target")
    file = pack(tmp_path / "a.pack", family(M4F + FLASH + WRITER, f'<device Dname="OWN-123(x)">{RAM}</device>'))
    (device,) = reader.CmsisPack(os.fspath(file)).devices
    chip = chip_in_pack(file, "", "")
    assert names.normalise_target_type_name(device.part_number) == chip.pyocd
    pytest.importorskip("cmsis_pack_manager")
    assert os.fspath(packs_folder()) == __import__("cmsis_pack_manager").Cache(True, True).data_path
