"""Make a ResNet-18 for images of 224x224: ``python scripts/resnet18.py OUT.tflite``.

The network that people ask for by name, int8 as post-training quantisation leaves it: seeded weights of its very shapes
(11.7 million), a scale for each channel, activations calibrated by running the network in float on seeded images. It
recognises nothing, and no layer saturates.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from models import layers
from models.network import Network, Value
from models.seeded import Seeded

SEED = 18
SIZE = 224
IMAGES = 3
"""That calibration sees."""
CLASSES = 1000
STAGES = (64, 128, 256, 512)
BLOCKS = 2
"""In each stage; the first of every stage but one halves the image."""
CONVOLUTIONS = 20
"""One, two in each block, and one in each shortcut that halves."""


def build(size: int = SIZE) -> bytes:
    """The file's bytes, for images of ``size`` x ``size``, which 32 divides."""
    seeded = Seeded(SEED)
    net = Network(f"uaccel ResNet-18 at {size}x{size}, seeded weights")
    x = net.input("image", seeded.inputs((size, size, 3), IMAGES))
    x = _halving(net, x, seeded, STAGES[0], 7, "RELU")
    x = layers.max_pool(net, layers.pad(net, x, (1, 1), (1, 1)), (3, 3), (2, 2))
    for stage, channels in enumerate(STAGES):
        for block in range(BLOCKS):
            x = _block(net, seeded, x, channels, halves=stage > 0 and block == 0)
    pooled = layers.mean(net, x, (1, 2), keep_dims=False)
    net.output(layers.dense(net, pooled, *seeded.dense(CLASSES, STAGES[-1])))
    return net.build()


def _block(net: Network, seeded: Seeded, x: Value, channels: int, *, halves: bool) -> Value:
    shortcut = x
    if halves:
        y = _halving(net, x, seeded, channels, 3, "RELU")
        shortcut = layers.conv2d(net, x, *seeded.conv(channels, (1, 1), x.shape[3]), stride=(2, 2), padding="VALID")
    else:
        y = layers.conv2d(net, x, *seeded.conv(channels, (3, 3), x.shape[3]), activation="RELU")
    y = layers.conv2d(net, y, *seeded.conv(channels, (3, 3), channels))
    return layers.add(net, y, shortcut, activation="RELU")


def _halving(net: Network, x: Value, seeded: Seeded, channels: int, kernel: int, activation: str) -> Value:
    """Stride 2 with the same zeros on all sides, which TFLite writes as a pad of its own."""
    around = (kernel // 2, kernel // 2)
    padded = layers.pad(net, x, around, around)
    weights, bias = seeded.conv(channels, (kernel, kernel), x.shape[3])
    return layers.conv2d(net, padded, weights, bias, stride=(2, 2), padding="VALID", activation=activation)


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: python scripts/resnet18.py OUT.tflite")
    data = build()
    Path(sys.argv[1]).write_bytes(data)
    print(f"{sys.argv[1]}: {len(data)} bytes")


if __name__ == "__main__":
    main()
