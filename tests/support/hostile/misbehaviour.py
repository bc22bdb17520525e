"""What a device may do to its host: a catalogue. Each case ends in the right tensors, or in one line that says why."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, cycle
from typing import Any, Final

from support.device.scripted import BOOT, DESCRIPTION, ELEMENTS, TENSOR, Device, Misbehave, Script, When, refused, reply
from uaccel.session.message import Message
from uaccel.session.protocol_ids import Data, ErrorCode, Fault, Log, ObjectKind, Read, ReadReply, RunReply, Type
from uaccel.session.transport import Packet, encode

RIGHT: Final = "right"
NOTHING: Final = (
    r"no answer from the device within \d+\.\d s: is it powered, is it the right port, is the firmware flashed\?"
)
STOPPED: Final = (
    r'the device stopped answering: nothing on "{}" for \d+\.\d s(; \d+ frames came damaged: check the cable)?'
)
NO_FRAMES: Final = (
    r"the device sends bytes that are no frames of uaccel's \(.+ \.\.\.\): "
    r"is the baud rate right, and is it uaccel's firmware that runs\?"
)
ENDLESS: Final = (
    r'the device goes on sending and does not finish "{}", after \d+\.\d s: '
    r"reset the board; is it uaccel's firmware that runs\?"
)
RESET: Final = "the device was reset while the session was going on: start again"
BOOTS: Final = (
    r"the device starts anew again and again, 9 times since it was greeted: "
    r"does its firmware crash, is its power supply sound\?"
)
RUNS_ON: Final = r'the device: "run" did not finish within [\d.]+ s: allow more time, or reset the board if it hangs'
UNREADABLE: Final = r"the device describes its model in a way that this uaccel cannot read: .{{0,60}}{}.*"
ANOTHER: Final = "the device describes a model that is not the one it has: build its firmware anew"
LOST: Final = r"the device: cannot {} over this line, 10 attempts lost parts of it"


@dataclass(frozen=True)
class Case:
    """``when`` the device is asked that, it misbehaves; ``words``: what the host says then, as a regular expression."""

    name: str
    when: When
    misbehave: Misbehave
    words: str
    real: bool = False
    """Also tried on real lines, as fast as they are."""
    hello: dict[str, int] = field(default_factory=dict)
    """What it says otherwise in its greeting."""

    def __str__(self) -> str:
        return self.name


def asked(kind: Type, which: ObjectKind | None = None) -> When:
    def when(packet: Packet) -> bool:
        wanted = packet.type == kind
        return wanted and (which is None or Read.unpack(packet.body).object == which)

    return when


HELLO, WRITE, RUN = asked(Type.HELLO), asked(Type.WRITE), asked(Type.RUN)
NO_RUN = RunReply(0, 0, 0, 0, 0, 0, 0, 0)
DESCRIBE, ACCOUNTS = asked(Type.READ, ObjectKind.DESCRIPTION), asked(Type.READ, ObjectKind.ACCOUNTS)
LAYERS, TIMES = asked(Type.READ, ObjectKind.LAYERS), asked(Type.READ, ObjectKind.TIMES)
OUTPUTS = asked(Type.READ, ObjectKind.OUTPUTS)


def always(*pieces: bytes) -> Misbehave:
    """The same for ever, as fast as it goes."""
    return lambda device, packet: cycle(pieces)


def once(make: Callable[[Device, Packet], list[Packet]]) -> Misbehave:
    return lambda device, packet: iter([b"".join(map(encode, make(device, packet)))])


def packets(make: Callable[[Packet, int], Packet], *, every: float = 0.0, first: Sequence[int] = ()) -> Misbehave:
    """One after the other without end, ``every`` so many seconds; before them bare answers of the types ``first``."""

    def misbehave(device: Device, packet: Packet) -> Script:
        yield b"".join(encode(reply(packet, kind)) for kind in first)
        for number in count():
            yield encode(make(packet, number))
            if every:
                yield every

    return misbehave


def trickle(seconds: float) -> Misbehave:
    """The right answer, a byte at a time."""

    def misbehave(device: Device, packet: Packet) -> Script:
        for byte in b"".join(map(encode, device.answer(packet))):
            yield bytes([byte])
            yield seconds

    return misbehave


def small_pieces(seconds: float) -> Misbehave:
    """The right answer, a byte in each packet: every one of them is new."""

    def misbehave(device: Device, packet: Packet) -> Script:
        for answer in replace(device, piece=1).answer(packet):
            yield encode(answer)
            yield seconds

    return misbehave


def silent(device: Device, packet: Packet) -> Script:
    yield from ()


def to_each_once(misbehave: Misbehave) -> Misbehave:
    """Nothing to a request that comes again."""
    heard: set[int] = set()

    def answer(device: Device, packet: Packet) -> Script:
        if packet.sequence not in heard:
            heard.add(packet.sequence)
            yield from misbehave(device, packet)

    return answer


def at_another_rate(ratio: float) -> Misbehave:
    """The right answer as a UART hears it whose bits are ``ratio`` times as long."""

    def misbehave(device: Device, packet: Packet) -> Script:
        data = b"".join(map(encode, device.answer(packet)))
        yield heard_by(b"".join(bytes([0, *(byte >> bit & 1 for bit in range(8)), 1]) for byte in data), ratio)

    return misbehave


def heard_by(line: bytes, ratio: float) -> bytes:
    """``line`` is a level for each bit; a byte begins where it falls, and is looked at in the middle of its bits."""
    heard, at = bytearray(), 0.0
    while (start := line.find(0, int(at))) >= 0:
        at = max(at, start)
        levels = [line[int(at + (bit + 1.5) * ratio)] for bit in range(8) if int(at + (bit + 1.5) * ratio) < len(line)]
        heard.append(sum(level << bit for bit, level in enumerate(levels)))
        at += 9.5 * ratio
    return bytes(heard)


def slow_answers(device: Device, packet: Packet) -> Script:
    yield 4.0
    yield b"".join(map(encode, device.answer(packet)))


def forgets_slowly(device: Device, packet: Packet) -> Script:
    """So that it is asked for another run, and another."""
    yield encode(reply(packet, Type.STARTED))
    yield 15.0
    yield encode(refused(packet, ErrorCode.FORGOTTEN))


def lies(**hello: Any) -> Misbehave:
    """In its greeting."""

    def misbehave(device: Device, packet: Packet) -> Script:
        device.hello = hello
        yield b"".join(map(encode, device.answer(packet)))

    return misbehave


def describes(text: bytes | dict[str, Any], **hello: Any) -> Misbehave:
    """Itself otherwise; a dictionary: what is other in the description."""

    def misbehave(device: Device, packet: Packet) -> Script:
        device.description = text if isinstance(text, bytes) else json.dumps(DESCRIPTION | text).encode()
        device.piece, device.hello = 60_000, hello
        yield b"".join(map(encode, device.answer(packet)))

    return misbehave


def disorder(device: Device, packet: Packet) -> Script:
    """Everything three times, and the last first."""
    yield b"".join(encode(answer) for answer in reversed(device.answer(packet)) for _ in range(3))


def disorder_of_pieces(device: Device, packet: Packet) -> Script:
    """The same, but for what ends the answer."""
    *pieces, last = device.answer(packet)
    yield b"".join(encode(answer) for answer in [*reversed(pieces * 3), last])


def reads_no_more(device: Device, packet: Packet) -> Script:
    """Its end of the line fills up, while it sends as much as it can."""
    while True:
        yield b"\x05flood\0" * 500


def data_at(offset: Callable[[int], int], data: bytes = b"." * 64) -> Callable[[Packet, int], Packet]:
    return lambda packet, number: reply(packet, Type.DATA, Data(offset(number) & 0xFFFFFFFF, data))


def of_model(**change: Any) -> dict[str, Any]:
    """An output that is other than it should be."""
    return {"outputs": [{"name": "y", **TENSOR, **change}]}


def said(kind: Type, message: Message) -> Callable[[Device, Packet], list[Packet]]:
    return lambda device, packet: [reply(packet, kind, message)]


def stray(device: Device, packet: Packet) -> list[Packet]:
    """The right answer between others that nobody asked for."""
    right = device.answer(packet)
    others = [replace(right[-1], sequence=7000), replace(right[-1], token=packet.token ^ 1)]
    others += [replace(right[-1], type=Type.RUN_REPLY, sequence=9, token=1), reply(packet, Type.STARTED)]
    return [*others, *right, *others, *right]


def failing(**change: Any) -> Callable[[Device, Packet], list[Packet]]:
    return lambda device, packet: [reply(packet, Type.RUN_REPLY, device.run_reply(**change))]


def object_of(size: int, data: bytes = b"") -> Callable[[Device, Packet], list[Packet]]:
    return lambda device, packet: [
        *device.pieces(packet, data, 0, len(data)),
        reply(packet, Type.READ_REPLY, ReadReply(size)),
    ]


def at_the_greeting() -> Iterator[Case]:
    log = encode(Packet(Type.LOG, 0, 0, Log(2, b"chatter").pack()))
    yield Case("silence", HELLO, silent, NOTHING)
    yield Case("boots without end", HELLO, always(BOOT), BOOTS, real=True)
    yield Case("a boot for each greeting", HELLO, lambda device, packet: iter([BOOT]), BOOTS)
    yield Case("noise without end", HELLO, always(b"\xa5" * 4096), NO_FRAMES, real=True)
    yield Case("zeros without end", HELLO, always(bytes(4096)), NO_FRAMES, real=True)
    yield Case("damaged frames without end", HELLO, always(b"\3ab\0" * 1000), NO_FRAMES, real=True)
    yield Case("log lines without end", HELLO, always(log * 100), STOPPED.format("begin a session"), real=True)
    for ratio in (0.5, 2.0, 12.0):
        yield Case(f"bits {ratio} times as long", HELLO, at_another_rate(ratio), NO_FRAMES)
    yield Case("bits 3 % too long", HELLO, at_another_rate(1.03), RIGHT)
    yield Case("a byte a second", HELLO, trickle(1.0), NO_FRAMES)
    yield Case(
        "an answer to something else",
        HELLO,
        once(said(Type.RUN_REPLY, NO_RUN)),
        ".*type 0x83: .*",
    )
    yield Case("a refusal", HELLO, once(lambda d, p: [refused(p, 99)]), ".* refused to begin a session: error 99")
    yield Case(
        "cut short",
        HELLO,
        once(lambda d, p: [replace(reply(p, Type.HELLO_REPLY), body=b"\1\0")]),
        ".*HelloReply with 2 bytes.*",
    )
    yield Case("room for everything", HELLO, lies(receive_bytes=0xFFFFFFFF, body_bytes=0xFFFF), RIGHT)
    yield Case("no room at all", HELLO, lies(body_bytes=0), ".* takes bodies of 0 bytes; .*")
    yield Case("a description of 4 GB", HELLO, lies(description_bytes=0xFFFFFFFF), ".* 4,294,967,295 bytes of desc.*")
    yield Case("inputs of 4 GB", HELLO, lies(input_bytes=0xFFFFFFFF), ANOTHER)
    yield Case("a long name", HELLO, lies(name=b"n\n\x1b[2J" * 9000), RIGHT)
    yield Case("strays", lambda packet: True, once(stray), RIGHT)
    yield Case("everything thrice and backwards", lambda packet: True, disorder, LOST.format("describe the model"))
    yield Case("pieces thrice and backwards", lambda packet: True, disorder_of_pieces, RIGHT)


def while_it_describes() -> Iterator[Case]:
    label = "describe the model"
    forwards, again = data_at(lambda number: number * 64), data_at(lambda number: 0)
    yield Case("data at new offsets", DESCRIBE, packets(forwards), STOPPED.format(label), real=True)
    yield Case("data at one offset", DESCRIBE, packets(again), STOPPED.format(label), real=True)
    yield Case("data far away", DESCRIBE, packets(data_at(lambda number: 2**32 - 1 - number)), STOPPED.format(label))
    yield Case("a new byte every four seconds", DESCRIBE, small_pieces(4.0), ENDLESS.format(label))
    yield Case("nothing but the answer", DESCRIBE, once(object_of(0)), LOST.format(label))
    yield Case("an answer of 4 GB", DESCRIBE, once(object_of(2**32 - 1)), LOST.format(label))
    yield Case("a reset at each message", DESCRIBE, lambda device, packet: iter([BOOT]), RESET)
    expects = packets(lambda packet, number: replace(reply(packet, Type.EXPECT), sequence=number % 3))
    yield Case("asking again without end", DESCRIBE, expects, STOPPED.format(label), real=True)
    last = Packet(Type.FAULT, 0, 0, Fault(b"\x1b[31m broken\r\n" * 4000).pack())
    yield Case(
        "a long last word", DESCRIBE, once(lambda d, p: [last]), r"the device stopped: \[31m broken .{1,300} \.\.\."
    )
    refusal = once(lambda d, p: [refused(p, 200, 2**32 - 1)])
    yield Case("an unknown refusal", DESCRIBE, refusal, r".* refused to describe the model: error 200")


def absurd_descriptions() -> Iterator[Case]:
    def case(name: str, text: bytes | dict[str, Any], words: str, **hello: Any) -> Case:
        return Case(f"described by {name}", HELLO, describes(text, **hello), words)

    too_much = (
        r"the device tells of [\d,]+ bytes of {}, a session takes up to 67,108,864: is it uaccel's firmware that runs\?"
    )
    yield case("nothing", b"", UNREADABLE.format("JSONDecodeError"))
    yield case("no JSON", b"\xff\xfe", UNREADABLE.format("Error"))
    yield case("a list", b"[]", UNREADABLE.format("TypeError"))
    yield case("deep lists", b"[" * 100_000, UNREADABLE.format(""))
    yield case("many lists", b"[" + b"[]," * 300_000 + b"[]]", UNREADABLE.format("TypeError"))
    yield case("a long number", b'{"model":' + b"9" * 5000 + b"}", UNREADABLE.format(""))
    yield case("a model that is no name", {"model": [1]}, UNREADABLE.format("TypeError"))
    yield case("10^9 elements", of_model(shape=[10**9]), ANOTHER)
    yield case("10^9 elements, and says so", of_model(shape=[10**9]), too_much.format("outputs"), output_bytes=10**9)
    wide = [{**DESCRIPTION["layers"][0], "outputs": [{**TENSOR, "shape": [2**31, 2**31]}]}]
    yield case("a layer of 2^62 elements", {"layers": wide}, too_much.format("a layer"))
    yield case("2^64 elements", of_model(shape=[2**32 - 1, 2**32 - 1]), ANOTHER, output_bytes=0)
    yield case("a wrapped product", of_model(shape=[65536] * 4), ANOTHER, output_bytes=0)
    yield case("a hundred dimensions", of_model(shape=[1] * 99 + [ELEMENTS]), UNREADABLE.format("ValueError"))
    yield case("a truth for a size", of_model(shape=[True, ELEMENTS]), UNREADABLE.format("ValueError"))
    yield case("a dimension below zero", of_model(shape=[-1, -ELEMENTS]), UNREADABLE.format("ValueError"))
    for dtype in ("object", "V8", ">i1", "S400", "i1,i1", "M8[s]", "400i1", "x" * 1_000_000, "", "int8\0"):
        yield case(f"elements of {dtype[:9]!r}", of_model(dtype=dtype), UNREADABLE.format("ValueError"))
    twice = {"outputs": [{"name": "y", "shape": [1, ELEMENTS // 2], "dtype": "int8"}] * 2}
    yield case("one name for two", twice, "the device gives two tensors of its model one name: build its firmware anew")
    yield case("a name of a megabyte", {"outputs": [{"name": "y" * 10**6, **TENSOR}]}, ".*")
    many = [{"name": "l", "op": "o", "engine": "e", "outputs": []}] * 20_000
    yield case("20,000 layers", {"layers": many}, ANOTHER)
    yield case("a layer that is none", {"layers": [7]}, UNREADABLE.format("TypeError"))


def while_it_runs() -> Iterator[Case]:
    started = [Type.STARTED]
    beyond, again = data_at(lambda number: 1000 + number * 64), data_at(lambda number: 0, b"")
    slow = ENDLESS.format("write the inputs")
    yield Case("inputs taken every four seconds", WRITE, to_each_once(slow_answers), slow, hello={"body_bytes": 16})
    yield Case(
        "inputs refused",
        WRITE,
        once(lambda d, p: [refused(p, ErrorCode.RANGE, 3)]),
        ".* refused to write the inputs: only 3 bytes are there",
    )
    yield Case("a boot in the middle", WRITE, lambda device, packet: iter([BOOT]), RESET)
    yield Case("reading no more, but sending", WRITE, reads_no_more, ".*", real=True)
    yield Case("a run that never ends", RUN, packets(again, every=1.0, first=started), RUNS_ON)
    yield Case("a run told of for ever", RUN, packets(lambda p, n: reply(p, Type.STARTED)), RUNS_ON, real=True)
    yield Case("outputs beyond the end", RUN, packets(beyond, first=started), RUNS_ON, real=True)
    yield Case("outputs a byte every four seconds", RUN, small_pieces(4.0), ENDLESS.format("run") + "|" + RUNS_ON)
    yield Case("outputs backwards and thrice", RUN, disorder, RIGHT)
    yield Case(
        "outputs that are not those",
        RUN,
        once(failing(output_crc=1)),
        LOST.format("read the outputs") + "|.*not those.*",
    )
    yield Case("always forgotten", RUN, once(lambda d, p: [refused(p, ErrorCode.FORGOTTEN)]), LOST.format("run"))
    yield Case("forgotten after each run", RUN, to_each_once(forgets_slowly), ENDLESS.format("(run|write the inputs)"))
    yield Case("another's session", RUN, once(lambda d, p: [refused(p, ErrorCode.STALE, 7)]), "another client took .*")
    yield Case(
        "a layer that is not", RUN, once(failing(status=2**31 - 1)), r".*the model returned 2147483647 instead of 0"
    )
    told = once(failing(status=5 - (1 << 31), failure=b"no\nend " * 9000))
    yield Case("a long failure", RUN, told, r"the device: layer 0 \(turn\): cpu: no end .{1,300} \.\.\. \(error 5\)")
    sums = {"ticks": 2**64 - 1, "least_ticks": 2**64 - 1, "cycles": 2**64 - 1, "stack_bytes": 2**32 - 1}
    yield Case(
        "absurd figures",
        RUN,
        lambda d, p: iter([*map(encode, d.answer(p)[:-1]), *map(encode, failing(**sums)(d, p))]),
        RIGHT,
    )
    yield Case("a fault for each run", RUN, once(lambda d, p: [Packet(Type.FAULT, 0, 0, b"")]), "the device stopped: ")


def while_it_is_looked_into() -> Iterator[Case]:
    label, inside = "read what accelerators did", "read the layers"
    record = struct.pack("<HHI", 0, 0, 2**32 - 1)
    yield Case(
        "accounts of 4 GB", ACCOUNTS, once(object_of(2**32 - 1)), f".* cannot {label}: it tells of 4,294,967,295 .*"
    )
    wrong = struct.pack("<IHIQI", 1, 60_000, 1, 1, 1)
    yield Case(
        "accounts of no layer", ACCOUNTS, once(object_of(len(wrong), wrong)), "the device speaks of layer 60000, .*"
    )
    yield Case(
        "accounts cut short", ACCOUNTS, once(object_of(7, bytes(7))), "the device sent a record that is cut short: .*"
    )
    yield Case("accounts without end", ACCOUNTS, packets(data_at(lambda number: number * 64)), STOPPED.format(label))
    yield Case(
        "layers of 4 GB", LAYERS, once(object_of(2**32 - 1)), f".* cannot {inside}: it tells of 4,294,967,295 .*"
    )
    yield Case(
        "a layer's record of 4 GB", LAYERS, once(object_of(len(record), record)), 'tensor "turn" came with 0 bytes.*'
    )
    other = struct.pack("<HHI", 9, 0, 0)
    yield Case(
        "a layer that is not there", LAYERS, once(object_of(8, other)), "the device speaks of output 0 of layer 9, .*"
    )
    yield Case(
        "layers without end",
        LAYERS,
        packets(data_at(lambda n: n * 64), first=[Type.STARTED]),
        '.*"read the layers" did not.*',
    )
    yield Case(
        "times of no layer",
        TIMES,
        once(object_of(18, struct.pack("<HQQ", 4, 1, 1))),
        "the device speaks of layer 4, .*",
    )
    yield Case(
        "times without end",
        TIMES,
        packets(data_at(lambda n: n * 64), first=[Type.STARTED]),
        '.*"time the layers" did not.*',
    )


CASES: Final = [
    *at_the_greeting(),
    *while_it_describes(),
    *absurd_descriptions(),
    *while_it_runs(),
    *while_it_is_looked_into(),
]
