"""Damaged ``.pt2`` files by the thousand, at each level of their structure, and what ``uaccel explain`` makes of each.

``python -m support.hostile.torch_mutants 2000`` runs so many, each in a process forked off one that has loaded PyTorch.
"""

from __future__ import annotations

import io
import json
import os
import random
import resource
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.hostile.json_mutants import ANY_VALUES, change, places
from support.models.exported import Net, exported, save, settled, torch
from support.models.exported import random as tensor
from support.models.torch_archives import CONSTANTS, PROGRAM, WEIGHTS, read_records, write_records
from uaccel.cli import app
from uaccel.errors import ModelError
from uaccel.frontend.torch import importer, isolated
from uaccel.frontend.torch.importer import import_torch
from uaccel.model import ImportedModel

SECONDS, MEGABYTES = 60, 2048
FORBIDDEN = (
    *("os.exec", "os.fork", "os.posix_spawn", "os.remove", "os.rename", "os.system"),
    *("pickle.find_class", "socket.", "subprocess."),
)
CAUGHT = 99
OPEN = {"as_expr": {"expr_str": "Symbol('s0', positive=True, integer=True)", "hint": None}}
VALUES = (*ANY_VALUES, {"as_int": 3}, {"as_none": True}, OPEN)
TARGETS = (
    *("relu.default", "add.Tensor", "mul.Tensor", "view.default", "permute.default", "expand.default", "unbind.int"),
    *(
        "conv2d.default",
        "linear.default",
        "max_pool2d.default",
        "cat.default",
        "slice.Tensor",
        "select.int",
        "full.default",
    ),
    *(
        "split.Tensor",
        "mean.dim",
        "softmax.int",
        "index.Tensor",
        "as_strided.default",
        "arange.default",
        "item.default",
    ),
    *(
        "repeat.default",
        "pixel_shuffle.default",
        "upsample_nearest2d.vec",
        "pad.default",
        "embedding.default",
        "sum.default",
    ),
)


def bases(folder: Path) -> Iterator[Path]:
    """A program in core operators, one that PyTorch takes apart, one that quantises, and one with an open extent."""
    nn = torch.nn
    q = torch.ops.quantized_decomposed

    def plain(x: Any, part: Any) -> Any:
        return torch.cat([part(x).relu(), x.mean((2, 3), True).expand(1, 2, 4, 4)], 1)

    def parted(x: Any, conv: Any, norm: Any) -> Any:
        with torch.no_grad():
            y = norm(conv(x)).relu_()
        first, second = y.split(2, 1)
        return torch.nn.functional.softmax(first * second[:, :, :1] + 1, 1)

    def quantised(x: Any) -> Any:
        there = q.quantize_per_tensor.default(x, 0.02, 3, -128, 127, torch.int8)
        back = q.dequantize_per_tensor.default(there, 0.02, 3, -128, 127, torch.int8)
        return q.quantize_per_tensor.default(torch.relu(back), 0.02, 3, -128, 127, torch.int8)

    def opened(x: Any) -> Any:
        return x.reshape(x.shape[0] * 2, -1) * 2 if x.shape[0] > 1 else x

    image = [tensor(1, 2, 6, 6)]
    yield save(exported(Net(plain, nn.Conv2d(2, 2, 3)).eval(), image), folder / "plain.pt2")
    net = Net(parted, nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4))
    yield save(exported(settled(net), image), folder / "parted.pt2")
    yield save(exported(Net(quantised).eval(), image), folder / "quantised.pt2")
    sizes = {"x": ({0: torch.export.Dim.AUTO},)}
    yield save(exported(Net(opened).eval(), [tensor(4, 6)], dynamic_shapes=sizes), folder / "opened.pt2")


def mutant(base: Path, path: Path, seed: int) -> Path:
    """The same for the same seed."""
    rng = random.Random(seed)
    kind = rng.choices((_bytes, _records, _documents), (2, 2, 6))[0]
    kind(base, path, rng)
    return path


def _bytes(base: Path, path: Path, rng: random.Random) -> None:
    """Of the archive as a file: headers, lengths, checksums and content."""
    data = bytearray(base.read_bytes())
    marks = [place for place in range(len(data) - 4) if data[place : place + 2] == b"PK"]
    for _ in range(rng.choice((1, 1, 2, 8))):
        place = min(rng.choice(marks) + rng.randrange(50), len(data) - 1)
        change = rng.randrange(5)
        if change == 0:
            data[place] ^= 1 << rng.randrange(8)
        elif change == 1:
            data[place] = rng.randrange(256)
        elif change == 2:
            del data[place : place + rng.choice((1, 4, 100, 10_000))]
        elif change == 3:
            data[place:place] = data[rng.randrange(len(data)) :][: rng.choice((1, 4, 100))]
        else:
            data[place : place + 4] = rng.choice((0, 1, 0xFFFFFFFF, 1 << 31)).to_bytes(4, "little")
    path.write_bytes(data)


