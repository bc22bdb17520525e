"""What PT2E is told to quantise: every operator of floats, for integers from one end to the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from uaccel.calibration.choice import Choice

WEIGHTED: Final[Mapping[str, int]] = {
    "conv1d": 0,
    "conv2d": 0,
    "linear": 0,
    "conv_transpose1d": 1,
    "conv_transpose2d": 1,
}
"""Where the weights' output channels lie."""
CLAMPS: Final = frozenset({"relu", "relu_", "relu6", "hardtanh", "hardtanh_", "clamp", "clamp_"})
"""The range of a quantised result does the same, so that it is quantised behind them."""
CLAMPED: Final = frozenset({*WEIGHTED, "add", "add_", "sub", "batch_norm"})
MOVES: Final = frozenset(
    {
        *("reshape", "view", "flatten", "permute", "transpose", "squeeze", "unsqueeze", "select", "slice", "expand"),
        *("contiguous", "clone", "dropout", "dropout_", "pixel_shuffle", "pixel_unshuffle", "roll", "repeat", "flip"),
        *("max_pool1d", "max_pool2d", "adaptive_max_pool2d", "upsample_nearest2d", "pad", "constant_pad_nd", "amax"),
        *("chunk", "split", "split_with_sizes", "unflatten", "alias", "detach", "t", "numpy_T"),
    }
)
"""Their results have the scale of what they move."""
NORMS: Final = frozenset({"layer_norm", "batch_norm", "group_norm", "instance_norm", "embedding"})
"""Of them the first operand alone is quantised."""

SMALLEST: Final = 2.0**-24
"""Scale."""
NOTE: Final = "quantization_annotation"


def operator(node: Any) -> str:
    """Its name in ATen; empty for what computes nothing."""
    packet = getattr(node.target, "overloadpacket", None)
    if node.op != "call_function":
        return ""
    return str(packet).rpartition(".")[2] if packet is not None else getattr(node.target, "__name__", "")


def is_float(node: Any) -> bool:
    value = node.meta.get("val")
    return getattr(value, "is_floating_point", lambda: False)()


def clamp_behind(node: Any) -> Any | None:
    """The clamp that alone reads a result."""
    readers = list(node.users)
    fits = len(readers) == 1 and operator(node) in CLAMPED and operator(readers[0]) in CLAMPS
    return readers[0] if fits else None


def folded_into(node: Any) -> Any | None:
    """The layer whose weights a batch normalisation goes into: it alone reads that one's result."""
    before = node.args[0] if operator(node) == "batch_norm" else None
    return before if before is not None and operator(before) in WEIGHTED and len(before.users) == 1 else None


def source(node: Any) -> Any:
    """What a tensor was moved from."""
    while node.args and (operator(node) in MOVES or operator(node) == "getitem"):
        node = node.args[0]
    return node


def quantiser(choice: Choice, activations: str, *, per_channel: bool, outliers: bool) -> Any:
    """For ``prepare_pt2e``; ``outliers``: ranges reach to the largest that occurs."""
    from torchao.quantization.pt2e.quantizer import Quantizer

    annotator = _Annotator(choice, _Steps(activations, per_channel, outliers))

    def annotate(_: Any, model: Any) -> Any:
        for node in model.graph.nodes:
            if operator(node) and is_float(node) and node.name not in choice.floats:
                annotator.annotate(node)
        return model

    def validate(_: Any, model: Any) -> None:
        """Any graph is good."""

    return type("Every", (Quantizer,), {"annotate": annotate, "validate": validate})()


class _Steps:
    """Of quantisation, as PT2E has them."""

    def __init__(self, activations: str, per_channel: bool, outliers: bool) -> None:
        from torchao.quantization.pt2e import HistogramObserver, MinMaxObserver, quantizer

        self._per_channel, self._pt2e = per_channel, quantizer
        self._observer = MinMaxObserver if outliers else HistogramObserver
        self.usual, self.wide = self._step(activations), self._step("int16")

    def weights(self, axis: int) -> Any:
        import torch
        from torchao.quantization.pt2e import MinMaxObserver, PerChannelMinMaxObserver

        scheme = torch.per_channel_symmetric if self._per_channel else torch.per_tensor_symmetric
        observer = (PerChannelMinMaxObserver if self._per_channel else MinMaxObserver).with_args(eps=SMALLEST)
        channels = axis if self._per_channel else None
        return self._pt2e.QuantizationSpec(torch.int8, observer, -127, 127, scheme, channels)

    def shared(self, given: Any, node: Any) -> Any:
        return self._pt2e.SharedQuantizationSpec((given, node))

    def annotation(self, given: Mapping[Any, Any], result: Any) -> Any:
        return self._pt2e.QuantizationAnnotation(dict(given), result, _annotated=True)

    def _step(self, kind: str) -> Any:
        import torch

        dtype = getattr(torch, kind)
        limits = torch.iinfo(dtype)
        scheme = torch.per_tensor_symmetric if kind == "int16" else torch.per_tensor_affine
        observer = self._observer.with_args(eps=SMALLEST)
        return self._pt2e.QuantizationSpec(dtype, observer, limits.min, limits.max, scheme)


class _Annotator:
    def __init__(self, choice: Choice, steps: _Steps) -> None:
        self._choice, self._steps = choice, steps

    def annotate(self, node: Any) -> None:
        name, given = operator(node), dict(self._given(node))
        if not given or (name in CLAMPS and clamp_behind(node.args[0]) is node):
            return
        moved = name in MOVES and hasattr(node.args[0], "op")
        result = self._steps.shared(node.args[0], node) if moved else self._of(node)
        last = clamp_behind(node)
        if last is not None and last.name not in self._choice.floats:
            last.meta[NOTE] = self._steps.annotation({}, self._of(node))
            result = None
        node.meta[NOTE] = self._steps.annotation(given, result)

    def _given(self, node: Any) -> Iterator[tuple[Any, Any]]:
        """What it reads, each with how that is quantised."""
        name = operator(node)
        for place, each in enumerate(node.all_input_nodes):
            if not is_float(each) or (name in NORMS and place):
                continue
            if name not in WEIGHTED or not place:
                yield each, self._of(each)
            elif place == 1 and each.op == "get_attr":
                yield each, self._steps.weights(WEIGHTED[name])

    def _of(self, node: Any) -> Any:
        """How a result is quantised."""
        node = source(node)
        before = node.args[0] if operator(node) in CLAMPS and node.args else node
        sixteen = self._choice.sixteen & {node.name, *([before.name] if clamp_behind(before) is node else [])}
        return self._steps.wide if sixteen else self._steps.usual
