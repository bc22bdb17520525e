"""A model of float convolutions, not all of which an accelerator for floats takes."""

from __future__ import annotations

import numpy as np

from support.models.tflite_writer import ModelBuilder


def float_convolutions() -> bytes:
    """Of stride 1, 2 and 1; 'same' padding; the input is float32 [1,8,6,3]."""
    rng, builder = np.random.default_rng(1), ModelBuilder()
    tensor = builder.input("x", (1, 8, 6, 3), "float32")
    for number, (shape, channels, stride) in enumerate([((8, 6), 4, 1), ((4, 3), 5, 2), ((4, 3), 2, 1)]):
        weights = rng.normal(size=(channels, 3, 2, tensor.shape[3])).astype(np.float32)
        kernel = builder.constant(f"weights_{number}", weights)
        bias = builder.constant(f"bias_{number}", rng.normal(size=channels).astype(np.float32))
        result = builder.tensor(f"y_{number}", (1, *shape, channels), "float32")
        builder.op(
            "CONV_2D", [tensor, kernel, bias], [result], {"padding": "SAME", "stride_h": stride, "stride_w": stride}
        )
        tensor = result
    return builder.build(tensor)
