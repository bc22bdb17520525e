"""Quantised PyTorch programs by PT2E: the file read by our own reader, calibrated, converted, exported again."""

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

from uaccel.basics.quiet import quiet
from uaccel.calibration.calibration import Calibration
from uaccel.calibration.choice import Choice, Layer, Progress
from uaccel.calibration.float_model import ModelInput
from uaccel.calibration.layers import LayerQuality, Sums, quality_of
from uaccel.calibration.onnx_maker import Options
from uaccel.calibration.package import complaints
from uaccel.calibration.quality import Quality, compare
from uaccel.calibration.torch_quantiser import clamp_behind, folded_into, is_float, operator, quantiser
from uaccel.errors import ModelError
from uaccel.model import Array

QUANTISE: Final = "quantize_per_tensor"
DEQUANTISE: Final = "dequantize_per_tensor"
ADVICE: Final = "try --leave-out with the layer that it names"


@dataclass(frozen=True)
class TorchModel:
    path: Path
    program: Any
    """As PyTorch has exported programs."""
    inputs: tuple[ModelInput, ...]


def read_torch(path: Path, options: Options) -> TorchModel:
    """ModelError for what cannot be read, or is quantised already."""
    from uaccel.frontend.budget import read_file
    from uaccel.frontend.torch.importer import read_program
    from uaccel.frontend.torch.package import torch_package
    from uaccel.frontend.torch.records import LARGEST_FILE

    if options.format != "qdq":
        raise ModelError(f"{path}: --format {options.format} is for ONNX models; leave it out")
    program = read_program(torch_package(), path, read_file(path, LARGEST_FILE), {})
    found = sorted({operator(node) for node in program.exported.graph.nodes if "quantize_" in operator(node)})
    if found:
        raise ModelError(f"{path} is quantised already ({', '.join(found)}); give the float model")
    inputs = tuple(ModelInput(spec.name, spec.info.dtype, spec.info.shape) for spec in program.inputs)
    return TorchModel(path, program, inputs)


class TorchMaker:
    """``folder`` holds what is made."""

    def __init__(
        self, model: TorchModel, calibration: Calibration, options: Options, folder: Path, step: Progress
    ) -> None:
        import torch

        self._torch, self._model, self._options, self._folder = torch, model, options, folder
        self._labels = calibration.labels
        order = [entry.name for entry in model.inputs]
        self._samples = [[torch.from_numpy(row[name].copy()) for name in order] for row in calibration.samples]
        self._made: Any = None
        step(f"calibrate with {len(calibration.samples)} samples")

    def layers(self) -> list[Layer]:
        """A layer, the normalisation that is folded into it and the clamp behind it are one."""
        graph = self._model.program.exported.graph
        last = {behind.name for node in graph.nodes if (behind := clamp_behind(node)) is not None}
        nodes = [node for node in graph.nodes if operator(node) and is_float(node) and node.name not in last]
        return [Layer(node.name, operator(node)) for node in nodes if folded_into(node) is None]

    def make(self, choice: Choice) -> Path:
        from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

        options, path = self._options, self._folder / "quantised.pt2"
        told = quantiser(
            choice, options.activations, per_channel=options.per_channel, outliers=options.method == "minmax"
        )
        with self._complaining():
            prepared = prepare_pt2e(self._module(), told)
            for sample in self._samples:
                prepared(*sample)
            self._made = convert_pt2e(prepared)
            self._torch.export.save(self._torch.export.export(self._made, tuple(self._samples[0])), str(path))
        if not any(operator(node) == QUANTISE for node in self._made.graph.nodes):
            kinds = ", ".join(sorted({layer.op for layer in self.layers()})) or "none"
            raise ModelError(f"nothing in {self._model.path} is quantised: its operators are {kinds}")
        return path

    def quality(self, made: Path) -> Quality:
        with self._complaining():
            return compare(self._exact, self._outputs(self._made), self._labels)

    def compared(self, made: Path) -> tuple[LayerQuality, ...]:
        """In the order of the float program."""
        pairs = list(self._pairs())
        sums = [Sums() for _ in pairs]
        with self._complaining():
            plain = self._module()
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
        """Anew, since PT2E changes it; its constants as parameters, which is where PT2E folds normalisations."""
        with self._complaining():
            module = self._model.program.exported.module()
        for name, value in list(module.named_buffers()):
            if value.is_floating_point():
                delattr(module, name)
                module.register_parameter(name, self._torch.nn.Parameter(value, requires_grad=False))
        return module

    def _outputs(self, module: Any) -> dict[str, list[Array]]:
        names = [spec.name for spec in self._model.program.outputs]
        rows = []
        for sample in self._samples:
            with self._torch.no_grad():
                result = module(*sample)
            rows.append([np.asarray(value) for value in (result if isinstance(result, (tuple, list)) else (result,))])
        return {name: [row[place] for row in rows] for place, name in enumerate(names)}

    def _pairs(self) -> Iterator[tuple[Any, str, str]]:
        """Layers of the float program: the node, the tensor that is quantised, and its numbers in the other one."""
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
    """Steps of quantisation, each with the name of what it gives as floats again."""
    for node in module.graph.nodes:
        if operator(node) == QUANTISE:
            again = next((user for user in node.users if operator(user) == DEQUANTISE), None)
            if again is not None:
                yield node, again.name


def _values(torch: Any, module: Any, sample: list[Any]) -> Mapping[str, Array]:
    """Of every node."""
    found: dict[str, Array] = {}

    def run_node(interpreter: Any, node: Any) -> Any:
        result = torch.fx.Interpreter.run_node(interpreter, node)
        if isinstance(result, torch.Tensor) and math.prod(result.shape):
            found[node.name] = np.asarray(result.detach())
        return result

    with torch.no_grad():
        type("Seeing", (torch.fx.Interpreter,), {"run_node": run_node})(module).run(*sample)
    return found
