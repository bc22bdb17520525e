"""What a stream can be wrong in: each error, and the command that it is about; never anything undefined."""

from __future__ import annotations

import struct
from typing import Any

import pytest

STREAM, COMMAND, RANGE, SHAPE, QUANTISATION, BUS, DEADLOCK, TOKEN = range(1, 9)
LOAD = {"run": 8, "runs": 1, "planes": 1}
STORE = {"place": 1, "run": 8, "runs": 1, "planes": 1}
WINDOW = {
    "input_row": 16,
    "input_pixel": 4,
    "input_rows": 4,
    "input_columns": 4,
    "kernel_rows": 2,
    "kernel_columns": 2,
    "stride_y": 1,
    "stride_x": 1,
    "dilation_y": 1,
    "dilation_x": 1,
    "output": 1024,
    "output_row": 16,
    "output_pixel": 4,
    "channels": 4,
    "rows": 3,
    "columns": 3,
    "clamp_min": -128,
    "clamp_max": 127,
}
POOL = WINDOW
CONVOLVE = {**WINDOW, "run": 4, "steps": 1, "parameters": 512}
DEPTHWISE = {**WINDOW, "multiplier": 1, "parameters": 512}
ADD = {"second": 64, "output": 128, "bytes": 64, "rows": 1, "addition": 1024}
LOOKUP = {"output": 128, "bytes": 64, "rows": 1, "table": 1024}
PACK = {"source_row": 20, "depth": 20, "channels": 17}
KEEP = {**CONVOLVE, "keep": 1} | dict.fromkeys(
    ("output", "output_row", "output_pixel", "clamp_min", "clamp_max", "parameters"), 0
)
FINE: list[tuple[str, dict[str, int]]] = [
    ("load", LOAD),
    ("store", STORE),
    ("convolve", CONVOLVE),
    ("convolve", KEEP),
    ("depthwise", DEPTHWISE),
    ("pool", POOL),
    ("pool", {**POOL, "average": 1}),
    ("add", ADD),
    ("lookup", LOOKUP),
    ("pack", PACK),
    ("pack", {**PACK, "turned": 1}),
    ("convolve", {**CONVOLVE, "continue": 1, "shared": 1, "weight_zero_point": -128}),
    ("sync", {}),
]


@pytest.fixture(params=["player", pytest.param("rtl", marks=pytest.mark.slow)])
def machine(request: pytest.FixtureRequest) -> Any:
    """The model, and the RTL."""
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize(("kind", "fields"), FINE)
def test_what_the_rows_below_change_is_fine(machine: Any, kind: str, fields: dict[str, int]) -> None:
    assert machine.play([(kind, fields)], [bytes(64), bytes(64)]).error == 0


