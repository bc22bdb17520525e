"""Talks to running firmware in a session: runs its model, times it, and reads its layers.

``Link`` repeats what the line loses; this module knows what the objects mean, and asks for missing pieces of them.
"""

from __future__ import annotations

import time
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from uaccel.errors import DeviceError, InputError, LayerError
from uaccel.model import Array
from uaccel.session.connect import ProcessTransport, open_port
from uaccel.session.description import (
    ACCOUNT,
    INFERENCES,
    LARGEST_DESCRIPTION,
    LAYER,
    TIME,
    Account,
    Identity,
    LayerTime,
    ModelInfo,
    instructions_of,
    layer_outputs,
    layer_times,
    read_description,
    state_arrays,
    state_pieces,
)
from uaccel.session.description import accounts as read_accounts
from uaccel.session.link import LARGEST_OBJECT, Link, Pieces, RefusedError, Request, Timeouts, Traffic, as_signed
from uaccel.session.message import CODES, describe_bytes
from uaccel.session.protocol_ids import (
    MOST_RUNS,
    ErrorCode,
    HelloReply,
    Log,
    LogLevel,
    ObjectKind,
    Read,
    ReadReply,
    Run,
    RunReply,
    Verbosity,
    Write,
)
from uaccel.session.tensors import TensorType, ramp
from uaccel.session.transport import Transport

EVERY_LAYER: Final = 0xFFFF  # The index that stands for all layers.
TO_THE_END: Final = 0xFFFFFFFF  # A length beyond any object's end.
# Parts of a model's status below -65536: the layer's number in 15 bits, and below it the driver's signed code in 16.
CODE_BITS, CODE_MASK, CODE_SIGN, LAYER_MASK = 16, 0xFFFF, 0x8000, 0x7FFF
ATTEMPTS: Final = 10  # How often missing pieces of an object are asked for.
AHEAD: Final = 4  # Inferences that are under way at most.
KEPT_LOG_LINES: Final = 1000
SLACK: Final = 10.0  # How many times as long as the first run each of the others may take.
# Readings of layers' instructions by a clock that now and then is off by a tick: the median counts.
CLOCK_READINGS: Final = 5
# Seconds that such a clock runs idle before a measurement, so that its ticks begin with the measurement.
CLOCK_PAUSE: Final = 0.005
WRITE_LABEL: Final = "write the inputs"
WRITE_HEAD: Final = Write.LAYOUT.size

Inputs = Mapping[str, Array]


@dataclass(frozen=True)
class Result:
    """Holds the outputs of one inference, and what it took; None for what the device cannot measure."""

    outputs: dict[str, Array]
    seconds: float | None
    instructions: int | None
    stack: int
    calls: int = 0  # Calls of accelerators.
    cycles: int = 0  # Cycles of accelerators, by their own count.


@dataclass(frozen=True)
class Timing:
    """Holds what several inferences in a row took: the mean and the fastest time, and the mean of the instructions."""

    runs: int
    seconds: float | None
    least_seconds: float | None
    instructions: float | None
    cycles: float = 0.0  # Mean cycles of accelerators, by their own count.


@dataclass(frozen=True)
class LogLine:
    """Holds a line of the log of ``device``; ``lost`` lines before it never arrived."""

    device: str
    level: LogLevel
    text: str
    lost: int


class _TooLateError(Exception):
    """Missing outputs of a run cannot be read any more, since a later run has replaced them."""


@dataclass(frozen=True)
class _Sample:
    """Holds one inference that is under way."""

    inputs: bytes
    run: int
    request: Request
    outputs: Pieces


