"""One operator after another with its results worked out by hand, for the runtimes and for uaccel alike."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from support.models.single_op import Activation, Constant, single_op

__all__ = ["CASES", "Case"]

Array = npt.NDArray[Any]
Argument = Activation | Constant | None


def int8(values: Any) -> Array:
    return np.array(values, np.int8)


def int32(values: Any) -> Array:
    return np.array(values, np.int32)


def float32(values: Any) -> Array:
    return np.array(values, np.float32)


@dataclass(frozen=True)
class Case:
    """One operator, arrays for its activations, its results; `tflm` says if TFLite Micro has a kernel."""

    operator: str
    arguments: list[Argument]
    results: list[Activation]
    inputs: list[Array]
    expected: list[Any]
    options: dict[str, Any] = field(default_factory=dict)
    tflm: bool = True

    @property
    def data(self) -> bytes:
        """The .tflite file."""
        return single_op(self.operator, self.arguments, self.results, self.options)


def plain(shape: tuple[int, ...]) -> Activation:
    """int8 whose integers are the real values."""
    return Activation(shape, "int8", 1.0)


GRID = np.arange(1, 10).reshape(1, 3, 3, 1)
ONES = Constant(np.ones((1, 3, 3, 1), np.int8), (1.0,))
NO_BIAS = Constant(int32([0]), (1.0,))
WINDOW = {"stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}

CASES = {
    # (1 + 3, 2 + 3, ...) * 0.5 = (2, 2.5, 3, 3.5); row 0 sums to 1.9 + 5, row 1 to 12.6 + 0.2; plus the
    # zero point 1.
    "dense": Case(
        "FULLY_CONNECTED",
        [
            Activation((1, 4), "int8", 0.5, -3),
            Constant(np.arange(8, dtype=np.int8).reshape(2, 4), (0.1, 0.2)),
            Constant(int32([100, 2]), (0.05, 0.1)),
        ],
        [Activation((1, 2), "int8", 1.0, 1)],
        [int8([[1, 2, 3, 4]])],
        [[[8, 14]]],
    ),
    "dense without bias keeps dimensions": Case(
        "FULLY_CONNECTED",
        [plain((1, 2, 2)), Constant(int8([[1, 2]]), (1.0,)), None],
        [plain((1, 2, 1))],
        [int8([[[1, 2], [-3, -4]]])],
        [[[[5], [0]]]],
        {"keep_num_dims": True, "fused_activation": "RELU"},
    ),
    "conv SAME": Case(
        "CONV_2D",
        [Activation((1, 3, 3, 1), "int8", 1.0, 5), ONES, Constant(int32([1]), (1.0,))],
        [plain((1, 3, 3, 1))],
        [int8(GRID + 5)],
        [np.reshape([13, 22, 17, 28, 46, 34, 25, 40, 29], (1, 3, 3, 1))],
        {"padding": "SAME", **WINDOW},
    ),
    "conv VALID, stride and dilation": Case(
        "CONV_2D",
        [plain((1, 1, 7, 1)), Constant(np.ones((1, 1, 2, 1), np.int8), (1.0,)), NO_BIAS],
        [plain((1, 1, 2, 1))],
        [int8(np.arange(7).reshape(1, 1, 7, 1))],
        [np.reshape([3, 9], (1, 1, 2, 1))],
        {"padding": "VALID", "stride_h": 1, "stride_w": 3, "dilation_h_factor": 1, "dilation_w_factor": 3},
    ),
    "conv with groups": Case(
        "CONV_2D",
        [
            plain((1, 1, 1, 4)),
            Constant(int8([1, 2, 3, 4]).reshape(2, 1, 1, 2), (1.0, 1.0)),
            Constant(int32([1, -1]), (1.0, 1.0)),
        ],
        [plain((1, 1, 1, 2))],
        [int8([1, 10, 2, 5]).reshape(1, 1, 1, 4)],
        [np.reshape([22, 25], (1, 1, 1, 2))],
        {"padding": "SAME", **WINDOW},
    ),
    "depthwise, multiplier 2": Case(
        "DEPTHWISE_CONV_2D",
        [
            plain((1, 1, 1, 2)),
            Constant(int8([1, 2, 3, 4]).reshape(1, 1, 1, 4), (1.0, 2.0, 1.0, 0.5), axis=3),
            Constant(int32([0, 0, 0, 1]), (1.0, 2.0, 1.0, 0.5)),
        ],
        [plain((1, 1, 1, 4))],
        [int8([5, 6]).reshape(1, 1, 1, 2)],
        [np.reshape([5, 20, 18, 13], (1, 1, 1, 4))],
        {"padding": "SAME", "depth_multiplier": 2, **WINDOW},
    ),
    "transposed conv": Case(
        "TRANSPOSE_CONV",
        [
            Constant(int32([1, 2, 4, 1])),
            Constant(int8([1, 2, 3, 4]).reshape(1, 2, 2, 1), (1.0,)),
            plain((1, 1, 2, 1)),
        ],
        [plain((1, 2, 4, 1))],
        [int8([1, 10]).reshape(1, 1, 2, 1)],
        [np.reshape([1, 2, 10, 20, 3, 4, 30, 40], (1, 2, 4, 1))],
        {"padding": "VALID", "stride_h": 2, "stride_w": 2},
    ),
    "add across scales, RELU6": Case(
        "ADD",
        [Activation((4,), "int8", 0.5, -1), Activation((4,), "int8", 0.25, 2)],
        [Activation((4,), "int8", 0.125, -128)],
        [int8([3, -5, 9, 20]), int8([6, 2, 2, 2])],
        [[-104, -128, -88, -80]],
        {"fused_activation": "RELU6"},
    ),
    "sub broadcasts": Case(
        "SUB",
        [plain((2, 2)), Constant(int8([1, 2]), (2.0,))],
        [plain((2, 2))],
        [int8([[10, 20], [30, -40]])],
        [[[8, 16], [28, -44]]],
    ),
    "mul": Case(
        "MUL",
        [Activation((3,), "int8", 0.5), Activation((3,), "int8", 0.5)],
        [plain((3,))],
        [int8([4, -8, 100]), int8([6, 6, 100])],
        [[6, -12, 127]],
    ),
    "int16 add": Case(
        "ADD",
        [Activation((3,), "int16", 1.0), Activation((3,), "int16", 2.0)],
        [Activation((3,), "int16", 0.5)],
        [np.array([1, -3, 1000], np.int16), np.array([2, 1, 2000], np.int16)],
        [[10, -2, 10000]],
        {"pot_scale_int16": False},
    ),
    "int16 dense with a 64-bit bias": Case(
        "FULLY_CONNECTED",
        [
            Activation((1, 2), "int16", 0.5),
            Constant(int8([[3, -1]]), (1.0,)),
            Constant(np.array([4], np.int64), (0.5,)),
        ],
        [Activation((1, 1), "int16", 0.5)],
        [np.array([[1000, 5]], np.int16)],
        [[[2999]]],
    ),
    "max pool": Case(
        "MAX_POOL_2D",
        [plain((1, 3, 3, 1))],
        [plain((1, 2, 2, 1))],
        [int8(GRID)],
        [np.reshape([5, 6, 8, 9], (1, 2, 2, 1))],
        {"padding": "SAME", "stride_h": 2, "stride_w": 2, "filter_height": 2, "filter_width": 2},
    ),
    "average pool": Case(
        "AVERAGE_POOL_2D",
        [plain((1, 3, 3, 1))],
        [plain((1, 1, 3, 1))],
        [int8(GRID)],
        [np.reshape([4, 5, 6], (1, 1, 3, 1))],
        {"padding": "VALID", "stride_h": 1, "stride_w": 1, "filter_height": 3, "filter_width": 1},
    ),
    "mean": Case(
        "MEAN",
        [plain((1, 2, 3)), Constant(int32([2]))],
        [plain((1, 2, 1))],
        [int8([[[1, 2, 3], [-7, -8, -9]]])],
        [[[[2], [-8]]]],
        {"keep_dims": True},
    ),
    "sum": Case(
        "SUM",
        [plain((2, 3)), Constant(int32([1]))],
        [plain((2,))],
        [int8([[1, 2, 3], [-7, -8, -9]])],
        [[6, -24]],
    ),
    "reduce max": Case(
        "REDUCE_MAX",
        [plain((2, 3)), Constant(int32([0]))],
        [plain((3,))],
        [int8([[1, -2, 3], [-7, 8, -9]])],
        [[1, 8, 3]],
    ),
    "softmax, beta": Case(
        "SOFTMAX",
        [Activation((1, 2), "int8", float(np.log(2)))],
        [Activation((1, 2), "int8", 1 / 256, -128)],
        [int8([[1, 0]])],
        [[[77, -77]]],
        {"beta": 2.0},
    ),
    "pad": Case(
        "PAD",
        [Activation((1, 2), "int8", 1.0, 9), Constant(int32([[0, 1], [2, 0]]))],
        [Activation((2, 4), "int8", 1.0, 9)],
        [int8([[1, 2]])],
        [[[9, 9, 1, 2], [9, 9, 9, 9]]],
    ),
    "pad with a value": Case(
        "PADV2",
        [plain((2,)), Constant(int32([[1, 1]])), Constant(int8([7]), (1.0,))],
        [plain((4,))],
        [int8([1, 2])],
        [[7, 1, 2, 7]],
    ),
    "mirror pad": Case(
        "MIRROR_PAD",
        [plain((3,)), Constant(int32([[2, 1]]))],
        [plain((6,))],
        [int8([1, 2, 3])],
        [[2, 1, 1, 2, 3, 3]],
        {"mode": "SYMMETRIC"},
    ),
    "concatenate": Case(
        "CONCATENATION",
        [plain((2, 1)), plain((2, 2))],
        [plain((2, 3))],
        [int8([[1], [2]]), int8([[3, 4], [5, 6]])],
        [[[1, 3, 4], [2, 5, 6]]],
        {"axis": 1},
    ),
    "split": Case(
        "SPLIT",
        [Constant(int32(1)), plain((1, 4))],
        [plain((1, 2)), plain((1, 2))],
        [int8([[1, 2, 3, 4]])],
        [[[1, 2]], [[3, 4]]],
        {"num_splits": 2},
    ),
    "split in given sizes": Case(
        "SPLIT_V",
        [plain((1, 4)), Constant(int32([1, 3])), Constant(int32(1))],
        [plain((1, 1)), plain((1, 3))],
        [int8([[1, 2, 3, 4]])],
        [[[1]], [[2, 3, 4]]],
        {"num_splits": 2},
    ),
    "slice": Case(
        "SLICE",
        [plain((2, 3)), Constant(int32([0, 1])), Constant(int32([2, -1]))],
        [plain((2, 2))],
        [int8([[1, 2, 3], [4, 5, 6]])],
        [[[2, 3], [5, 6]]],
    ),
    "strided slice with masks": Case(
        "STRIDED_SLICE",
        [plain((2, 4)), Constant(int32([1, 3])), Constant(int32([2, 0])), Constant(int32([1, -2]))],
        [plain((2,))],
        [int8([[1, 2, 3, 4], [5, 6, 7, 8]])],
        [[8, 6]],
        {"begin_mask": 2, "end_mask": 2, "shrink_axis_mask": 1},
    ),
    "reshape by its option": Case(
        "RESHAPE",
        [plain((2, 3))],
        [plain((3, 2))],
        [int8([[1, 2, 3], [4, 5, 6]])],
        [[[1, 2], [3, 4], [5, 6]]],
        {"new_shape": (3, -1)},
    ),
    "transpose": Case(
        "TRANSPOSE",
        [plain((2, 3)), Constant(int32([1, 0]))],
        [plain((3, 2))],
        [int8([[1, 2, 3], [4, 5, 6]])],
        [[[1, 4], [2, 5], [3, 6]]],
    ),
    "squeeze": Case(
        "SQUEEZE",
        [plain((1, 2, 1))],
        [plain((1, 2))],
        [int8([[[1], [2]]])],
        [[[1, 2]]],
        {"squeeze_dims": [2]},
    ),
    "expand dimensions": Case(
        "EXPAND_DIMS", [plain((2,)), Constant(int32([0]))], [plain((1, 2))], [int8([1, 2])], [[[1, 2]]]
    ),
    "pack": Case(
        "PACK",
        [plain((2,)), plain((2,))],
        [plain((2, 2))],
        [int8([1, 2]), int8([3, 4])],
        [[[1, 3], [2, 4]]],
        {"values_count": 2, "axis": 1},
    ),
    "unpack": Case(
        "UNPACK",
        [plain((2, 2))],
        [plain((2,)), plain((2,))],
        [int8([[1, 2], [3, 4]])],
        [[1, 3], [2, 4]],
        {"num": 2, "axis": 1},
    ),
    "gather": Case(
        "GATHER",
        [plain((2, 3)), Constant(int32([2, 0]))],
        [plain((2, 2))],
        [int8([[1, 2, 3], [4, 5, 6]])],
        [[[3, 1], [6, 4]]],
        {"axis": 1},
    ),
    "batch matrix product": Case(
        "BATCH_MATMUL",
        [plain((1, 2, 2)), plain((1, 2, 2))],
        [plain((1, 2, 2))],
        [int8([[[1, 2], [3, 4]]]), int8([[[5, 6], [7, 8]]])],
        [[[[17, 23], [39, 53]]]],
        {"adj_y": True},
    ),
    "depth to space": Case(
        "DEPTH_TO_SPACE",
        [plain((1, 1, 1, 4))],
        [plain((1, 2, 2, 1))],
        [int8([1, 2, 3, 4]).reshape(1, 1, 1, 4)],
        [np.reshape([1, 2, 3, 4], (1, 2, 2, 1))],
        {"block_size": 2},
    ),
    "space to depth": Case(
        "SPACE_TO_DEPTH",
        [plain((1, 2, 2, 1))],
        [plain((1, 1, 1, 4))],
        [int8([1, 2, 3, 4]).reshape(1, 2, 2, 1)],
        [np.reshape([1, 2, 3, 4], (1, 1, 1, 4))],
        {"block_size": 2},
    ),
    "resize to nearest": Case(
        "RESIZE_NEAREST_NEIGHBOR",
        [plain((1, 1, 3, 1)), Constant(int32([1, 2]))],
        [plain((1, 1, 2, 1))],
        [int8([1, 2, 3]).reshape(1, 1, 3, 1)],
        [np.reshape([1, 3], (1, 1, 2, 1))],
        {"align_corners": True},
    ),
    "resize bilinearly": Case(
        "RESIZE_BILINEAR",
        [plain((1, 1, 2, 1)), Constant(int32([1, 4]))],
        [plain((1, 1, 4, 1))],
        [int8([0, 40]).reshape(1, 1, 2, 1)],
        [np.reshape([0, 10, 30, 40], (1, 1, 4, 1))],
        {"half_pixel_centers": True},
    ),
    "relu": Case("RELU", [plain((3,))], [plain((3,))], [int8([-5, 0, 9])], [[0, 0, 9]]),
    "relu6": Case("RELU6", [plain((3,))], [plain((3,))], [int8([-5, 3, 9])], [[0, 3, 6]]),
    "relu -1 to 1": Case(
        "RELU_N1_TO_1",
        [Activation((3,), "float32")],
        [Activation((3,), "float32")],
        [float32([-5, 0.5, 9])],
        [[-1, 0.5, 1]],
        tflm=False,
    ),
    "relu 0 to 1, an opcode above 127": Case(
        "RELU_0_TO_1",
        [Activation((3,), "float32")],
        [Activation((3,), "float32")],
        [float32([-5, 0.5, 9])],
        [[0, 0.5, 1]],
        tflm=False,
    ),
    "prelu": Case(
        "PRELU",
        [plain((1, 1, 1, 2)), Constant(int8([[[3, 5]]]), (1.0,))],
        [plain((1, 1, 1, 2))],
        [int8([-2, -4]).reshape(1, 1, 1, 2)],
        [np.reshape([-6, -20], (1, 1, 1, 2))],
    ),
    "leaky relu": Case("LEAKY_RELU", [plain((2,))], [plain((2,))], [int8([-40, 40])], [[-10, 40]], {"alpha": 0.25}),
    "elu": Case("ELU", [plain((3,))], [plain((3,))], [int8([-90, 0, 9])], [[-1, 0, 9]]),
    "hard swish": Case("HARD_SWISH", [plain((3,))], [plain((3,))], [int8([-9, 3, 9])], [[0, 3, 9]]),
    "logistic": Case(
        "LOGISTIC",
        [plain((3,))],
        [Activation((3,), "int8", 1 / 256, -128)],
        [int8([-90, 0, 90])],
        [[-128, 0, 127]],
    ),
    "tanh": Case("TANH", [plain((3,))], [Activation((3,), "int8", 1 / 128)], [int8([-90, 0, 90])], [[-128, 0, 127]]),
    "quantise": Case(
        "QUANTIZE",
        [Activation((3,), "float32")],
        [Activation((3,), "int8", 0.5, 10)],
        [float32([-1.25, 0.2, 1000])],
        [[7, 10, 127]],
    ),
    "dequantise": Case(
        "DEQUANTIZE",
        [Activation((2,), "int8", 0.5, 10)],
        [Activation((2,), "float32")],
        [int8([-128, 127])],
        [[-69, 58.5]],
    ),
    "requantise uint8": Case(
        "QUANTIZE",
        [Activation((2,), "uint8", 1.0, 128)],
        [Activation((2,), "int8", 1.0)],
        [np.array([0, 255], np.uint8)],
        [[-128, 127]],
    ),
    "minimum": Case("MINIMUM", [plain((2,)), plain((2,))], [plain((2,))], [int8([1, -2]), int8([-1, 2])], [[-1, -2]]),
    "maximum": Case("MAXIMUM", [plain((2,)), plain((2,))], [plain((2,))], [int8([1, -2]), int8([-1, 2])], [[1, 2]]),
    "argmax": Case(
        "ARG_MAX",
        [plain((2, 3)), Constant(int32([1]))],
        [Activation((2,), "int32")],
        [int8([[1, 9, 3], [7, 7, -1]])],
        [[1, 0]],
        {"output_type": "INT32"},
    ),
    "argmin to int64": Case(
        "ARG_MIN",
        [plain((2, 3)), Constant(int32([1]))],
        [Activation((2,), "int64")],
        [int8([[1, 9, 3], [7, 7, -1]])],
        [[0, 2]],
        {"output_type": "INT64"},
        tflm=False,
    ),
    "cast": Case(
        "CAST",
        [Activation((2,), "int32")],
        [Activation((2,), "float32")],
        [int32([-70000, 3])],
        [[-70000, 3]],
        {"in_data_type": "INT32", "out_data_type": "FLOAT32"},
    ),
    "equal gives bool": Case(
        "EQUAL",
        [Activation((2,), "int32"), Activation((2,), "int32")],
        [Activation((2,), "bool")],
        [int32([1, 2]), int32([1, 3])],
        [[True, False]],
    ),
    "exp": Case("EXP", [Activation((1,), "float32")], [Activation((1,), "float32")], [float32([0])], [[1]]),
    "abs": Case("ABS", [Activation((2,), "float32")], [Activation((2,), "float32")], [float32([-2, 3])], [[2, 3]]),
    "neg": Case("NEG", [Activation((2,), "float32")], [Activation((2,), "float32")], [float32([-2, 3])], [[2, -3]]),
    "sqrt": Case("SQRT", [Activation((1,), "float32")], [Activation((1,), "float32")], [float32([9])], [[3]]),
    "rsqrt": Case("RSQRT", [Activation((1,), "float32")], [Activation((1,), "float32")], [float32([16])], [[0.25]]),
}
