"""What main.c printed for a word, against the outputs that `uaccel run --sequence` wrote."""

import sys
from pathlib import Path

import numpy as np


def printed(text: str, word: int) -> list[list[int]]:
    lines = [line.partition(":") for line in text.splitlines()]
    return [[int(value) for value in values.split()] for name, _, values in lines if name.startswith(f"{word} ")]


if __name__ == "__main__":
    program, word, outputs = Path(sys.argv[1]), int(sys.argv[2]), np.load(sys.argv[3])["logits"]
    mine = printed(program.read_text(encoding="utf-8"), word)
    if mine != outputs.tolist():
        sys.exit(f"word {word}: the C program and uaccel differ")
    print(f"word {word}: the same {outputs.size} numbers in {len(mine)} frames")
