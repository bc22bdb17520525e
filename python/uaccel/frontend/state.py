"""Makes outputs the state of a model: what an output gives in one inference, an input reads in the next."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from uaccel.errors import ModelError, need
from uaccel.model import Array, Bound, ImportedModel, Signature, StateSpec, TensorSpec, read_npz

FLAG: Final = "--state"
AUTO: Final = "auto"
# How exporters name an output after the input that it becomes: a part of the output's name, and what the input has in
# its place. Words like "out" alone are not enough, since an autoencoder has them, too.
_STATE: Final = r"(?:state|hidden|cell|cache|memory|mem|rnn|gru|lstm|past|kv|h|c)[a-z_.\d]*?"
USUAL: Final = (
    (r"^present(?:_key_values?)?(?=$|[._\d])", "past_key_values"),
    (r"^present(?=$|[._\d])", "past"),
    (r"(?<=state)N$", ""),
    (r"(?<![a-z])([hc])_?n(?![a-z])", r"\g<1>0"),
    (r"(?<![a-z])([hc])_n(?![a-z])", r"\g<1>_0"),
    (rf"({_STATE})[_.]?(?:out|output|next|new)$", r"\g<1>_in"),
    (rf"({_STATE})[_.]?(?:out|output|next|new)$", r"\g<1>"),
    (rf"^(?:out|output|next|new)[_.]?({_STATE})$", r"in_\g<1>"),
    (rf"^(?:out|output|next|new)[_.]?({_STATE})$", r"\g<1>"),
)


def bind(model: ImportedModel, words: Sequence[str], initial: Path | None) -> ImportedModel:
    """The model with what is asked for as its state; the bound tensors are no inputs and outputs any more.

    ``words`` are ``OUT=IN``, in which ``*`` stands for any part that both names share, or ``auto``. ``initial`` has
    arrays by the inputs' names; what it lacks begins with zeros.
    """
    first = _first_values(initial, words) if initial is not None else {}
    if not words:
        return model
    inputs, outputs = model.signature.inputs, model.signature.outputs
    bound = pairs_of(model.signature, words)
    entries = [_entry(inputs[pair.input], outputs[pair.output], first) for pair in bound]
    _check_names(first, entries)
    if len(bound) == len(outputs):
        raise ModelError(f"{FLAG}: every output becomes state, and none is left to tell a result; leave one as it is")
    from uaccel.tvm_api import reordered_main  # who asks for pairs alone needs no TVM

    given, made = [pair.input for pair in bound], [pair.output for pair in bound]
    last = len(model.state)
    order = _behind(len(inputs), given, last), _behind(len(outputs), made, last)
    return replace(
        model,
        module=reordered_main(model.module, *order),
        signature=Signature(_without(inputs, given), _without(outputs, made)),
        state=(*entries, *model.state),
        bound=tuple(bound),
    )


class NoUsualNamesError(ModelError):
    """Is raised for a model whose names tell no pair, where all pairs of usual names were wanted."""


def words_of_each(words: Sequence[str], models: Sequence[str]) -> list[tuple[str, ...]]:
    """The words for each of several models by name, of ``NAME:OUT=IN``, ``NAME:auto``, and ``auto`` for all of them."""
    found: list[tuple[str, ...]] = [()] * len(models)
    for word in words:
        # A name may hold ":" itself, and one model's may begin another's: the longest is meant.
        named = max((name for name in models if word.startswith(f"{name}:")), key=len, default="")
        if not named and word != AUTO:
            raise ModelError(
                f"{FLAG} {word!r}: whose state is it? wanted NAME:OUT=IN, where NAME is one of {', '.join(models)}"
            )
        for number, model in enumerate(models):
            if named in ("", model):
                found[number] += (word.removeprefix(f"{named}:"),)
    return found


def first_of_each(folder: Path, models: Sequence[str]) -> list[Path | None]:
    """The file of each of several models with what its state holds at first: ``NAME.npz`` in one folder."""
    files = {name: folder / f"{name}.npz" for name in models}
    wanted = f"wanted a folder with NAME.npz, where NAME is one of {', '.join(models)}"
    need(folder.is_dir(), f"--state-from {folder}: it is no folder, and {len(models)} models are given; {wanted}")
    others = sorted({one.name for one in folder.glob("*.npz")} - {file.name for file in files.values()})
    need(not others, f"--state-from {folder}: {', '.join(others)} is of no model; {wanted}")
    found = [file if file.is_file() else None for file in files.values()]
    need(any(found), f"--state-from {folder}: it holds no .npz file; {wanted}")
    return found


def _first_values(initial: Path, words: Sequence[str]) -> dict[str, Array]:
    need(words, f"--state-from {initial}: no output is bound to an input; add {FLAG} OUT=IN")
    try:
        return read_npz(initial)
    except (OSError, ValueError) as error:
        raise ModelError(f"--state-from {initial}: {error}") from error


def _without(specs: Sequence[TensorSpec], numbers: Sequence[int]) -> tuple[TensorSpec, ...]:
    return tuple(spec for number, spec in enumerate(specs) if number not in numbers)


def pairs_of(signature: Signature, words: Sequence[str]) -> list[Bound]:
    """The pairs by number, in the order of inputs; each input and each output once."""
    inputs, outputs = ([spec.name for spec in specs] for specs in (signature.inputs, signature.outputs))
    found: list[Bound] = []
    for word in words:
        named = list(_usual(signature)) if word == AUTO else list(_matching(word, inputs, outputs))
        for output, given in named:
            pair = Bound(outputs.index(output), inputs.index(given), f"{output}={given}")
            twice = [one for one in found if one.output == pair.output or one.input == pair.input]
            if twice:
                what = f'output "{output}"' if twice[0].output == pair.output else f'input "{given}"'
                raise ModelError(f"{FLAG} {word}: {what} is bound already; name it once")
            found.append(pair)
    return sorted(found, key=lambda pair: pair.input)


def _matching(word: str, inputs: Sequence[str], outputs: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Output and input of each pair that ``OUT=IN`` names."""
    splits = [(word[:at], word[at + 1 :]) for at, letter in enumerate(word) if letter == "="]
    splits = [(out, into) for out, into in splits if out and into]
    need(splits, f"{FLAG} {word!r}: wanted OUT=IN, an output and the input that it becomes, or {AUTO}")
    # A name may hold "=" itself: the split whose names the model has is meant.
    out, into = next(((out, into) for out, into in splits if out in outputs or into in inputs), splits[0])
    if "*" not in out:
        _need_name(word, "output", out, outputs)
        _need_name(word, "input", into, inputs)
        yield out, into
        return
    need(out.count("*") == into.count("*"), f"{FLAG} {word!r}: both names must have '*' equally often")
    pattern = re.compile("(.*)".join(map(re.escape, out.split("*"))))
    matches = [match for match in map(pattern.fullmatch, outputs) if match]
    need(matches, f"{FLAG} {word!r}: no output matches {out!r}; the outputs are {', '.join(outputs)}")
    for match in matches:
        parts = into.split("*")
        given = parts[0] + "".join(shared + part for shared, part in zip(match.groups(), parts[1:], strict=True))
        _need_name(word, "input", given, inputs)
        yield match.string, given


