"""The function of a layer that computes several operators by rows: steps of a few kinds, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from uaccel.ctext.layout import wrapped, wrapped_comment
from uaccel.ctext.types import storage_type
from uaccel.emit.layer_text import Parameter, function_name, layer_comment, layer_parameters
from uaccel.lower.program import Action, Cursor, Keep, Layer, Receive, RowBuffer, Rows, Streaming

KEEP: Final = "uaccel_keep_rows"
FEED: Final = "fed"
"""What a fed layer remembers between its steps."""
UNREAD: Final = "UNREAD"
NUMBERS_A_LINE: Final = 24


def streaming_function(layer: Layer) -> str:
    """Calls the functions of its operators' rows, which stand before it."""
    streaming = _streaming(layer)
    text = _Text(layer, streaming)
    signature = wrapped(f"UACCEL_LAYER void {function_name(layer)}", map(str, layer_parameters(layer)))
    lines = text.one_step() if streaming.fed is not None else text.all_steps()
    body = "\n".join([*text.order(), *text.buffers(), *lines])
    return f"{streaming_comment(layer)}\n{signature}\n{{\n{body}\n}}\n"


def streaming_comment(layer: Layer) -> str:
    """What a layer has, and which operators it computes."""
    parts = [f"{operator.name}: {operator.outputs[0].info}" for operator in layer.operators]
    return f"{layer_comment(layer)}\n{wrapped_comment(['By rows:', *(f'  {part}' for part in parts)], indent=4)}"


def _streaming(layer: Layer) -> Streaming:
    assert layer.streaming is not None
    return layer.streaming


class _Text:
    def __init__(self, layer: Layer, streaming: Streaming) -> None:
        self.layer, self.streaming = layer, streaming
        self.sizes = {f"rows_of_{b.value.name}": b.value.info.itemsize for b in streaming.buffers}
        values = {"input": layer.inputs, "output": layer.outputs}
        self.sizes |= {c.name: values[c.side][c.index].info.itemsize for c in streaming.cursors}

    def all_steps(self) -> list[str]:
        return [
            *(f"    {self.pointer(each)}{each.name} = {each.side}{each.index};" for each in self.streaming.cursors),
            "    for (size_t step = 0; step < sizeof steps / sizeof steps[0]; ++step) {",
            "        switch (steps[step]) {",
            *self.cases("        "),
            "        }",
            "    }",
        ]

    def one_step(self) -> list[str]:
        """A fed layer goes on when the rows are there that the step before waits for."""
        return [
            f"    if ({FEED}.step == sizeof steps / sizeof steps[0]) {{",
            "        return;",
            "    }",
            f"    switch (steps[{FEED}.step++]) {{",
            *self.cases("    "),
            "    }",
        ]

    def order(self) -> list[str]:
        """The table of steps."""
        kind = "uint8_t" if len(self.streaming.steps) <= 256 else "uint16_t"
        order = [str(number) for number in self.streaming.order]
        rows = [", ".join(order[i : i + NUMBERS_A_LINE]) for i in range(0, len(order), NUMBERS_A_LINE)]
        return [f"    static const {kind} steps[] = {{", *(f"        {row}," for row in rows), "    };"]

    def buffers(self) -> list[str]:
        return [self._buffer(buffer) for buffer in self.streaming.buffers]

    @staticmethod
    def _buffer(buffer: RowBuffer) -> str:
        kind, info = storage_type(buffer.value.info.dtype), buffer.value.info
        at = f"(void *)((uint8_t *)scratch + {buffer.offset})" if buffer.offset else "scratch"
        what = f"{buffer.rows} of {info.shape[1]} rows"
        return f"    {kind} *const rows_of_{buffer.value.name} = {at}; /* {what} */"

    def pointer(self, cursor: Cursor) -> str:
        values = self.layer.inputs if cursor.side == "input" else self.layer.outputs
        const = "const " if cursor.side == "input" else ""
        return str(Parameter(f"{const}{storage_type(values[cursor.index].info.dtype)} *", ""))

    def cases(self, indent: str) -> list[str]:
        lines = []
        for number, actions in enumerate(self.streaming.steps):
            last = number == len(self.streaming.steps) - 1
            lines.append(f"{indent}default:" if last else f"{indent}case {number}:")
            lines += self._actions(actions, indent + "    ")
            lines.append(f"{indent}    break;")
        return lines

    def _actions(self, actions: Sequence[Action], indent: str) -> list[str]:
        lines: list[str] = []
        for times, body in repeated(actions):
            if times == 1:
                lines += [line for action in body for line in self._action(action, indent)]
            else:
                lines.append(f"{indent}for (int32_t i = 0; i < {times}; ++i) {{")
                lines += [line for action in body for line in self._action(action, indent + "    ")]
                lines.append(f"{indent}}}")
        return lines

    def _action(self, action: Action, indent: str) -> list[str]:
        if isinstance(action, Keep):
            name = f"rows_of_{action.memory}"
            source = f"{name} + {action.source // self.sizes[name]}"
            return [f"{indent}{KEEP}({name}, {source}, {action.bytes});"]
        if isinstance(action, Receive):
            buffer = next(each for each in self.streaming.buffers if each.value.name == action.memory)
            place = str(buffer.offset + action.offset) if action.offset >= 0 else UNREAD
            return [f"{indent}{FEED}.place = {place};", f"{indent}{FEED}.missing = {action.bytes};"]
        function = self.streaming.functions[action.function]
        rows = (*action.inputs, action.output)
        arguments = [self._at(each) for each in rows]
        if function.kernel.scratch:
            offset = self.streaming.scratch[action.function]
            arguments.append(f"(uint8_t *)scratch + {offset}" if offset else "scratch")
        call = wrapped(f"{indent}{function_name(function)}", arguments) + ";"
        moves = [(each.memory, each.advance // self.sizes[each.memory]) for each in rows if each.advance]
        owner = f"{FEED}." if self.streaming.fed is not None else ""
        return [*call.split("\n"), *(f"{indent}{owner}{memory} += {advance};" for memory, advance in moves)]

    def _at(self, rows: Rows) -> str:
        cursor = next((each for each in self.streaming.cursors if each.name == rows.memory), None)
        if cursor is not None and self.streaming.fed is not None:
            return f"{cursor.side}{cursor.index} + {FEED}.{cursor.name}"
        return f"{rows.memory} + {rows.offset // self.sizes[rows.memory]}" if rows.offset else rows.memory


def repeated(actions: Sequence[Action]) -> list[tuple[int, tuple[Action, ...]]]:
    """The same actions as runs: how often which actions follow each other."""
    found: list[tuple[int, tuple[Action, ...]]] = []
    at = 0
    while at < len(actions):
        length, times = max(
            ((length, _times(actions, at, length)) for length in range(1, (len(actions) - at) // 2 + 1)),
            key=lambda run: (run[0] * (run[1] - 1), -run[0]),
            default=(1, 1),
        )
        length = length if times > 1 else 1
        found.append((times, tuple(actions[at : at + length])))
        at += length * times
    return found


def _times(actions: Sequence[Action], at: int, length: int) -> int:
    times, body = 1, actions[at : at + length]
    while actions[at + times * length : at + (times + 1) * length] == body:
        times += 1
    return times
