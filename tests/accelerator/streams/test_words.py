"""Commands as words: what is packed is read back."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uaccel.streams import Field, Format, Tokens, halves, octets, pack, unpack

FORMATS = {
    "move": Format(
        1, "load", 4, (Field("address", 1), *halves(2, "runs", "planes"), *octets(3, "", "low", signed=True)), ("fast",)
    ),
    "wait": Format(9, "compute", 1, ()),
}
VALUES = {
    "address": st.integers(0, 2**32 - 1),
    "runs": st.integers(0, 65535),
    "planes": st.integers(0, 65535),
    "low": st.integers(-128, 127),
    "fast": st.integers(0, 1),
}
TOKENS = st.builds(Tokens, st.booleans(), st.booleans(), st.booleans(), st.booleans())


@given(st.lists(st.tuples(st.fixed_dictionaries(VALUES), TOKENS, TOKENS), max_size=5))
def test_what_is_packed_is_read_back(commands: list[tuple[dict[str, int], Tokens, Tokens]]) -> None:
    data, expected = b"", []
    for values, tokens, others in commands:
        data += pack(FORMATS["move"], values, tokens) + pack(FORMATS["wait"], {}, others)
        expected += [("move", values, tokens), ("wait", {}, others)]
    assert list(unpack(FORMATS, data)) == expected


def test_every_field_has_its_bits() -> None:
    values = {"address": 0x12345678, "runs": 2, "planes": 3, "low": -2, "fast": 1}
    words = struct.unpack("<4I", pack(FORMATS["move"], values, Tokens(wait_next=True, push_previous=True)))
    assert words == (1 | 1 << 9 | 1 << 10 | 1 << 16, 0x12345678, 2 | 3 << 16, 0xFE00)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("runs", 65536, "runs is 65536, and its 16 bits hold range(0, 65536)"),
        ("low", 128, "low is 128, and its 8 bits hold range(-128, 128)"),
        ("address", -1, "address is -1, and its 32 bits hold range(0, 4294967296)"),
    ],
)
def test_what_does_not_fit_is_refused(name: str, value: int, text: str) -> None:
    with pytest.raises(ValueError, match=f"^{text.replace('(', '[(]').replace(')', '[)]')}$"):
        pack(FORMATS["move"], {name: value}, Tokens())
