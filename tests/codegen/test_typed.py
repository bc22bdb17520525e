"""The header's macros and conversions, used as an application uses them, against numpy."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from support.device.generated import Unpacked, archive, cc, compiled
from support.models.networks import OWN
from uaccel.codegen.describe import is_converted
from uaccel.codegen.options import names_of
from uaccel.model import TensorSpec
from uaccel.util.c_text import limits

MODELS = ("gesture", "int16", "mixed")
REALS = [0.0, -0.0, 1e-30, 0.49999997, 0.5, -0.5, 1.5, 2.5, -2.5, 100.25, -3e38, 3e38, float("inf"), float("-inf")]


def nearest(real: float, spec: TensorSpec) -> int:
    """By float64 from the float32 quotient: halves away from zero, held in the range."""
    assert spec.quantisation is not None
    low, high = limits(spec.info.dtype)
    with np.errstate(over="ignore"):
        steps = float(np.float32(real) / np.float32(spec.quantisation.scale))
    steps = min(max(steps, -1e9), 1e9)
    whole = int(np.floor(abs(steps) + 0.5)) * (1 if steps >= 0 else -1)
    return int(min(max(whole + spec.quantisation.zero_point, low), high))


@pytest.mark.parametrize("model", MODELS)
def test_macros_and_conversions_are_what_the_model_says(model: str, tmp_path: Path) -> None:
    found = compiled(OWN / f"{model}.tflite")
    names, signature = names_of(found.program, found.generated.options), found.model.signature
    rows = [*zip(names.inputs, names.input_sizes, signature.inputs, strict=True)]
    others = [*zip(names.outputs, names.output_sizes, signature.outputs, strict=True)]
    lines, wanted = [], []
    for _, macro, spec in rows + others:
        base = macro.removesuffix("_SIZE")
        lines.append(
            f'static const int {base}_s[] = {base}_SHAPE; printf("%u %u %u %d\\n", (unsigned)sizeof({base}_TYPE), '
            f"(unsigned){base}_COUNT, (unsigned){base}_RANK, {base}_s[{base}_RANK - 1]);"
        )
        shape = spec.info.shape
        wanted.append(f"{spec.info.itemsize} {spec.info.elements} {len(shape)} {shape[-1]}")
    for member, _, spec in rows:
        for real in REALS if is_converted(spec) else ():
            text = "NAN" if np.isnan(real) else f"{'-' if real < 0 else ''}INFINITY" if np.isinf(real) else f"{real!r}f"
            lines.append(f'printf("%d\\n", (int){names.prefix}_quantize_{member}((float){text}));')
            wanted.append(str(nearest(real, spec)))
        if is_converted(spec):
            lines.append(f'printf("%d\\n", (int){names.prefix}_quantize_{member}((float)NAN));')
            wanted.append(str(int(limits(spec.info.dtype)[0])))
    for member, _, spec in others:
        if is_converted(spec):
            assert spec.quantisation is not None
            lines.append(f'printf("%.9g\\n", (double){names.prefix}_dequantize_{member}(-7));')
            back = np.float32(-7 - spec.quantisation.zero_point) * np.float32(spec.quantisation.scale)
            wanted.append(f"{float(back):.9g}")
    tree = Unpacked(tmp_path, archive(OWN / f"{model}.tflite"))
    user = tmp_path / "user.c"
    body = "\n    ".join(lines)
    head = f'#include <math.h>\n#include <stdio.h>\n#include "{names.header}"\n'
    user.write_text(f"{head}int main(void)\n{{\n    {body}\n    return 0;\n}}\n")
    cc(user, include=[tree.include], output=tmp_path / "user", warnings=("-std=c99", "-Wall", "-Wextra", "-Werror"))
    done = subprocess.run([tmp_path / "user"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == wanted