WRONG: list[tuple[str, dict[str, int], dict[str, int], int]] = [
    ("load", LOAD, {"run": 0}, SHAPE),
    ("load", LOAD, {"runs": 0}, SHAPE),
    ("load", LOAD, {"planes": 0}, SHAPE),
    ("load", LOAD, {"runs": 2, "pitch_run": 7, "stride_run": 8}, SHAPE),
    ("load", LOAD, {"planes": 2, "pitch_plane": 7, "stride_plane": 8}, SHAPE),
    ("load", LOAD, {"place": 64}, RANGE),
    ("load", LOAD, {"place": 5}, RANGE),
    ("load", LOAD, {"memory": 2}, RANGE),
    ("load", LOAD, {"offset": 57}, RANGE),
    ("load", LOAD, {"run": 1, "runs": 16385, "pitch_run": 1, "stride_run": 1 << 20}, RANGE),  # 2^34 and more
    ("load", LOAD, {"offset": 0xFFFFFFFC}, RANGE),
    ("load", LOAD, {"address": 65529}, RANGE),
    ("load", LOAD, {"memory": 1, "address": 49145}, RANGE),
    ("load", LOAD, {"runs": 8, "stride_run": 0xFFFFFFFF, "pitch_run": 8}, RANGE),
    ("store", STORE, {"memory": 1}, RANGE),
    ("convolve", CONVOLVE, {"steps": 0}, SHAPE),
    ("convolve", CONVOLVE, {"steps": 2}, SHAPE),
    ("convolve", CONVOLVE, {"first_step": 1}, SHAPE),
    ("convolve", CONVOLVE, {"run": 0}, SHAPE),
    ("convolve", CONVOLVE, {"run": 5}, SHAPE),
    ("convolve", CONVOLVE, {"rows": 0}, SHAPE),
    ("convolve", CONVOLVE, {"stride_y": 0}, SHAPE),
    ("convolve", CONVOLVE, {"dilation_x": 0}, SHAPE),
    ("convolve", CONVOLVE, {"channels": 0}, SHAPE),
    ("convolve", CONVOLVE, {"input_rows": 0}, SHAPE),
    ("convolve", CONVOLVE, {"kernel_rows": 65535, "kernel_columns": 2}, SHAPE),
    ("convolve", CONVOLVE, {"output_pixel": 3}, SHAPE),
    ("convolve", CONVOLVE, {"output_row": 11}, SHAPE),
    ("convolve", CONVOLVE, {"input_row": 15}, SHAPE),
    ("convolve", KEEP, {"sums": 2}, SHAPE),
    ("convolve", CONVOLVE, {"input": 65536 - 63}, RANGE),
    ("convolve", CONVOLVE, {"output": 65536 - 43}, RANGE),
    ("convolve", CONVOLVE, {"weights": 49152 - 240}, RANGE),
    ("convolve", CONVOLVE, {"weights": 8}, RANGE),
    ("convolve", CONVOLVE, {"parameters": 49152 - 176}, RANGE),
    ("convolve", CONVOLVE, {"parameters": 264}, RANGE),
    ("convolve", KEEP, {"sums": 16384 - 9 * 64 + 64}, RANGE),
    ("convolve", KEEP, {"sums": 4}, RANGE),
    ("convolve", {**CONVOLVE, "add": 1}, {"residual": 65536 - 3}, RANGE),
    ("convolve", {**CONVOLVE, "add": 1}, {"addition": 49152 - 32}, RANGE),
    ("convolve", {**CONVOLVE, "add": 1}, {"addition": 520}, RANGE),
    ("convolve", CONVOLVE, {"residual": 1}, COMMAND),
    ("convolve", CONVOLVE, {"addition": 1}, COMMAND),
    ("convolve", CONVOLVE, {"sums": 4}, COMMAND),
    ("convolve", KEEP, {"output": 1}, COMMAND),
    ("convolve", KEEP, {"add": 1}, COMMAND),
    ("convolve", KEEP, {"float32": 1}, COMMAND),
    ("depthwise", DEPTHWISE, {"multiplier": 0}, SHAPE),
    ("depthwise", DEPTHWISE, {"weights": 49152 - 48}, RANGE),
    ("depthwise", DEPTHWISE, {"weights": 8}, RANGE),
    ("pool", POOL, {"kernel_columns": 0}, SHAPE),
    ("pool", POOL, {"first_row": -2}, SHAPE),
    ("pool", POOL, {"first_column": 4}, SHAPE),
    ("convolve", CONVOLVE, {"once": 1}, COMMAND),
    ("depthwise", DEPTHWISE, {"once": 1}, COMMAND),
    ("add", ADD, {"bytes": 0}, SHAPE),
    ("add", ADD, {"rows": 2, "output_row": 63}, SHAPE),
    ("add", ADD, {"first": 65536 - 63}, RANGE),
    ("add", ADD, {"second": 65536 - 63}, RANGE),
    ("add", ADD, {"rows": 2, "output_row": 65536}, RANGE),
    ("lookup", LOOKUP, {"bytes": 0}, SHAPE),
    ("lookup", LOOKUP, {"rows": 0}, SHAPE),
    ("lookup", LOOKUP, {"rows": 2, "output_row": 63}, SHAPE),
    ("lookup", LOOKUP, {"source": 65536 - 63}, RANGE),
    ("lookup", LOOKUP, {"output": 65536 - 63}, RANGE),
    ("lookup", LOOKUP, {"table": 49152 - 240}, RANGE),
    ("lookup", LOOKUP, {"table": 8}, RANGE),
    ("convolve", CONVOLVE, {"shared": 1}, COMMAND),
    ("convolve", KEEP, {"continue": 1, "shared": 1}, COMMAND),
    ("convolve", {**CONVOLVE, "continue": 1, "shared": 1}, {"sums": 16384}, RANGE),
    ("pack", PACK, {"depth": 0}, SHAPE),
    ("pack", PACK, {"channels": 0}, SHAPE),
    ("pack", PACK, {"source": 65536 - 16 * 20 - 19}, RANGE),
    ("pack", {**PACK, "turned": 1}, {"source": 65536 - 19 * 20 - 16}, RANGE),
    ("pack", PACK, {"weights": 49152 - 4 * 256 + 16}, RANGE),
    ("pack", PACK, {"weights": 8}, RANGE),
]


@pytest.mark.parametrize(
    ("kind", "fields", "changed", "error"), WRONG, ids=[f"{kind}-{changed}" for kind, _, changed, _ in WRONG]
)
def test_a_field_that_is_wrong(
    machine: Any, kind: str, fields: dict[str, int], changed: dict[str, int], error: int
) -> None:
    """Behind one that is fine: the error's command is the second."""
    played = machine.play([("sync", {}), (kind, {**fields, **changed})], [bytes(64), bytes(64)])
    assert (played.error, played.command) == (error, 1)


