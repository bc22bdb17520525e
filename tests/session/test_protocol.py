"""One source for C, Python and the document; and all three agree on every byte of the test vectors."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from cobs import cobs

from support.device.device import Device
from support.run.docblocks import blocks
from support.run.scripts import script_of
from uaccel.errors import DeviceError
from uaccel.session import protocol_ids
from uaccel.session.message import Message
from uaccel.session.transport import Decoder, Packet, decode, encode

ROOT = Path(__file__).resolve().parents[2]
(TEXT,) = [block.text for block in blocks(ROOT / "docs" / "protocol.md") if block.file == "vectors.json"]
VECTORS: list[dict[str, Any]] = json.loads(TEXT)

each_vector = pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["what"])


@pytest.fixture
def script() -> ModuleType:
    return script_of("scripts/protocol.py")


def packet_of(vector: dict[str, Any]) -> Packet:
    return Packet(vector["type"], vector["sequence"], vector["token"], bytes.fromhex(vector["body"]))


def test_header_module_and_document_repeat_the_source(script: ModuleType) -> None:
    assert script.main(["--check"]) == 0


def test_what_does_not_repeat_it_is_named(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    header = tmp_path / "uaccel_protocol.h"
    header.write_text(script.HEADER.read_text() + "/* edited */\n")
    monkeypatch.setattr(script, "ROOT", tmp_path)
    monkeypatch.setattr(script, "HEADER", header)
    assert script.main(["--check"]) == 1
    assert capsys.readouterr().out == (
        "uaccel_protocol.h is not what firmware/protocol.toml says: python scripts/protocol.py\n"
    )
    assert script.main([]) == 0
    assert script.main(["--check"]) == 0


def test_a_number_that_stands_twice_is_refused(script: ModuleType) -> None:
    text = script.SOURCE.read_text().replace("id = 0x02", "id = 0x01")
    with pytest.raises(SystemExit, match="two entries of message have the same id"):
        script.load(text)


@each_vector
def test_vector_in_python(vector: dict[str, Any]) -> None:
    frame = bytes.fromhex(vector["frame"])
    assert encode(packet_of(vector)) == frame
    assert decode(frame[:-1]) == packet_of(vector)


@each_vector
def test_vector_in_c(device: Device, vector: dict[str, Any]) -> None:
    body = bytes.fromhex(vector["body"])
    device.take()
    device.library.uaccel_frame_begin(vector["type"], vector["sequence"], vector["token"], False)
    device.library.uaccel_frame_add(body, len(body))
    device.library.uaccel_frame_end()
    assert device.take() == bytes.fromhex(vector["frame"])


@pytest.mark.parametrize("length", [*range(230, 270), 480, 487, 488, 489, 505])
@pytest.mark.parametrize("fill", [0, 1, 255])
def test_python_and_c_encode_alike_around_the_longest_run(device: Device, length: int, fill: int) -> None:
    body = bytes([fill]) * length
    device.take()
    device.library.uaccel_frame_begin(0x90, 0x0101, 0x01010101, False)
    device.library.uaccel_frame_add(body, len(body))
    device.library.uaccel_frame_end()
    assert device.take() == encode(Packet(0x90, 0x0101, 0x01010101, body))


def test_every_vector_is_of_a_known_type() -> None:
    kinds = {kind.TYPE: kind for kind in Message.__subclasses__()}
    empty = {kind.name for kind in set(protocol_ids.Type) - set(kinds)}
    assert empty == {"WRITE_REPLY", "VERBOSITY_REPLY", "RESET_REPLY", "WRITE_STATE_REPLY", "STARTED", "EXPECT"}
    for vector in VECTORS:
        kind, body = kinds.get(vector["type"]), bytes.fromhex(vector["body"])
        if kind is None:
            assert (protocol_ids.Type(vector["type"]).name in empty, body) == (True, b""), vector["what"]
            continue
        assert kind.unpack(body).pack() == body, vector["what"]


def test_a_longer_body_than_is_known_is_read_as_far_as_it_is() -> None:
    assert protocol_ids.Boot.unpack(b"\x01\x00later") == protocol_ids.Boot(1)


def test_a_shorter_body_than_is_known() -> None:
    with pytest.raises(DeviceError) as caught:
        protocol_ids.RunReply.unpack(bytes(47))
    assert str(caught.value) == (
        "the device sent RunReply with 47 bytes, 48 were wanted: build and flash its firmware with this uaccel"
    )


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_a_stream_in_pieces_of_any_size(size: int) -> None:
    stream = b"".join(bytes.fromhex(vector["frame"]) for vector in VECTORS)
    decoder = Decoder()
    found = [p for i in range(0, len(stream), size) for p in decoder.feed(stream[i : i + size])]
    assert found == [packet_of(vector) for vector in VECTORS]


@pytest.mark.parametrize("length", range(11))
def test_what_is_too_short_is_damaged_whatever_its_digest_says(length: int) -> None:
    """A header of seven bytes and four of the digest; less than these has no type, no number or no token."""
    data = bytes(range(1, length + 1))
    frame = cobs.encode(data[:-4] + zlib.crc32(data[:-4]).to_bytes(4, "little"))
    assert decode(frame) is None


def test_every_flipped_bit_is_seen() -> None:
    packet = Packet(protocol_ids.Type.RUN, 7, 99, b"inputs and more")
    frame = encode(packet)[:-1]
    data = cobs.decode(frame)
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        assert decode(cobs.encode(bytes(flipped))) is None, bit


def test_noise_without_a_zero_is_not_kept_for_ever() -> None:
    decoder = Decoder()
    for count, kept in ((1 << 17, 1 << 17), (1, 1), (1, 2), (1 << 18, 1)):
        assert decoder.feed(b"\xff" * count) == []
        assert len(decoder._rest) == kept
    assert decoder.feed(b"\0" + bytes.fromhex(VECTORS[0]["frame"])) == [None, packet_of(VECTORS[0])]
