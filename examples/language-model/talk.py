"""The dialogue of main.c with words.pt2 in PyTorch: ``python talk.py < dialogue.txt`` prints what it says."""

import re
import sys
from importlib import import_module
from pathlib import Path

import torch

import_module("torchao.quantization.pt2e")  # the operators of words.pt2
WORDS = re.findall(r'"(.+?)"', Path("words.h").read_text(encoding="utf-8"))


def main() -> None:
    step, following = torch.export.load("words.pt2").module(), 0

    def hear(word: int) -> int:
        return int(step(torch.tensor([word], dtype=torch.int32)))

    for line in sys.stdin:
        for word in line.split():
            following = hear(WORDS.index(word))
        said: list[str] = []
        while said[-1:] != ["."]:
            said.append(WORDS[following])
            following = hear(following)
        print(*said)


if __name__ == "__main__":
    main()