def _records(base: Path, path: Path, rng: random.Random) -> None:
    records = read_records(base)
    for _ in range(rng.choice((1, 1, 2))):
        name, other = (rng.choice(sorted(records)) for _ in range(2))
        change = rng.randrange(6)
        if change == 0:
            del records[name]
        elif change == 1:
            records[name + rng.choice((".pt", "0", "/", "é", "x"))] = records[name]
        elif change == 2:
            records[name], records[other] = records[other], records[name]
        elif change == 3:
            records[name] = records[name][: rng.randrange(len(records[name]) + 1)]
        elif change == 4:
            records[name] = rng.randbytes(rng.choice((0, 1, 16, 1000)))
        else:
            records[rng.choice(("models/b.json", "data/weights/model.pt", "extra/a", "data/aotinductor/a.so"))] = b"{}"
    write_records(path, records, rng.choice(("model/", "model/", "", "a/b/")))


def _documents(base: Path, path: Path, rng: random.Random) -> None:
    records = read_records(base)
    name = rng.choices((PROGRAM, WEIGHTS, CONSTANTS), (8, 1, 1))[0]
    document = json.loads(records[name])
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        _change(document, rng)
    write_records(path, records | {name: json.dumps(document).encode()})


def _change(document: Any, rng: random.Random) -> None:
    """One value somewhere, beside stack traces and the like."""
    found = list(places(document, beside="metadata"))
    if not found:
        return
    holder, key = rng.choice(found)
    if isinstance(holder, dict) and "target" in holder and rng.random() < 0.5:
        holder["target"] = f"torch.ops.aten.{rng.choice(TARGETS)}"
    else:
        change(holder, key, found, rng, VALUES)


@dataclass(frozen=True)
class Outcome:
    """``status``: a signal is a negative number; ``seconds`` of a processor."""

    seed: int
    status: int
    seconds: float
    megabytes: int
    words: str

    @property
    def bad(self) -> bool:
        return self.status not in (0, 1) or self.seconds > SECONDS or self.megabytes > MEGABYTES


def explained(path: Path, seed: int) -> Outcome:
    """``uaccel explain`` of it in a process of its own, which ends at once where it does what no file may have done."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _explain(path, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        words = stream.read().decode(errors="replace").strip().splitlines()
    _, status, usage = os.wait4(child, 0)
    seconds, megabytes = round(usage.ru_utime + usage.ru_stime, 2), usage.ru_maxrss >> 10
    return Outcome(seed, os.waitstatus_to_exitcode(status), seconds, megabytes, words[-1] if words else "")


def _explain(path: Path, words: int) -> None:
    def forbid(event: str, _arguments: Any) -> None:
        if event.startswith(FORBIDDEN):
            os.write(words, f"it did {event}\n".encode())
            os._exit(CAUGHT)

    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    os.dup2(words, 2)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    signal.alarm(30 * SECONDS)
    sys.addaudithook(forbid)
    os._exit(app.main(_command(path)))


def _command(path: Path) -> list[str]:
    shapes = ["--input-shape", "x_0:4,6"] if "opened" in path.name else []
    return ["explain", str(path), "--board", "host", *shapes]


def _imported(path: Path, input_shapes: Mapping[str, tuple[int, ...]]) -> ImportedModel:
    """As the process for it imports a file, within its memory."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), hard))
    try:
        return import_torch(path, input_shapes)
    except MemoryError as error:
        raise ModelError("it needs more memory") from error
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def run(count: int, first: int = 0) -> list[Outcome]:
    """Everything that an import takes is loaded once; so what is measured is the import alone."""
    isolated.import_isolated = _imported
    torch.set_num_threads(1)
    importer.rehearse()
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        models = list(bases(Path(folder)))
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            assert [app.main(_command(model)) for model in models] == [0] * len(models)
        for seed in range(first, first + count):
            model = models[seed % len(models)]
            path = mutant(model, Path(folder) / f"mutant_{model.name}", seed)
            outcomes.append(explained(path, seed))
            print(outcomes[-1], file=sys.stderr, flush=True)
    return outcomes


def main() -> int:
    count, first = (int(text) for text in (*sys.argv[1:], "0")[:2])
    outcomes = run(count, first)
    wrong = [outcome for outcome in outcomes if outcome.bad]
    statuses = Counter(outcome.status for outcome in outcomes)
    most = max(outcome.megabytes for outcome in outcomes)
    longest = max(outcome.seconds for outcome in outcomes)
    print(
        json.dumps({"statuses": statuses, "megabytes": most, "seconds": longest, "wrong": [vars(one) for one in wrong]})
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
