"""``uaccel evaluate``: figures against an oracle, every form of data and labels, what was cut off, what is wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from support.device.boards import board_with_tools
from support.models.networks import OWN, network_named
from support.oracle.oracle import Array, Tflm, random_inputs
from support.run.command import Call, call_in
from uaccel.runner.evaluate import area, correct

GESTURE = OWN / "gesture.tflite"
COUNT = 40
SCALE = 0.03125


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Call:
    monkeypatch.chdir(tmp_path)
    return call_in(capfd)


@pytest.fixture(scope="module")
def motions() -> Array:
    return np.concatenate([values for (values,) in random_inputs(GESTURE.read_bytes(), 9, COUNT)])


@pytest.fixture(scope="module")
def classes(motions: Array) -> Array:
    """By TFLite Micro; each fifth label is another than the model's."""
    network = Tflm(GESTURE.read_bytes())
    found = np.array([int(network.run([motion[None]])[0].argmax()) for motion in motions])
    return np.where(np.arange(COUNT) % 5 == 0, (found + 1) % 6, found)


def slow_area(scores: Array, positive: Array) -> float:
    """By its meaning: of all pairs."""
    pairs = [(a, b) for a in scores[positive] for b in scores[~positive]]
    return float(np.mean([1.0 if a > b else 0.5 if a == b else 0.0 for a, b in pairs]))


def test_top_1_and_auc_are_those_of_an_oracle(motions: Array, classes: Array, tmp_path: Path, call: Call) -> None:
    np.save("data.npy", motions)
    np.save("labels.npy", classes)
    report = call("evaluate", GESTURE, "--data", "data.npy", "--labels", "labels.npy", "--json").report
    outputs = np.concatenate([Tflm(GESTURE.read_bytes()).run([motion[None]])[0] for motion in motions])
    assert (report["samples"], report["correct"], report["top1"]) == (COUNT, 32, 0.8)
    every = [slow_area(outputs[:, i], classes == i) for i in range(6) if (classes == i).any()]
    assert report["auc"] == (pytest.approx(np.mean(every)) if len(every) == 6 else None)
    assert report["resumed"] == 0
    rows = [json.loads(line) for line in Path(report["kept"]).read_text().splitlines()[1:]]
    assert [row["sample"] for row in rows] == list(range(COUNT))
    assert [row["scores"] for row in rows] == outputs.tolist()


def write_data(form: str, motions: Array) -> str:
    if form == "folder":
        Path("set").mkdir()
        for i, motion in enumerate(motions):
            np.save(f"set/{i:03}.npy", motion)
        return "set"
    if form == "npz":
        np.savez("data.npz", motion=motions)
        return "data.npz"
    np.save("data.npy", motions * np.float32(SCALE) if form == "real" else motions)
    return "data.npy"


def write_labels(form: str, classes: Array) -> str:
    order = range(COUNT)
    texts = {
        "txt": "\n".join(map(str, classes)) + "\n\n",
        "csv": "\n".join(map(str, classes)),
        "named.csv": "file,label,note\n" + "\n".join(f"{i:03}.npy,{classes[i]},x" for i in reversed(order)),
        "truth.csv": "\n".join(f"{i:03}.npy, 6, {classes[i]}" for i in order),
    }
    if form == "npy":
        np.save("labels.npy", classes)
        return "labels.npy"
    Path(f"l.{form}").write_text(texts[form])
    return f"l.{form}"


@pytest.mark.parametrize(
    ("data", "labels"),
    [
        ("npz", "txt"),
        ("npy", "csv"),
        ("real", "npy"),
        ("folder", "named.csv"),
        ("folder", "truth.csv"),
        ("folder", "txt"),
    ],
)
def test_each_form_gives_the_same(data: str, labels: str, motions: Array, classes: Array, call: Call) -> None:
    words = ("--data", write_data(data, motions), "--labels", write_labels(labels, classes))
    done = call("evaluate", GESTURE, *words, "--json")
    assert done.status == 0, done.err
    assert done.report["correct"] == 32


