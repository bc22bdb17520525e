"""RP2040 and RP2350: what their boot ROMs want in flash, and the file that they take as a USB drive. Nobody here has
seen it start: formats and checksum are held to what is published of them."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from boards.linked import check_linked, link
from support.device.boards import board_with_tools
from support.run.command import Call, call_in
from uaccel.board import Board

FLASH = 0x10000000
SECTOR, PAGE = 4096, 256
FAMILIES = {"rp2040": 0xE48BFF56, "rp2350": 0xE48BFF59}


@pytest.fixture
def board(chip: str, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Board:
    monkeypatch.chdir(tmp_path)
    call: Call = call_in(capfd)
    assert call("new", "board", "mine", "--target", chip).status == 0
    return board_with_tools("./mine.toml")


@pytest.fixture
def build(board: Board, tmp_path: Path) -> Path:
    elf = link(board, tmp_path / "a project")
    check_linked(board, elf)
    return elf.parent


def crc(data: bytes) -> int:
    """CRC-32/MPEG-2, bit by bit; of "123456789" it is 0x0376E6E7."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte << 24
        for _ in range(8):
            value = (value << 1 ^ (0x04C11DB7 if value >> 31 else 0)) & 0xFFFFFFFF
    return value


def test_the_checksum_is_the_published_one() -> None:
    assert crc(b"123456789") == 0x0376E6E7


@pytest.mark.sample(1)
@pytest.mark.parametrize("chip", FAMILIES)
def test_what_the_rom_looks_for_and_what_it_takes(chip: str, build: Path) -> None:
    image = (build / "firmware.bin").read_bytes()
    check_boot[chip](image)
    check_uf2((build / "firmware.uf2").read_bytes(), image, FAMILIES[chip])
    assert {file.name for file in build.glob("firmware.*")} == {
        f"firmware.{end}" for end in ("bin", "elf", "map", "uf2")
    }


def check_second_stage(image: bytes) -> None:
    """256 bytes that run wherever they are copied to, and the vectors behind them."""
    code, (checksum,) = image[:252], struct.unpack_from("<I", image, 252)
    assert crc(code) == checksum
    literals = struct.unpack_from("<5I", code, 40)
    assert literals == (0x18000000, 0x001F0300, 0x03000218, FLASH + 256, 0xE000ED08)
    assert code[60:] == bytes(192)
    stack, reset = struct.unpack_from("<2I", image, 256)
    assert stack >> 20 == 0x200
    assert FLASH < reset < FLASH + len(image)


def check_image_block(image: bytes) -> None:
    """In the first 4 KiB; an executable (1) in the secure state (2 << 4) of Arm (0 << 8) on an RP2350 (1 << 12)."""
    block = struct.pack("<5I", 0xFFFFDED3, (1 | 2 << 4 | 1 << 12) << 16 | 1 << 8 | 0x42, 0x1FF, 0, 0xAB123579)
    at = image.index(block)
    assert at % 4 == 0
    assert at + len(block) <= SECTOR
    stack, reset = struct.unpack_from("<2I", image)
    assert stack >> 20 == 0x200
    assert FLASH < reset < FLASH + len(image)


check_boot = {"rp2040": check_second_stage, "rp2350": check_image_block}


def check_uf2(data: bytes, image: bytes, family: int) -> None:
    """Every block is of its own, in whole sectors from the start of flash on."""
    assert len(data) % 512 == 0
    count, found = len(data) // 512, bytearray()
    for number in range(count):
        block = data[512 * number : 512 * (number + 1)]
        head = struct.unpack_from("<8I", block)
        assert head == (0x0A324655, 0x9E5D5157, 0x2000, FLASH + PAGE * number, PAGE, number, count, family)
        assert struct.unpack_from("<I", block, 508) == (0x0AB16F30,)
        assert block[32 + PAGE : 508] == bytes(476 - PAGE)
        found += block[32 : 32 + PAGE]
    assert len(found) % SECTOR == 0
    assert len(found) - len(image) < SECTOR
    assert bytes(found) == image + bytes(len(found) - len(image))
