"""What an export is made of: the compiled model, and a sample with what the model makes of it."""

from __future__ import annotations

from collections.abc import Sequence

from uaccel.board import Board
from uaccel.errors import ModelError
from uaccel.model import Array
from uaccel.packagers.export import Export, Sample
from uaccel.pipeline import Compiled
from uaccel.running.layers import tolerance_of
from uaccel.running.verify import Reference


def exported(compiled: Compiled, board: Board, inputs: Sequence[Array], command: str) -> Export:
    """``inputs``: the example's sample; its outputs are those of the model as it was imported."""
    options = compiled.options
    if options.pools or options.workspace_io or options.feed:
        raise ModelError("exports hold the plain interface; leave away pools, --workspace-io and --feed")
    outputs, _ = Reference.of(compiled).run(list(inputs))
    tolerance = max((tolerance_of(call) for call in compiled.partitioned.calls.values()), default=0)
    return Export(compiled.generated, Sample(tuple(inputs), tuple(outputs), tolerance), board, command)