@pytest.mark.slow
def test_on_an_emulated_board_with_an_accelerator(motions: Array, classes: Array, call: Call) -> None:
    board_with_tools("mps2_an386")
    words = ("--data", write_data("npz", motions), "--labels", write_labels("npy", classes))
    report = call("evaluate", GESTURE, *words, "-b", "mps2_an386", "-a", "matrix8", "--limit", "11", "--json").report
    assert (report["samples"], report["correct"], report["accelerators"]) == (11, 8, ["matrix8"])


def test_a_second_evaluation_runs_nothing(motions: Array, classes: Array, call: Call) -> None:
    words = ["evaluate", GESTURE, "--data", write_data("npz", motions), "--labels", write_labels("npy", classes)]
    first = call(*words, "--limit", "20", "--json").report
    assert (first["samples"], first["resumed"]) == (20, 0)
    kept = Path(first["kept"])
    kept.write_text(kept.read_text() + '{"sample": 20, "sco')  # cut off
    again = call(*words, "--json").report
    assert (again["samples"], again["resumed"], again["correct"]) == (COUNT, 20, 32)
    before = kept.read_text()
    assert call(*words, "--json").report["resumed"] == COUNT
    assert kept.read_text() == before


OTHERS = {"data": ["--data", "other.npy"], "board": ["-b", "mps2_an386"], "firmware": ["--favour", "size"]}


