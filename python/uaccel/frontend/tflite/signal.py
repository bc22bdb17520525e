"""Converts the signal operators of TensorFlow Lite Micro's audio front end, from windows to log energies."""

from __future__ import annotations

from typing import Any

from uaccel.errors import need
from uaccel.frontend.converters import always
from uaccel.frontend.tflite.checks import need_constant
from uaccel.frontend.tflite.converter import Context, Expr, Several, Update, converts
from uaccel.frontend.tflite.reader import Operator, custom_options, whole_number
from uaccel.frontend.tflite.state import SUBTRACTION, own_state
from uaccel.ops import audio_features, audio_fft
from uaccel.ops.operator import Attributes, IntegerOperator, constant, get

LARGEST_FFT = 1 << 14  # Samples.


def _exprs(context: Context, operator: Operator, count: int) -> list[Expr]:
    need(len(operator.inputs) == count, f"it has {len(operator.inputs)} inputs, wanted {count}")
    return [context.expr(operator.required_input(i)) for i in range(count)]


@converts("CUSTOM:SignalWindow", when=always)
def window(context: Context, operator: Operator) -> Expr:
    shift = whole_number(custom_options(operator), "shift")
    return get(audio_fft.WindowFunction)(*_exprs(context, operator, 2), attrs=audio_fft.WindowAttrs(shift))


@converts("CUSTOM:SignalFftAutoScale", when=always)
def fft_auto_scale(context: Context, operator: Operator) -> Several:
    return Several(get(audio_fft.AutoScale)(*_exprs(context, operator, 1), attrs=Attributes()))


@converts("CUSTOM:SignalRfft", "CUSTOM:SignalIrfft", when=always)
def rfft(context: Context, operator: Operator) -> Expr:
    """Converts the real FFT and its inverse."""
    length = whole_number(custom_options(operator), "fft_length")
    need(4 <= length <= LARGEST_FFT, f"its FFT has {length} samples; 4 to {LARGEST_FFT} can be compiled")
    need(length & (length - 1) == 0, f"its FFT has {length} samples; powers of two can be compiled")
    kind, sign = (audio_fft.Rfft, -1) if operator.name.endswith("SignalRfft") else (audio_fft.Irfft, 1)
    given = [constant(table) for table in audio_fft.tables(length, sign)]
    return get(kind)(*_exprs(context, operator, 1), *given, attrs=audio_fft.RfftAttrs(length))


@converts("CUSTOM:SignalEnergy", when=always)
def energy(context: Context, operator: Operator) -> Expr:
    options = custom_options(operator)
    start, end = (whole_number(options, name) for name in ("start_index", "end_index"))
    attrs = audio_fft.EnergyAttrs(start, end, operator.outputs[0].info.elements)
    return get(audio_fft.Energy)(*_exprs(context, operator, 1), attrs=attrs)


@converts("CUSTOM:SignalFilterBank", when=always)
def filter_bank(context: Context, operator: Operator) -> Expr:
    """Converts the filter bank; checks that its constant tables point inside energies and weights."""
    channels = whole_number(custom_options(operator), "num_channels")
    exprs = _exprs(context, operator, 6)
    weights, _, frequencies, starts, widths = (need_constant(operator.required_input(i), "tables") for i in range(1, 6))
    energies = operator.required_input(0).info.elements
    for name, table, first in (("energies", energies, frequencies), ("weights", weights.size, starts)):
        last = int((first.astype(int)[: channels + 1] + widths[: channels + 1]).max(initial=0))
        need(int(first.min(initial=0)) >= 0 and last <= table, f"its tables reach {last} of {table} {name}")
    widest = max(1, int(widths[: channels + 1].max(initial=1)))
    return get(audio_features.FilterBank)(*exprs, attrs=audio_features.FilterBankAttrs(channels, widest))


