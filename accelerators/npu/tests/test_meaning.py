"""Each command against its definition in docs/reference/npu.md, written anew in numpy, over random fields."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from uaccel.testing import multiply_by_quantized_multiplier

Array = NDArray[Any]
EXAMPLES = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
ROWS = COLUMNS = 16
ACTIVATIONS, WEIGHTS = 65536, 49152
OUTPUT, PARAMETERS, ADDITION, SUMS = 40000, 40000, 45008, 64


@pytest.fixture(params=["player", pytest.param("rtl", marks=pytest.mark.long)])
def machine(request: pytest.FixtureRequest) -> Any:
    """The model, and the RTL."""
    return request.getfixturevalue(request.param)


@st.composite
def windows(draw: st.DrawFn) -> dict[str, int]:
    """Everything but channels; some windows reach far beyond the input."""
    size = st.integers(1, 4)
    fields = {
        "input": draw(st.integers(0, 50)),
        "input_rows": draw(st.integers(1, 6)),
        "input_columns": draw(st.integers(1, 6)),
        "kernel_rows": draw(size),
        "kernel_columns": draw(size),
        "stride_y": draw(size),
        "stride_x": draw(size),
        "dilation_y": draw(st.integers(1, 3)),
        "dilation_x": draw(st.integers(1, 3)),
        "first_row": draw(st.integers(-4, 3)),
        "first_column": draw(st.integers(-4, 3)),
        "rows": draw(size),
        "columns": draw(size),
        "channels": draw(st.integers(1, 40)),
        "output": OUTPUT + draw(st.integers(0, 50)),
        "input_zero_point": draw(st.integers(-128, 127)),
        "output_zero_point": draw(st.integers(-128, 127)),
        "clamp_min": draw(st.integers(-128, 0)),
        "clamp_max": draw(st.integers(0, 127)),
    }
    fields["output_pixel"] = fields["channels"] + draw(st.integers(0, 3))
    fields["output_row"] = fields["columns"] * fields["output_pixel"] + draw(st.integers(0, 3))
    return fields


def pitched(fields: dict[str, int], channels: int, spare: tuple[int, int]) -> None:
    fields["input_pixel"] = channels + spare[0]
    fields["input_row"] = fields["input_columns"] * fields["input_pixel"] + spare[1]


SPARE = st.tuples(st.integers(0, 3), st.integers(0, 3))
SEEDS = st.integers(0, 2**32 - 1)
WAYS = st.tuples(st.sampled_from(["", "twice", "once"]), st.booleans())
"""How a residual is added, if there is one, and whether the output stage rounds in single precision."""


class Bench:
    """On-chip memories full of noise, what a command makes of them, and what it should."""

    def __init__(self, machine: Any, seed: int) -> None:
        self.machine = machine
        self.random = np.random.default_rng(seed)
        self.activations = self.random.integers(-128, 128, ACTIVATIONS).astype(np.int8)
        self.weights = self.random.integers(-128, 128, WEIGHTS).astype(np.int8)

    def parameters(self, channels: int, single: bool) -> Array:
        """Bias, multiplier and shift of each channel, put into the weight memory."""
        blocks = -(-channels // COLUMNS)
        numbers = np.zeros((blocks, 3, COLUMNS), np.int64)
        numbers[:, 0] = self.random.integers(-(2**15), 2**15, (blocks, COLUMNS))
        numbers[:, 1] = self.random.integers(2**30, 2**31, (blocks, COLUMNS))
        numbers[:, 2] = self.random.integers(-12, -4, (blocks, COLUMNS))
        self.put(PARAMETERS, numbers)
        return numbers.transpose(1, 0, 2).reshape(3, -1)[:, :channels]

    def addition(self, once: bool) -> list[int]:
        if once:
            return self.real_addition()
        multipliers = [int(m) for m in self.random.integers(2**30, 2**31, 3)]
        low = int(self.random.integers(-128, 0))
        numbers = [20, 3, multipliers[0], 0, -5, multipliers[1], -1, 7, multipliers[2], -19, low, 100]
        self.put(ADDITION, np.array(numbers))
        return numbers

    def real_addition(self) -> list[int]:
        """Halves are common where the multipliers are powers of two, and near halves where the tolerance is large."""
        shift = int(self.random.integers(1, 43))
        most = min(2**31 - 1, 2 ** min(shift + 1, 40))
        ratios = [int(self.random.integers(-most, most)) for _ in range(2)]
        if self.random.integers(0, 2):
            ratios = [int(self.random.choice([1, -1])) << min(30, max(0, shift - more)) for more in (0, 1)]
        tolerance = int(self.random.integers(0, min(2**31, 2**shift // 4 + 1)))
        numbers = [shift, 3, ratios[0], 0, -5, ratios[1], 0, 7, tolerance, 0, int(self.random.integers(-128, 0)), 100]
        self.put(ADDITION, np.array(numbers))
        return numbers

    def put(self, address: int, numbers: Array) -> None:
        data = np.frombuffer(numbers.astype("<i4").tobytes(), np.int8)
        self.weights[address : address + len(data)] = data

    def run(self, *commands: tuple[str, dict[str, int]]) -> Array:
        """The activations after the commands, one after the other."""
        whole = {"runs": 1, "planes": 1}
        loads = [
            ("load", {"place": 0, "run": ACTIVATIONS, **whole}),
            ("load", {"place": 1, "memory": 1, "run": WEIGHTS, **whole}, ">N"),
        ]
        first, *others = commands
        computed = [(*first, "<P"), *others, ("sync", {}, ">N")]
        store = ("store", {"place": 0, "run": ACTIVATIONS, **whole}, "<P")
        played = self.machine.play([*loads, *computed, store], [self.activations.tobytes(), self.weights.tobytes()])
        assert (played.error, played.command) == (0, 0xFFFFFFFF)
        return np.frombuffer(played.places[0], np.int8)

    def at(self, address: int, rows: tuple[int, int], columns: tuple[int, int], channels: int) -> Array:
        """Indices of a box: extents and pitches."""
        y, x = np.arange(rows[0]) * rows[1], np.arange(columns[0]) * columns[1]
        return address + y[:, None, None] + x[:, None] + np.arange(channels)


def taps(bench: Bench, f: dict[str, int], channels: int, outside: int) -> tuple[Array, Array]:
    """Gathers the taps of pixels, [rows, columns, kernel_rows, kernel_columns, channels], and says which are inside."""
    there = bench.activations[
        bench.at(f["input"], (f["input_rows"], f["input_row"]), (f["input_columns"], f["input_pixel"]), channels)
    ]
    y = f["first_row"] + np.arange(f["rows"])[:, None] * f["stride_y"] + np.arange(f["kernel_rows"]) * f["dilation_y"]
    x = f["first_column"] + np.arange(f["columns"])[:, None] * f["stride_x"]
    x = x + np.arange(f["kernel_columns"]) * f["dilation_x"]
    y, x = y[:, None, :, None], x[None, :, None, :]
    inside = (y >= 0) & (y < f["input_rows"]) & (x >= 0) & (x < f["input_columns"])
    values = there[np.clip(y, 0, f["input_rows"] - 1), np.clip(x, 0, f["input_columns"] - 1)].astype(np.int64)
    return np.where(inside[..., None], values, outside), inside


def finished(f: dict[str, int], sums: Array, parameters: Array) -> Array:
    """The output stage."""
    biased = (sums + parameters[0]).astype(np.int32)
    if f["float32"]:
        scales = ((parameters[1] & ~127) * 2.0 ** (parameters[2] - 31)).astype(np.float32)
        rests = np.where(np.abs(biased.astype(np.int64)) <= 2**24, parameters[1] & 127, 0) / 128
        value = np.rint((biased + rests).astype(np.float32) * scales).astype(np.int64)
    else:
        value = multiply_by_quantized_multiplier(biased, parameters[1], parameters[2])
    return np.asarray(np.clip(value + f["output_zero_point"], f["clamp_min"], f["clamp_max"]))


def added_once(numbers: list[int], first: Array, second: Array) -> Array:
    """Between the two integers beside the real sum it takes the nearer one, or the even one."""
    shift, z1, m1, _, z2, m2, _, zero, tolerance, _, low, high = numbers
    total = (first.astype(np.int64) - z1) * m1 + (second.astype(np.int64) - z2) * m2
    below, unit = total // 2**shift, 2**shift
    beyond = 2 * (total - below * unit) - unit  # twice as much as it lies above the middle
    nearer = below + (beyond > 0)
    even = below + below % 2
    return np.asarray(np.clip(np.where(abs(beyond) <= 2 * tolerance, even, nearer) + zero, low, high))


def added(numbers: list[int], first: Array, second: Array, once: bool) -> Array:
    if once:
        return added_once(numbers, first, second)
    left, z1, m1, s1, z2, m2, s2, zero, multiplier, shift, low, high = numbers
    one = multiply_by_quantized_multiplier((first.astype(np.int64) - z1) << left, m1, s1)
    two = multiply_by_quantized_multiplier((second.astype(np.int64) - z2) << left, m2, s2)
    return np.clip(multiply_by_quantized_multiplier(one + two, multiplier, shift) + zero, low, high)


def check(bench: Bench, f: dict[str, int], after: Array, wanted: Array) -> None:
    """The output, and that nothing else was written."""
    expected = bench.activations.copy()
    where = bench.at(f["output"], (f["rows"], f["output_row"]), (f["columns"], f["output_pixel"]), f["channels"])
    expected[where] = wanted
    np.testing.assert_array_equal(after, expected)


def with_residual(bench: Bench, f: dict[str, int], adds: str) -> Array:
    """Fields of a residual, and the residual."""
    f |= {
        "add": 1,
        "once": int(adds == "once"),
        "residual": 20000,
        "residual_row": 500,
        "residual_pixel": 50,
        "addition": ADDITION,
    }
    return bench.activations[bench.at(20000, (f["rows"], 500), (f["columns"], 50), f["channels"])]


def scaled(sums: Array, multipliers: Array, shifts: Array) -> Array:
    """Scales sums by integers alone, as docs/reference/npu.md defines it for any sum and shift."""
    moved = (sums << np.maximum(shifts, 0)).astype(np.uint32).astype(np.int32).astype(np.int64)
    high = (moved * multipliers + 2**30) >> 31
    right = np.maximum(-shifts, 0)
    return np.asarray(np.sign(high) * ((abs(high) + ((1 << right) >> 1)) >> right))


def near_ties() -> tuple[Array, Array, Array]:
    """Every shift with multipliers of many kinds: sums around those whose results lie between two integers, and the
    largest ones."""
    random = np.random.default_rng(0)
    kinds = [2**30, 2**30 + 1, 2**30 + 64, 2**30 + 127, 2**30 + 128, 3 << 29, 1518500250, 2**31 - 128, 2**31 - 1]
    multipliers = np.array([*kinds, *random.integers(2**30, 2**31, 7)])[:, None, None]
    shifts = np.arange(-31, 31)[:, None]
    halves = np.array([-129.5, -128.5, -127.5, -7.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 6.5, 126.5, 127.5, 128.5])
    ties = np.floor(halves / (multipliers * 2.0 ** (shifts - 31)))
    around = (ties[..., None] + np.arange(-1, 3)).reshape(*ties.shape[:2], -1)
    most = np.array([-(2**31), -(2**31) + 1, 2**31 - 1, -(2**24) - 1, -(2**24), 2**24, 2**24 + 1, 2**25 + 1, 0])
    sums = np.concatenate([around, np.broadcast_to(most, (*around.shape[:2], len(most)))], axis=-1)
    sums, multipliers, shifts = np.broadcast_arrays(np.clip(sums, -(2**31), 2**31 - 1), multipliers, shifts)
    return sums.ravel().astype(np.int64), multipliers.ravel(), shifts.ravel().astype(np.int64)


@pytest.mark.slow
@pytest.mark.parametrize("single", [0, 1])
def test_results_between_two_integers(machine: Any, single: int) -> None:
    """Biases are the sums, of channels whose one tap lies outside of the input."""
    found = near_ties()
    most = WEIGHTS // (13 * COLUMNS) * COLUMNS
    for begin in range(0, len(found[0]), most):
        sums, multipliers, shifts = (numbers[begin : begin + most] for numbers in found)
        blocks = -(-len(sums) // COLUMNS)
        f = dict.fromkeys(("input_rows", "input_columns", "kernel_rows", "kernel_columns", "rows", "columns"), 1)
        f |= dict.fromkeys(("stride_y", "stride_x", "dilation_y", "dilation_x"), 1) | {
            "first_row": 1,
            "float32": single,
        }
        f |= {"channels": len(sums), "multiplier": len(sums), "input_pixel": 1, "input_row": 1, "output": OUTPUT}
        f |= {"clamp_min": -128, "clamp_max": 127, "output_zero_point": 0, "weights": 12 * COLUMNS * blocks}
        f |= {"output_pixel": len(sums), "output_row": len(sums)}
        bench = Bench(machine, 0)
        numbers = np.zeros((3, blocks * COLUMNS), np.int64)
        numbers[:, : len(sums)] = sums, multipliers, shifts
        bench.put(0, numbers.reshape(3, blocks, COLUMNS).transpose(1, 0, 2).reshape(-1))
        parameters = np.array([sums, multipliers, shifts])
        exact = np.clip(scaled(sums, multipliers, shifts), -128, 127)
        wanted = finished(f, np.zeros(1, np.int64), parameters) if single else exact
        check(bench, f, bench.run(("depthwise", f)), wanted)


@EXAMPLES
@given(windows(), st.integers(1, 20), SPARE, WAYS, SEEDS, st.data())
def test_convolve(
    machine: Any,
    f: dict[str, int],
    run: int,
    spare: tuple[int, int],
    ways: tuple[str, bool],
    seed: int,
    data: st.DataObject,
) -> None:
    """In one go, or in two: the sums of the first wait in their memory."""
    bench, (adds, single) = Bench(machine, seed), ways
    pitched(f, run, spare)
    depth = f["kernel_rows"] * f["kernel_columns"] * run
    steps, blocks = -(-depth // ROWS), -(-f["channels"] // COLUMNS)
    assume(blocks * steps * ROWS * COLUMNS <= PARAMETERS)
    parameters = bench.parameters(f["channels"], single)
    numbers = bench.addition(adds == "once")
    cut = data.draw(st.integers(0, steps - 1))
    f["weight_zero_point"] = data.draw(st.one_of(st.just(0), st.integers(-128, 127)))
    f |= {"run": run, "weights": 0, "parameters": PARAMETERS, "steps": steps, "float32": int(single)}
    residual = with_residual(bench, f, adds) if adds else None
    tiles = [bench.weights[: blocks * steps * ROWS * COLUMNS].reshape(blocks, steps, COLUMNS, ROWS)]
    commands = [("convolve", f)]
    if cut:
        unkept = ("output", "residual", "clamp", "add", "param", "float32", "once")
        first = {name: f[name] for name in f if not name.startswith(unkept)}
        first |= {"steps": cut, "keep": 1, "sums": SUMS}
        f |= {"first_step": cut, "steps": steps - cut, "continue": 1, "sums": SUMS}
        f["weights"] = blocks * cut * ROWS * COLUMNS
        commands = [("convolve", first), ("convolve", f)]
        flat = bench.weights[: blocks * steps * ROWS * COLUMNS]
        parts = flat[: f["weights"]], flat[f["weights"] :]
        tiles = [part.reshape(blocks, -1, COLUMNS, ROWS) for part in parts]
    weights = np.concatenate(tiles, axis=1).transpose(0, 2, 1, 3).reshape(blocks * COLUMNS, steps * ROWS)
    seen, _ = taps(bench, f, run, f["input_zero_point"])
    windows_ = seen.reshape(f["rows"], f["columns"], depth)
    sums = windows_ @ (weights[: f["channels"], :depth].T.astype(np.int64) - f["weight_zero_point"])
    wanted = finished(f, sums, parameters)
    check(
        bench, f, bench.run(*commands), wanted if residual is None else added(numbers, wanted, residual, adds == "once")
    )


@EXAMPLES
@given(windows(), st.integers(1, 20), SPARE, st.integers(-128, 127), SEEDS)
def test_sums_that_all_pixels_share(
    machine: Any, f: dict[str, int], run: int, spare: tuple[int, int], factor: int, seed: int
) -> None:
    """A pixel outside of the input: each weight is multiplied by the same number, and all pixels begin there."""
    bench = Bench(machine, seed)
    pitched(f, run, spare)
    f |= {"kernel_rows": 1, "kernel_columns": 1, "run": run, "parameters": PARAMETERS, "steps": -(-run // ROWS)}
    blocks = -(-f["channels"] // COLUMNS)
    parameters = bench.parameters(f["channels"], single=False)
    only = ("input", "input_row", "input_pixel", "input_rows", "input_columns", "run", "channels", "steps")
    ones = ("kernel_rows", "kernel_columns", "stride_y", "stride_x", "dilation_y", "dilation_x", "rows", "columns")
    first = {name: f[name] for name in only} | dict.fromkeys((*ones, "keep"), 1)
    first |= {"first_row": -1, "input_zero_point": factor, "sums": SUMS}
    packed = bench.weights[: blocks * f["steps"] * ROWS * COLUMNS].reshape(blocks, -1, COLUMNS, ROWS)
    weights = packed.transpose(0, 2, 1, 3).reshape(blocks * COLUMNS, -1)[: f["channels"], :run].astype(np.int64)
    seen, _ = taps(bench, f, run, f["input_zero_point"])
    sums = seen.reshape(f["rows"], f["columns"], run) @ weights.T + factor * weights.sum(axis=1)
    after = bench.run(("convolve", first), ("convolve", f | {"continue": 1, "shared": 1, "sums": SUMS}))
    check(bench, f, after, finished(f | {"float32": 0}, sums, parameters))


@EXAMPLES
@given(st.integers(1, 60), st.integers(1, 40), st.integers(0, 5), st.booleans(), SEEDS)
def test_pack(machine: Any, depth: int, channels: int, spare: int, turned: bool, seed: int) -> None:
    """What is packed is read by a convolution of one pixel for each depth that picks it."""
    bench = Bench(machine, seed)
    row = (channels if turned else depth) + spare
    where = bench.at(500, (depth if turned else channels, row), (1, 0), channels if turned else depth)[:, 0]
    matrix = bench.activations[where].T if turned else bench.activations[where]
    parameters = np.zeros((-(-channels // COLUMNS), 3, COLUMNS), np.int64)
    parameters[:, 1], parameters[:, 2] = 1 << 30, 1
    bench.put(PARAMETERS, parameters)
    bench.activations[20000 : 20000 + depth * depth] = np.eye(depth, dtype=np.int8).ravel()
    ones = ("kernel_rows", "kernel_columns", "stride_y", "stride_x", "dilation_y", "dilation_x", "rows", "input_rows")
    f = dict.fromkeys(ones, 1) | {"input": 20000, "run": depth, "input_pixel": depth, "input_columns": depth}
    f |= {"columns": depth, "channels": channels, "output": OUTPUT, "output_pixel": channels, "output_row": 0}
    f |= {"weights": 704, "parameters": PARAMETERS, "steps": -(-depth // ROWS), "clamp_min": -128, "clamp_max": 127}
    packed = {"source": 500, "source_row": row, "depth": depth, "channels": channels, "weights": 704}
    after = bench.run(("pack", packed | {"turned": int(turned)}), ("convolve", f))
    check(bench, f, after, matrix.T[None])


@EXAMPLES
@given(windows(), st.integers(1, 4), SPARE, WAYS, SEEDS)
def test_depthwise(
    machine: Any, f: dict[str, int], multiplier: int, spare: tuple[int, int], ways: tuple[str, bool], seed: int
) -> None:
    bench, (adds, single) = Bench(machine, seed), ways
    sources = -(-f["channels"] // multiplier)
    pitched(f, sources, spare)
    count, blocks = f["kernel_rows"] * f["kernel_columns"], -(-f["channels"] // COLUMNS)
    parameters = bench.parameters(f["channels"], single)
    numbers = bench.addition(adds == "once")
    f |= {"multiplier": multiplier, "weights": 16, "parameters": PARAMETERS, "float32": int(single)}
    residual = with_residual(bench, f, adds) if adds else None
    packed = bench.weights[16 : 16 + blocks * count * COLUMNS].reshape(blocks, count, COLUMNS)
    weights = packed.transpose(1, 0, 2).reshape(count, -1)[:, : f["channels"]].astype(np.int64)
    seen, _ = taps(bench, f, sources, f["input_zero_point"])
    seen = seen.reshape(f["rows"], f["columns"], count, sources)[..., np.arange(f["channels"]) // multiplier]
    wanted = finished(f, (seen * weights).sum(axis=2), parameters)
    check(
        bench,
        f,
        bench.run(("depthwise", f)),
        wanted if residual is None else added(numbers, wanted, residual, adds == "once"),
    )


@EXAMPLES
@given(windows(), SPARE, st.booleans(), SEEDS)
def test_pool(machine: Any, f: dict[str, int], spare: tuple[int, int], average: bool, seed: int) -> None:
    bench = Bench(machine, seed)
    pitched(f, f["channels"], spare)
    seen, inside = taps(bench, f, f["channels"], 0)
    counts = inside.sum(axis=(2, 3))[..., None]
    assume(counts.min() > 0)
    if average:
        totals = seen.sum(axis=(2, 3))
        value = np.sign(totals) * ((abs(totals) + counts // 2) // counts)
    else:
        value = np.where(inside[..., None], seen, -128).max(axis=(2, 3))
    unused = ("input_zero_point", "output_zero_point")
    fields = {name: f[name] for name in f if name not in unused} | {"average": int(average)}
    check(bench, f, bench.run(("pool", fields)), np.clip(value, f["clamp_min"], f["clamp_max"]))


@EXAMPLES
@given(st.integers(1, 100), st.integers(1, 5), st.tuples(*[st.integers(0, 9)] * 3), st.booleans(), SEEDS)
def test_add(machine: Any, run: int, rows: int, spare: tuple[int, int, int], once: bool, seed: int) -> None:
    bench = Bench(machine, seed)
    numbers = bench.addition(once)
    fields = {"first": 100, "second": 3000, "output": OUTPUT, "bytes": run, "rows": rows, "addition": ADDITION}
    fields["once"] = int(once)
    fields |= {"first_row": run + spare[0], "second_row": run + spare[1], "output_row": run + spare[2]}
    at = [bench.at(fields[name], (rows, fields[f"{name}_row"]), (1, 0), run) for name in ("first", "second", "output")]
    expected = bench.activations.copy()
    expected[at[2]] = added(numbers, bench.activations[at[0]], bench.activations[at[1]], once)
    np.testing.assert_array_equal(bench.run(("add", fields)), expected)


@EXAMPLES
@given(st.integers(1, 100), st.integers(1, 5), st.tuples(*[st.integers(0, 9)] * 2), SEEDS)
def test_lookup(machine: Any, run: int, rows: int, spare: tuple[int, int], seed: int) -> None:
    bench = Bench(machine, seed)
    fields = {"source": 100, "output": OUTPUT, "bytes": run, "rows": rows, "table": 16}
    fields |= {"source_row": run + spare[0], "output_row": run + spare[1]}
    source, output = (
        bench.at(fields[name], (rows, fields[f"{name}_row"]), (1, 0), run) for name in ("source", "output")
    )
    expected = bench.activations.copy()
    expected[output] = bench.weights[16 + bench.activations[source].astype(np.int64) % 256]
    np.testing.assert_array_equal(bench.run(("lookup", fields)), expected)


@EXAMPLES
@given(
    st.tuples(st.integers(1, 9), st.integers(1, 4), st.integers(1, 4)),
    st.tuples(*[st.integers(0, 5)] * 2),
    st.tuples(st.integers(0, 40), st.integers(0, 200)),
    st.tuples(st.integers(0, 30), st.integers(0, 30), st.booleans()),
)
def test_transfers(
    player: Any,
    counts: tuple[int, int, int],
    spare: tuple[int, int],
    strides: tuple[int, int],
    where: tuple[int, int, bool],
) -> None:
    """Strides in memory may be any; on chip runs lie apart."""
    run, runs, planes = counts
    offset, address, stores = where
    pitches = (run + spare[0], runs * (run + spare[0]) + spare[1])
    fields = {"offset": offset, "address": address, "run": run, "runs": runs, "planes": planes}
    fields |= dict(zip(("stride_run", "stride_plane", "pitch_run", "pitch_plane"), (*strides, *pitches), strict=True))
    memory = np.random.default_rng(0).integers(1, 256, 2000).astype(np.uint8)
    chip = np.random.default_rng(1).integers(1, 256, 2000).astype(np.uint8)
    whole = {"run": 2000, "runs": 1, "planes": 1}
    fill = ("load", {"place": 1, **whole})
    outside = [offset + p * strides[1] + r * strides[0] for p in range(planes) for r in range(runs)]
    inside = [address + p * pitches[1] + r * pitches[0] for p in range(planes) for r in range(runs)]
    if stores:
        played = player.play(
            [(*fill, ">N"), ("sync", {}, "<P>N"), ("store", fields, "<P")], [memory.tobytes(), chip.tobytes()]
        )
        expected = memory.copy()
        for to, source in zip(outside, inside, strict=True):
            expected[to : to + run] = chip[source : source + run]
        assert played.places[0] == expected.tobytes()
    else:
        read = ("store", {"place": 1, **whole}, "<P")
        played = player.play(
            [fill, ("load", fields, ">N"), ("sync", {}, "<P>N"), read], [memory.tobytes(), chip.tobytes()]
        )
        expected = chip.copy()
        for source, to in zip(outside, inside, strict=True):
            expected[to : to + run] = memory[source : source + run]
        assert played.places[1] == expected.tobytes()


def test_a_missing_token_shows_as_stale_data(player: Any) -> None:
    """A store that does not wait for the load carries what was there before; one that waits, what was loaded."""
    load = {"run": 64, "runs": 1, "planes": 1}
    store = {"place": 1, "run": 64, "runs": 1, "planes": 1}
    early = [("load", load, "<N"), ("store", store), ("sync", {}), ("sync", {}, ">P")]
    assert player.play(early, [b"x" * 64, b"y" * 64]).places[1] == bytes(64)
    waiting = [("load", load, ">N"), ("sync", {}, "<P>N"), ("store", store, "<P")]
    assert player.play(waiting, [b"x" * 64, b"y" * 64]).places[1] == b"x" * 64