@pytest.mark.parametrize("kind", ["load", "store", "convolve", "depthwise", "pool", "add", "lookup", "pack", "sync"])
def test_bits_that_mean_nothing_must_be_zero(machine: Any, kind: str) -> None:
    """In the first word; and in every other word that has some."""
    fields = dict(FINE)[kind]
    words = list(struct.unpack(f"<{len(machine.packed(kind, fields)) // 4}I", machine.packed(kind, fields)))
    used = [0xFF | 0xF00 | sum(1 << (16 + bit) for bit, name in enumerate(machine.formats[kind].flags) if name)]
    used += [0] * (len(words) - 1)
    for field in machine.formats[kind].fields:
        used[field.word] |= ((1 << field.bits) - 1) << field.shift
    for number, bits in enumerate(used):
        for bit in (bit for bit in range(32) if not bits >> bit & 1):
            wrong = [word | (1 << bit if at == number else 0) for at, word in enumerate(words)]
            played = machine.start(struct.pack(f"<{len(words)}I", *wrong), [bytes(64), bytes(64)])
            assert (played.error, played.command) == (COMMAND, 0), (number, bit)


@pytest.mark.parametrize("opcode", [0, 10, 11, 0xFF])
def test_there_are_no_other_commands(machine: Any, opcode: int) -> None:
    assert machine.start(struct.pack("<I", opcode)).error == COMMAND


@pytest.mark.parametrize(("kind", "token"), [("load", "<P"), ("load", ">P"), ("store", "<N"), ("store", ">N")])
def test_load_has_nobody_before_it_and_store_nobody_behind(machine: Any, kind: str, token: str) -> None:
    played = machine.play([("sync", {}), (kind, dict(FINE)[kind], token)], [bytes(64), bytes(64)])
    assert (played.error, played.command) == (TOKEN, 1)


@pytest.mark.parametrize(
    ("single", "multiplier", "shift", "error"),
    [
        *((0, *fine, 0) for fine in ((0, 0), (2**31 - 1, 30), (1, -31))),
        *((0, *wrong, QUANTISATION) for wrong in ((-1, 0), (1, 31), (1, -32), (1, 64), (1, -64))),
        *((1, *fine, 0) for fine in ((2**30, -31), (2**30 + 64, 0), (2**31 - 1, 30))),
        *((1, *wrong, QUANTISATION) for wrong in ((0, 0), (2**30 - 128, 0), (2**30, 31))),
    ],
)
def test_multipliers_and_shifts_have_limits(machine: Any, single: int, multiplier: int, shift: int, error: int) -> None:
    parameters = struct.pack("<48i", *[0] * 16, *[multiplier] * 16, *[shift] * 16)
    load = {"memory": 1, "address": 512, "run": 192, "runs": 1, "planes": 1}
    fields = {**CONVOLVE, "float32": single}
    played = machine.play([("load", load, ">N"), ("convolve", fields, "<P")], [parameters])
    assert (played.error, played.command) == (error, 1 if error else 0xFFFFFFFF)


@pytest.mark.parametrize(
    ("word", "value"),
    [(0, -1), (0, 31), (0, 64), (1, 128), (2, -5), (3, 31), (6, 64), (7, -129), (9, -64), (10, 300), (11, -256)],
)
def test_an_addition_has_limits(machine: Any, word: int, value: int) -> None:
    numbers = [20, 0, 1 << 30, 0, 0, 1 << 30, 0, 0, 1 << 30, 0, -128, 127]
    load = {"memory": 1, "address": 1024, "run": 48, "runs": 1, "planes": 1}
    commands = [("load", load, ">N"), ("add", ADD, "<P")]
    assert machine.play(commands, [struct.pack("<12i", *numbers)]).error == 0
    numbers[word] = value
    played = machine.play(commands, [struct.pack("<12i", *numbers)])
    assert (played.error, played.command) == (QUANTISATION, 1)


@pytest.mark.parametrize(("word", "value"), [(0, 0), (0, 43), (0, 65), (1, 128), (4, -129), (8, -1), (11, 128)])
def test_an_addition_that_rounds_once_has_limits(machine: Any, word: int, value: int) -> None:
    numbers = [42, 0, -(1 << 31), 0, 0, 1 << 30, 0, 0, 0, 0, -128, 127]
    load = {"memory": 1, "address": 1024, "run": 48, "runs": 1, "planes": 1}
    commands = [("load", load, ">N"), ("add", {**ADD, "once": 1}, "<P")]
    assert machine.play(commands, [struct.pack("<12i", *numbers)]).error == 0
    numbers[word] = value
    played = machine.play(commands, [struct.pack("<12i", *numbers)])
    assert (played.error, played.command) == (QUANTISATION, 1)


