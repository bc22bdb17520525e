"""Quantises PyTorch programs by PT2E: annotates the graph, calibrates, converts and exports it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from uaccel.errors import ModelError, need
from uaccel.frontend.torch.program import decomposed
from uaccel.model import Array, layer_name
from uaccel.quantize.calibration import Calibration, ModelInput, complaints
from uaccel.quantize.onnx import OnnxQuantOptions
from uaccel.quantize.quality import LayerQuality, Quality, QualitySums, compare, quality_of
from uaccel.quantize.search import Progress, QuantChoice, QuantLayer
from uaccel.util import incoming
from uaccel.util.files import quiet

# The annotations for PT2E: every float operator is quantised, so that integers go from one end to the other.

# Operators with weights, by the axis of their output channels.
WEIGHTED: Final[Mapping[str, int]] = {
    "conv1d": 0,
    "conv2d": 0,
    "linear": 0,
    "conv_transpose1d": 1,
    "conv_transpose2d": 1,
}
# Clamps, which the range of a quantised result does as well: the result is quantised behind them.
CLAMPS: Final = frozenset({"relu", "relu_", "relu6", "hardtanh", "hardtanh_", "clamp", "clamp_"})
CLAMPED: Final = frozenset({*WEIGHTED, "add", "add_", "sub", "batch_norm"})
# Operators that move elements, whose results share the scale of their input.
MOVES: Final = frozenset(
    {
        *("reshape", "view", "flatten", "permute", "transpose", "squeeze", "unsqueeze", "select", "slice", "expand"),
        *("contiguous", "clone", "dropout", "dropout_", "pixel_shuffle", "pixel_unshuffle", "roll", "repeat", "flip"),
        *("max_pool1d", "max_pool2d", "adaptive_max_pool2d", "upsample_nearest2d", "pad", "constant_pad_nd", "amax"),
        *("chunk", "split", "split_with_sizes", "unflatten", "alias", "detach", "t", "numpy_T"),
    }
)
# Operators of which the first operand alone is quantised.
NORMS: Final = frozenset({"layer_norm", "batch_norm", "group_norm", "instance_norm", "embedding"})

SMALLEST: Final = 2.0**-24  # The least scale.
NOTE: Final = "quantization_annotation"


def operator(node: Any) -> str:
    """Returns a node's name in ATen; empty for what computes nothing."""
    packet = getattr(node.target, "overloadpacket", None)
    if node.op != "call_function":
        return ""
    return str(packet).rpartition(".")[2] if packet is not None else getattr(node.target, "__name__", "")


def is_float(node: Any) -> bool:
    value = node.meta.get("val")
    return getattr(value, "is_floating_point", lambda: False)()


def clamp_behind(node: Any) -> Any | None:
    """Returns the clamp that alone reads a node's result; None where there is no such."""
    readers = list(node.users)
    fits = len(readers) == 1 and operator(node) in CLAMPED and operator(readers[0]) in CLAMPS
    return readers[0] if fits else None


def folded_into(node: Any) -> Any | None:
    """Returns the layer into whose weights a batch normalisation is folded, as it alone reads the layer's result."""
    before = node.args[0] if operator(node) == "batch_norm" else None
    return before if before is not None and operator(before) in WEIGHTED and len(before.users) == 1 else None


def source(node: Any) -> Any:
    """Returns the node from which a tensor was moved."""
    while node.args and (operator(node) in MOVES or operator(node) == "getitem"):
        node = node.args[0]
    return node


def quantiser(choice: QuantChoice, activations: str, *, per_channel: bool, outliers: bool) -> Any:
    """Makes the quantiser for ``prepare_pt2e``; ``outliers``: ranges reach to the largest value that occurs."""
    from torchao.quantization.pt2e.quantizer import Quantizer

    annotator = _Annotator(choice, _Steps(activations, per_channel, outliers))

    def annotate(_: Any, model: Any) -> Any:
        for node in model.graph.nodes:
            if operator(node) and is_float(node) and node.name not in choice.floats:
                annotator.annotate(node)
        return model

    def validate(_: Any, model: Any) -> None:
        """Accepts any graph."""

    return type("Every", (Quantizer,), {"annotate": annotate, "validate": validate})()


