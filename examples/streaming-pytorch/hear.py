"""Teach a recurrent network what the rows of build/lesson_rows.npz sound like: hear.pt2 takes a row, and remembers."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

CHANNELS, HIDDEN, FRAMES, STEPS = 40, 24, 60, 300
BUILD = Path("build")


class Hear(nn.Module):
    """Scores of nothing, a rising and a falling tone. The hidden vector is a buffer, so that firmware keeps it."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.scores = nn.GRUCell(CHANNELS, HIDDEN), nn.Linear(HIDDEN, 3)
        self.register_buffer("hidden", torch.zeros(1, HIDDEN))

    def forward(self, row: Tensor) -> Tensor:
        hidden = self.cell(row[None], self.hidden)
        self.hidden.copy_(hidden)
        return self.scores(hidden)

    def lesson(self, rows: Tensor) -> Tensor:
        """The scores of every row of many pieces; the first axis is time."""
        hidden, heard = torch.zeros(rows.shape[1], HIDDEN), []
        for row in rows:
            hidden = self.cell(row, hidden)
            heard.append(self.scores(hidden))
        return torch.stack(heard)


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rows = torch.from_numpy(np.load(BUILD / "lesson_rows.npz")["row"]).reshape(-1, CHANNELS)
    labels = torch.from_numpy(np.load(BUILD / "labels.npy"))
    model = Hear()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(STEPS):
        piece = torch.arange(FRAMES)[:, None] + torch.randint(len(labels) - FRAMES, (32,))
        loss = nn.functional.cross_entropy(model.lesson(rows[piece]).flatten(0, 1), labels[piece].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.export.save(torch.export.export(model.eval(), (torch.zeros(CHANNELS),)), "hear.pt2")


if __name__ == "__main__":
    main()
