"""Random jobs for npu's family: every command, engines side by side, places anywhere in 4 GiB, and faults in between.

Memories on chip are cut into zones. What a command reads and writes is known by zone, and tokens stand where another
engine has to be waited for and nowhere else. So a job has one meaning, however long each command takes. It loads every
zone that it reads, and stores what became of them at its end: those of weights by tables that are looked up.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from uaccel.streams import Tokens, pack

LOAD, COMPUTE, STORE = range(3)
ENGINES: Final = {"load": LOAD, "store": STORE}
ZONE, CONSTANTS = 2048, 4096
"""Bytes of a zone of activations, and of one of weights."""
PARAMETERS, ADDITION, TABLE = 2304, 3584, 3840
"""Where they begin in a zone of weights; before that there are weights."""
BORDERS: Final = (1 << 24, 3 << 24, 1 << 31, (1 << 32) - (1 << 24), 1 << 16, 1 << 28)
"""Addresses that jobs reach across."""
BEAT: Final = 8
"""Bytes that memory has as a whole or not at all."""
FAULTS: Final = ("bits", "load", "limit", "store", "parameters", "cut", "token")
WRONG: Final = ((1, -1), (1, -(1 << 31)), (2, 31), (2, -32), (2, 64), (2, -64))
KINDS: Final = ["_depthwise"] * 2 + ["_pool"] * 4 + ["_add", "_lookup", "_pack", "_move", "_move", "_wait", "_chain"]


@dataclass
class Command:
    """What it reads and writes are names of zones and places."""

    kind: str
    fields: dict[str, int]
    reads: set[str]
    writes: set[str]
    tokens: set[str] = field(default_factory=set)

    @property
    def engine(self) -> int:
        return ENGINES.get(self.kind, COMPUTE)


@dataclass
class Job:
    """``places``: base and limit by number. ``pieces``: memory by address. ``fault``: what is wrong with it."""

    stream: bytes
    at: int
    places: dict[int, tuple[int, int]]
    pieces: dict[int, bytes]
    fault: str
    text: str


class Order:
    """Commands in order, with the tokens that they need."""

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self._of: tuple[list[int], ...] = ([], [], [])
        self._seen = {(a, b): -1 for a in range(3) for b in range(3)}

    def add(self, command: Command) -> None:
        engine = command.engine
        needs = {other: self._conflict(command, other) for other in range(3) if other != engine}
        if abs(engine - COMPUTE) == 1:
            far = LOAD + STORE - engine
            if needs[far] > self._seen[far, engine]:
                relay = Command("sync", {}, set(), set())
                self._wait(relay, far, needs[far])
                self._append(relay)
                self._seen[far, engine] = needs[far]
                needs[COMPUTE] = len(self.commands) - 1
        for other in (other for other in needs if abs(other - engine) == 1):
            self._wait(command, other, needs[other])
        self._append(command)

    def _append(self, command: Command) -> None:
        self._of[command.engine].append(len(self.commands))
        self.commands.append(command)

    def _conflict(self, command: Command, engine: int) -> int:
        """The last command of the engine that this one must not overtake."""
        for number in reversed(self._of[engine]):
            other = self.commands[number]
            if (command.writes & (other.reads | other.writes)) | (command.reads & other.writes):
                return number
        return -1

    def _wait(self, command: Command, other: int, number: int) -> None:
        engine = command.engine
        if number <= self._seen[other, engine]:
            return
        last = self._of[other][-1]
        self.commands[last].tokens.add("push_next" if engine > other else "push_previous")
        command.tokens.add("wait_previous" if engine > other else "wait_next")
        self._seen[other, engine] = last


class Drawer:
    """Draws jobs for a machine with these numbers."""

    def __init__(self, formats: Mapping[str, Any], width: int, memories: Sequence[int], seed: int) -> None:
        self.formats, self.width = formats, width
        self._activations, self._weights, self._sums = memories
        self.random = np.random.default_rng(seed)

    def below(self, most: int) -> int:
        return int(self.random.integers(0, most))

    def between(self, least: int, most: int) -> int:
        """Both included."""
        return int(self.random.integers(least, most + 1))

    def one_of(self, values: Sequence[Any]) -> Any:
        return values[self.below(len(values))]

    def job(self, fault: str = "", clear: bool = False, beside: Mapping[int, bytes | bytearray] | None = None) -> Job:
        """``clear``: memories on chip are 0, and some of them need not be loaded. ``beside``: what lies in memory."""
        self._order, self._places, self._pieces = Order(), dict[int, tuple[int, int]](), dict[int, bytes]()
        self._beside = beside or {}
        slots = self.random.permutation(self._activations // ZONE)
        self._zones = {f"a{i}": int(slot) * ZONE for i, slot in enumerate(slots[:4])}
        slots = self.random.permutation(self._weights // CONSTANTS)
        self._constants = {f"w{i}": int(slot) * CONSTANTS for i, slot in enumerate(slots[:2])}
        self._small = set[tuple[str, int]]()  # blocks of parameters with a multiplier that FLOAT32 refuses
        self._wrong = fault == "parameters"
        for zone in (*self._zones, *self._constants):
            if zone in self._constants or not clear or self.below(2):
                self._load(zone)
        for _ in range(self.between(1, 8)):
            getattr(self, self.one_of(["_convolve"] * 3 + KINDS))()
        if self._wrong:
            self._depthwise()
        self._end()
        return self._packed(fault)

    # Memory.

    def _place(self, data: bytes, most: int = 1 << 26) -> tuple[int, int]:
        """A place that holds the bytes, and their offset; often they lie across a border."""
        number = next(n for n in self.random.permutation(64).tolist() if n not in self._places)
        size = len(data)
        while True:
            border = self.one_of(BORDERS) if self.below(2) else self.below(1 << 32)
            first = max(0, border - self.below(size + 64))
            offset = self.one_of([0, self.below(64), self.below(most)])
            if self._is_free(first, size) and offset <= first:
                break
        self._places[number] = (first - offset, offset + size)
        self._pieces[first] = data
        return number, offset

    def _is_free(self, first: int, size: int) -> bool:
        there = [*self._pieces.items(), *self._beside.items()]
        apart = all(first + size + 64 < base or base + len(data) + 64 < first for base, data in there)
        return apart and first + size < 1 << 32

    def _bytes(self, count: int) -> bytes:
        kind = self.below(4)
        values = self.random.integers(-128, 128, count)
        if kind == 0:
            values = np.where(self.random.integers(0, 2, count) > 0, 127, -128)
        return bytes(values.astype(np.int8))

    def _load(self, zone: str) -> None:
        if zone in self._zones:
            data, address = self._bytes(ZONE), self._zones[zone]
        else:
            data, address = self._numbers(zone), self._constants[zone]
        memory = int(zone in self._constants)
        number, offset = self._place(data)
        count = self.one_of([1, 1, 1, 2, 4, 16, 512])
        run, (runs, planes) = len(data) // count, self.one_of([(count, 1), (1, count)])
        fields = {"place": number, "memory": memory, "offset": offset, "address": address, "run": run, "runs": runs}
        fields |= {"planes": planes, "stride_run": run, "pitch_run": run, "stride_plane": run, "pitch_plane": run}
        self._order.add(Command("load", fields, {f"p{number}"}, {zone}))

    def _move(self) -> None:
        """A load of some runs into a zone, or a store of some of it, in three dimensions."""
        zone, stores = self.one_of([*self._zones]), self.below(2) == 0
        room = 0
        while room <= 0:
            run, runs, planes = self.between(1, 60), self.between(1, 4), self.between(1, 3)
            if self.below(8) == 0:
                run, (runs, planes) = 1, self._extents(1)
            pitches = [run + self.below(5)]
            pitches.append(pitches[0] * runs + self.below(9))
            room = ZONE - (planes - 1) * pitches[1] - (runs - 1) * pitches[0] - run
        strides = [self.one_of([run, run + self.below(90)])]
        strides.append(strides[0] * runs + self.below(200))
        size = (planes - 1) * strides[1] + (runs - 1) * strides[0] + run
        number, offset = self._place(self._bytes(size))
        address = self._zones[zone] + self.below(room)
        fields = {"place": number, "offset": offset, "address": address, "run": run, "runs": runs, "planes": planes}
        fields |= {"stride_run": strides[0], "stride_plane": strides[1]}
        fields |= {"pitch_run": pitches[0], "pitch_plane": pitches[1]}
        sides = ({zone}, {f"p{number}"})
        self._order.add(Command("store" if stores else "load", fields, *(sides if stores else sides[::-1])))

    def _end(self) -> None:
        """All zones go to memory."""
        if self.below(2):
            first = self._zones["a0"]
            number, offset = self._place(bytes(range(256)))
            fields = {"place": number, "offset": offset, "address": first, "run": 256, "runs": 1, "planes": 1}
            self._order.add(Command("load", fields, {f"p{number}"}, {"a0"}))
            for zone, base in self._constants.items():
                for at in range(0, CONSTANTS, 256):
                    target = f"a{1 + at // 256 % 3}"
                    output = self._zones[target] + at // 768 * 256 % ZONE
                    fields = {"source": first, "output": output, "bytes": 256, "rows": 1, "table": base + at}
                    self._order.add(Command("lookup", fields, {"a0", zone}, {target}))
                for target in ("a1", "a2", "a3"):
                    self._store(target)
        for zone in self._zones:
            self._store(zone)

    def _store(self, zone: str) -> None:
        number, offset = self._place(bytes(ZONE))
        fields = {"place": number, "offset": offset, "address": self._zones[zone], "run": ZONE, "runs": 1, "planes": 1}
        self._order.add(Command("store", fields, {zone}, {f"p{number}"}))

    def _numbers(self, zone: str) -> bytes:
        """What lies in a zone of weights."""
        data = bytearray(self._bytes(CONSTANTS))
        for number, at in enumerate(range(PARAMETERS, ADDITION, 12 * self.width)):
            wild = self.below(3) == 0
            large = self.below(3) == 0
            bias = self.random.integers(-(1 << 31), 1 << 31, self.width) if large else self._few(1 << 15)
            least = 0 if wild and self.below(2) else 1 << 30
            multipliers = self.random.integers(least, 1 << 31, self.width)
            if self.below(4) == 0:
                multipliers[:] = self.one_of([1 << 30, (1 << 31) - 1, (1 << 31) - 128])
            if multipliers.min() < 1 << 30:
                self._small.add((zone, number))
            shifts = self.random.integers(-31, 31, self.width) if wild else self.random.integers(-12, 0, self.width)
            block = np.concatenate([bias, multipliers, shifts]).astype("<i4").tobytes()
            data[at : at + len(block)] = block
        if self._wrong:  # a multiplier or a shift of each block
            for at in range(PARAMETERS, ADDITION - 12 * self.width + 1, 12 * self.width):
                lane, (part, value) = self.one_of([0, self.below(self.width)]), self.one_of(WRONG)
                at += 4 * (part * self.width + lane)
                data[at : at + 4] = struct.pack("<i", value)
        data[ADDITION : ADDITION + 48] = struct.pack("<12i", *self._addition(True))
        data[ADDITION + 64 : ADDITION + 112] = struct.pack("<12i", *self._addition(False))
        return bytes(data[:CONSTANTS])

    def _few(self, most: int) -> Any:
        return self.random.integers(-most, most, self.width)

    def _addition(self, once: bool) -> list[int]:
        zeros = [self.between(-128, 127) for _ in range(3)]
        low, high = sorted(self.one_of([self.between(-128, 127), end]) for end in (-128, 127))
        if once:
            small = self.below(2)  # so that sums lie just between two numbers
            ratios = [self.between(-8, 8) if small else self._ratio() for _ in range(2)]
            shift = self.between(1, 4 if small else 42)
            tolerance = self.one_of([0, self.below(1 << min(31, shift))])
            return [shift, zeros[0], ratios[0], 0, zeros[1], ratios[1], 0, zeros[2], tolerance, 0, low, high]
        numbers = [self.one_of([20, self.below(31)])]
        for zero in zeros:
            scale = self.one_of([self.between(1 << 30, (1 << 31) - 1), (1 << 31) - 1, self.below(1 << 31)])
            numbers += [zero, scale, self.one_of([0, -1, -self.below(32), self.below(31)])]
        return [*numbers, low, high]

    def _ratio(self) -> int:
        return int(self.one_of([self.between(-(1 << 31), (1 << 31) - 1), 1 << self.below(31), -(1 << self.below(32))]))

    # Commands.

    def _extents(self, most: int) -> tuple[int, int]:
        """Rows and columns; now and then more than eight bits can count."""
        if self.below(8) == 0:
            long = self.between(200, 600)
            return (long, 1) if self.below(2) else (1, long)
        return self.between(1, most), self.between(1, most)

    def _input(self, channels: int, most: int = 8) -> tuple[str, dict[str, int]]:
        """A zone, and an input with so many channels in it."""
        zone = self.one_of([*self._zones])
        while True:
            rows, columns = self._extents(most)
            pixel = channels + self.one_of([0, 0, self.below(4)])
            row = columns * pixel + self.one_of([0, self.below(5)])
            room = ZONE - (rows - 1) * row - (columns - 1) * pixel - channels
            if room >= 0:
                break
        fields = {"input_rows": rows, "input_columns": columns, "input_pixel": pixel, "input_row": row}
        return zone, fields | {"input": self._zones[zone] + self.one_of([room, self.below(room + 1)])}

    def _output(self, zone: str, channels: int, rows: int, columns: int) -> tuple[str, dict[str, int]]:
        """Another zone than that of the input; few rows and columns where there is no room for more."""
        target = self.one_of([name for name in self._zones if name != zone])
        pixel = channels + self.one_of([0, 0, self.below(4)])
        columns = max(1, min(columns, ZONE // pixel))
        row = columns * pixel + self.one_of([0, self.below(5)])
        rows = max(1, min(rows, ZONE // row))
        room = ZONE - (rows - 1) * row - (columns - 1) * pixel - channels
        fields = {"output_pixel": pixel, "output_row": row, "rows": rows, "columns": columns, "channels": channels}
        return target, fields | {"output": self._zones[target] + self.one_of([room, self.below(room + 1)])}

    def _kernel(self, most: int) -> dict[str, int]:
        names = ("stride_y", "stride_x", "dilation_y", "dilation_x")
        found = {name: self.one_of([1, 1, self.between(1, 4)]) for name in names}
        found |= {"first_row": self.between(-3, 2), "first_column": self.between(-3, 2)}
        return found | {"kernel_rows": self.between(1, most), "kernel_columns": self.between(1, most)}

    def _clamps(self) -> dict[str, int]:
        low = self.one_of([-128, self.between(-128, 127)])
        return {"clamp_min": low, "clamp_max": self.one_of([127, self.between(low, 127)])}

    def _stage(self, zone: str, channels: int) -> dict[str, int] | None:
        """The output stage with parameters of this zone; None where they are too few."""
        size = 12 * self.width
        blocks, first = -(-channels // self.width), self.below((ADDITION - PARAMETERS) // size)
        if (first + blocks) * size > ADDITION - PARAMETERS:
            return None
        fields = {"parameters": self._constants[zone] + PARAMETERS + first * size, "float32": self.below(2)}
        if any((zone, first + i) in self._small for i in range(blocks)):
            fields["float32"] = 0
        zeros = {name: self.between(-128, 127) for name in ("input_zero_point", "output_zero_point")}
        return fields | zeros | self._clamps()

    def _residual(self, fields: dict[str, int], zone: str, target: str) -> set[str]:
        """Adds one to the fields, now and then; the zone that it lies in."""
        if self.below(3):
            return set()
        source = self.one_of([name for name in self._zones if name != target])
        once, channels, rows, columns = self.below(2), *(fields[name] for name in ("channels", "rows", "columns"))
        pixel = channels + self.below(5)
        row = columns * pixel + self.below(7)
        room = ZONE - (rows - 1) * row - (columns - 1) * pixel - channels
        if room < 0:
            return set()
        fields |= {"add": 1, "once": once, "residual_pixel": pixel, "residual_row": row}
        fields["residual"] = self._zones[source] + self.one_of([room, self.below(room + 1)])
        fields["addition"] = self._constants[zone] + ADDITION + 64 * (1 - once)
        return {source}

    def _compute(self, kind: str, fields: dict[str, int], reads: set[str], writes: set[str]) -> None:
        self._order.add(Command(kind, fields, reads, writes))

    def _convolve(self) -> None:
        run = self.one_of([self.between(1, 24)] * 7 + [self.between(200, 600)])
        channels = self.between(1, 3 * self.width)
        zone, constants = self.one_of([*self._constants]), 0
        source, fields = self._input(run)
        fields |= self._kernel(4) | {"run": run}
        depth = fields["kernel_rows"] * fields["kernel_columns"] * run
        steps, blocks = -(-depth // self.width), -(-channels // self.width)
        tiles = PARAMETERS // self.width**2
        stage = self._stage(zone, channels)
        if blocks * steps > tiles or stage is None:
            return
        constants = self._constants[zone] + self.below(tiles - blocks * steps + 1) * self.width**2
        target, output = self._output(source, channels, *self._extents(5))
        fields |= output | {"weights": constants, "weight_zero_point": self.one_of([0, self.between(-128, 127)])}
        room = self._sums - 4 * blocks * self.width * fields["rows"] * fields["columns"]
        cut = self.below(steps) if room >= 0 else 0
        if cut:
            sums = self.below(room // (4 * self.width) + 1) * 4 * self.width
            unkept = ("output", "clamp")
            first = {name: value for name, value in fields.items() if not name.startswith(unkept)}
            first |= {"input_zero_point": stage["input_zero_point"], "steps": cut, "keep": 1, "sums": sums}
            self._compute("convolve", first, {source, zone}, {"sums"})
            fields |= {"first_step": cut, "continue": 1, "sums": sums}
            fields["weights"] += blocks * cut * self.width**2
            if self.below(4) == 0 and fields["rows"] * fields["columns"] > 1:
                fields["shared"] = 1
        fields |= stage | {"steps": steps - cut}
        more = self._residual(fields, zone, target)
        self._compute("convolve", fields, {source, zone, "sums", *more}, {target})

    def _depthwise(self) -> None:
        channels, multiplier = self.between(1, 3 * self.width), self.one_of([1, self.between(1, 4)])
        zone = self.one_of([*self._constants])
        source, fields = self._input(-(-channels // multiplier))
        fields |= self._kernel(self.one_of([4, 8])) | {"multiplier": multiplier}
        blocks = -(-channels // self.width)
        size = blocks * fields["kernel_rows"] * fields["kernel_columns"] * self.width
        stage = self._stage(zone, channels)
        if size > PARAMETERS or stage is None:
            return
        target, output = self._output(source, channels, *self._extents(5))
        at = self.below((PARAMETERS - size) // self.width + 1) * self.width
        fields |= output | stage | {"weights": self._constants[zone] + at}
        more = self._residual(fields, zone, target)
        self._compute("depthwise", fields, {source, zone, *more}, {target})

    def _pool(self) -> None:
        large = self.below(3) == 0
        channels = self.between(1, 2) if large else self.between(1, 3 * self.width)
        source, fields = self._input(channels, 32 if large else 8)
        fields |= self._kernel(4)
        if large:
            for name in ("rows", "columns"):
                most = fields[f"input_{name}"]
                fields[f"kernel_{name}"] = self.one_of([most, self.between(1, most)])
            fields |= dict.fromkeys(("dilation_y", "dilation_x"), 1) | {"first_row": 0, "first_column": 0}
        target, output = self._output(source, channels, *self._extents(4))
        fields |= output | self._clamps() | {"average": int(large) or self.below(2)}
        if _has_taps(fields, "row", "y") and _has_taps(fields, "column", "x"):
            self._compute("pool", fields, {source}, {target})

    def _rows(self, names: Sequence[str]) -> tuple[dict[str, int], list[str]]:
        """Rows of bytes in a zone each; that of the last differs from the others."""
        count, rows = self._extents(5) if self.below(2) else (self.between(1, 100), self.between(1, 5))
        zones = [self.one_of([*self._zones]) for _ in names]
        zones[-1] = self.one_of([name for name in self._zones if name not in zones[:-1]])
        fields = {"bytes": count, "rows": rows}
        for name, zone in zip(names, zones, strict=True):
            pitch = count + self.one_of([0, self.below(9 if rows < 200 else 3)])
            room = ZONE - (rows - 1) * pitch - count
            fields |= {name: self._zones[zone] + self.below(room + 1), f"{name}_row": pitch}
        return fields, zones

    def _add(self) -> None:
        fields, zones = self._rows(("first", "second", "output"))
        zone, once = self.one_of([*self._constants]), self.below(2)
        fields |= {"once": once, "addition": self._constants[zone] + ADDITION + 64 * (1 - once)}
        self._compute("add", fields, {*zones[:2], zone}, {zones[2]})

    def _lookup(self) -> None:
        fields, zones = self._rows(("source", "output"))
        zone = self.one_of([*self._constants])
        fields["table"] = self._constants[zone] + self.one_of([TABLE, self.below(200) * self.width])
        self._compute("lookup", fields, {zones[0], zone}, {zones[1]})

    def _pack(self) -> None:
        depth, channels = self._extents(40)
        turned = self.below(2)
        tiles = -(-depth // self.width) * -(-channels // self.width)
        row, rows = (channels, depth) if turned else (depth, channels)
        pitch = row + self.below(5)
        if tiles * self.width**2 > PARAMETERS or (rows - 1) * pitch + row > ZONE:
            return
        source, zone = self.one_of([*self._zones]), self.one_of([*self._constants])
        at = self.below((PARAMETERS - tiles * self.width**2) // self.width + 1) * self.width
        fields = {"source": self._zones[source], "source_row": pitch, "depth": depth, "channels": channels}
        fields |= {"turned": turned, "weights": self._constants[zone] + at}
        self._compute("pack", fields, {source}, {zone})

    def _chain(self) -> None:
        """Short commands of all three engines, each with a token for the next engine: some come as others go."""
        load, source, target, store = (str(zone) for zone in self.random.permutation([*self._zones]))
        table, (number, offset), (to, behind) = self._constants["w0"], *(self._place(self._bytes(64)) for _ in range(2))
        near = {"runs": 1, "planes": 1}
        for i in range(self.between(5, 25)):
            first = {"place": number, "offset": offset, "address": self._zones[load], "run": self.between(1, 64)}
            self._order.add(Command("load", first | near, {f"p{number}"}, {load, f"loaded {i}"}))
            fields = {"source": self._zones[source], "output": self._zones[target], "table": table, "rows": 1}
            fields["bytes"] = self.between(1, 200)
            self._compute("lookup", fields, {source, "w0", f"loaded {i}"}, {target, f"looked up {i}"})
            last = {"place": to, "offset": behind, "address": self._zones[store], "run": self.between(1, 64)}
            self._order.add(Command("store", last | near, {store, f"looked up {i}"}, {f"p{to}"}))

    def _wait(self) -> None:
        """More commands than a queue holds."""
        for _ in range(self.between(5, 40)):
            self._compute("sync", {}, set(), set())

    # Words, and what is wrong with them.

    def _packed(self, fault: str) -> Job:
        commands = self._order.commands
        if fault == "token":
            self.one_of(commands).tokens.add(self.one_of(["wait_previous", "wait_next"]))
        words = [
            pack(self.formats[one.kind], one.fields, Tokens(**dict.fromkeys(one.tokens, True))) for one in commands
        ]
        if fault == "bits":
            number = self.below(len(words))
            changed = bytearray(words[number])
            changed[self.below(len(changed))] ^= 1 << self.below(8)
            words[number] = bytes(changed)
        stream = b"".join(words)
        if fault == "cut":
            stream = stream[: -4 * self.between(1, len(words[-1]) // 4)] if len(words[-1]) > 4 else stream[:-1]
        if fault in ("limit", "load", "store"):
            kinds = ("load", "store") if fault == "limit" else (fault,)
            number = self.one_of([one.fields["place"] for one in commands if one.kind in kinds])
            base, limit = self._places[number]
            if fault == "limit":
                self._places[number] = base, limit - self.one_of([1, self.between(1, min(limit, 64))])
            else:  # there is no memory, or some of it is missing
                begin = max(at for at in self._pieces if base <= at < base + limit)
                data = self._pieces.pop(begin)
                first = self.one_of([begin, begin, begin + self.below(len(data))])
                last = self.one_of([first, first + self.below(len(data)), begin + len(data) - 1]) // BEAT * BEAT
                first = first if first == begin else -(-first // BEAT) * BEAT
                self._pieces |= {first: data[first - begin : last - begin]} if first < last else {}
        at = self._stream_at(len(stream))
        self._pieces[at] = stream
        text = "\n".join(f"{i}: {one.kind} {one.fields} {sorted(one.tokens)}" for i, one in enumerate(commands))
        return Job(stream, at, self._places, self._pieces, fault, text)

    def _stream_at(self, size: int) -> int:
        while True:
            border = self.one_of(BORDERS) if self.below(2) else self.below(1 << 32)
            at = max(0, border - self.below(size + 64)) & ~3
            if self._is_free(at, size):
                return at


def _has_taps(fields: Mapping[str, int], axis: str, direction: str) -> bool:
    """Whether each window has some inside of the input."""
    first, stride, dilation = fields[f"first_{axis}"], fields[f"stride_{direction}"], fields[f"dilation_{direction}"]
    return all(
        any(0 <= first + i * stride + k * dilation < fields[f"input_{axis}s"] for k in range(fields[f"kernel_{axis}s"]))
        for i in range(fields[f"{axis}s"])
    )
