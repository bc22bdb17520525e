"""Gives shapes for ONNX operators that work on no windows; those on windows are in ``onnx_forms``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from support.models.onnx_forms import IMAGE, MANY, OLDEST, REDUCED, SWITCH, WINDOWS, Form, form
from support.models.operands import Operand, given, ints, stored, weights

_SUM_AXES: Final = tuple(replace(entry, since=OLDEST) for entry in REDUCED if entry.since == 18)
_INDEX: Final = Operand((2, 3), -2, 1)
# The last two are not compared where a scale makes a fraction of an extent: ONNX's text and its tests go on with the
# fraction, and ONNX Runtime rounds it, or its last bit decides which element is nearest.
_SCALES: Final = ["asymmetric", "half_pixel", "pytorch_half_pixel", "align_corners", "half_pixel_symmetric"]

# Scales and zero points of quantised layers.
_INPUT = (stored(np.float32(0.1)), stored(2))
_WEIGHTS_AND_OUTPUT = (stored(np.float32(0.05)), stored(1), stored(np.float32(0.1)), stored(4))

_SIZED: Final[dict[str, Any]] = {
    "coordinate_transformation_mode": [None, *_SCALES],
    "nearest_mode": [None, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"],
    "mode": ["nearest", "linear", "cubic", None],
    "cubic_coeff_a": [None, -0.5],
    "exclude_outside": SWITCH,
    "extrapolation_value": [None],
    "antialias": [None],
    "axes": [None],
    "keep_aspect_ratio_policy": [None],
}


def _resize(*numbers: float, sizes: bool = False, image: tuple[int, ...] = IMAGE, **more: Any) -> Form:
    last = (None, ints(*map(int, numbers))) if sizes else (stored(np.asarray(numbers, np.float32)),)
    whole = sizes or all(float(number).is_integer() for number in numbers)
    fractions: dict[str, Any] = {} if whole else {"coordinate_transformation_mode": [None, *_SCALES[:3]]}
    return form(image, None, *last, calm=True, **(_SIZED | fractions | more))


FORMS: Final[dict[str, tuple[Form, ...]]] = {
    **WINDOWS,
    "Acos": (form(given((20,), -1, 1)),),
    "Asin": (form(given((20,), -1, 1)),),
    "Atanh": (form(given((20,), -0.99, 0.99)),),
    "Acosh": (form(given((20,), 1, 9)),),
    **dict.fromkeys(("Max", "Min", "Mean", "Sum"), MANY),
    **{
        f"Reduce{name}": REDUCED
        for name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")
    },
    "ReduceSum": _SUM_AXES,
    "ArgMax": (
        form((2, 3, 4), axis=[None, 0, 1, 2, -1, -3]),
        form((1, 5), axis=[0, 1]),
        form(Operand((2, 6), 0, 2), axis=[1]),
    ),
    "Softmax": (form((2, 3, 4), axis=[None, 0, 1, 2, -2]), form((1,), axis=[None, 0]), form((3, 1), axis=[-1, 0])),
    "Clip": (
        form((2, 3, 4), stored(-1), stored(2)),
        form((2, 3, 4), None, stored(1)),
        form((2, 3, 4), stored(0)),
        form((2, 3, 4)),
        form((2, 3, 4), given((), -2, 0), given((), 0, 2)),
        form((2, 3, 4), given((), 0, 2), given((), -2, 0)),
        form((2, 3, 4), stored(2), stored(1)),
        form((5,), given((), 3, 4), stored(1)),
    ),
    "Cast": (form((2, 3, 4)), form(()), form(Operand((12,), -140, 300)), form(Operand((12,), 0, 1))),
    "CastLike": (form((2, 3, 4), (1,)),),
    "BitCast": (form((2, 4)),),
    "BitShift": (
        form(Operand((8,), 0, 255), Operand((8,), 0, 7)),
        form(Operand((8,), 0, 255), stored([0, 1, 2, 3, 4, 5, 6, 7])),
        form(Operand((2, 3), 0, 99), stored(2)),
    ),
    "Mod": (
        form((2, 3, 4), Operand((3, 1), 1, 7)),
        form(Operand((20,), -20, 20), Operand((20,), -6, -1)),
        form(Operand((20,), 0, 90), stored(7)),
    ),
    "Div": (
        form((2, 3, 4), Operand((2, 3, 4), 1, 7)),
        form((2, 3, 4), Operand((3, 1), -7, -1)),
        form((2, 3), stored(3)),
        form((), Operand((3,), 1, 5)),
    ),
    "Pow": (
        form(Operand((3, 4), 0, 3), Operand((4,), 0, 3)),
        *(form((3, 4), stored(power)) for power in (0, 1, 2, 3)),
        form(given((3, 4), 0, 3), stored(np.float32(0.5))),
        form(Operand((3, 4), 0.1, 3), stored(np.float32(-1.5))),
        form((), (2, 2)),
        form((2, 3), Operand((2, 3), 0, 3)),
    ),
    "Where": (
        form(Operand((2, 3), 0, 1), (2, 3), (2, 3)),
        form((3,), (2, 1), ()),
        form((2, 3), stored(1), stored([1, 2, 3])),
    ),
    "Dropout": (
        form((2, 3)),
        form((2, 3), stored(np.float32(0.3)), seed=[None, 3]),
        form((2, 3), stored(np.float32(0.3)), stored(False), outputs=2),
    ),
    "BatchNormalization": (
        form((2, 3, 4), (3,), (3,), (3,), given((3,), 0.2, 2), calm=True, momentum=[None], training_mode=[None, 0]),
        form(
            (1, 3, 2, 2),
            weights(3),
            weights(3),
            weights(3),
            Operand((3,), 0.2, 2, stored=True),
            calm=True,
            momentum=[None, 0.5],
            training_mode=[None],
        ),
        form(
            (4, 3),
            weights(3),
            weights(3),
            weights(3),
            Operand((3,), 0.2, 2, stored=True),
            calm=True,
            momentum=[None],
            training_mode=[None],
        ),
    ),
    "InstanceNormalization": (
        form((2, 3, 4), weights(3), weights(3), calm=True),
        form((1, 2, 3, 4), (2,), (2,), calm=True),
    ),
    "GroupNormalization": (
        form((2, 4, 3), weights(2), weights(2), until=20, calm=True, num_groups=[2]),
        form((2, 4, 3), weights(4), weights(4), since=21, calm=True, num_groups=[1, 2, 4]),
        form((1, 4, 2, 3), (4,), (4,), since=21, calm=True, num_groups=[2]),
    ),
    "LayerNormalization": (
        form((2, 3, 4), weights(4), weights(4), calm=True, axis=[None, -1, 2]),
        form((2, 3, 4), (3, 4), calm=True, axis=[1, -2]),
        form((2, 3, 4), (4,), (4,), calm=True, axis=[-1], outputs=3),
        form((2, 3, 4), (2, 3, 4), weights(2, 3, 4), calm=True, axis=[0, -3]),
        form((2, 3, 4), weights(1), weights(1), calm=True, axis=[-1]),
        form((2, 3, 4), weights(4), calm=True, axis=[1]),
        form((2, 3, 4), weights(3, 1), weights(4), calm=True, axis=[1]),
    ),
    "RMSNormalization": (
        form((2, 3, 4), weights(4), calm=True, axis=[None, -1, 2]),
        form((2, 3, 4), (3, 4), calm=True, axis=[1, -2]),
    ),
    "LpNormalization": (form((2, 3, 4), axis=[None, 0, 1, -1], p=[None, 1, 2]),),
    "LRN": (form((1, 5, 2, 3), size=[1, 2, 3, 4, 5], calm=True), form((2, 4, 3), size=[3], calm=True)),
    "MeanVarianceNormalization": (form((2, 3, 4, 2), axes=[None, [0, 2, 3], [1], [-1, 0]], calm=True),),
    "PRelu": (
        form((2, 3, 4), given((3, 1), -1, 2)),
        form((2, 3, 4), Operand((4,), -1, 2, stored=True)),
        form((2, 3), given((), -1, 2)),
        form((1, 2, 3, 3), weights(2, 1, 1)),
    ),
    "Concat": (
        form((2, 3), (2, 1), axis=[1, -1]),
        form((2, 3), (1, 3), (4, 3), axis=[0, -2]),
        form((2, 3), axis=[0]),
        form((2,), stored([1, 2]), axis=[0]),
    ),
    "DepthToSpace": (
        form((1, 8, 2, 3), blocksize=[2, 1], mode=[None, "DCR", "CRD"]),
        form((2, 9, 1, 2), blocksize=[3], mode=[None, "CRD"]),
    ),
    "SpaceToDepth": (
        form((1, 2, 4, 6), blocksize=[2, 1], mode=[None]),
        form((1, 2, 4, 6), blocksize=[2], mode=["DCR", "CRD"], since=26),
    ),
    "Expand": (form((3, 1), ints(2, 1, 4)), form((3, 4), ints(1)), form((), ints(2, 2)), form((1, 2), ints(3, 1))),
    "EyeLike": (form((3, 4), dtype=[None, 1, 6, 7, 9, 11], k=[None, 1, -1, 5]),),
    "Flatten": (form((2, 3, 4), axis=[None, 0, 1, 2, 3, -1, -2]), form((), axis=[None, 0]), form((3,), axis=[0, 1])),
    "Gather": (
        form((2, 3, 4), _INDEX, axis=[None, 0, 1, 2, -1]),
        form((5,), stored([[0, -1], [3, 2]]), axis=[None, -1]),
        form((2, 3), stored(-1), axis=[0, 1]),
        form((4, 2), given((), -4, 3), axis=[None]),
    ),
    "GatherElements": (
        form((3, 4), Operand((2, 4), -3, 2), axis=[None, 0, -2]),
        form((3, 4), stored([[0, -1], [3, 2], [1, 1]]), axis=[1, -1]),
    ),
    "GatherND": (
        form((3, 4, 2), Operand((2, 2), -3, 2), batch_dims=[None, 0]),
        form((2, 3, 4), Operand((2, 1), -3, 2), batch_dims=[1]),
        form((3, 4), stored([[0, -1], [2, 3]]), batch_dims=[None]),
        form((2, 2, 3), Operand((2, 2, 4, 1), -3, 2), batch_dims=[2]),
    ),
    "ScatterElements": tuple(
        replace(entry, attributes={**entry.attributes, "reduction": [None, "none", "add", "mul", "min", "max"]})
        for entry in (
            form((3, 4), stored([[0, -1, 2, 1]]), (1, 4), axis=[None, 0, -2]),
            form((3, 4), stored([[0, -1], [2, 1], [3, 0]]), (3, 2), axis=[1, -1]),
        )
    ),
    "ScatterND": tuple(
        replace(entry, attributes={**entry.attributes, "reduction": [None, "none", "add", "mul", "min", "max"]})
        for entry in (
            form((4, 3), stored([[0], [-1]]), (2, 3)),
            form((4, 3), stored([[0, 1], [3, -1], [2, 2]]), (3,)),
            form((2, 3, 2), stored([[[0, 1], [1, -1]]]), (1, 2, 2)),
        )
    ),
    "OneHot": (
        form(Operand((2, 3), -7, 7), stored(5), stored([2, 7]), axis=[None, 0, 1, -1, -2]),
        form(Operand((), 0, 4), stored([3]), Operand((2,)), axis=[None, 0]),
        form((4,), stored(1), (2,), axis=[-1]),
    ),
    "Pad": (
        form((2, 3, 4), ints(0, 1, 2, 1, 0, 1), mode=[None, "constant", "reflect", "edge"]),
        form((2, 3, 4), ints(1, 0, 0, 0, 1, 2), stored(1), mode=[None, "constant"]),
        form((2, 3, 4), ints(0, -1, 1, 0, 0, -2), mode=[None, "edge", "reflect"]),
        form((2, 3, 4), ints(1, 0, 1, 0), stored(2), ints(1, -1), mode=[None, "constant"], since=18),
        form((2, 3, 4), ints(0, 1, 2, 1, 0, 1), mode=["wrap"], since=19),
        form((2, 3, 4), ints(0, 4, 6, 0, 5, 7), mode=["wrap"], since=19),
    ),
    "Reshape": (
        form((2, 3, 4), ints(0, -1, 2), allowzero=[None, 0]),
        form((2, 3, 4), ints(4, 3, 2), allowzero=SWITCH),
        form((1,), stored(np.zeros(0, np.int64)), allowzero=[None]),
        form((2, 3), ints(-1), allowzero=SWITCH),
    ),
    "Squeeze": (form((1, 3, 1, 2), ints(0, -2)), form((1, 3, 1, 2)), form((1, 1), ints(0)), form((1, 1))),
    "Unsqueeze": (form((3, 2), ints(0, -1)), form((3, 2), ints(3, 1)), form((), ints(0)), form((2,), ints(-1))),
    "Transpose": (
        form((2, 3, 4), perm=[None, [0, 2, 1], [2, 0, 1], [1, 0, 2]]),
        form((1, 3), perm=[None, [1, 0]]),
        form((3,), perm=[None]),
    ),
    "Slice": (
        form((4, 5, 6), ints(1, 0), ints(3, -1), ints(0, 2), ints(1, 2)),
        form((4, 5, 6), ints(-1, 4), ints(-4, 0), ints(0, -2), ints(-1, -2)),
        form((4, 5, 6), ints(1, 2), ints(99, 99)),
        form((4, 5), ints(0), ints(np.iinfo(np.int64).max), ints(1)),
        form((4, 5), ints(-99), ints(3), ints(-1), ints(2)),
        form((4, 5), ints(9), ints(np.iinfo(np.int64).min), ints(1), ints(-1)),
    ),
    "Split": (
        form((6, 4), axis=[None, 0], outputs=2, until=17),
        form((2, 4), axis=[1, -1], outputs=4, until=17),
        form((6, 4), axis=[None], until=17),
        form((6, 4), ints(1, 3, 2), axis=[None, 0, -2], outputs=3, num_outputs=[None]),
        form((6, 4), ints(6), axis=[None, 0], num_outputs=[None]),
        form((6, 4), axis=[None, 0], outputs=2, num_outputs=[2], since=18),
        form((7, 4), axis=[None, 0], outputs=3, num_outputs=[3], since=18),
        form((6, 4), axis=[1], num_outputs=[1], since=18),
    ),
    "Tile": (form((2, 3), ints(2, 3)), form((2, 1), ints(1, 1)), form((1,), ints(4))),
    "Trilu": (
        form((3, 4)),
        form((2, 4, 4), stored(1)),
        form((3, 5), stored(-2)),
        form((3, 3), stored(9)),
        form((1, 3), stored(-9)),
    ),
    "CumSum": (form((2, 3, 4), stored(1)), form((2, 3, 4), stored(-1)), form((5,), stored(0)), form((1, 3), stored(0))),
    "TopK": (
        form((2, 5), ints(3), axis=[None, 1, -1], outputs=2),
        form((4, 3), ints(1), axis=[0], outputs=2),
        form(Operand((12,), 0, 3), ints(12), axis=[None], outputs=2),
    ),
    "NonMaxSuppression": (),
    "ReverseSequence": (
        form((4, 3, 2), ints(4, 1, 2), batch_axis=[None, 1], time_axis=[None, 0]),
        form((3, 4), ints(4, 1, 2), batch_axis=[0], time_axis=[1]),
    ),
    "TensorScatter": (
        form((2, 4, 3), (2, 2, 3), stored([1, 0]), axis=[None, -2, 1], mode=[None, "linear", "circular"]),
        form((2, 4, 3), (2, 2, 3), axis=[None], mode=[None]),
    ),
    "IsInf": (form((2, 3, 4)),),
    "Hardmax": (form((2, 3, 4), axis=[None, 0, 1, 2, -1]), form(Operand((2, 5), 0, 2), axis=[-1])),
    "QuantizeLinear": (
        form(
            Operand((2, 3, 4), -9, 9),
            stored(np.float32(0.07)),
            stored(3),
            axis=[None, 1],
        ),
        form(
            Operand((2, 3, 4), -9, 9),
            Operand((3,), 0.02, 0.3, stored=True),
            Operand((3,), 0, 9, stored=True),
            axis=[None, 1, -2],
        ),
        form((2, 3), stored(np.float32(0.5)), axis=[None]),
        form(
            (2, 3),
            stored(np.float32(0.5)),
            axis=[None],
            output_dtype=[2, 3, 4, 5],
            since=21,
        ),
    ),
    "DequantizeLinear": (
        form((2, 3, 4), stored(np.float32(0.07)), stored(3), axis=[None, 1]),
        form(
            (2, 3, 4),
            Operand((3,), 0.02, 0.3, stored=True),
            Operand((3,), 0, 9, stored=True),
            axis=[None, 1, -2],
        ),
        form((2, 3), stored(np.float32(0.5)), axis=[None]),
    ),
    "DynamicQuantizeLinear": (
        form((2, 3, 4), outputs=3, calm=True),
        *(form(given((5,), *bounds), outputs=3, calm=True) for bounds in ((1, 3), (-3, -1), (0, 0))),
    ),
    "QLinearMatMul": (form((3, 4), *_INPUT, weights(4, 2), *_WEIGHTS_AND_OUTPUT),),
    "QLinearConv": (
        form(
            IMAGE,
            *_INPUT,
            weights(4, 2, 3, 3),
            *_WEIGHTS_AND_OUTPUT,
            pads=[None, [1, 1, 0, 1]],
            strides=[None, [2, 1]],
            dilations=[None, [1, 2]],
        ),
        form(
            IMAGE,
            *_INPUT,
            weights(4, 2, 3, 3),
            *_WEIGHTS_AND_OUTPUT,
            Operand((4,), -90, 90, stored=True),
            strides=[None, [2, 1]],
            auto_pad=[None, "SAME_UPPER", "SAME_LOWER", "VALID"],
        ),
    ),
    "GridSample": (
        form(
            (1, 2, 4, 5),
            given((1, 3, 2, 2), -1.4, 1.4),
            mode=[None, "bilinear", "nearest", "bicubic"],
            padding_mode=[None, "zeros", "border", "reflection"],
            until=19,
            calm=True,
        ),
        form(
            (1, 2, 4, 5),
            given((1, 3, 2, 2), -1.4, 1.4),
            mode=[None, "linear", "nearest", "cubic"],
            padding_mode=[None, "zeros", "border", "reflection"],
            since=20,
            calm=True,
        ),
        form(
            (1, 1, 3, 4, 3),
            given((1, 2, 2, 2, 3), -1.4, 1.4),
            mode=[None, "linear", "nearest"],
            padding_mode=[None, "border", "reflection"],
            since=20,
            calm=True,
        ),
    ),
    "AffineGrid": (form((2, 2, 3), ints(2, 1, 4, 5), calm=True), form((1, 3, 4), ints(1, 1, 3, 2, 4), calm=True)),
    "RoiAlign": (
        form(
            (1, 2, 6, 6),
            stored([[0.5, 0.5, 3.2, 4.1], [1, 1, 5, 5]]),
            stored([0, 0]),
            calm=True,
            mode=[None, "avg"],
            output_height=[None, 2],
            output_width=[None, 3],
            sampling_ratio=[None, 2],
            spatial_scale=[None, 0.5],
            coordinate_transformation_mode=[None, "output_half_pixel"],
            since=16,
        ),
        form(
            (1, 2, 6, 6),
            stored([[0.5, 0.5, 3.2, 4.1], [1, 1, 5, 5]]),
            stored([0, 0]),
            calm=True,
            mode=[None, "avg"],
            output_height=[2],
            output_width=[3],
            sampling_ratio=[None, 2],
            spatial_scale=[None, 0.5],
        ),
    ),
    "Resize": (
        _resize(1, 1, 2, 2),
        _resize(1, 1, 0.5, 1.5),
        _resize(1, 1, 1, 3),
        _resize(1, 1, 5, 9, sizes=True),
        _resize(1, 2, 14, 3, sizes=True),
        _resize(1, 1, 2.5, image=(1, 2, 5)),
        _resize(2, 2, image=(3, 4)),
        _resize(1, 1, 0.6, 0.4, antialias=[0, 1], mode=["linear", "cubic"]),
        _resize(1.5, 2, axes=[[2, 3], [-2, -1], [3, 2]]),
        _resize(
            9,
            9,
            sizes=True,
            axes=[[2, 3]],
            coordinate_transformation_mode=[None, *_SCALES[:3]],
            keep_aspect_ratio_policy=[None, "stretch", "not_larger", "not_smaller"],
        ),
        form(
            IMAGE,
            stored(np.asarray([0, 0, 0.1, -0.2, 1, 1, 0.7, 1.3], np.float32)),
            stored(np.asarray([1, 1, 1.5, 2], np.float32)),
            calm=True,
            **(
                _SIZED
                | {
                    "coordinate_transformation_mode": ["tf_crop_and_resize"],
                    "mode": ["nearest", "linear"],
                    "extrapolation_value": [None, 2.5],
                }
            ),
        ),
    ),
    "NegativeLogLikelihoodLoss": tuple(
        replace(entry, attributes={**entry.attributes, "reduction": [None, "none", "sum", "mean"]})
        for entry in (
            form((3, 4), given((3,), 0, 3), calm=True, ignore_index=[None, 1]),
            form((2, 4, 3), given((2, 3), 0, 3), weights(4), calm=True, ignore_index=[None, 2]),
        )
    ),
    "SoftmaxCrossEntropyLoss": tuple(
        replace(entry, attributes={**entry.attributes, "reduction": [None, "none", "sum", "mean"]})
        for entry in (
            form((3, 4), given((3,), 0, 3), calm=True, ignore_index=[None, 1]),
            form((2, 4, 3), given((2, 3), 0, 3), weights(4), outputs=2, calm=True, ignore_index=[None, 2]),
        )
    ),
    "DFT": (
        form((1, 6, 1), axis=[None, 1], onesided=SWITCH, inverse=[None, 0], until=19, calm=True),
        form((1, 6, 2), axis=[1], onesided=[None], inverse=SWITCH, until=19, calm=True),
        form((1, 6, 1), None, stored(1), onesided=SWITCH, inverse=[None], since=20, calm=True),
        form((1, 5, 2), stored(8), stored(-2), onesided=[None], inverse=SWITCH, since=20, calm=True),
    ),
    "STFT": (
        form((2, 40, 1), stored(5), None, stored(8), onesided=SWITCH, calm=True),
        form((1, 33, 1), stored(4), weights(9), onesided=SWITCH, calm=True),
    ),
    "CenterCropPad": (form((5, 4, 3), ints(3, 6), axes=[[0, 1], [-1, 0]]), form((5, 4), ints(4, 4), axes=[None])),
    "MaxUnpool": (
        form(
            (1, 1, 2, 3),
            stored(np.asarray([0, 3, 4, 14, 17, 22]).reshape(1, 1, 2, 3)),
            kernel_shape=[[2, 2]],
            strides=[[2, 2]],
        ),
    ),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), ()),  # held by test_recurrent.py
    **dict.fromkeys(("If", "Loop", "Scan"), ()),  # held by test_control.py
    "Attention": (
        form(
            (1, 2, 3, 4),
            (1, 2, 5, 4),
            (1, 2, 5, 4),
            calm=True,
            is_causal=SWITCH,
            scale=[None, 0.3],
            softcap=[None, 1.5],
            q_num_heads=[None],
            kv_num_heads=[None],
            qk_matmul_output_mode=[None],
            softmax_precision=[None],
            left_window_size=[None],
            right_window_size=[None],
        ),
        form(
            (1, 3, 8),
            (1, 5, 4),
            (1, 5, 4),
            calm=True,
            is_causal=[None, 1],
            scale=[None],
            softcap=[None],
            q_num_heads=[2],
            kv_num_heads=[1],
            qk_matmul_output_mode=[None],
            softmax_precision=[None, 1],
            left_window_size=[None],
            right_window_size=[None],
        ),
    ),
    "RotaryEmbedding": (
        form(
            (1, 2, 3, 4),
            weights(5, 2),
            weights(5, 2),
            given((1, 3), 0, 4),
            calm=True,
            num_heads=[None],
            rotary_embedding_dim=[None],
        ),
    ),
}
for _same, _like in {"ArgMin": "ArgMax", "LogSoftmax": "Softmax", "CumProd": "CumSum"}.items():
    FORMS[_same] = FORMS[_like]
