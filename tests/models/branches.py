"""One of everything that is not a plain chain: two inputs, branches, slices, resizes, an int32 output."""

from __future__ import annotations

from models import layers
from models.network import Network, Value
from models.seeded import Seeded


def build() -> bytes:
    seeded = Seeded(31)
    net = Network("uaccel branches: two inputs, branches, slices, resizes, tables")
    image = net.input("image", seeded.inputs((12, 12, 4)))
    context = net.input("context", 3 * seeded.inputs((6, 6, 8)))
    features = _features(net, seeded, image)
    mixed = _mix(net, features, layers.hard_swish(net, context))
    resized = _slice_and_resize(net, mixed)
    net.output(resized)
    pooled = layers.mean(net, resized, (1, 2), keep_dims=True)
    logits = layers.dense(net, layers.reshape(net, pooled, (1, 5)), *seeded.dense(7, 5), per_channel=True)
    return net.build(logits, layers.argmax(net, resized, 3))


def _features(net: Network, seeded: Seeded, image: Value) -> Value:
    """Dilated, grouped and widening depthwise convolutions; the larger of two branches."""
    wide = layers.conv2d(net, image, *seeded.conv(8, (3, 3), 4), dilation=(2, 2), activation="RELU6")
    grouped = layers.conv2d(net, wide, *seeded.conv(8, (3, 3), 4))
    doubled = layers.depthwise_conv2d(net, image, *seeded.depthwise((3, 3), 8))
    larger = layers.maximum(net, grouped, doubled)
    return layers.max_pool(net, layers.leaky_relu(net, larger, 0.1), (2, 2), (2, 2))


def _mix(net: Network, features: Value, context: Value) -> Value:
    """Products and differences side by side, then the smaller of the upper and the lower half."""
    product = layers.mul(net, features, context)
    difference = layers.sub(net, features, context)
    both = layers.concatenate(net, [product, difference], axis=3)
    upper, lower = layers.split(net, both, 2, axis=1)
    return layers.minimum(net, upper, lower)


def _slice_and_resize(net: Network, x: Value) -> Value:
    """From [1, 3, 6, 16] through [1, 3, 3, 5] to [1, 6, 6, 5], where one branch gates the other."""
    turned = layers.transpose(net, x, (0, 2, 1, 3))
    thinned = layers.strided_slice(net, turned, (0, 0, 0, 1), (1, 6, 3, 16), (1, 2, 1, 3))
    value = layers.tanh(net, layers.resize_nearest(net, thinned, (6, 6)))
    gate = layers.logistic(net, layers.resize_bilinear(net, thinned, (6, 6)))
    return layers.mul(net, value, gate)