class _Steps:
    """Makes PT2E's specifications of how a tensor is quantised."""

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
    def __init__(self, choice: QuantChoice, steps: _Steps) -> None:
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
        """Yields the nodes that it reads, each with how that is quantised."""
        name = operator(node)
        for place, each in enumerate(node.all_input_nodes):
            if not is_float(each) or (name in NORMS and place):
                continue
            if name not in WEIGHTED or not place:
                yield each, self._of(each)
            elif place == 1 and each.op == "get_attr":
                yield each, self._steps.weights(WEIGHTED[name])

    def _of(self, node: Any) -> Any:
        """Returns how a result is quantised: with 16 bits if its layer, or the layer before its clamp, is so chosen."""
        node = source(node)
        before = node.args[0] if operator(node) in CLAMPS and node.args else node
        sixteen = self._choice.sixteen & {node.name, *([before.name] if clamp_behind(before) is node else [])}
        return self._steps.wide if sixteen else self._steps.usual


# The maker: reads the file by our own reader, calibrates, converts, and exports again.

QUANTISE: Final = "quantize_per_tensor"
DEQUANTISE: Final = "dequantize_per_tensor"
ADVICE: Final = "try --leave-out with the layer that it names"


@dataclass(frozen=True)
class TorchModel:
    """Holds an exported program and its inputs."""

    path: Path
    program: Any  # A ``TorchProgram``.
    inputs: tuple[ModelInput, ...]


def read_torch(path: Path, options: OnnxQuantOptions) -> TorchModel:
    """Reads an exported program; raises ModelError for what cannot be read, or is quantised already."""
    from uaccel.frontend.checks import read_file
    from uaccel.frontend.torch.importer import read_program
    from uaccel.frontend.torch.program import torch_package
    from uaccel.frontend.torch.reader import LARGEST_FILE

    need(options.format == "qdq", f"{path}: --format {options.format} is for ONNX models; leave it out")
    program = read_program(torch_package(), path, read_file(path, LARGEST_FILE), {})
    found = sorted({operator(node) for node in program.exported.graph.nodes if "quantize_" in operator(node)})
    need(not found, f"{path} is quantised already ({', '.join(found)}); give the float model")
    inputs = tuple(ModelInput(spec.name, spec.info.dtype, spec.info.shape) for spec in program.inputs)
    return TorchModel(path, program, inputs)


