"""A small transformer encoder: BERT-tiny's (Turc et al. 2019) two layers of two heads on 128 channels.

It takes embedded tokens. It rectifies where BERT has a GELU, for which TFLite Micro has no int8 kernel. A layer's norm
is spelt out in means, squares and a reciprocal root, as converters do.
"""

from __future__ import annotations

import numpy as np

from models import layers
from models.field.blocks import Blocks
from models.network import Value

LAYERS = 2
HEADS = 2
CHANNELS = 128
HIDDEN = 512


def lay(b: Blocks) -> None:
    x = b.input("tokens", (b.size.resolution, b.channels(CHANNELS)))
    for _ in range(LAYERS):
        x = _norm(b, layers.add(b.net, x, _attention(b, x)))
        inner = b.dense(x, b.channels(HIDDEN), activation="RELU")
        x = _norm(b, layers.add(b.net, x, b.dense(inner, x.shape[2])))
    mean = layers.mean(b.net, x, (1,), keep_dims=False)
    b.net.output(x)
    b.net.output(b.dense(mean, b.size.classes))


def _attention(b: Blocks, x: Value) -> Value:
    query, key, value = (_heads(b, b.dense(x, x.shape[2])) for _ in range(3))
    scores = layers.batch_matmul(b.net, query, key, transposed=True)
    scores = layers.mul(b.net, scores, layers.constant(b.net, query.shape[3] ** -0.5))
    seen = layers.batch_matmul(b.net, layers.softmax(b.net, scores), value, transposed=False)
    joined = layers.reshape(b.net, layers.transpose(b.net, seen, (0, 2, 1, 3)), (1, *x.shape[1:]))
    return b.dense(joined, x.shape[2])


def _heads(b: Blocks, x: Value) -> Value:
    """[1, tokens, channels] to [1, heads, tokens, channels of one]."""
    apart = layers.reshape(b.net, x, (1, x.shape[1], HEADS, x.shape[2] // HEADS))
    return layers.transpose(b.net, apart, (0, 2, 1, 3))


def _norm(b: Blocks, x: Value) -> Value:
    """Gain and offset too. What keeps the root from zero is two steps of the variance: less would be lost in int8."""
    mean = layers.mean(b.net, x, (2,), keep_dims=True)
    squares = layers.squared_difference(b.net, x, mean)
    variance = layers.mean(b.net, squares, (2,), keep_dims=True)
    spare = layers.constant(b.net, 2 * variance.scale)
    root = layers.rsqrt(b.net, layers.add(b.net, variance, spare))
    normed = layers.mul(b.net, layers.sub(b.net, x, mean), root)
    gain, offset = b.vector(x.shape[2]), b.vector(x.shape[2])
    one = layers.constant(b.net, (1 + gain).astype(np.float32))
    return layers.add(b.net, layers.mul(b.net, normed, one), layers.constant(b.net, offset))