class Session:
    """Keeps one session with a device; a context manager.

    >>> with Session.open("/dev/ttyACM0") as device:        # doctest: +SKIP
    ...     outputs = device.run({"input": array})
    """

    def __init__(
        self,
        transport: Transport,
        *,
        expect: Identity | None = None,
        timeouts: Timeouts | None = None,
        on_log: Callable[[LogLine], None] | None = None,
        **link_options: Any,
    ) -> None:
        """Greets the device. With ``expect`` it must run that very model, else :class:`DeviceError`."""
        # The last lines that came.
        self.log: list[LogLine] = []
        self._on_log = on_log
        self._log_lines = 0
        self._expect = expect
        self._transport = transport
        self._link = Link(transport, timeouts or Timeouts(), self._take_log, **link_options)
        self._runs = 0
        self._run_seconds = 0.0  # what one inference took
        self._given: bytes | None = None  # the user's last inputs
        self._inputs: bytes | None = None  # the inputs that are on the device
        try:
            with self._link.operation():
                self.model = self._meet(self._link.hello())
        except BaseException:
            transport.close()
            raise

    @classmethod
    def open(cls, port: str, *, baud: int = 115200, **options: Any) -> Session:
        """Opens a session over a serial port or a URL such as ``socket://localhost:3333``; ``options`` as in the
        constructor."""
        return cls(open_port(port, baud), **options)

    @classmethod
    def start(cls, command: Sequence[str], **options: Any) -> Session:
        """Starts firmware of board ``host`` as a process that lives as long as the session."""
        return cls(ProcessTransport(command), **options)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Releases the line; the device waits for the next session."""
        self._transport.close()

    @property
    def traffic(self) -> Traffic:
        """Counts of what the line has carried so far."""
        return self._link.traffic

    # ------------------------------------------------------------------------------------------------ running

    def run(self, inputs: Inputs, *, continues: bool = False) -> dict[str, Array]:
        """Runs one inference, and returns its outputs by name.

        A model with a state begins anew; with ``continues`` it goes on from the state that the last run left.
        """
        if continues:
            return self._frame(inputs, continues=True).outputs
        (result,) = self.stream([inputs])
        return result.outputs

    def sequence(self, frames: Iterable[Inputs]) -> Generator[Result, None, None]:
        """Runs one inference for each frame, in order. The first begins anew; each other goes on from the state that
        the one before left."""
        for number, inputs in enumerate(frames):
            yield self._frame(inputs, continues=number > 0)

    def read_state(self) -> dict[str, Array]:
        """Reads the state that the last run left, as arrays by name."""
        tensors = self._state("there is none to read")
        with self._link.operation():
            data = self._read_whole(ObjectKind.STATE, LARGEST_OBJECT, "read the state")
        return state_arrays(tensors, data)

    def write_state(self, state: Inputs) -> None:
        """Writes a state, as ``read_state`` returns it: of this model file, and of a build that places it alike.
        ``run(inputs, continues=True)`` goes on from there."""
        pieces = state_pieces(self._state("there is none to write"), state, self._link.body_bytes)
        with self._link.operation():
            for request in [self._link.submit(piece, "write the state") for piece in pieces]:
                self._link.wait(request)

    def _state(self, otherwise: str) -> tuple[tuple[int, TensorType], ...]:
        if not self.model.has_state:
            raise InputError(f"the model {self.model.name} keeps no state between runs; {otherwise}")
        if not self.model.state:
            raise DeviceError(f"{self._link.name} does not tell what its state consists of: build its firmware anew")
        return self.model.state

    def _frame(self, inputs: Inputs, *, continues: bool) -> Result:
        """Runs one inference with nothing else under way: a later one would change the state, and then this one could
        not be repeated."""
        if not self.model.has_state:
            raise InputError(f"the model {self.model.name} keeps no state between runs; nothing continues")
        self._given = self._packed(inputs)
        with self._link.operation():
            self._write(self._given)
            sample = self._begin(continues=continues)
            try:
                return self._result(sample)
            except _TooLateError:
                raise DeviceError(f"{self._link.name} lost the outputs of a frame: run the sequence again") from None

    def stream(self, samples: Iterable[Inputs]) -> Generator[Result, None, None]:
        """Runs one inference for each sample; each result comes as soon as it is there. A model with a state begins
        anew with each of them.

        While the device computes one sample and sends its outputs, the inputs of the next ones are already under way.
        Outputs that are still incomplete when a later run has begun are lost; ``_collect`` runs such a sample again.
        """
        under_way: deque[_Sample] = deque()
        # Bytes that arrive during a run take instructions, which a clock of instructions would count.
        ahead = 1 if self._by_the_clock else AHEAD
        for inputs in samples:
            if len(under_way) == ahead:
                yield self._collect(under_way.popleft())
            self._given = self._packed(inputs)
            self._write(self._given)
            under_way.append(self._begin())
        while under_way:
            yield self._collect(under_way.popleft())

    def time(self, runs: int = 1, inputs: Inputs | None = None) -> Timing:
        """Times runs in a row on the device, with nothing on the line between them. The first run goes alone: it shows
        how long the others may take.

        Without ``inputs`` it takes those of the last run, or the ramp if there was none. A model whose inputs lie in
        the workspace gets them again before each run; the times are of the inferences alone all the same.
        """
        if runs < 1:
            raise InputError(f"cannot time {runs} runs; wanted at least 1")
        self._write_or_keep(inputs)
        at_once = 1 if self.model.workspace_io else MOST_RUNS
        counts = [1, *(min(at_once, runs - done) for done in range(1, runs, at_once))]
        replies = [self._timed(count) for count in counts]
        instructions = [self._instructions(reply) for reply in replies]
        counted = [count for count in instructions if count is not None]
        return Timing(
            runs=runs,
            seconds=self._seconds(sum(reply.ticks for reply in replies) / runs),
            least_seconds=self._seconds(min(reply.least_ticks for reply in replies)),
            instructions=sum(counted) / runs if len(counted) == len(replies) else None,
            cycles=sum(reply.cycles for reply in replies) / runs,
        )

    def _timed(self, count: int) -> RunReply:
        begun = self._transport.clock()
        with self._link.operation():
            self._renew()
            reply = self._run_reply(self._submit_run(count))
        if count == 1:
            self._run_seconds = self._transport.clock() - begun
        return reply

    def reset(self) -> None:
        """Restarts the firmware, and begins a new session with it."""
        with self._link.operation():
            self.model = self._meet(self._link.reset())
        self._given = self._inputs = None

    def set_verbosity(self, level: LogLevel) -> None:
        """Sets which lines of its log the device sends from now on: those of this level and graver ones."""
        self._link.wait(self._link.submit(Verbosity(level), "set the log level"))

    # ------------------------------------------------------------------------------------------------ looking inside

    def layer(self, layer: int | str, inputs: Inputs | None = None) -> list[Array]:
        """Reads what one layer computes, by its number or its name. Runs the model; firmware with observation only."""
        index = self._layer_index(layer)
        self._write_or_keep(inputs)
        data = self._read_layers(ObjectKind.LAYERS, index, f"read layer {self.model.layers[index].name}")
        found = layer_outputs(data, self.model)
        return [found[key] for key in sorted(found)]

    def layers(self, inputs: Inputs | None = None) -> dict[tuple[int, int], Array]:
        """Reads every layer's outputs by (layer, output): in one run, or one run a layer if they are too large."""
        self._write_or_keep(inputs)
        every = range(len(self.model.layers))
        at_once = [EVERY_LAYER] if self._layer_bytes(EVERY_LAYER) <= LARGEST_OBJECT else every
        data = [self._read_layers(ObjectKind.LAYERS, index, "read the layers") for index in at_once]
        return layer_outputs(b"".join(data), self.model)

    def layer_times(self, inputs: Inputs | None = None) -> list[LayerTime]:
        """Reads time and instructions of each executed layer, from one run; by a clock, the median of several runs."""
        self._write_or_keep(inputs)
        rate = self._transport.instructions_per_second
        readings = [
            layer_times(self._read_layers(ObjectKind.TIMES, EVERY_LAYER, "time the layers"), self.model, rate)
            for _ in range(CLOCK_READINGS if self._by_the_clock else 1)
        ]
        if len({tuple(time.layer for time in times) for times in readings}) > 1:
            raise DeviceError(f"{self._link.name} executes other layers each time: run again")
        return [
            sorted(times, key=lambda time: time.instructions or 0)[len(times) // 2]
            for times in zip(*readings, strict=True)
        ]

    def accounts(self) -> dict[int, Account]:
        """Reads what accelerators did in each layer that called one, in one inference: the mean since the session
        began."""
        most = INFERENCES.size + ACCOUNT.size * len(self.model.layers)
        with self._link.operation():
            data = self._read_whole(ObjectKind.ACCOUNTS, most, "read what accelerators did")
        return read_accounts(data, self.model)

    # ------------------------------------------------------------------------------------------------ the parts

    def _meet(self, hello: HelloReply) -> ModelInfo:
        """Checks that the device is the expected one, and reads its description. Every size that the device states is
        checked before memory is taken for it."""
        seen, wanted = Identity(hello.model_hash, hello.build), self._expect
        name = describe_bytes(hello.name)
        if wanted is not None and seen != wanted:
            what = "model" if seen.model_hash != wanted.model_hash else "build"
            ours, theirs = (wanted.model_hash, seen.model_hash) if what == "model" else (wanted.build, seen.build)
            raise DeviceError(
                f"{self._link.name} runs another {what}: {name} {theirs.hex()[:12]}, "
                f"wanted {ours.hex()[:12]}: build and flash its firmware anew"
            )
        self._check_size("description", hello.description_bytes, LARGEST_DESCRIPTION)
        text = self._read(ObjectKind.DESCRIPTION, hello.description_bytes, "describe the model")
        model = read_description(hello, text, self._link.name)
        if wanted is None or wanted.tensors is None:
            layers = [sum(tensor.size for tensor in layer.outputs) for layer in model.layers]
            sizes = {"inputs": hello.input_bytes, "outputs": hello.output_bytes, "a layer": max(layers, default=0)}
            for what, size in sizes.items():
                self._check_size(what, size, LARGEST_OBJECT)
        elif model.tensors != wanted.tensors:
            raise DeviceError(
                f"{self._link.name} describes {name} otherwise than it was compiled: build and flash its firmware anew"
            )
        return model

    def _check_size(self, what: str, size: int, most: int) -> None:
        if size > most:
            raise DeviceError(
                f"{self._link.name} tells of {size:,} bytes of {what}, a session takes up to {most:,}: "
                "is it uaccel's firmware that runs?"
            )

    def _take_log(self, log: Log, number: int) -> None:
        level = LogLevel(min(log.level, LogLevel.ERROR))
        lost = max(0, number - self._log_lines)
        line = LogLine(self._link.name, level, describe_bytes(log.text), lost)
        self._log_lines = number + 1
        self.log.append(line)
        del self.log[:-KEPT_LOG_LINES]
        if self._on_log is not None:
            self._on_log(line)

    def _seconds(self, ticks: float) -> float | None:
        return ticks / self.model.ticks_per_second if self.model.ticks_per_second else None

    def _instructions(self, reply: RunReply) -> int | None:
        rate = self._transport.instructions_per_second
        return instructions_of(reply.instructions, reply.ticks, self.model.ticks_per_second, rate)

    def _packed(self, inputs: Inputs) -> bytes:
        names = [tensor.name for tensor in self.model.inputs]
        if set(inputs) != set(names):
            raise InputError(f"inputs {sorted(inputs)} were given; the model's inputs are {names}")
        return b"".join(tensor.pack(inputs[tensor.name]) for tensor in self.model.inputs)

    def _write(self, inputs: bytes) -> None:
        self._inputs = inputs
        room = self._link.body_bytes - WRITE_HEAD
        for offset in range(0, len(inputs), room):
            self._link.submit(Write(offset, inputs[offset : offset + room]), WRITE_LABEL, unattended=True)

    def _write_or_keep(self, inputs: Inputs | None) -> None:
        """Writes the inputs, or the last ones again if none are given, or the ramp if nothing has run. Nothing is
        written if the device has them already, or if ``_renew`` writes them before each run."""
        if inputs is None and self._given is None:
            inputs = {tensor.name: ramp(tensor) for tensor in self.model.inputs}
        if inputs is not None:
            self._given = self._packed(inputs)
        repeated = inputs is None and self._given == self._inputs
        if self._given is not None and not repeated and not self.model.workspace_io:
            self._write(self._given)

    def _renew(self) -> None:
        """Writes the inputs again before a run, if the model overwrites them."""
        if self.model.workspace_io and self._given is not None:
            self._write(self._given)

    def _submit_run(self, count: int, outputs: Pieces | None = None, *, continues: bool = False) -> Request:
        """Submits ``count`` runs. Each request has its own name, from 1 to 2**32 - 1, by which outputs are read: the
        device refuses those of another run. The CRC keeps it from running on inputs that were not written completely.
        """
        assert self._inputs is not None  # written just before
        self._runs = self._runs % 0xFFFFFFFF + 1
        self._pause_for_the_clock()
        run = Run(self._runs, count, zlib.crc32(self._inputs), outputs is not None, continues)
        label = "run" if count == 1 else f"run {count} times"
        on_data = outputs.add if outputs is not None else None
        limit = self._link.timeouts.run + SLACK * self._run_seconds * (count - 1)
        return self._link.submit(run, label, limit=limit, on_data=on_data)

    def _run_reply(self, request: Request) -> RunReply:
        reply = RunReply.unpack(self._link.wait(request))
        if reply.status != 0:
            raise self._failed(reply.status, reply.failure)
        return reply

    def _failed(self, status: int, said: bytes) -> DeviceError:
        """The error for what the model returned. The driver's code is extended by its sign bit: (c ^ s) - s."""
        layer, code = status >> CODE_BITS & LAYER_MASK, (status & CODE_MASK ^ CODE_SIGN) - CODE_SIGN
        if status >= -CODE_MASK - 1 or layer >= len(self.model.layers):
            return DeviceError(f"{self._link.name}: the model returned {status} instead of 0")
        info, text = self.model.layers[layer], describe_bytes(said)
        meaning = text or CODES.get(code)
        words = f"{info.engine}: {meaning} (error {code})" if meaning else f"{info.engine}: error {code}"
        return LayerError(f"{self._link.name}: layer {layer} ({info.name}): {words}", layer, code, text)

    def _begin(self, *, continues: bool = False) -> _Sample:
        """Begins a run whose outputs the device sends by itself."""
        assert self._inputs is not None
        outputs = Pieces(sum(tensor.size for tensor in self.model.outputs))
        request = self._submit_run(1, outputs, continues=continues)
        return _Sample(self._inputs, self._runs, request, outputs)

    def _collect(self, sample: _Sample) -> Result:
        """The result of a sample. If its outputs were lost, it runs again, now as the last run, which nothing replaces
        before its pieces are read."""
        with self._link.operation():
            for _ in range(ATTEMPTS):
                with suppress(_TooLateError):
                    return self._result(sample)
                self._write(sample.inputs)
                sample = self._begin()
        raise self._incomplete("run")

    def _result(self, sample: _Sample) -> Result:
        """The result of a run; ``_TooLateError`` if outputs were lost and a later run was submitted.

        The device may not have begun that later run, but a read would be queued behind it. The CRC covers all outputs,
        since pieces may come from several answers.
        """
        try:
            reply = self._run_reply(sample.request)
        except RefusedError as error:
            if error.error.code != ErrorCode.FORGOTTEN:
                raise
            raise _TooLateError from None
        if sample.outputs.missing() and sample.run != self._runs:
            raise _TooLateError
        self._fill(ObjectKind.OUTPUTS, sample.outputs, "read the outputs", run=sample.run)
        data = sample.outputs.value()
        if zlib.crc32(data) != reply.output_crc:
            raise DeviceError(f"{self._link.name} sent outputs that are not those it computed: run again")
        return Result(
            outputs=self._unpacked(data),
            seconds=self._seconds(reply.ticks),
            instructions=self._instructions(reply),
            stack=reply.stack_bytes,
            calls=reply.calls,
            cycles=reply.cycles,
        )

    def _unpacked(self, data: bytes) -> dict[str, Array]:
        outputs, offset = {}, 0
        for tensor in self.model.outputs:
            outputs[tensor.name] = tensor.unpack(data[offset : offset + tensor.size])
            offset += tensor.size
        return outputs

    # ------------------------------------------------------------------------------------------------ reading

    def _read(self, kind: ObjectKind, size: int, label: str) -> bytes:
        pieces = Pieces(size)
        self._fill(kind, pieces, label)
        return pieces.value()

    def _read_whole(self, kind: ObjectKind, most: int, label: str) -> bytes:
        """Reads an object of a size that the device tells: at most so many bytes."""
        pieces, read = Pieces(most=most), Read(kind, 0, 0, 0, TO_THE_END)
        reply = self._link.wait(self._link.submit(read, label, on_data=pieces.add))
        pieces.size = self._size_in(reply, most, label)
        self._fill(kind, pieces, label)
        return pieces.value()

    def _fill(self, kind: ObjectKind, pieces: Pieces, label: str, *, run: int = 0) -> None:
        """Reads what is missing of an object, a request for each gap, until nothing is."""
        for _ in range(ATTEMPTS):
            gaps = pieces.missing()
            if not gaps:
                return
            reads = [Read(kind, 0, run, *gap) for gap in gaps]
            for request in [self._link.submit(read, label, on_data=pieces.add) for read in reads]:
                self._link.wait(request)
        raise self._incomplete(label)

    @property
    def _by_the_clock(self) -> bool:
        return self._transport.instructions_per_second is not None

    def _pause_for_the_clock(self) -> None:
        if self._by_the_clock:
            time.sleep(CLOCK_PAUSE)

    def _read_layers(self, kind: ObjectKind, index: int, label: str) -> bytes:
        """Reads objects for which the device runs the model. Each request is another run, so that one request asks for
        all gaps at once: from the first byte that is missing to the last."""
        self._pause_for_the_clock()
        if not self.model.observable:
            raise DeviceError(f"{self._link.name} cannot {label}: build its firmware with -DOBSERVE=ON")
        most = self._layer_bytes(index) if kind == ObjectKind.LAYERS else TIME.size * len(self.model.layers)
        pieces, part = Pieces(most=most), (0, TO_THE_END)
        with self._link.operation():
            for _ in range(ATTEMPTS):
                self._renew()
                read = Read(kind, index, 0, *part)
                request = self._link.submit(read, label, limit=self._link.timeouts.run, on_data=pieces.add)
                pieces.size = self._size_in(self._wait_for_model(request), most, label)
                gaps = pieces.missing()
                if not gaps:
                    return pieces.value()
                part = (gaps[0][0], gaps[-1][0] + gaps[-1][1] - gaps[0][0])
        raise self._incomplete(label)

    def _layer_bytes(self, index: int) -> int:
        """Bytes of the records with the outputs of a layer, or of all layers."""
        layers = self.model.layers if index == EVERY_LAYER else self.model.layers[index : index + 1]
        return sum(LAYER.size + tensor.size for layer in layers for tensor in layer.outputs)

    def _size_in(self, reply: bytes, most: int, label: str) -> int:
        size = ReadReply.unpack(reply).object_bytes
        if size > most:
            raise DeviceError(f"{self._link.name} cannot {label}: it tells of {size:,} bytes, there can be {most:,}")
        return size

    def _wait_for_model(self, request: Request) -> bytes:
        try:
            return self._link.wait(request)
        except RefusedError as refused:
            if refused.error.code == ErrorCode.MODEL:
                raise self._failed(as_signed(refused.error.detail), refused.error.text) from None
            raise

    def _incomplete(self, label: str) -> DeviceError:
        return DeviceError(f"{self._link.name}: cannot {label} over this line, {ATTEMPTS} attempts lost parts of it")

    def _layer_index(self, layer: int | str) -> int:
        names = [known.name for known in self.model.layers]
        index = names.index(layer) if isinstance(layer, str) and layer in names else layer
        if not isinstance(index, int) or not 0 <= index < len(names):
            raise InputError(f"the model has no layer {layer!r}; it has {len(names)}, from {names[:1]} to {names[-1:]}")
        return index