@pytest.mark.parametrize("what", OTHERS)
def test_results_of_another_evaluation_are_left_alone(what: str, motions: Array, classes: Array, call: Call) -> None:
    words = ["evaluate", GESTURE, "--data", write_data("npy", motions), "--labels", write_labels("npy", classes)]
    words += ["-o", "kept.jsonl", "--json"]
    assert call(*words, "--limit", "2").report["samples"] == 2
    np.save("other.npy", motions[::-1])
    before, done = Path("kept.jsonl").read_text(), call(*words, *OTHERS[what])
    wanted = "kept.jsonl has results of another model, board or data; remove it, or name another with -o"
    assert (done.status, done.complaint) == (1, wanted)
    assert Path("kept.jsonl").read_text() == before


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_what_was_ended_goes_on(number: signal.Signals, tmp_path: Path, call: Call) -> None:
    many = 20000
    generator = np.random.default_rng(1)
    np.save("data.npy", generator.integers(-128, 128, (many, 32, 1, 3), dtype=np.int8))
    np.save("labels.npy", np.zeros(many, np.int64))
    words = ["evaluate", str(GESTURE), "--data", "data.npy", "--labels", "labels.npy", "-o", "kept.jsonl", "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "uaccel", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    end = time.monotonic() + 120
    while time.monotonic() < end and len(lines(tmp_path / "kept.jsonl")) < 100:
        time.sleep(0.01)
    os.kill(process.pid, number)
    process.wait(30)
    there = len(lines(tmp_path / "kept.jsonl")) - 1
    assert 90 < there < many
    report = call(*words[:-1], "--limit", str(there + 50), "--json").report
    assert report["samples"] == there + 50
    assert there - 1 <= report["resumed"] <= there


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.parametrize(
    ("data", "labels", "words"),
    [
        ("none.npz", "l.txt", "cannot read inputs none.npz: No such file or directory"),
        ("none.npy", "l.txt", "cannot read --data none.npy: No such file or directory"),
        ("l.txt", "l.txt", "--data l.txt: wanted an .npz or .npy file, or a folder of .npy files"),
        ("empty", "l.txt", "--data empty has no .npy files; give one for each sample, or an .npz or .npy file"),
        ("data.npy", "none.txt", "cannot read --labels none.txt: No such file or directory"),
        ("data.npy", "few.txt", "data.npy has 40 samples and few.txt 2 labels; give one for each"),
        ("data.npy", "word.txt", "--labels word.txt, line 2: 'tap' is no label; wanted a whole number from 0"),
        ("data.npy", "large.txt", "--labels large.txt, line 2: '9999999999' is no label; wanted a whole number from 0"),
        ("data.npy", "endless.txt", "--labels endless.txt, line 2: '999999999999999999999999999999999999...' is no "),
        ("nan.npy", "l.txt", 'nan.npy: input "motion" holds a NaN, which no int8 stands for'),
        ("data.npy", "labels.md", "--labels labels.md: wanted a file .npy, .csv or .txt"),
        ("data.npy", "high.npy", "--labels high.npy has label 6; the model has 6 classes, from 0"),
        ("data.npy", "low.npy", "--labels low.npy has label -1; the model has 6 classes, from 0"),
        ("data.npy", "real.npy", "--labels real.npy holds float64; wanted whole numbers, one for each sample"),
        ("data.npy", "nothing.npy", "--labels nothing.npy is not a readable .npy file: EOF: reading magic string, "),
        ("huge.npy", "l.txt", "--data huge.npy is not a readable .npy file: "),
        ("flat.npy", "l.txt", 'flat.npy: input "motion" has shape [40, 96], the model wants [1, 32, 1, 3]'),
        ("odd", "l.txt", "odd/a.npy has shape [5], the model wants [1, 32, 1, 3]"),
        ("set", "few.csv", "--labels few.csv has no line for 002.npy; begin one with that name"),
    ],
)
def test_what_is_wrong(data: str, labels: str, words: str, motions: Array, classes: Array, call: Call) -> None:
    write_data("npy", motions)
    write_data("folder", motions)
    write_labels("txt", classes)
    Path("empty").mkdir()
    Path("odd").mkdir()
    np.save("odd/a.npy", np.zeros(5, np.int8))
    np.save("flat.npy", motions.reshape(COUNT, -1))
    np.save("nan.npy", np.full(motions.shape, np.nan, np.float32))
    np.save("high.npy", np.full(COUNT, 6))
    np.save("low.npy", np.full(COUNT, -1))
    np.save("real.npy", np.zeros(COUNT))
    head = repr({"descr": "|i1", "fortran_order": False, "shape": (1 << 60,)}).ljust(117) + "\n"
    Path("huge.npy").write_bytes(b"\x93NUMPY\1\0\x76\0" + head.encode())
    texts = {
        "nothing.npy": "",
        "few.txt": "1\n2\n",
        "word.txt": "1\ntap\n",
        "large.txt": "1\n9999999999\n",
        "endless.txt": "1\n" + "9" * 5000 + "\n",
        "labels.md": "1",
        "few.csv": "000.npy,1\n001.npy,2\n",
    }
    for name, text in texts.items():
        Path(name).write_text(text)
    done = call("evaluate", GESTURE, "--data", data, "--labels", labels)
    assert (done.status, done.complaint.startswith(words)) == (1, True), done.complaint


def test_scores_of_two_classes_and_of_one() -> None:
    generator = np.random.default_rng(2)
    labels = generator.integers(0, 2, 200)
    scores = np.round(generator.normal(size=(200, 2)) + labels[:, None], 1)  # with ties
    assert area(scores[:, :1], labels) == pytest.approx(slow_area(scores[:, 0], labels == 1))
    assert area(scores, labels) == pytest.approx(slow_area(scores[:, 1] - scores[:, 0], labels == 1))
    assert correct(scores[:, :1], labels) is None
    assert correct(scores, labels) == sum(
        int(row[1] > row[0]) == label for row, label in zip(scores, labels, strict=True)
    )
    assert area(scores, np.zeros(200, np.int64)) is None


@pytest.mark.long
def test_an_autoencoder_is_judged_by_what_it_cannot_give_back(call: Call) -> None:
    path = network_named("ad").path
    network, generator = Tflm(path.read_bytes()), np.random.default_rng(4)
    inputs = generator.integers(-128, 128, (12, 640), dtype=np.int8)
    labels = np.arange(12) % 2
    np.save("data.npy", inputs)
    np.save("labels.npy", labels)
    report = call("evaluate", path, "--data", "data.npy", "--labels", "labels.npy", "--json").report
    made = np.concatenate([network.run([row[None]])[0] for row in inputs]).astype(np.float64)
    off = ((made - 96) * 0.36449846625328064 - (inputs.astype(np.float64) - 89) * 0.3910152316093445) ** 2
    assert (report["scores"], report["top1"]) == ("reconstruction", None)
    assert report["auc"] == pytest.approx(slow_area(off.mean(axis=1), labels == 1))


STREAM = OWN / "stream.tflite"


def sequences(how: str) -> tuple[list[Array], list[list[float]]]:
    """Sequences of different lengths, and what TFLite Micro says of each."""
    data, generator = STREAM.read_bytes(), np.random.RandomState(3)
    found = [generator.randint(-128, 128, (frames, 16)).astype(np.int8) for frames in (5, 1, 7, 5)]
    scores = []
    for sequence in found:
        network = Tflm(data)
        each = np.array([network.run([frame[None]])[0].ravel().astype(float) for frame in sequence])
        told = {"last": each[-1], "mean": each.mean(axis=0), "max": each.max(axis=0)}[how]
        scores.append(told.tolist())
    return found, scores


@pytest.mark.parametrize("how", ["last", "mean", "max"])
def test_sequences_of_frames(how: str, call: Call) -> None:
    """The state goes on inside of a sequence, and begins anew with each; what was kept is not run again."""
    found, scores = sequences(how)
    Path("set").mkdir()
    for i, sequence in enumerate(found):
        np.save(f"set/{i}.npy", sequence)
    best = [int(np.argmax(row)) for row in scores]
    Path("labels.txt").write_text("\n".join(map(str, [*best[:3], (best[3] + 1) % 4])))
    words = ["evaluate", STREAM, "--data", "set", "--labels", "labels.txt", "--frames", how, "--json"]
    first = call(*words, "--limit", "2")
    assert first.status == 0, first.err
    report = call(*words).report
    assert (report["samples"], report["resumed"], report["correct"], report["frames"]) == (4, 2, 3, how)
    rows = [json.loads(line) for line in Path(report["kept"]).read_text().splitlines()[1:]]
    assert [row["scores"] for row in rows] == scores


@pytest.mark.parametrize("board", ["host", pytest.param("mps2_an386", marks=pytest.mark.slow)])
def test_sequences_of_one_length_in_one_array(board: str, call: Call) -> None:
    found, scores = sequences("last")
    np.save("data.npy", np.stack([found[0], found[3]])[:, :, np.newaxis])
    Path("labels.txt").write_text("0\n1\n")
    words = ("--data", "data.npy", "--labels", "labels.txt", "--frames", "last", "-b", board, "--json")
    report = call("evaluate", STREAM, *words).report
    rows = [json.loads(line) for line in Path(report["kept"]).read_text().splitlines()[1:]]
    assert [row["scores"] for row in rows] == [scores[0], scores[3]]


@pytest.mark.parametrize(
    ("model", "shape", "words"),
    [
        (
            GESTURE,
            (2, 3, 32, 1, 3),
            "--frames is for models that keep a state between runs, and {} keeps none; leave it away",
        ),
        (
            STREAM,
            (2, 16),
            "data.npy: a sequence has shape [16]; wanted its frames along a first axis, each [1, 16]",
        ),
        (
            STREAM,
            (2, 0, 16),
            "data.npy: a sequence has shape [0, 16]; wanted its frames along a first axis, each [1, 16]",
        ),
    ],
)
def test_what_is_no_sequence(model: Path, shape: tuple[int, ...], words: str, call: Call) -> None:
    np.save("data.npy", np.zeros(shape, np.int8))
    Path("labels.txt").write_text("0\n1\n")
    done = call("evaluate", model, "--data", "data.npy", "--labels", "labels.txt", "--frames", "last")
    assert (done.status, done.complaint) == (1, words.format(model.name))
