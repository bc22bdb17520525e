"""Small networks in PyTorch with seeded weights, float and quantised by PT2E."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from support.models.exported import Net, exported, random, settled, torch
from uaccel.util.files import quiet

nn = torch.nn


def mlp() -> Any:
    return nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 5))


def cnn() -> Any:
    """Convolutions with batch normalisation, in-place activations, pools, and a head."""
    return nn.Sequential(
        *(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 6, 3), nn.BatchNorm2d(6), nn.ReLU6(), nn.AdaptiveAvgPool2d(1)),
        *(nn.Flatten(), nn.Linear(6, 4)),
    )


def residual() -> Any:
    """A depthwise convolution and a pointwise one beside a shortcut."""
    depthwise = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False), nn.BatchNorm2d(8), nn.ReLU())
    pointwise = nn.Sequential(nn.Conv2d(8, 8, 1, bias=False), nn.BatchNorm2d(8))
    first = nn.Conv2d(3, 8, 3, stride=2, padding=1)
    head = nn.Linear(8, 4)

    def compute(x: Any, first: Any, depthwise: Any, pointwise: Any, head: Any) -> Any:
        x = torch.relu(first(x))
        x = torch.relu(x + pointwise(depthwise(x)))
        return head(x.mean((2, 3)))

    return Net(compute, first, depthwise, pointwise, head)


def attention() -> Any:
    """A block of a transformer."""
    parts = (nn.LayerNorm(8), nn.MultiheadAttention(8, 2, batch_first=True), nn.LayerNorm(8), nn.Linear(8, 16))

    def compute(x: Any, before: Any, attend: Any, after: Any, wide: Any, narrow: Any) -> Any:
        y = before(x)
        x = x + attend(y, y, y, need_weights=False)[0]
        return x + narrow(nn.functional.gelu(wide(after(x))))

    return Net(compute, *parts, nn.Linear(16, 8))


def wavenet() -> Any:
    """Dilated convolutions whose results are gates of each other, and a sum along all of them."""
    pairs = [nn.Conv1d(8, 16, 3, dilation=2**power, padding=2**power) for power in range(4)]
    outs = [nn.Conv1d(8, 8, 1) for _ in pairs]

    def compute(x: Any, first: Any, last: Any, *parts: Any) -> Any:
        x = first(x)
        for pair, out in zip(parts[:4], parts[4:], strict=True):
            y = pair(x)
            x = x + out(torch.tanh(y[:, :8]) * torch.sigmoid(y[:, 8:]))
        return last(torch.relu(x))

    return Net(compute, nn.Conv1d(1, 8, 3, padding=1), nn.Conv1d(8, 4, 1), *pairs, *outs)


def depthwise() -> Any:
    """Depthwise convolutions: a sum of nine products, of which a bias is seldom a whole number."""
    return nn.Sequential(
        *(nn.Conv2d(3, 12, 3, stride=2), nn.ReLU(), nn.Conv2d(12, 12, 3, groups=12), nn.ReLU()),
        *(nn.Conv2d(12, 12, 1), nn.ReLU(), nn.Conv2d(12, 12, 3, groups=12), nn.ReLU(), nn.Conv2d(12, 12, 1)),
    )


def two_ends() -> Any:
    """Two inputs and two outputs."""
    return Net(lambda x, y: (torch.cat([x, y * 2], 1), x - y))


NETWORKS: Mapping[str, tuple[Any, tuple[tuple[int, ...], ...]]] = {
    "mlp": (mlp, ((1, 12),)),
    "cnn": (cnn, ((1, 3, 12, 12),)),
    "residual": (residual, ((1, 3, 9, 9),)),
    "attention": (attention, ((1, 5, 8),)),
    "wavenet": (wavenet, ((1, 1, 64),)),
    "depthwise": (depthwise, ((1, 3, 15, 15),)),
    "two_ends": (two_ends, ((1, 3, 4), (1, 3, 4))),
}


def inputs_of(network: str, seed: int = 0) -> list[Any]:
    return [random(*shape, seed=seed + number) for number, shape in enumerate(NETWORKS[network][1])]


def module_of(network: str) -> Any:
    torch.manual_seed(0)
    return settled(NETWORKS[network][0]())


def program_of(network: str) -> Any:
    return exported(module_of(network), inputs_of(network))


def xnnpack() -> Any:
    """int8, weights symmetric and per channel: what mobile and embedded runtimes of PyTorch use."""
    from torchao.testing.pt2e import _xnnpack_quantizer as source

    return source.XNNPACKQuantizer().set_global(source.get_symmetric_quantization_config(is_per_channel=True))


def arm() -> Any:
    """int8, weights per tensor."""
    from torchao.quantization.pt2e.quantizer import arm_inductor_quantizer as source

    return source.ArmInductorQuantizer().set_global(source.get_default_arm_inductor_quantization_config())


def x86() -> Any:
    """uint8 activations with any zero point."""
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as source

    return source.X86InductorQuantizer().set_global(source.get_default_x86_inductor_quantization_config())


QUANTISERS: Mapping[str, Any] = {"xnnpack": xnnpack, "arm": arm, "x86": x86}


def quantised(network: str, quantiser: str, *, fold: bool = True) -> Any:
    """The exported program that PT2E makes of a network; without ``fold`` its weights stay float, and are quantised."""
    with quiet():
        from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

        prepared = prepare_pt2e(program_of(network).module(), QUANTISERS[quantiser]())
        for seed in range(4):
            prepared(*inputs_of(network, seed=10 * seed))
        return exported(convert_pt2e(prepared, fold_quantize=fold), inputs_of(network))
