"""Networks of sound, of other signals over time, and of points."""

from __future__ import annotations

from typing import Any

from support.models.architectures.blocks import Module, conv, dw, head, nn, of, plus, seq
from support.models.exported import Net, torch


def wavenet() -> Module:
    def block(dilation: int) -> Module:
        def compute(x: Any, pair: Any, out: Any) -> Any:
            values, gates = pair(x).chunk(2, 1)
            return x + out(torch.tanh(values) * torch.sigmoid(gates))

        return Net(compute, nn.Conv1d(8, 16, 3, dilation=dilation, padding=dilation), nn.Conv1d(8, 8, 1))

    return seq(nn.Conv1d(1, 8, 1), block(1), block(2), block(4), nn.ReLU(), nn.Conv1d(8, 4, 1))


def wave_unet() -> Module:
    """Half as many steps, and a straight line back to all of them."""

    def compute(x: Any, first: Any, below: Any, back: Any) -> Any:
        wide = first(x)
        risen = nn.functional.interpolate(below(wide[:, :, ::2]), scale_factor=2, mode="linear")
        return back(torch.cat([wide, risen], 1))

    first = seq(nn.Conv1d(1, 6, 9, padding=4), nn.LeakyReLU(0.2))
    below = seq(nn.Conv1d(6, 8, 9, padding=4), nn.LeakyReLU(0.2))
    return Net(compute, first, below, seq(nn.Conv1d(14, 6, 5, padding=2), nn.LeakyReLU(0.2), nn.Conv1d(6, 1, 1)))


def conv_tasnet() -> Module:
    """What a mask leaves of a learned spectrum, as a wave again."""

    def compute(x: Any, there: Any, mask: Any, back: Any) -> Any:
        spectrum = there(x)
        return back(spectrum * mask(spectrum))

    apart = nn.Conv1d(12, 12, 3, padding=2, dilation=2, groups=12)
    mask = seq(nn.GroupNorm(1, 12), nn.Conv1d(12, 12, 1), nn.PReLU(), apart, nn.Conv1d(12, 12, 1), nn.Sigmoid())
    return Net(compute, seq(nn.Conv1d(1, 12, 8, 4), nn.ReLU()), mask, nn.ConvTranspose1d(12, 1, 8, 4))


def tcn() -> Module:
    """Causal: padded on the left, or padded and cut."""

    def block(dilation: int) -> Module:
        cut = of(lambda x: x[:, :, : -2 * dilation])
        causal = nn.Conv1d(8, 8, 3, padding=2 * dilation, dilation=dilation), cut, nn.ReLU()
        padded = nn.ConstantPad1d((2 * dilation, 0), 0.0), nn.Conv1d(8, 8, 3, dilation=dilation), nn.ReLU()
        return plus(*causal, *padded)

    return seq(nn.Conv1d(1, 8, 1), block(1), block(4), of(lambda x: x[:, :, -1]), nn.Linear(8, 5))


def ds_cnn() -> Module:
    start = nn.Conv2d(1, 8, (10, 4), 2, (4, 1), bias=False), nn.BatchNorm2d(8), nn.ReLU()
    return seq(*start, dw(8), conv(8, 8, 1), dw(8), conv(8, 8, 1), head(8))


def bc_resnet() -> Module:
    """A mean over frequencies, convolved over time, spread over all frequencies again."""

    def compute(x: Any, one: Any, two: Any) -> Any:
        y = one(x)
        return torch.relu(x + y + two(y.mean(2, True)))

    time = seq(nn.Conv2d(8, 8, (1, 3), padding=(0, 1), groups=8), nn.BatchNorm2d(8), nn.SiLU(), nn.Conv2d(8, 8, 1))
    block = Net(compute, seq(nn.Conv2d(8, 8, (3, 1), padding=(1, 0), groups=8), nn.BatchNorm2d(8)), time)
    return seq(conv(1, 8, stride=2), block, head(8))


def crnn() -> Module:
    """Columns of an image as steps of a cell with gates, each product a linear layer."""
    turned = of(lambda x: x.permute(0, 3, 1, 2).flatten(2))
    return seq(conv(1, 4, stride=2), nn.MaxPool2d((4, 2)), turned, cell(12, 8), nn.Linear(8, 5))


def cell(inputs: int, width: int) -> Module:
    """A gated recurrent unit, its steps written out: the result of each."""

    def compute(x: Any, given: Any, kept: Any) -> Any:
        state, states = torch.zeros(1, width), []
        for step in range(x.shape[1]):
            new, old = given(x[:, step]), kept(state)
            forget, update = torch.sigmoid(new[:, : 2 * width] + old[:, : 2 * width]).chunk(2, 1)
            candidate = torch.tanh(new[:, 2 * width :] + forget * old[:, 2 * width :])
            state = candidate + update * (state - candidate)
            states.append(state)
        return torch.stack(states, 1)

    return Net(compute, nn.Linear(inputs, 3 * width), nn.Linear(width, 3 * width))


def gru() -> Module:
    return seq(cell(6, 8), of(lambda x: x[:, -1]), nn.Linear(8, 5))


def minimal() -> Module:
    """A recurrent cell of one gate, from a state that is given to one that is given back."""

    def compute(x: Any, state: Any, both: Any, candidate: Any, end: Any) -> Any:
        gate = torch.sigmoid(both(torch.cat([x, state], 1)))
        new = torch.tanh(candidate(torch.cat([x, gate * state], 1)))
        state = (1 - gate) * state + gate * new
        return end(state), state

    return Net(compute, nn.Linear(14, 8), nn.Linear(14, 8), nn.Linear(8, 3))


def pointnet() -> Module:
    """Each point alone, the largest of all, and that beside each point again."""

    def compute(x: Any, each: Any, end: Any) -> Any:
        y = each(x)
        return end(torch.cat([y, y.amax(2, True).expand(-1, -1, 20)], 1))

    each = seq(nn.Conv1d(3, 8, 1), nn.BatchNorm1d(8), nn.ReLU(), nn.Conv1d(8, 16, 1), nn.ReLU())
    return Net(compute, each, nn.Conv1d(32, 4, 1))


def heartbeat() -> Module:
    """A deep one-dimensional network with wide windows and pools."""
    pools = [nn.Conv1d(1, 8, 7, 2, 3), nn.ELU(), nn.MaxPool1d(2), nn.Conv1d(8, 12, 5), nn.ELU(), nn.AvgPool1d(2)]
    return seq(*pools, nn.Flatten(), nn.Linear(156, 12), nn.Tanh(), nn.Linear(12, 4), nn.Softmax(1))
