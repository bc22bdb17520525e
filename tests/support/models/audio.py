"""An audio front end of TensorFlow Lite Micro's signal operators: from a frame of samples to a row of features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from flatbuffers import flexbuffers
from numpy.typing import NDArray

from support.models.tflite_writer import ModelBuilder, Tensor

SUBTRACTION = {
    "alternate_one_minus_smoothing": 15729,
    "alternate_smoothing": 655,
    "min_signal_remaining": 819,
    "one_minus_smoothing": 15973,
    "smoothing": 410,
    "smoothing_bits": 10,
    "spectral_subtraction_bits": 14,
}


@dataclass(frozen=True)
class FrontEnd:
    """``samples`` of a frame; as many ``channels`` of features."""

    samples: int = 480
    length: int = 512
    channels: int = 40
    clamping: bool = False
    detail: bool = False
    """Also the noise's estimate is an output."""

    @property
    def bins(self) -> int:
        return self.length // 2 + 1

    def build(self) -> bytes:
        model = ModelBuilder()
        frame = model.input("samples", (self.samples,), "int16")
        logs, noise = self.features(model, frame)
        model.output(logs)
        if self.detail:
            model.output(noise)
        return model.build()

    def features(self, model: ModelBuilder, frame: Tensor, scale: float | None = None) -> tuple[Tensor, Tensor]:
        """Logarithms of channels, with this scale, and the estimate of the noise."""
        hann = np.rint((0.5 - 0.5 * np.cos(2 * np.pi * (np.arange(self.samples) + 0.5) / self.samples)) * (1 << 12))
        weights = model.constant("window", hann.astype(np.int16))
        windowed = model.tensor("windowed", (self.samples,), "int16")
        _signal(model, "Window", [frame, weights], [windowed], {"shift": 12})
        scaled, bits = model.tensor("scaled", (self.samples,), "int16"), model.tensor("bits", (), "int32")
        _signal(model, "FftAutoScale", [windowed], [scaled, bits], {})
        spectrum = model.tensor("spectrum", (2 * self.bins,), "int16")
        _signal(model, "Rfft", [scaled], [spectrum], {"T": 7, "fft_length": self.length})
        energy = model.tensor("energy", (self.bins,), "uint32")
        _signal(model, "Energy", [spectrum], [energy], {"end_index": self.bins, "start_index": 0})
        bank = model.tensor("bank", (self.channels,), "uint64")
        _signal(model, "FilterBank", [energy, *self._tables(model)], [bank], {"num_channels": self.channels})
        roots = model.tensor("roots", (self.channels,), "uint32")
        _signal(model, "FilterBankSquareRoot", [bank, bits], [roots], {})
        clear, noise = (model.tensor(name, (self.channels,), "uint32") for name in ("clear", "noise"))
        options = {**SUBTRACTION, "clamping": self.clamping, "num_channels": self.channels}
        _signal(model, "FilterBankSpectralSubtraction", [roots], [clear, noise], options)
        level = model.tensor("level", (self.channels,), "uint32")
        gains = model.constant("gains", np.rint(32000 / (1 + np.arange(125) / 7)).astype(np.int16))
        _signal(model, "PCAN", [clear, noise, gains], [level], {"snr_shift": 6})
        logs = model.tensor("features", (self.channels,), "int16", scale=scale)
        _signal(model, "FilterBankLog", [level], [logs], {"input_correction_bits": 3, "output_scale": 1600})
        return logs, noise

    def _tables(self, model: ModelBuilder) -> list[Tensor]:
        """Triangles that overlap by half."""
        edges = np.rint(np.linspace(2, self.bins - 1, self.channels + 2)).astype(np.int16)
        starts, widths = edges[:-1], np.diff(edges)
        firsts = np.append(0, np.cumsum(widths)[:-1])
        shares = np.concatenate([np.arange(width) / width for width in widths])
        rising = np.rint(shares * 4096)
        tables: dict[str, NDArray[np.generic]] = {"weights": rising, "rests": 4096 - rising}
        tables |= {"frequencies": starts, "firsts": firsts, "widths": widths}
        return [model.constant(name, values.astype(np.int16)) for name, values in tables.items()]


def _signal(
    model: ModelBuilder, name: str, inputs: list[Tensor], outputs: list[Tensor], options: dict[str, int]
) -> None:
    told = bytes(flexbuffers.Dumps(options)) if options else b""
    model.op("CUSTOM", inputs, outputs, custom_code=f"Signal{name}", custom_options=told)