class TorchMaker:
    """Makes quantised programs of one float program; ``folder`` holds what is made."""

    def __init__(
        self, model: TorchModel, calibration: Calibration, options: OnnxQuantOptions, folder: Path, step: Progress
    ) -> None:
        import torch

        self._torch, self._model, self._options, self._folder = torch, model, options, folder
        self._labels = calibration.labels
        order = [entry.name for entry in model.inputs]
        self._samples = [[torch.from_numpy(row[name].copy()) for name in order] for row in calibration.samples]
        self._first = self._buffers()
        self._made: Any = None
        step(f"calibrate with {len(calibration.samples)} samples")

    def layers(self) -> list[QuantLayer]:
        """Lists the layers; a layer, the normalisation that is folded into it and the clamp behind it are one."""
        graph = self._model.program.exported.graph
        last = {behind.name for node in graph.nodes if (behind := clamp_behind(node)) is not None}
        nodes = [node for node in graph.nodes if operator(node) and is_float(node) and node.name not in last]
        return [QuantLayer(node.name, operator(node)) for node in nodes if folded_into(node) is None]

    def compiled_names(self) -> Mapping[str, frozenset[str]]:
        """Names of layers, by operator and place, in the float program and in the one that is quantised throughout."""
        from uaccel.frontend.torch.importer import read_program
        from uaccel.frontend.torch.program import torch_package

        path, layers = self.make(QuantChoice()), {layer.name for layer in self.layers()}
        clamps = {behind.name: n.name for n in self._model.program.exported.graph.nodes if (behind := clamp_behind(n))}
        found: dict[str, frozenset[str]] = {}
        for program in (self._model.program, read_program(torch_package(), path, incoming.read_bytes(path), {})):
            for node in program.exported.graph.nodes:
                name = clamps.get(node.name, node.name)
                if name in layers and node.name in program.nodes:
                    compiled = layer_name(operator(node).strip("_"), program.nodes[node.name])
                    found[compiled] = found.get(compiled, frozenset()) | {name}
        return found

    def make(self, choice: QuantChoice) -> Path:
        from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

        options, path = self._options, self._folder / "quantised.pt2"
        told = quantiser(
            choice, options.activations, per_channel=options.per_channel, outliers=options.method == "minmax"
        )
        with self._complaining():
            prepared = prepare_pt2e(self._module(), told)
            for sample in self._samples:
                prepared(*sample)
            self._made = self._begun(convert_pt2e(prepared))
            self._torch.export.save(self._torch.export.export(self._made, tuple(self._samples[0])), str(path))
        if not any(operator(node) == QUANTISE for node in self._made.graph.nodes):
            kinds = ", ".join(sorted({layer.op for layer in self.layers()})) or "none"
            raise ModelError(f"nothing in {self._model.path} is quantised: its operators are {kinds}")
        return path

    def quality(self, made: Path) -> Quality:
        with self._complaining():
            return compare(self._exact, self._outputs(self._made), self._labels)

    def compared(self, made: Path) -> tuple[LayerQuality, ...]:
        """Compares layers in the order of the float program."""
        pairs = list(self._pairs())
        sums = [QualitySums() for _ in pairs]
        with self._complaining():
            plain = self._module()
            self._begun(self._made)
            for sample in self._samples:
                exact, got = _values(self._torch, plain, sample), _values(self._torch, self._made, sample)
                for (_, shown, name), each in zip(pairs, sums, strict=True):
                    each.add(exact[shown], got[name])
        found = zip(pairs, sums, strict=True)
        return tuple(quality_of(node.name, operator(node), shown, each) for (node, shown, _), each in found)

    def sizes(self) -> tuple[int, int]:
        return self._model.path.stat().st_size, self._bytes(self._module())

    def weights(self, made: Path) -> int:
        return self._bytes(self._made)

    @cached_property
    def _exact(self) -> dict[str, list[Array]]:
        return self._outputs(self._module())

    def _module(self) -> Any:
        """Makes a fresh module, as PT2E changes it, with constants as parameters, where PT2E folds normalisations."""
        with self._complaining():
            module = self._model.program.exported.module()
        for name, value in list(module.named_buffers()):
            if value.is_floating_point() and name not in self._first:
                delattr(module, name)
                module.register_parameter(name, self._torch.nn.Parameter(value, requires_grad=False))
        for name, value in self._first.items():
            setattr(module, name, value.clone())  # modules of one program share buffers otherwise
        return module

    def _buffers(self) -> dict[str, Any]:
        """The buffers that the program writes to, as the file has them."""
        exported = self._model.program.exported
        flat = decomposed(self._torch, self._model.path, exported)
        return {name: exported.state_dict[name].clone() for name in flat.graph_signature.buffers_to_mutate.values()}

    def _begun(self, module: Any) -> Any:
        """Sets these buffers to what they hold before the first sample."""
        with self._torch.no_grad():
            for name, value in self._first.items():
                module.get_buffer(name).copy_(value)
        return module

    def _outputs(self, module: Any) -> dict[str, list[Array]]:
        names, rows = [spec.name for spec in self._model.program.outputs], []
        self._begun(module)
        for sample in self._samples:
            with self._torch.no_grad():
                result = module(*sample)
            rows.append([np.asarray(value) for value in (result if isinstance(result, (tuple, list)) else (result,))])
        return {name: [row[place] for row in rows] for place, name in enumerate(names)}

    def _pairs(self) -> Iterator[tuple[Any, str, str]]:
        """Yields layers of the float program: the node, the tensor that is quantised, its name in the other one."""
        numbers = {node.args[0].name: name for node, name in _quantised(self._made)}
        for node in self._model.program.exported.graph.nodes:
            if not operator(node) or not is_float(node):
                continue
            last = next((user for user in node.users if folded_into(user) is node), node)
            clamp = clamp_behind(last)
            if node.name in numbers:
                yield node, last.name, numbers[node.name]
            elif clamp is not None and clamp.name in numbers:
                yield node, clamp.name, numbers.pop(clamp.name)

    def _bytes(self, module: Any) -> int:
        values = [*module.parameters(), *module.buffers()]
        return sum(value.numel() * value.element_size() for value in values)

    @contextmanager
    def _complaining(self) -> Iterator[None]:
        with complaints(f"PyTorch cannot quantise {self._model.path}", ADVICE), quiet(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield


def _quantised(module: Any) -> Iterator[tuple[Any, str]]:
    """Yields quantising nodes, each with the name of the node that dequantises its result."""
    for node in module.graph.nodes:
        if operator(node) == QUANTISE:
            again = next((user for user in node.users if operator(user) == DEQUANTISE), None)
            if again is not None:
                yield node, again.name


def _values(torch: Any, module: Any, sample: list[Any]) -> Mapping[str, Array]:
    """Returns the value of every node for a sample."""
    found: dict[str, Array] = {}

    def run_node(interpreter: Any, node: Any) -> Any:
        result = torch.fx.Interpreter.run_node(interpreter, node)
        if isinstance(result, torch.Tensor) and math.prod(result.shape):
            found[node.name] = np.asarray(result.detach())
        return result

    with torch.no_grad():
        type("Seeing", (torch.fx.Interpreter,), {"run_node": run_node})(module).run(*sample)
    return found
