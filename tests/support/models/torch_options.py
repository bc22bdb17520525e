"""Draws calls of PyTorch's operators with every option and type, from their schemas: PyTorch itself is the oracle.

The schema says which operands and options an operator has, and of what kind. ``FORMS`` adds shapes that fit, and values
of options that depend on them.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from support.models.exported import torch
from support.models.operands import Array, Operand, given, stored
from uaccel.frontend.torch.converter import CONVERTERS
from uaccel.tvm_api import relax
from uaccel.tvm_api.converters import TorchConverter

TYPES: Final = ("float32", "float64", "int32", "int64", "uint8", "int8", "int16", "bool")


@dataclass(frozen=True, eq=False)
class Call:
    """Holds a call: its operands, which are given at run time, and all arguments, in which None stands for them."""

    name: str
    operator: str
    operands: tuple[Array, ...]
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]

    @property
    def words(self) -> str:
        shown = [f"{value.dtype}{list(value.shape)}" for value in self.operands]
        rest = [value for value in self.arguments if not isinstance(value, _Place)]
        return f"{self.name}: {self.operator}({', '.join(shown)}; {rest} {dict(self.options)})"

    def compute(self, values: Sequence[Any]) -> Any:
        def put(value: Any) -> Any:
            if isinstance(value, _Place):
                return values[value.number]
            return [put(entry) for entry in value] if isinstance(value, list) else value

        return overload(self.operator)(*map(put, self.arguments), **self.options)


@dataclass(frozen=True)
class _Place:
    number: int


def overload(operator: str) -> Any:
    name, _, kind = operator.partition(".")
    return getattr(getattr(torch.ops.aten, name), kind)


def operators() -> list[str]:
    """ATen's operators that the front end takes, by a converter of ours or of TVM's."""
    known = {name.removeprefix("aten.") for name in CONVERTERS.names if name.startswith("aten.")}
    known |= {name for name in TorchConverter(relax.BlockBuilder()).operators() if "." in name}
    return sorted(name for name in known if _pure(name))


def _pure(operator: str) -> bool:
    try:
        made = overload(operator)
    except AttributeError:
        return False
    drawn = any("seeded" in str(tag) for tag in made.tags)
    tensors = any("Tensor" in str(entry.type) for entry in made._schema.arguments)
    return not (drawn or made._schema.is_mutable or operator.partition(".")[0] in NOT_DRAWN or not tensors)


# Of no tensors, of shapes that depend on data, or of memory alone; recurrent layers have tests of their own.
NOT_DRAWN: Final = {
    *("_assert_async", "_assert_scalar", "_assert_tensor_metadata", "_local_scalar_dense", "item", "masked_select"),
    *("empty_like", "empty_permuted", "sym_size", "sym_constrain_range_for_size", "to_sparse", "_sparse_mm"),
    *("_sparse_addmm", "lstm", "gru", "rnn_tanh", "rnn_relu", "randn_like", "bernoulli", "exponential", "as_strided"),
    *("native_dropout", "dropout", "_native_batch_norm_legit", "_native_batch_norm_legit_functional", "copy"),
    *("rrelu_with_noise", "rrelu_with_noise_functional", "detach", "_trilinear", "lift_fresh_copy", "new_zeros"),
}

# Forms: a value for each argument by position. A list is a choice of values; an operand has a shape, and types.

Op = Operand  # A short name for tables.
S: Final = (2, 3, 4)
IMAGE: Final = (1, 4, 6, 5)
DIM: Final = [0, 1, -1]
FLOATS: Final = ("float32", "float64")


@dataclass(frozen=True)
class Form:
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]
    types: Sequence[str]
    hostile: bool


def form(*arguments: Any, types: Sequence[str] = TYPES, hostile: bool = True, **options: Any) -> Form:
    held = tuple(Operand(entry) if _is_shape(entry) else entry for entry in arguments)
    return Form(held, options, types, hostile)


def _is_shape(entry: Any) -> bool:
    return isinstance(entry, tuple) and all(isinstance(extent, int) for extent in entry)


def _index(shape: tuple[int, ...], low: int, high: int) -> Operand:
    made = np.random.default_rng(len(shape) + high).integers(low, high, shape, endpoint=True)
    return stored(made.astype(np.int64))


_REDUCE: Final = (form(S, [[0], [1, -1], [-3]], [False, True]), form((3, 1), [[1]], [False]))
_ONE_DIM: Final = (form(S, DIM, [False, True]), form((1, 5), [0], [False]))
_CONV: Final[dict[str, Any]] = {"types": FLOATS, "hostile": False}
FORMS: Final[dict[str, tuple[Form, ...]]] = {
    "acos.default": (form(given((20,), -1, 1), hostile=False),),
    "asin.default": (form(given((20,), -1, 1), hostile=False),),
    "atanh.default": (form(given((20,), -1, 1), hostile=False),),
    "acosh.default": (form(given((20,), 1, 9), hostile=False),),
    "_adaptive_avg_pool2d.default": (form(IMAGE, [[3, 5], [1, 1], [4, 2]], **_CONV),),
    "adaptive_avg_pool1d.default": (form((2, 3, 6), [[3], [1], [4]], **_CONV),),
    "adaptive_avg_pool2d.default": (form(IMAGE, [[3, 5], [1, 1], [4, 2]], **_CONV), form((4, 6, 5), [[2, 2]], **_CONV)),
    "adaptive_avg_pool3d.default": (form((1, 2, 4, 4, 6), [[2, 2, 3], [3, 1, 4]], **_CONV),),
    "adaptive_max_pool2d.default": (form(IMAGE, [[3, 5], [1, 1], [4, 2]], **_CONV),),
    "addmm.default": (
        form((3, 5), (3, 4), (4, 5), beta=[1, 0.5, 0, 2], alpha=[1, 2, 0.3], hostile=False),
        form((5,), (3, 4), (4, 5), hostile=False),
    ),
    "baddbmm.default": (form((2, 3, 5), (2, 3, 4), (2, 4, 5), beta=[1, 0.5, 0, 2], alpha=[1, 2, 0.3], hostile=False),),
    "affine_grid_generator.default": (form((1, 2, 3), [[1, 1, 4, 5]], [False, True], **_CONV),),
    "any.dim": _ONE_DIM,
    "argmax.default": (form(S, [None, 0, 1, -1], [False, True], hostile=False),),
    "argmin.default": (form(S, [None, 0, 1, -1], [False, True], hostile=False),),
    **dict.fromkeys(
        ("any.dims", "sum.dim_IntList", "mean.dim", "amax.default", "amin.default"),
        (*_REDUCE, form(S, [[]], [False, True])),
    ),
    **dict.fromkeys(
        ("var.dim", "var.correction", "std.correction", "var_mean.correction"),
        (form(S, [[0], [1, -1], None], correction=[0, 1, None, 2], keepdim=[False, True], hostile=False),),
    ),
    "var.dim": (form(S, [[0], [1, -1]], [False, True], [False, True], hostile=False),),
    "var_mean.dim": (form(S, [[0], [1, -1]], [False, True], [False, True], hostile=False),),
    **dict.fromkeys(("max.dim", "min.dim", "median.dim", "prod.dim_int"), _ONE_DIM),
    # which of equal elements is taken is open
    "kthvalue.default": (form(S, [1, 2], [1, -1], [False, True], types=FLOATS, hostile=False),),
    "topk.default": (form(S, [1, 2], [-1, 1, 0], [False, True], hostile=False),),
    "sort.default": (form(S, DIM, [False, True], hostile=False),),
    "argsort.default": (form((11,), [0], [False, True], types=FLOATS, hostile=False),),
    "sort.stable": (form(Op(S, 0, 2), stable=[True, False], dim=DIM, descending=[False, True], hostile=False),),
    "argsort.stable": (form(Op(S, 0, 2), stable=[True], dim=DIM, descending=[False, True], hostile=False),),
    "linalg_vector_norm.default": (
        form(S, [0, 1, 2, 3, 2.5, float("inf"), -float("inf")], [None, [0], [1, -1]], [False, True], types=FLOATS),
    ),
    "cumsum.default": (form(S, DIM, dtype=[None, torch.float32, torch.int32]),),
    "cumprod.default": (form(S, DIM, dtype=[None, torch.float32]),),
    "avg_pool1d.default": (
        form((2, 3, 9), [[3], [2]], [[2], [1], []], [[1], [0]], [False, True], [False, True], **_CONV),
    ),
    "avg_pool2d.default": (
        form(
            IMAGE,
            [[3, 2]],
            [[2, 2], [1, 2], []],
            [[1, 1], [0, 1], [0, 0]],
            [False, True],
            [False, True],
            [None, 3],
            **_CONV,
        ),
        form((4, 6, 5), [[2, 2]], **_CONV),
    ),
    "avg_pool3d.default": (
        form(
            (1, 2, 4, 5, 4),
            [[2, 2, 2]],
            [[2, 2, 1], []],
            [[1, 0, 1], [0, 0, 0]],
            [False, True],
            [False, True],
            [None, 3],
            **_CONV,
        ),
    ),
    "max_pool1d.default": (
        form((2, 3, 9), [[3]], [[2], []], [[1], [0]], [[1], [2]], [False, True], types=FLOATS, hostile=False),
    ),
    "max_pool2d.default": (
        form(IMAGE, [[3, 2]], [[2, 2], [1, 2], []], [[1, 1], [0, 0]], [[1, 1], [1, 2]], [False, True], hostile=False),
    ),
    "max_pool2d_with_indices.default": (
        form(IMAGE, [[3, 2]], [[2, 2], []], [[1, 1], [0, 0]], [[1, 1], [1, 2]], [False, True], **_CONV),
    ),
    "max_pool3d.default": (
        form(
            (1, 2, 4, 5, 4), [[2, 2, 2]], [[2, 2, 1], []], [[1, 0, 1], [0, 0, 0]], [[1, 1, 1]], [False, True], **_CONV
        ),
    ),
    "max_pool3d_with_indices.default": (
        form((1, 2, 4, 5, 4), [[2, 2, 2]], [[2, 2, 1]], [[0, 0, 0]], [[1, 1, 1]], [False], **_CONV),
    ),
    "batch_norm.default": (
        form((2, 3, 4), (3,), (3,), (3,), given((3,), 0.2, 2), [False], [0.1], [1e-5, 1e-2], [False], **_CONV),
        form((2, 3, 4), None, None, (3,), given((3,), 0.2, 2), [False], [0.1], [1e-5], [False], **_CONV),
    ),
    "_native_batch_norm_legit_no_training.default": (
        form((2, 3, 4, 2), (3,), (3,), (3,), given((3,), 0.2, 2), [0.1], [1e-5, 1e-2], **_CONV),
    ),
    "instance_norm.default": (
        form((2, 3, 4, 2), (3,), (3,), None, None, [True], [0.1], [1e-5, 1e-2], [False], **_CONV),
        form((2, 3, 4, 2), None, None, None, None, [True], [0.1], [1e-5], [False], **_CONV),
    ),
    "group_norm.default": (
        form((2, 4, 3), [1, 2, 4], (4,), (4,), [1e-5, 1e-2], **_CONV),
        form((2, 4), [2], None, None, **_CONV),
    ),
    "native_group_norm.default": (form((2, 4, 3), (4,), (4,), [2], [4], [3], [1, 2], [1e-5], **_CONV),),
    "layer_norm.default": (
        form(S, [[4]], (4,), (4,), [1e-5, 1e-2], **_CONV),
        form(S, [[3, 4], [4]], None, None, **_CONV),
    ),
    "native_layer_norm.default": (
        form(S, [[4]], (4,), (4,), [1e-5, 1e-2], **_CONV),
        form(S, [[3, 4]], None, None, [1e-5], **_CONV),
    ),
    "bmm.default": (form((2, 3, 4), (2, 4, 5), hostile=False),),
    "mm.default": (form((3, 4), (4, 5), hostile=False),),
    "outer.default": (form((3,), (4,)),),
    "linear.default": (form((2, 3, 4), (5, 4), (5,), **_CONV), form((4,), (5, 4), **_CONV)),
    "matmul.default": tuple(
        form(*shapes, hostile=False)
        for shapes in (((3, 4), (4, 2)), ((4,), (4,)), ((4,), (2, 4, 3)), ((2, 3, 4), (4,)), ((2, 1, 3, 4), (5, 4, 1)))
    ),
    "einsum.default": tuple(
        form([equation], [[*map(Operand, shapes)]], **_CONV)
        for equation, shapes in {
            "ij,jk->ik": ((2, 3), (3, 4)),
            "bij,bjk->bik": ((2, 2, 3), (2, 3, 4)),
            "ii->i": ((3, 3),),
            "i,j->ij": ((2,), (3,)),
            "...ij->...ji": ((2, 2, 3),),
        }.items()
    ),
    "broadcast_to.default": (form((3, 1), [[2, 3, 4], [3, 2]]),),
    "expand.default": (form((3, 1), [[2, 3, 4], [-1, 2], [1, -1, 5]]),),
    "expand_as.default": (form((3, 1), (2, 3, 4)),),
    "bucketize.Tensor": (
        form(
            S, stored([-1.0, 0.5, 2.0]), out_int32=[False, True], right=[False, True], types=("float32",), hostile=False
        ),
    ),
    **dict.fromkeys(
        ("cat.default", "concat.default", "stack.default"), (form([[Op(S), Op(S)]], [0, 1, -1]), form([[Op(S)]], [0]))
    ),
    "chunk.default": (form((5, 4), [2, 3, 7], [0, -1]), form(S, [1], [0])),
    "split.Tensor": (form((5, 4), [2, 3, 7], [0, -1]),),
    "split_with_sizes.default": (form((5, 4), [[2, 3], [5]], [0]),),
    "unbind.int": (form(S, DIM),),
    "constant_pad_nd.default": (form(S, [[1, 2], [0, 1, 2, 0], [-1, 1]], [0, 2.5, -1]),),
    "pad.default": (
        form(S, [[1, 2]], ["reflect", "replicate", "circular"], [None], **_CONV),
        form(S, [[1, 2, 0, 1], [-1, 2]], ["constant"], [None, 1.5]),
    ),
    "conv1d.default": (form((2, 4, 9), (6, 2, 3), (6,), [[1], [2]], [[0], [2]], [[1], [2]], [2], **_CONV),),
    "conv2d.default": (
        form(IMAGE, (6, 4, 3, 2), (6,), [[1, 1], [2, 1]], [[0, 0], [1, 2]], [[1, 1], [2, 1]], [1], **_CONV),
        form(IMAGE, (4, 1, 2, 2), None, [[1, 1], [2, 1]], [[1, 0]], [[1, 1]], [4], **_CONV),
    ),
    "conv3d.default": (
        form(
            (1, 2, 4, 5, 4),
            (4, 2, 2, 2, 3),
            (4,),
            [[1, 1, 1], [2, 1, 2]],
            [[0, 0, 0], [1, 0, 1]],
            [[1, 1, 1]],
            [1],
            **_CONV,
        ),
    ),
    "conv_transpose1d.default": (
        form((2, 4, 7), (4, 3, 3), (3,), [[1], [2]], [[0], [1]], [[0]], [1], [[1], [2]], **_CONV),
        form((1, 4, 7), (4, 3, 3), None, [[2]], [[1]], [[1]], [2], [[1]], **_CONV),
    ),
    "conv_transpose2d.input": (
        form(IMAGE, (4, 3, 3, 2), (3,), [[1, 1], [2, 2]], [[0, 0], [1, 0]], [[0, 0]], [1], [[1, 1], [2, 1]], **_CONV),
        form(IMAGE, (4, 3, 3, 3), None, [[2, 2]], [[1, 1]], [[1, 0]], [2], [[1, 1]], **_CONV),
    ),
    "convolution.default": (
        form(
            IMAGE,
            (6, 4, 3, 2),
            (6,),
            [[1, 1], [2, 1]],
            [[0, 0], [1, 2]],
            [[1, 1], [2, 1]],
            [False],
            [[0, 0]],
            [1],
            **_CONV,
        ),
        form(IMAGE, (4, 3, 3, 2), (3,), [[2, 2]], [[1, 0]], [[1, 1]], [True], [[0, 0], [1, 1]], [1], **_CONV),
    ),
    "cross_entropy_loss.default": (
        form((3, 4), _index((3,), 0, 3), [None], [0, 1, 2], [-100, 1], [0.0, 0.1], **_CONV),
        form((2, 4, 3), _index((2, 3), 0, 3), given((4,), 0.1, 1), [0, 1, 2], [-100], [0.0], **_CONV),
    ),
    "diagonal.default": (form(S, [0, 1, -1], [0, 1], [2, -1]),),
    "embedding.default": (
        form((5, 3), _index((2, 4), 0, 4), types=FLOATS),
        form((5, 3), _index((2, 4), 0, 4), [2], types=FLOATS),
    ),
    "flatten.using_ints": (form(S, [0, 1], [-1, 1]),),
    "flip.default": (form(S, [[0], [1, -1], []]),),
    "gather.default": (form(S, [1], _index((2, 2, 4), 0, 2)), form(S, [-1], _index((1, 3, 2), 0, 3))),
    "scatter.src": (form(S, [1], _index((2, 1, 4), 0, 2), (2, 3, 4)),),
    "scatter.value": (form(S, [1, -2], _index((2, 1, 4), 0, 2), [2, -1]),),
    "scatter_add.default": (form(S, [1], _index((2, 2, 4), 0, 2), (2, 3, 4), hostile=False),),
    "slice_scatter.default": (form((4, 5), (2, 5), [0], [1], [3], [1]), form((4, 5), (4, 2), [1], [0], [4], [2])),
    "index_select.default": (form(S, DIM, stored(np.asarray([1, 0, 1], np.int64))),),
    "take.default": (form(S, _index((2, 3), -24, 23)),),
    "index.Tensor": (form(S, [[None, _index((3,), -3, 2)]]), form(S, [[_index((2,), 0, 1), _index((2,), 0, 2)]])),
    "index_put.default": (form(S, [[_index((2,), -2, 1), _index((2,), 0, 2)]], (2, 4), [False]),),
    "grid_sampler_2d.default": (
        form(
            (1, 2, 4, 5),
            given((1, 3, 2, 2), -1.4, 1.4),
            [0, 1, 2],
            [0, 1, 2],
            [False, True],
            types=("float32",),
            hostile=False,
        ),
    ),
    "isin.Tensor_Tensor": (
        form(S, stored([0.5, 1.0, 2.0]), types=("float32",), assume_unique=[False], invert=[False, True]),
    ),
    "_log_softmax.default": (form(S, DIM, [False], types=FLOATS, hostile=False),),
    "_softmax.default": (form(S, DIM, [False], types=FLOATS, hostile=False),),
    "log_softmax.int": (form(S, DIM, [None, torch.float64], types=FLOATS, hostile=False),),
    "softmax.int": (form(S, DIM, [None, torch.float64], types=FLOATS, hostile=False),),
    "masked_fill.Scalar": (form(S, stored(np.asarray([True, False, True, False])), [2, -1.5]),),
    "meshgrid.default": (form([[Op((2,)), Op((3,))]]),),
    "meshgrid.indexing": (form([[Op((2,)), Op((3,))]], indexing=["ij", "xy"]),),
    "narrow.default": (form(S, [1, -1], [1, -2], [1, 2]),),
    "new_ones.default": (),
    "one_hot.default": (form(_index((2, 3), 0, 3), [4, 6]),),
    "permute.default": (form(S, [[2, 0, 1], [0, -1, 1]]),),
    "pixel_shuffle.default": (form((1, 8, 2, 3), [2]),),
    "prelu.default": (form(S, (3,), **_CONV), form(S, (1,), **_CONV)),
    "repeat.default": (form(S, [[1, 2, 1], [2, 1, 1, 3]]),),
    "tile.default": (form(S, [[2], [1, 2, 1], [2, 1, 1, 3]]),),
    **dict.fromkeys(("reshape.default", "view.default"), (form(S, [[4, 6], [-1, 2], [24], [2, 3, -1, 2]]),)),
    "reshape_as.default": (form(S, (4, 6)),),
    "roll.default": (form(S, [[1], [-2]], [[0], [-1], []]), form(S, [[1, 2]], [[0, 2]])),
    "round.decimals": (form(S, decimals=[0, 1, -1, 2], types=FLOATS),),
    "roi_align.default": (),
    "scaled_dot_product_attention.default": (
        form((1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4), [None], [0.0], [False, True], scale=[None, 0.3], **_CONV),
    ),
    "select.int": (form(S, DIM, [0, -1]),),
    "slice.Tensor": (form(S, [1, -1], [None, 1, -2], [None, 2, 99, -1], [1, 2]),),
    "squeeze.dim": (form((1, 3, 1), [0, 1, -1]),),
    "squeeze.dims": (form((1, 3, 1), [[0], [0, 2], [1]]),),
    "squeeze.default": (form((1, 3, 1)), form((1, 1))),
    "unsqueeze.default": (form(S, [0, 1, -1]),),
    "unflatten.int": (form((2, 6), [1, -1], [[2, 3], [-1, 2]]),),
    "unfold.default": (form((2, 9), [1, -1], [3, 2], [2, 1]),),
    "transpose.int": (form(S, [0, -1], [1, 2]),),
    "tril.default": (form((3, 4), [0, 1, -1, 9]), form((2, 3, 3))),
    "triu.default": (form((3, 4), [0, 1, -1, 9]), form((2, 3, 3))),
    "upsample_bicubic2d.vec": (form(IMAGE, [[9, 8], [4, 5]], [False, True], [None], **_CONV),),
    "upsample_bilinear2d.vec": (
        form(IMAGE, [[9, 8], [4, 5]], [False, True], [None], **_CONV),
        form(IMAGE, [None], [False, True], [[2.0, 2.0]], **_CONV),
    ),
    "upsample_nearest2d.vec": (
        form(IMAGE, [[9, 8], [4, 5], [12, 10]], [None], **_CONV),
        form(IMAGE, [None], [[2.0, 1.5], [2.0, 2.0]], **_CONV),
    ),
    "upsample_linear1d.vec": (
        form((2, 3, 5), [[9], [4]], [False, True], [None], **_CONV),
        form((2, 3, 5), [None], [False, True], [[1.3]], **_CONV),
    ),
    "_upsample_bilinear2d_aa.default": (),
    "to.dtype": (form(Op(S, -90, 90), [getattr(torch, name) for name in TYPES], hostile=False),),
    "to.dtype_layout": (),
    "_to_copy.default": (form(Op(S, -90, 90), dtype=[getattr(torch, name) for name in TYPES], hostile=False),),
    "type_as.default": (form(Op(S, -90, 90), (1,), hostile=False),),
    "clamp.Tensor": (
        form(S, given((), -2, 0), given(S, 0, 2)),
        form(S, None, (3, 1)),
        form(S, given((), 0, 2), given((), -2, 0)),
    ),
    "clamp.default": (form(S, [None, -1, 0.5, 2], [None, 1, 1.5]),),
    "hardtanh.default": (form(S, [-1, -0.5], [1, 2.5], types=FLOATS),),
    "where.self": (form(stored(np.asarray([True, False, True, False])), S, S), form(Op(S, 0, 1), S, (3, 1))),
    "_cdist_forward.default": (form((1, 3, 4), (1, 5, 4), [1.0, 2.0, float("inf")], [None], **_CONV),),
    "div.Tensor_mode": (
        form(S, given(S, 1, 7), rounding_mode=[None, "trunc", "floor"]),
        form(Op(S, -20, 20), given((3, 1), -7, -1), rounding_mode=[None, "trunc", "floor"]),
    ),
    "floor_divide.default": (form(Op(S, -20, 20), given((3, 1), -7, -1)), form(S, given(S, 1, 7))),
    **dict.fromkeys(
        ("fmod.Tensor", "remainder.Tensor", "div.Tensor"),
        (form(Op(S, -20, 20), given((3, 1), -7, -1)), form(Op(S, -20, 20), given(S, 1, 7))),
    ),
    "pow.Tensor_Tensor": (form(given(S, 0, 3), given((3, 1), 0, 3)),),
    "pow.Scalar": (form([2, 0.5, 3], given(S, 0, 4)),),
    "pow.Tensor_Scalar": (
        form(given(S, 0, 3), [0, 1, 2, 3, 4, 7]),
        form(given(S, 0.1, 3), [0.5, -1, -1.5, 2.5], types=FLOATS),
        form(S, [2, 3]),
    ),
    "softplus.default": (form(S, [1, 2, 0.5], [20, 1], types=FLOATS),),
    # PyTorch's vector code gives NaN for gelu of plus infinity, which by its own formula is infinite.
    "gelu.default": (form(S, approximate=["none", "tanh"], types=FLOATS, hostile=False),),
    "celu.default": (form(S, [1.0, 0.5, 2], types=FLOATS),),
    "elu.default": (form(S, [1, 0.5], [1, 2], [1, 0.5], types=FLOATS),),
    "leaky_relu.default": (form(S, [0.01, 0.3, -0.2], types=FLOATS),),
    "softshrink.default": (form(S, [0.5, 1.5], types=FLOATS),),
    "full_like.default": (form(S, [2, -1.5], dtype=[None, torch.float32, torch.int32]),),
    "ones_like.default": (form(S, dtype=[None, torch.int32]),),
    "zeros_like.default": (form(S, dtype=[None, torch.int32]),),
    "fill.Scalar": (form(S, [2, -1.5]),),
}
# Operators that choose by comparison give a bound or another operand in the place of NaN, as in ONNX.
CHOOSING: Final = {
    *("clamp", "clamp_max", "clamp_min", "hardtanh", "hardsigmoid", "hardswish", "relu", "relu6", "softshrink", "ne"),
    *("maximum", "minimum", "max", "min", "amax", "amin", "sign", "linalg_vector_norm", "div", "floor_divide", "elu"),
    *("fmod", "remainder", "celu", "selu", "leaky_relu", "softplus", "prelu"),
}
SCALARS: Final = [2, -1.5, 0, True]


def drawn(operator: str, most: int = 24) -> Iterator[Call]:
    """Calls of an operator: each form with each type, and each second operand with some other types."""
    for place, entry in enumerate(_forms(operator)):
        rng = np.random.default_rng(zlib.crc32(f"{operator}/{place}".encode()))
        for number, types in enumerate(_types(entry)):
            choices = _choices(entry)
            some = choices if len(choices) <= most else [choices[i] for i in rng.permutation(len(choices))[:most]]
            for turn, choice in enumerate(some if number == 0 else [some[number % len(some)]]):
                for hostile in (False, True) if entry.hostile else (False,):
                    kind = "hostile" if hostile else "usual"
                    yield _call(
                        f"{operator.replace('.', '_')}_{place}_{number}_{turn}_{kind}",
                        operator,
                        entry,
                        types,
                        choice,
                        hostile,
                    )


def call_of(operator: str, entry: Form) -> Call:
    """The first call of a form."""
    return _call(f"{operator}_{entry.types[0]}", operator, entry, (entry.types[0],) * 2, _choices(entry)[0], False)


def _forms(operator: str) -> Sequence[Form]:
    if operator in FORMS:
        return FORMS[operator]
    schema = overload(operator)._schema
    required = [entry for entry in schema.arguments if not entry.has_default_value()]
    shapes: list[tuple[tuple[int, ...], ...]] = [(S, S), ((5,), ()), ((2, 3, 4), (3, 1)), ((), (2, 2))]
    made = []
    for one, other in shapes:
        tensors = iter((one, other, one))
        held: list[Any] = []
        for entry in required:
            kind = str(entry.type)
            held.append(Operand(next(tensors)) if kind == "Tensor" else SCALARS if kind == "number" else [1])
        options: dict[str, Any] = {entry.name: [1, 2, -0.5] for entry in schema.arguments if entry.name == "alpha"}
        made.append(form(*held, **options))
    return made if sum(str(entry.type) == "Tensor" for entry in required) > 1 else [made[0], made[3], made[1]]


def _types(entry: Form) -> Iterator[tuple[str, ...]]:
    """Types of the first operand and of the others."""
    first = entry.types[0]
    yield first, first
    for other in entry.types[1:]:
        yield other, other
    if sum(isinstance(value, Operand) for value in entry.arguments) > 1:
        for other in entry.types[1:]:
            yield from ((first, other), (other, first))


def _choices(entry: Form) -> list[tuple[list[Any], dict[str, Any]]]:
    lists = [value if isinstance(value, list) else [value] for value in (*entry.arguments, *entry.options.values())]
    count = len(entry.arguments)
    return [
        (list(each[:count]), dict(zip(entry.options, each[count:], strict=True))) for each in itertools.product(*lists)
    ]


def _call(
    name: str, operator: str, entry: Form, types: Sequence[str], choice: tuple[list[Any], dict[str, Any]], hostile: bool
) -> Call:
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    operands: list[Array] = []

    def put(value: Any) -> Any:
        if isinstance(value, list) and any(isinstance(each, Operand) for each in value):
            return [put(each) for each in value]
        if not isinstance(value, Operand):
            return value
        dtype = types[1 if operands else 0]
        tame = operator.partition(".")[0] in CHOOSING and dtype.startswith("float")
        made = np.asarray(value.values) if value.values is not None else value.array(dtype, rng, hostile and not tame)
        operands.append(made.astype(np.float32) if made.dtype == np.float64 and value.values is not None else made)
        return _Place(len(operands) - 1)

    arguments = tuple(map(put, choice[0]))
    return Call(name, operator, tuple(operands), arguments, choice[1])
