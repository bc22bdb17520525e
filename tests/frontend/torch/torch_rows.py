"""Operators of PyTorch, a line each: functions of ``x`` and ``y``, float32 [1,4,8,8], and of modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from support.models.exported import settled, torch

nn, F = torch.nn, torch.nn.functional
Row = Callable[[Any, Any], Any]


def _part(part: Any) -> Row:
    """A module on x."""
    part = settled(part)
    return lambda x, y: part(x)


def _on(part: Any, shape: tuple[int, ...]) -> Row:
    """A module on as many elements of x as this shape has."""
    part = settled(part)
    count = torch.Size(shape).numel()
    return lambda x, y: part(x.flatten()[:count].view(shape))


def _using(part: Any, compute: Callable[[Any, Any, Any], Any]) -> Row:
    part = settled(part)
    return lambda x, y: compute(part, x, y)


def _of(function: Callable[[Any], Any], prepare: Callable[[Any], Any]) -> Row:
    return lambda x, y: function(prepare(x))


def _norm(order: float) -> Row:
    return lambda x, y: torch.linalg.vector_norm(x, order, dim=(1, 3))


_UNARY = (
    "abs",
    "neg",
    "exp",
    "sin",
    "cos",
    "tanh",
    "sigmoid",
    "erf",
    "floor",
    "ceil",
    "round",
    "sign",
    "square",
    "relu",
)
_POSITIVE = ("sqrt", "rsqrt", "log", "log2", "reciprocal")
_ACTIVATIONS = (
    "relu6",
    "silu",
    "hardswish",
    "hardsigmoid",
    "hardtanh",
    "leaky_relu",
    "elu",
    "celu",
    "selu",
    "gelu",
    "mish",
)

ACTIVATIONS: Mapping[str, Row] = {
    **{name: _of(getattr(torch, name), lambda x: x * 3) for name in _UNARY},
    **{name: _of(getattr(torch, name), lambda x: x.abs() + 0.5) for name in _POSITIVE},
    **{f"F.{name}": _of(getattr(F, name), lambda x: x * 4) for name in _ACTIVATIONS},
    "gelu tanh": lambda x, y: F.gelu(x, approximate="tanh"),
    "hardtanh bounds": lambda x, y: F.hardtanh(x, -0.3, 0.7),
    "leaky_relu slope": lambda x, y: F.leaky_relu(x, 0.3),
    "elu alpha": lambda x, y: F.elu(x, 0.5),
    "softplus": lambda x, y: F.softplus(x, 2, 1.0),
    "threshold": lambda x, y: F.threshold(x, 0.2, 5.0),
    "softmax": lambda x, y: F.softmax(x, 1),
    "softmin": lambda x, y: F.softmin(x, -1),
    "log_softmax": lambda x, y: F.log_softmax(x, -1),
    "prelu": _part(nn.PReLU(4)),
    "clamp": lambda x, y: x.clamp(-0.3, 0.5),
    "clamp tensor": lambda x, y: x.clamp(max=y),
    "dropout": _part(nn.Dropout(0.3)),
}

ARITHMETIC: Mapping[str, Row] = {
    "add": lambda x, y: x + y,
    "add alpha": lambda x, y: torch.add(x, y, alpha=2),
    "add number": lambda x, y: x + 2,
    "add in place": lambda x, y: x.clone().add_(1).mul_(y) + x,
    "sub alpha": lambda x, y: torch.sub(x, y, alpha=0.5),
    "rsub alpha": lambda x, y: torch.rsub(x, y, alpha=2),
    "rsub number": lambda x, y: 3 - x,
    "mul": lambda x, y: x * y[:, :1, :, :1],
    "div": lambda x, y: x / (y.abs() + 1),
    "div trunc": lambda x, y: torch.div(x, 0.3, rounding_mode="trunc"),
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "pow 2": lambda x, y: x**2,
    "pow 7": lambda x, y: x**7,
    "pow half": lambda x, y: x.abs() ** 0.5,
    "pow negative": lambda x, y: (x.abs() + 1) ** -1.5,
    "where": lambda x, y: torch.where(x > y, x, 0.5),
    "compare": lambda x, y: (x > y) & (y < 0) | ~(x > 0.5),
    "integers": lambda x, y: (x * 9).int() * 2 + 1,
    "integers and floats": lambda x, y: (x * 9).int() + 2.5,
    "integers, clamped": lambda x, y: (x * 9).int().clamp(max=4),
    "integers, clamped by a float": lambda x, y: (x * 9).int().clamp(min=-2.5),
    "one_hot": lambda x, y: F.one_hot((x.abs() * 2).long().clamp(max=4), 5),
    "where of two types": lambda x, y: torch.where(x > y, x, (x * 3).int()),
    "addmv": lambda x, y: torch.addmv(x[0, 0, 0], y[0, 0], x[0, 1, 0], alpha=2),
    "dist": lambda x, y: torch.dist(x, y, 2),
    "ldexp": lambda x, y: torch.ldexp(x, torch.tensor(3)),
    "matmul": lambda x, y: x @ y,
    "matmul broadcast": lambda x, y: x @ y[0, 0],
    "addmm": lambda x, y: torch.addmm(x[0, 0], x[0, 1], y[0, 0], beta=0.5, alpha=2),
    "einsum": lambda x, y: torch.einsum("bhqd,bhkd->bhqk", x, y),
    "mean": lambda x, y: x.mean((2, 3)),
    "mean keepdim": lambda x, y: x.mean(1, keepdim=True),
    "sum": lambda x, y: x.sum(-1),
    "amax": lambda x, y: x.amax((1, 2)),
    "amin": lambda x, y: x.amin(-1, keepdim=True),
    "max along": lambda x, y: x.max(1)[0],
    "min along": lambda x, y: x.min(1)[0],
    "argmax": lambda x, y: x.argmax(1),
    "argmin along": lambda x, y: x.min(1)[1],
    "prod": lambda x, y: x.prod(1),
    "var": lambda x, y: x.var(1),
    "var biased": lambda x, y: x.var((2, 3), unbiased=False, keepdim=True),
    "std": lambda x, y: x.std((1, 2), correction=0),
    "norm": lambda x, y: F.normalize(x, dim=1),
    "topk": lambda x, y: torch.topk(x, 3, -1, largest=False)[0],
    "logsumexp": lambda x, y: x.logsumexp(1),
}

MOVES: Mapping[str, Row] = {
    "view": lambda x, y: x.view(2, -1),
    "reshape": lambda x, y: x.transpose(1, 2).reshape(4, 64),
    "permute": lambda x, y: x.permute(0, 2, 3, 1),
    "slice": lambda x, y: x[:, 1:3, ::2, -3:],
    "slice beyond": lambda x, y: x[:, :, 2:100],
    "select": lambda x, y: x[:, 1],
    "select from the end": lambda x, y: x[:, -1],
    "index": lambda x, y: x[:, [0, 2, -1]],
    "index two": lambda x, y: x[:, :, [0, 2], [1, 3]],
    "index apart": lambda x, y: x[:, [0, 2], :, [1, 3]],
    "chunk": lambda x, y: torch.cat(x.chunk(3, 2)[::-1], 2),
    "split": lambda x, y: x.split([1, 3], 1)[1] * 2,
    "unbind": lambda x, y: x.unbind(1)[2],
    "squeeze": lambda x, y: x.squeeze(0).unsqueeze(-1),
    "expand": lambda x, y: x[:, :1].expand(-1, 4, -1, -1),
    "repeat": lambda x, y: x.repeat(1, 2, 1, 1),
    "flip": lambda x, y: x.flip((1, 3)),
    "roll": lambda x, y: x.roll((1, 2), (2, 3)),
    "gather": lambda x, y: x.gather(1, (x > 0).long()),
    "embedding": lambda x, y: F.embedding(x.argmax(1), torch.arange(12.0).view(4, 3)),
    "tril": lambda x, y: x.tril(-1),
    "masked_fill": lambda x, y: x.masked_fill(x > 0, -1.0),
    "pad": lambda x, y: F.pad(x, (1, 2, 0, 3), value=3.0),
    "pad negative": lambda x, y: F.pad(x, (-1, 2)),
    "pad reflect": lambda x, y: F.pad(x, (1, 2, 0, 3), mode="reflect"),
    "cat": lambda x, y: torch.cat([x, y], 1),
    "stack": lambda x, y: torch.stack([x, y], -1),
    "unfold": lambda x, y: x.unfold(2, 3, 2),
    "im2col": lambda x, y: F.unfold(x, 3),
    "as_strided": lambda x, y: x.as_strided((2, 3), (4, 1)),
    "diagonal": lambda x, y: x.diagonal(1, 2, 3),
    "pixel_shuffle": lambda x, y: F.pixel_shuffle(x, 2),
    "pixel_unshuffle": lambda x, y: F.pixel_unshuffle(x, 2),
    "channel_shuffle": _part(nn.ChannelShuffle(2)),
    "assign": lambda x, y: torch.cat([x[:, :1] * 0, x[:, 1:]], 1),
    "constant": lambda x, y: x + torch.arange(8) * torch.full((8,), 2.0),
    "nearest": lambda x, y: F.interpolate(x, scale_factor=2),
    "nearest to size": lambda x, y: F.interpolate(x, size=(5, 13)),
    "nearest by 1.5": lambda x, y: F.interpolate(x[:, :, :5, :7], scale_factor=1.5),
    "bilinear": lambda x, y: F.interpolate(x, size=(5, 13), mode="bilinear"),
    "bilinear corners": lambda x, y: F.interpolate(x, size=(5, 13), mode="bilinear", align_corners=True),
    "linear line": lambda x, y: F.interpolate(x[0], scale_factor=2, mode="linear"),
    "linear line to size": lambda x, y: F.interpolate(x[0], size=13, mode="linear"),
    "linear line by 1.3": lambda x, y: F.interpolate(x[0], scale_factor=1.3, mode="linear"),
    "linear line corners": lambda x, y: F.interpolate(x[0], size=13, mode="linear", align_corners=True),
    "linear line of one": lambda x, y: F.interpolate(x[0, :, :, :1], size=5, mode="linear", align_corners=True),
    "bilinear twice": lambda x, y: F.interpolate(x, scale_factor=2, mode="bilinear"),
}

LAYERS: Mapping[str, Row] = {
    "conv": _part(nn.Conv2d(4, 6, 3, padding=(1, 2), stride=(2, 1))),
    "conv dilated": _part(nn.Conv2d(4, 6, 3, dilation=2, bias=False)),
    "conv same": _part(nn.Conv2d(4, 6, (3, 2), padding="same")),
    "conv reflect": _part(nn.Conv2d(4, 6, 3, padding=1, padding_mode="reflect")),
    "conv groups": _part(nn.Conv2d(4, 8, 3, groups=2)),
    "conv depthwise": _part(nn.Conv2d(4, 8, 3, groups=4)),
    "conv transposed": _part(nn.ConvTranspose2d(4, 5, 3, stride=2, padding=1, output_padding=1)),
    "conv transposed groups": _part(nn.ConvTranspose2d(4, 8, 3, groups=2)),
    "conv 1d": _on(nn.Conv1d(4, 6, 3, stride=2, padding=1), (1, 4, 9)),
    "conv without batch": _using(nn.Conv2d(4, 6, (3, 2), (2, 1), (1, 2), groups=2), lambda part, x, y: part(x[0])),
    "conv 1d without batch": _on(nn.Conv1d(4, 6, 3, padding="same", bias=False), (4, 9)),
    "linear": _part(nn.Linear(8, 3)),
    "linear without bias": _part(nn.Linear(8, 3, bias=False)),
    "max_pool": _part(nn.MaxPool2d(3, 2, 1)),
    "max_pool ceil": _part(nn.MaxPool2d(3, 2, ceil_mode=True)),
    "max_pool side by side": lambda x, y: F.max_pool2d(x, 3, padding=1, ceil_mode=True),
    "max_pool side by side, without batch": lambda x, y: F.max_pool2d(x[0], (3, 2), ceil_mode=True),
    "max_pool 1d side by side": lambda x, y: F.max_pool1d(x[0], 2, dilation=2, ceil_mode=True),
    "avg_pool": _part(nn.AvgPool2d(3, 2, 1)),
    "avg_pool without padding": _part(nn.AvgPool2d(3, 2, 1, count_include_pad=False)),
    "avg_pool ceil": _part(nn.AvgPool2d(3, 2, padding=1, ceil_mode=True)),
    "avg_pool by another divisor": _part(nn.AvgPool2d(3, 2, 1, divisor_override=4)),
    "avg_pool by another divisor, without batch": lambda x, y: F.avg_pool2d(x[0], (2, 3), divisor_override=5),
    "adaptive_avg_pool": _part(nn.AdaptiveAvgPool2d((3, 2))),
    "adaptive_max_pool": _part(nn.AdaptiveMaxPool2d(2)),
    "batch_norm": _part(nn.BatchNorm2d(4)),
    "batch_norm not affine": _part(nn.BatchNorm2d(4, affine=False)),
    "batch_norm of the batch": _part(nn.BatchNorm2d(4, track_running_stats=False)),
    "batch_norm after conv": _part(nn.Sequential(nn.Conv2d(4, 6, 3, bias=False), nn.BatchNorm2d(6), nn.ReLU(True))),
    "batch_norm after conv with bias": _part(nn.Sequential(nn.Conv2d(4, 6, 3, groups=2), nn.BatchNorm2d(6))),
    "batch_norm after linear": _on(nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4)), (2, 5)),
    "batch_norm 1d": _on(nn.BatchNorm1d(4), (1, 4, 5)),
    "instance_norm": _part(nn.InstanceNorm2d(4, affine=True)),
    "group_norm": _part(nn.GroupNorm(2, 4)),
    "group_norm not affine": _part(nn.GroupNorm(2, 4, affine=False)),
    "group_norm of channels alone": _on(nn.GroupNorm(2, 6), (3, 6)),
    "layer_norm": _part(nn.LayerNorm([8, 8])),
    "layer_norm not affine": _part(nn.LayerNorm(8, elementwise_affine=False)),
    "rms_norm": _part(nn.RMSNorm(8)),
    "lstm": _using(nn.LSTM(8, 3, batch_first=True), lambda part, x, y: part(x[0])[0]),
    "lstm two layers both ways": _using(nn.LSTM(8, 3, 2, bidirectional=True), lambda part, x, y: part(x[0])[1][1]),
    "lstm with states": _using(
        nn.LSTM(8, 4, bias=False), lambda part, x, y: part(x[0, 0], (y[0, 0, :1, :4], y[0, 0, 1:2, :4]))[0]
    ),
    "lstm projected": _using(nn.LSTM(8, 5, 2, proj_size=3, bidirectional=True), lambda part, x, y: part(x[0])[1][0]),
    "lstm projected, no bias": _using(nn.LSTM(8, 5, bias=False, proj_size=2), lambda part, x, y: part(x[0])[0]),
    "gru": _using(nn.GRU(8, 3, batch_first=True), lambda part, x, y: part(x[0])[0]),
    "gru both ways": _using(nn.GRU(8, 3, bidirectional=True), lambda part, x, y: part(x[0])[1]),
    "rnn": _using(nn.RNN(8, 3), lambda part, x, y: part(x[0])[0]),
    "rnn relu": _using(nn.RNN(8, 3, nonlinearity="relu", bias=False), lambda part, x, y: part(x[0])[0]),
    "attention": _using(nn.MultiheadAttention(8, 2, batch_first=True), lambda part, x, y: part(x[0], y[0], y[0])[0]),
    "sdpa": lambda x, y: F.scaled_dot_product_attention(x, y, y, scale=0.3),
    "sdpa causal": lambda x, y: F.scaled_dot_product_attention(x, y, y, is_causal=True),
    "sdpa masked": lambda x, y: F.scaled_dot_product_attention(x, y, y, attn_mask=torch.ones(8, 8).tril().bool()),
    "sdpa mask computed": lambda x, y: F.scaled_dot_product_attention(x, y, y, attn_mask=x @ y > 3),
}

ORDERS: Mapping[str, Row] = {
    "topk": lambda x, y: torch.topk(x, 3)[0],
    "topk places": lambda x, y: torch.topk(x, 3, dim=1)[1],
    "topk smallest": lambda x, y: torch.topk(x, 2, dim=2, largest=False)[1],
    "sort": lambda x, y: torch.sort(x, dim=2)[0],
    "sort downwards": lambda x, y: torch.sort(x, dim=1, descending=True)[1],
    "argsort": lambda x, y: torch.argsort(x, dim=-1),
    "kthvalue": lambda x, y: torch.kthvalue(x, 3, dim=2)[0],
    "kthvalue kept": lambda x, y: torch.kthvalue(x, 3, dim=2, keepdim=True)[1],
    "median": lambda x, y: torch.median(x, dim=1)[0],
    "median of all": lambda x, y: torch.median(x),
    "max along": lambda x, y: torch.max(x, dim=1)[1],
    "max along, kept": lambda x, y: torch.max(x, dim=2, keepdim=True)[0],
}

OF_TWO: Mapping[str, Row] = {
    "bilinear layer": _using(nn.Bilinear(8, 8, 3), lambda part, x, y: part(x, y)),
    "cdist": lambda x, y: torch.cdist(x, y),
    "cdist p=1": lambda x, y: torch.cdist(x, y, p=1),
    "cdist p=inf": lambda x, y: torch.cdist(x, y, p=float("inf")),
    "index computed": lambda x, y: x[:, (y[0, 0, 0] > 0).long()],
    "index computed twice": lambda x, y: x[0, 0][(x[0, 1] > 0).long(), (y[0, 1, :1] > 0).long() - 2],
    "index computed apart": lambda x, y: x[0, :, (y[0, 0, 0] > 0).long(), 2],
    "index from the front": lambda x, y: x[(y[0, 0, :3, 0] > 9).long(), :, (y[0, 0, 0, :3] > 0).long()],
    "grid_sample": lambda x, y: F.grid_sample(x, y[:, :2].permute(0, 2, 3, 1), align_corners=False),
    "grid_sample border": lambda x, y: F.grid_sample(
        x, y[:, :2].permute(0, 2, 3, 1), padding_mode="border", align_corners=True
    ),
    "grid_sample nearest": lambda x, y: F.grid_sample(
        x, y[:, :2].permute(0, 2, 3, 1), mode="nearest", align_corners=False
    ),
}


def _put(places: Callable[[Any, Any], Any], value: Callable[[Any, Any], Any]) -> Row:
    """Values at places of a copy of x."""

    def compute(x: Any, y: Any) -> Any:
        copy = x.clone()
        copy[places(x, y)] = value(x, y)
        return copy

    return compute


ASSIGNED: Mapping[str, Row] = {
    "assign to a slice": _put(lambda x, y: (slice(None), 1), lambda x, y: y[:, 2] * 2),
    "assign to slices": _put(lambda x, y: (slice(None), [0, -1]), lambda x, y: y[:, 1:3]),
    "assign one number": _put(lambda x, y: (0, 2, 3), lambda x, y: 5.0),
    "assign where": _put(lambda x, y: x > y, lambda x, y: -1.0),
    "assign to rows where": _put(lambda x, y: x[..., 0] > 0, lambda x, y: 2.0),
    "assign to places computed": _put(
        lambda x, y: (slice(None), [1, -1], (y[0, 0, 0, :2] > 0).long()), lambda x, y: y[:, :2, 0]
    ),
    "assign to places apart": _put(
        lambda x, y: ([0, 0], slice(None), (y[0, 0, 0, :2] > 0).long()), lambda x, y: y[0, :2, 0, :1, None]
    ),
    "index_put adding": lambda x, y: x.index_put(
        ((y[0, 0, 0, :3] > 9).long(), (y[0, 0, 0, :3] > 0).long()), y[0, :3, 0, :1, None].expand(3, 8, 8), True
    ),
    "index_add": lambda x, y: x.index_add(1, torch.tensor([0, 2]), y[:, :2]),
    "index_copy": lambda x, y: x.index_copy(2, torch.tensor([0, 5]), y[:, :, :2]),
}

OF_ALL: Mapping[str, Row] = {
    "mean of nothing": lambda x, y: x.mean(dim=[]),
    "norm of nothing": lambda x, y: torch.linalg.vector_norm(x, dim=[]),
    **{f"norm {order}": _norm(order) for order in (0, 1, 2, 3, 2.5, float("inf"), -float("inf"))},
    "std and mean": lambda x, y: torch.std_mean(x, dim=2)[0],
    "mean with variance": lambda x, y: torch.var_mean(x, dim=(1, 2), keepdim=True)[1],
    "exp2": lambda x, y: torch.exp2(x),
    "hypot": lambda x, y: torch.hypot(x, y),
    "isclose": lambda x, y: torch.isclose(x, x * (1 + y.sign() * 1e-5)),
    "count_nonzero": lambda x, y: torch.count_nonzero(x > 0, dim=1),
    "same truths": lambda x, y: (x > 0) == (y > 0),
    "fold": lambda x, y: F.fold(x[:, :, :, :4].reshape(1, 8, 16), (5, 5), 2),
    "scatter_add": lambda x, y: torch.zeros(1, 4, 8, 9).scatter_add(3, x.argsort(-1), y),
    "any of all": lambda x, y: (x > 1.5).any(),
    "adaptive_max_pool of several sizes": lambda x, y: F.adaptive_max_pool2d(x, (3, 5)),
    "adaptive_max_pool without batch": lambda x, y: F.adaptive_max_pool2d(x[0], (3, 2)),
    "rrelu": lambda x, y: F.rrelu(x),
}

UNROLLED: Mapping[str, Row] = {
    "transformer": _using(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), lambda part, x, y: part(x[0])),
}

_ALL = {**ACTIVATIONS, **ARITHMETIC, **MOVES, **LAYERS, **ORDERS, **OF_TWO, **ASSIGNED, **OF_ALL}
_OFTEN = (
    *(
        "F.selu",
        "elu alpha",
        "softmax",
        "dropout",
        "add alpha",
        "add in place",
        "sub alpha",
        "rsub alpha",
        "div",
        "pow 7",
    ),
    *("pow half", "integers and floats", "matmul", "amax", "amin", "min along", "argmin along", "prod", "var", "mean"),
    *("select from the end", "index", "index two", "split", "unfold", "im2col", "embedding", "pixel_shuffle"),
    *(
        "nearest",
        "nearest to size",
        "nearest by 1.5",
        "conv",
        "conv depthwise",
        "conv transposed",
        "linear",
        "max_pool",
        "max_pool side by side",
        "linear line by 1.3",
    ),
    *("avg_pool without padding", "adaptive_max_pool", "batch_norm", "batch_norm after conv with bias"),
    *("batch_norm after linear", "layer_norm not affine", "sdpa", "sdpa causal", "sdpa mask computed"),
    *("topk", "argsort", "max along", "index computed apart", "grid_sample", "norm 3", "cdist", "median"),
    *("integers, clamped", "one_hot", "conv without batch", "assign where", "assign to places computed"),
    *("assign to a slice", "where of two types", "dist"),
    *("lstm two layers both ways", "lstm with states", "lstm projected", "gru both ways", "rnn relu"),
)
"""Converters of ours above all: they are there because TVM's gave something else."""

GROUPS: Mapping[str, Mapping[str, Row]] = {"often": {name: _ALL[name] for name in _OFTEN}}
SLOW_GROUPS: Mapping[str, Mapping[str, Row]] = {
    name: {row: compute for row, compute in rows.items() if row not in _OFTEN}
    for name, rows in {
        "activations": ACTIVATIONS,
        "arithmetic": ARITHMETIC,
        "moves": MOVES,
        "layers": LAYERS,
        "orders": ORDERS,
        "pairs": OF_TWO,
        "assigned": ASSIGNED,
        "all": OF_ALL,
        "unrolled": UNROLLED,
    }.items()
}