@pytest.mark.parametrize("length", [0, 1, 2, 41, 39])
def test_a_stream_has_whole_words(machine: Any, length: int) -> None:
    assert machine.start(machine.packed("load", LOAD), [bytes(64)], length).error == STREAM


@pytest.mark.parametrize("words", range(1, 10))
def test_a_command_that_is_cut_off(machine: Any, words: int) -> None:
    stream = machine.packed("sync", {}) + machine.packed("load", LOAD)[: 4 * words]
    played = machine.start(stream, [bytes(64)])
    assert (played.error, played.command) == (STREAM, 1)


def test_a_stream_where_there_is_no_memory(machine: Any) -> None:
    played = machine.start(machine.packed("sync", {}) * 2, length=12)
    assert (played.error, played.command) == (BUS, 2)


def test_a_place_where_there_is_no_memory(machine: Any) -> None:
    """Its limit promises more than the bus holds."""
    machine.play([("load", LOAD)], [bytes(64)])
    machine.tell(0, 0x55000000, 64)
    machine.device.write(0x18, 1)
    assert [machine.device.read(offset) for offset in (0x20, 0x24)] == [BUS, 0]


@pytest.mark.parametrize(
    ("commands", "blocked"),
    [
        ([("store", STORE, "<P")], 0),
        ([("load", LOAD), ("sync", {}, "<N"), ("store", STORE)], 1),
        ([("sync", {}, "<P>P"), ("load", LOAD, "<N>N")], 0),
        ([("load", LOAD, ">N"), ("sync", {}, "<P"), ("sync", {}, "<P")], 2),
        ([("load", LOAD, "<N")] * 33 + [("sync", {}, ">P")] * 33, 0),
    ],
    ids=["nobody pushes", "in the middle", "each waits for the other", "one push, two waits", "no room to come to it"],
)
def test_a_deadlock_is_told_with_the_oldest_command(machine: Any, commands: list[Any], blocked: int) -> None:
    played = machine.play(commands, [bytes(64), bytes(64)])
    assert (played.error, played.command) == (DEADLOCK, blocked)


def test_a_queue_holds_as_many_commands_as_it_says(machine: Any) -> None:
    """32 loads wait, and the 33rd command behind them is still fetched."""
    commands = [("load", LOAD, "<N")] * 32 + [("sync", {}, ">P")] * 32
    assert machine.play(commands, [bytes(64)]).error == 0


def test_tokens_that_nobody_takes_are_forgotten_with_the_job(machine: Any) -> None:
    assert machine.play([("load", LOAD, ">N")], [bytes(64)]).error == 0
    assert machine.play([("sync", {}, "<P")]).error == DEADLOCK


def test_more_tokens_than_could_mean_anything(machine: Any) -> None:
    played = machine.play([("sync", {}, ">P")] * 4097)
    assert (played.error, played.command) == (TOKEN, 4096)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("pool", {**POOL, "first_row": -2}),
        ("pool", {**POOL, "rows": 4, "first_row": 2}),
        ("convolve", {**CONVOLVE, "parameters": 2048, "add": 1}),
        ("depthwise", {**DEPTHWISE, "parameters": 2048, "channels": 1, "add": 1}),
    ],
)
def test_a_job_behind_one_that_failed(machine: Any, kind: str, fields: dict[str, int]) -> None:
    """Nothing of the command in which the error showed is left."""
    numbers = struct.pack("<48i", *[0] * 16, *[1 << 30] * 16, *[1] * 16)
    wrong = struct.pack("<48i", *[0] * 16, *[-1] * 16, *[0] * 16)
    addition = struct.pack("<12i", 20, 0, 1 << 30, 0, 0, 1 << 30, 0, 0, 1 << 30, -18, -128, 127)
    weights = (bytes([1]) * 512 + numbers).ljust(1024, b"\0") + addition.ljust(1024, b"\0") + wrong
    loads = [
        ("load", {"run": 64, "runs": 1, "planes": 1}),
        ("load", {"place": 1, "memory": 1, "run": len(weights), "runs": 1, "planes": 1}, ">N"),
    ]
    stores = [("store", {"place": 2, "address": 1024, "run": 64, "runs": 1, "planes": 1}, "<P")]
    works = [("convolve", {**CONVOLVE, "add": 1, "addition": 1024}, "<P>N")]
    places = [bytes(range(64)), weights, bytes(64)]
    wanted = machine.play([*loads, *works, *stores], places)
    assert wanted.error == 0
    assert machine.play(
        [*loads, (kind, {"addition": 1024, **fields} if "add" in fields else fields, "<P")], places
    ).error
    again = machine.play([*loads, *works, *stores], places, resets=False)
    assert (again.error, again.places) == (0, wanted.places)
    assert any(again.places[2])
