"""Teach a small transformer who has what: words.pt2 takes a word and gives the next, words.h lists the words."""

import random
from pathlib import Path

import torch
from torch import Tensor, nn
from torchao.quantization import IntxWeightOnlyConfig, quantize_
from torchao.quantization.granularity import PerGroup

WORDS = [".", "?", "has", "who", "tom", "eva", "ann", "ben", "cup", "hat", "box", "key"]
NAMES, THINGS = WORDS[4:8], WORDS[8:]
WIDTH, HEADS, LAYERS, CACHE, STEPS = 64, 4, 2, 32, 600


def story(rng: random.Random) -> list[str]:
    """Three people have a thing each, and three questions ask for them: 30 words, fewer than the cache holds."""
    owners = dict(zip(rng.sample(THINGS, 3), rng.sample(NAMES, 3), strict=True))
    told = [f"{name} has {thing} ." for thing, name in owners.items()]
    asked = [f"who has {thing} ? {owners[thing]} ." for thing in rng.sample(list(owners), 3)]
    return " ".join(told + asked).split()


class Layer(nn.Module):
    """Attention, which keeps keys and values of the last words, and a small network."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.qkv, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.between, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.register_buffer("keys", torch.zeros(1, HEADS, WIDTH // HEADS, CACHE))
        self.register_buffer("values", torch.zeros(1, HEADS, CACHE, WIDTH // HEADS))

    def forward(self, x: Tensor, bias: Tensor, place: Tensor | None) -> Tensor:
        parts = self.qkv(self.before(x)).chunk(3, -1)
        q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in parts)
        k = k.transpose(2, 3)
        if place is not None:
            k, v = self.keys.index_copy_(3, place, k), self.values.index_copy_(2, place, v)
        seen = torch.softmax(q @ k * (WIDTH / HEADS) ** -0.5 + bias, -1) @ v
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        return x + self.down(torch.relu(self.up(self.between(x))))


class Model(nn.Module):
    """``forward`` takes one word; ``scores`` takes all words of a text, to learn from it."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(len(WORDS), WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.last, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(WORDS))
        self.register_buffer("position", torch.zeros(1, dtype=torch.int64))
        self.register_buffer("slopes", torch.tensor([1, 1 / 4, 1 / 16, 0]).reshape(HEADS, 1, 1))

    def scores(self, words: Tensor, age: Tensor, hidden: Tensor, place: Tensor | None = None) -> Tensor:
        """``age``: how many words ago the word of each key came; an older one counts less, in most heads."""
        bias = (-self.slopes * age).masked_fill(hidden, -torch.inf)
        x = self.table(words)
        for layer in self.layers:
            x = layer(x, bias, place)
        return self.head(self.last(x))

    def whole(self, words: Tensor) -> Tensor:
        order = torch.arange(words.shape[1])
        age = order[:, None] - order
        return self.scores(words, age, age < 0)

    def forward(self, word: Tensor) -> Tensor:
        """The cache is a ring: from the 33rd word on each takes the place of the oldest."""
        age = (self.position - torch.arange(CACHE)) % CACHE
        scores = self.scores(word[None], age, age > self.position, self.position % CACHE)
        self.position.add_(1)
        return scores[0].argmax(-1).to(torch.int32)


def trained() -> Model:
    torch.manual_seed(0)
    torch.set_num_threads(1)  # its matrices are too small for several
    rng, model = random.Random(0), Model()
    text = torch.tensor([WORDS.index(word) for _ in range(5000) for word in story(rng)])
    optimizer = torch.optim.AdamW(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=STEPS)
    for _ in range(STEPS):
        words = text[torch.randint(len(text) - CACHE, (64, 1)) + torch.arange(CACHE + 1)]
        loss = nn.functional.cross_entropy(model.whole(words[:, :-1]).flatten(0, 1), words[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model


def main() -> None:
    model = trained().eval()
    quantize_(model, IntxWeightOnlyConfig(weight_dtype=torch.int8, granularity=PerGroup(32)))
    program = torch.export.export(model, (torch.zeros(1, dtype=torch.int32),))
    torch.export.save(program.run_decompositions({}), "words.pt2")  # plain tensors take the place of torchao's
    listed = ", ".join(f'"{word}"' for word in WORDS)
    Path("words.h").write_text(f"static const char *const words[] = {{{listed}}};\n", encoding="utf-8")


if __name__ == "__main__":
    main()