def _need_name(word: str, what: str, name: str, names: Sequence[str]) -> None:
    need(name in names, f'{FLAG} {word}: the model has no {what} "{name}"; its {what}s are {", ".join(names)}')


def _usual(signature: Signature) -> Iterator[tuple[str, str]]:
    """Outputs and inputs that are named as exporters name a state, and have the same shape and type."""
    inputs = {spec.name: spec for spec in signature.inputs}
    pairs = []
    for output in signature.outputs:
        names = [re.sub(old, new, output.name) for old, new in USUAL if re.search(old, output.name)]
        pairs += [(output.name, name) for name in names if name in inputs and inputs[name].info == output.info][:1]
    if not pairs:
        given, made = (", ".join(spec.name for spec in specs) for specs in (signature.inputs, signature.outputs))
        raise NoUsualNamesError(
            f"{FLAG} {AUTO}: no output is named as the next value of an input; outputs: {made}; inputs: {given}; "
            f"name a pair with {FLAG} OUT=IN"
        )
    return iter(pairs)


def _entry(given: TensorSpec, made: TensorSpec, initial: Mapping[str, Array]) -> StateSpec:
    pair = f"{FLAG} {made.name}={given.name}"
    if given.info != made.info:
        raise ModelError(f"{pair}: the output is {made.info}, the input {given.info}; wanted the same shape and type")
    if given.quantisation != made.quantisation:
        raise ModelError(
            f"{pair}: the output has {_quantised(made)}, the input {_quantised(given)}; quantise both alike"
        )
    value = initial.get(given.name, zeros(given))
    if (value.shape, str(value.dtype)) != (given.info.shape, given.info.dtype):
        seen = f"{value.dtype} [{','.join(map(str, value.shape))}]"
        raise ModelError(f'--state-from: "{given.name}" is {seen}; wanted {given.info}')
    return StateSpec(given, value)


def zeros(spec: TensorSpec) -> Array:
    """What a state begins with unless a file says otherwise: zero, or the integer that means it."""
    zero = spec.quantisation.zero_point if spec.quantisation is not None else 0
    return np.full(spec.info.shape, zero, spec.info.dtype)


def _quantised(spec: TensorSpec) -> str:
    return "no quantisation" if spec.quantisation is None else str(spec.quantisation)


def _check_names(initial: Mapping[str, Array], entries: Sequence[StateSpec]) -> None:
    names = [entry.spec.name for entry in entries]
    for name in initial:
        need(name in names, f'--state-from: "{name}" is no input that is bound; bound are {", ".join(names)}')


def _behind(count: int, numbers: Sequence[int], others: int) -> list[int]:
    """The order in which some of ``count`` come behind the rest of them, and before the others."""
    return [*(number for number in range(count) if number not in numbers), *numbers, *range(count, count + others)]