@converts("CUSTOM:SignalFilterBankSquareRoot", when=always)
def filter_bank_square_root(context: Context, operator: Operator) -> Expr:
    return get(audio_features.SquareRoot)(*_exprs(context, operator, 2), attrs=Attributes())


@converts(SUBTRACTION, when=always)
def spectral_subtraction(context: Context, operator: Operator) -> Update:
    """Converts spectral subtraction, whose estimate of the noise is a state."""
    options = custom_options(operator)
    even, odd, alternate, rest = (
        whole_number(options, name)
        for name in ("smoothing", "one_minus_smoothing", "alternate_smoothing", "alternate_one_minus_smoothing")
    )
    attrs = audio_features.SubtractionAttrs(
        (even, odd),
        (alternate, rest),
        int(bool(whole_number(options, "clamping"))),
        whole_number(options, "min_signal_remaining"),
        whole_number(options, "smoothing_bits"),
        whole_number(options, "spectral_subtraction_bits"),
    )
    need(len(operator.outputs) == 2, f"it has {len(operator.outputs)} outputs, wanted 2")
    return _remembering(context, operator, audio_features.SpectralSubtraction, attrs)


@converts("CUSTOM:SignalDelay", when=always)
def delay(context: Context, operator: Operator) -> Update:
    return _remembering(context, operator, audio_fft.Delay, Attributes())


@converts("CUSTOM:SignalOverlapAdd", when=always)
def overlap_add(context: Context, operator: Operator) -> Update:
    attrs = audio_fft.OverlapAddAttrs(whole_number(custom_options(operator), "frame_step"))
    return _remembering(context, operator, audio_fft.OverlapAdd, attrs)


@converts("CUSTOM:SignalFramer", when=always)
def framer(context: Context, operator: Operator) -> Update:
    options = custom_options(operator)
    need(bool(whole_number(options, "prefill", 0)), "its first frames are incomplete; one with prefill can be compiled")
    attrs = audio_fft.FramerAttrs(*(whole_number(options, name) for name in ("frame_size", "frame_step")))
    need(len(operator.outputs) == 2, f"it has {len(operator.outputs)} outputs, wanted 2")
    return _remembering(context, operator, audio_fft.Framer, attrs)


@converts("CUSTOM:SignalStacker", when=always)
def stacker(context: Context, operator: Operator) -> Update:
    options = custom_options(operator)
    attrs = audio_features.StackerAttrs(
        *(whole_number(options, f"stacker_{name}") for name in ("left_context", "right_context", "step"))
    )
    longest = f"its step of {attrs.step} frames is not from 1 to the {attrs.frames} of a row"
    need(0 < attrs.step <= attrs.frames, longest)
    need(len(operator.outputs) == 2, f"it has {len(operator.outputs)} outputs, wanted 2")
    return _remembering(context, operator, audio_features.Stacker, attrs)


def _remembering(context: Context, operator: Operator, kind: type[IntegerOperator[Any]], attrs: Any) -> Update:
    """Calls an operator of one input and a state that no tensor of the file holds."""
    key = own_state(operator)
    need(key in context.variables, "its options or shapes leave it nothing to remember")
    return Update(get(kind)(*_exprs(context, operator, 1), context.variables[key].expr, attrs=attrs), (key,))


@converts("CUSTOM:SignalPCAN", when=always)
def pcan(context: Context, operator: Operator) -> Expr:
    shift = whole_number(custom_options(operator), "snr_shift")
    return get(audio_features.ChannelGain)(*_exprs(context, operator, 3), attrs=audio_features.GainAttrs(shift))


@converts("CUSTOM:SignalFilterBankLog", when=always)
def filter_bank_log(context: Context, operator: Operator) -> Expr:
    options = custom_options(operator)
    attrs = audio_features.LogAttrs(
        whole_number(options, "output_scale"), whole_number(options, "input_correction_bits")
    )
    return get(audio_features.ChannelLog)(
        *_exprs(context, operator, 1), constant(audio_features.log_table()), attrs=attrs
    )
