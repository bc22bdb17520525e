"""Prints the C function of a layer: its head and comment, and the bodies of layers that compute by rows.

A layer by rows computes several operators in turn, a few rows of each, so that their inner tensors need small row
buffers instead of whole tensors. Its input may also arrive by rows: then the application hands it over piece by piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from uaccel.codegen.options import EmitOptions, Names, address
from uaccel.lower.placement import Placement
from uaccel.lower.program import Action, Cursor, Keep, Layer, Program, Receive, RowBuffer, Rows, Streaming, Value
from uaccel.ops.kernel import Constant, Input, Output, ParameterValue, Scratch
from uaccel.util.c_text import float_literal, int_literal, quote_comment, storage_type, wrap_call, wrapped_comment

# The head of a layer's function: parameters, the comment above it, and the addresses that its calls are given.


@dataclass(frozen=True)
class Parameter:
    """Describes a parameter of a layer's function."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}{self.name}" if self.type.endswith("*") else f"{self.type} {self.name}"


def is_untyped(layer: Layer) -> bool:
    """Whether the function takes ``void *``: code that comes from TIR declares types of its own."""
    return layer.definition is not None and not layer.on_accelerator


def layer_parameters(layer: Layer) -> list[Parameter]:
    """The tensors' parameters as typed pointers or ``void *``, inputs first, and the scratch at the end."""
    found = []
    for side, values, const in (("input", layer.inputs, "const "), ("output", layer.outputs, "")):
        types = ["void" if is_untyped(layer) else storage_type(value.info.dtype) for value in values]
        found += [Parameter(f"{const}{kind} *", f"{side}{i}") for i, kind in enumerate(types)]
    return found + ([Parameter("void *", "scratch")] if layer.kernel.scratch else [])


def function_name(layer: Layer) -> str:
    return f"layer_{layer.name}"


def layer_comment(layer: Layer) -> str:
    """The comment above the function: operator, shapes, quantisation, engine and work."""
    return wrapped_comment(_lines(layer), indent=10)


def _lines(layer: Layer) -> list[str]:
    origin = layer.origin
    source = f"operator {origin.index} of the model, {origin.op}" if origin.index >= 0 else "added by the compiler"
    lines = [f"{layer.name}: {source}"]
    lines.append(f"  tensor  {quote_comment(layer.origin.tensor)}")
    lines += [f"  input   {_describe(value)}" for value in layer.inputs]
    lines += [f"  output  {_describe(value)}" for value in layer.outputs]
    lines.append(f"  engine  {layer.engine}: {layer.reason}")
    if layer.macs:
        lines.append(f"  work    {layer.macs} multiply-accumulates")
    return lines


def _describe(value: Value) -> str:
    quantisation = value.spec.quantisation
    return f"{value.info}" + (f", {quantisation}" if quantisation else "")


def parameter_literal(value: ParameterValue) -> str:
    if isinstance(value, tuple):
        return "{" + ", ".join(parameter_literal(v) for v in value) + "}"
    if isinstance(value, float):
        return float_literal(value, "float32")
    if 1 << 31 <= value < 1 << 32:  # the fields that hold such values are bytes side by side
        return f"0x{value:08X}u"
    return int_literal(value)


def constant_name(call: int, constant: Constant) -> str:
    return f"{constant.role}{call}" if call else constant.role


def parameter_address(layer: Layer, argument: Input | Output | Scratch) -> str:
    """The C expression for an argument inside the layer's function. Its offset counts elements where the parameter is
    typed, and bytes where it is ``void *``."""
    if isinstance(argument, Scratch):
        return f"(void *)((uint8_t *)scratch + {argument.offset})" if argument.offset else "scratch"
    side, values = ("input", layer.inputs) if isinstance(argument, Input) else ("output", layer.outputs)
    name = f"{side}{argument.index}"
    if argument.offset and is_untyped(layer):
        const = "const " if isinstance(argument, Input) else ""
        return f"({const}void *)(({const}uint8_t *){name} + {argument.offset})"
    elements = argument.offset // values[argument.index].info.itemsize
    return f"{name} + {elements}" if elements else name


# The function of a layer by rows: a table says which kind of step comes when, and a switch has the code of each kind.
#
# Most bands of rows are computed by the same calls, but for where they read and write in whole tensors. Cursors say
# that: each use moves its cursor on, so that all such bands are one kind of step, and code grows with the kinds alone.

KEEP: Final = "uaccel_keep_rows"
FEED: Final = "fed"  # The static structure in which a fed layer remembers its state between steps.
UNREAD: Final = "UNREAD"  # The place of rows that nobody reads.
NUMBERS_A_LINE: Final = 24


def streaming_function(layer: Layer) -> str:
    """The whole function; it calls the functions that compute its operators' rows, which are printed before it."""
    streaming = _streaming(layer)
    text = _Text(layer, streaming)
    signature = wrap_call(f"UACCEL_LAYER void {function_name(layer)}", map(str, layer_parameters(layer)))
    lines = text.one_step() if streaming.fed is not None else text.all_steps()
    body = "\n".join([*text.order(), *text.buffers(), *lines])
    return f"{streaming_comment(layer)}\n{signature}\n{{\n{body}\n}}\n"


def streaming_comment(layer: Layer) -> str:
    """The comment of a layer, and below it the operators that it computes by rows."""
    parts = [f"  rows    {operator.name}: {operator.outputs[0].info}" for operator in layer.operators]
    return wrapped_comment([*_lines(layer), *parts], indent=10)


def _streaming(layer: Layer) -> Streaming:
    assert layer.streaming is not None
    return layer.streaming


class _Text:
    """Prints the parts of a function by rows. ``sizes``: bytes of an element of what each name points to, since offsets
    in a schedule are bytes, and offsets of typed pointers are elements."""

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
        """One step a call, since a fed layer must return to its caller to get rows. Every step but the last ends by
        stating which bytes it waits for (``Receive``); the feed function calls again when they are there."""
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
        call = wrap_call(f"{indent}{function_name(function)}", arguments) + ";"
        moves = [(each.memory, each.advance // self.sizes[each.memory]) for each in rows if each.advance]
        owner = f"{FEED}." if self.streaming.fed is not None else ""
        return [*call.split("\n"), *(f"{indent}{owner}{memory} += {advance};" for memory, advance in moves)]

    def _at(self, rows: Rows) -> str:
        cursor = next((each for each in self.streaming.cursors if each.name == rows.memory), None)
        if cursor is not None and self.streaming.fed is not None:
            return f"{cursor.side}{cursor.index} + {FEED}.{cursor.name}"
        return f"{rows.memory} + {rows.offset // self.sizes[rows.memory]}" if rows.offset else rows.memory


def repeated(actions: Sequence[Action]) -> list[tuple[int, tuple[Action, ...]]]:
    """Folds a list of actions into loops: how often each body runs in a row.

    Greedy from the front: at each place it takes the loop that saves the most lines, ``length * (times - 1)``, and of
    equal ones the shortest body. Where nothing repeats, one action is passed on alone. Unfolded, the result is the
    list itself, in order.
    """
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


# Feeding: an input that the application hands over some rows at a time. The static structure ``fed`` says which step of
# the layer comes next, how many bytes it waits for, and where in the row buffer these go.

Of = TypeVar("Of")


def row_input_layer(program: Program) -> Layer | None:
    """The layer that takes an input by rows, if there is one; it is always the first."""
    return program.layers[0] if program.fed is not None else None


def resident_inputs(program: Program, of_inputs: Sequence[Of]) -> tuple[Of, ...]:
    """Picks from a sequence with an entry for each input the entries of inputs that lie in memory as a whole."""
    pairs = zip(program.inputs, of_inputs, strict=True)
    return tuple(some for value, some in pairs if value != program.fed)


def feed_interface(program: Program, names: Names, options: EmitOptions) -> str:
    """The header's part: macros of the fed input, error codes, and the declaration of the feed function."""
    layer = row_input_layer(program)
    if layer is None:
        return ""
    fed, macro = _fed(layer), names.macro
    spec = program.signature.inputs[program.inputs.index(fed)]
    quantisation = f", {spec.quantisation}" if spec.quantisation else ""
    return (
        f"/* Rows of {quote_comment(spec.name)}: {spec.info}{quantisation}; bytes of each. */\n"
        f"#define {macro}_FEED_ROWS {fed.info.shape[1]}\n"
        f"#define {macro}_FEED_ROW_SIZE {fed.info.size // fed.info.shape[1]}\n"
        "/* What feed and run return besides. */\n"
        f"#define {macro}_ROWS_MISSING (-2) /* run: not all rows were handed over */\n"
        f"#define {macro}_TOO_MANY_ROWS (-3) /* feed: more rows than there are; none of them was taken */\n\n"
        "/* Takes the next rows of the input, from the top, as many as there are; when all were handed over, run\n"
        " * computes the rest, and the next rows are another inference's. Rows are not kept and need no alignment.\n"
        " * Outputs in the workspace are lost. NULL for rows: begin anew, forget those that were handed over. */\n"
        f"{feed_head(names, options)};\n"
    )


def feed_head(names: Names, options: EmitOptions) -> str:
    """The feed function's head, as the header declares it and the executor defines it."""
    pools = [f"struct {names.prefix}_workspace_pools *workspace_pools"] if options.given_pools else []
    return wrap_call(f"int32_t {names.prefix}_feed", ["const void *rows", "size_t count", *pools])


def feed_memory(program: Program) -> str:
    """The executor's static structure, printed before the layers; it holds how far the rows have come."""
    layer = row_input_layer(program)
    if layer is None:
        return ""
    cursors = "".join(f"    size_t {cursor.name};\n" for cursor in _feeding_rows(layer).cursors)
    return (
        "/* How far the rows have come that are handed over. */\n"
        "static struct {\n"
        "    size_t rows; /* that were handed over */\n"
        "    size_t step; /* that comes next */\n"
        "    size_t missing; /* bytes until then */\n"
        "    size_t place; /* of them in the buffer; or nobody reads them */\n"
        f"{cursors}}} {FEED};\n"
        f"#define {UNREAD} SIZE_MAX\n"
    )


def feed_function(program: Program, placement: Placement, names: Names, options: EmitOptions) -> str:
    """The feed function: copies bytes to where the next step wants them, and runs that step when all are there.

    Invariant: while bytes are left, ``missing`` is above 0, so each turn of the loop takes at least one byte. The first
    call with rows clears the structure and runs step 0, which ends with the first ``Receive``. Receives of all steps
    add up to the whole input, rows that nobody reads included, and ``count`` is checked against the rows that are left.
    So the last step begins exactly when the last byte was taken. Chunks may be of any size: nothing but ``missing``
    decides when a step runs.
    """
    layer = row_input_layer(program)
    if layer is None:
        return ""
    scratch = placement.scratch[layer.index]
    outputs = [placement.places[value.name] for value in layer.outputs]
    used = [pool for pool in options.given_pools if any(place.pool in ("", pool) for place in (scratch, *outputs))]
    call = f"{function_name(layer)}({', '.join(address(place, options) for place in (*outputs, scratch))});"
    absent = " || ".join(["workspace_pools == NULL", *(f"workspace_pools->{pool} == NULL" for pool in used)])
    check = [f"    if ({absent}) {{", f"        return {names.macro}_NULL_POINTER;", "    }"] if used else []
    workspace = [f"    uint8_t *const {options.array(names, pool)} = workspace_pools->{pool};" for pool in used]
    lines = [
        *check,
        *workspace,
        "    const uint8_t *from = rows;",
        f"    size_t bytes = count * {names.macro}_FEED_ROW_SIZE;",
        "    if (rows == NULL) {",
        f"        {FEED}.rows = 0;",
        f"        return {names.macro}_OK;",
        "    }",
        f"    if (count > {names.macro}_FEED_ROWS - {FEED}.rows) {{",
        f"        return {names.macro}_TOO_MANY_ROWS;",
        "    }",
        f"    if ({FEED}.rows == 0 && count > 0) {{",
        f"        memset(&{FEED}, 0, sizeof {FEED});",
        f"        {call}",
        "    }",
        f"    {FEED}.rows += count;",
        "    while (bytes > 0) {",
        f"        const size_t part = bytes < {FEED}.missing ? bytes : {FEED}.missing;",
        f"        if ({FEED}.place != {UNREAD}) {{",
        f"            memcpy((uint8_t *){address(scratch, options)} + {FEED}.place, from, part);",
        f"            {FEED}.place += part;",
        "        }",
        "        from += part;",
        "        bytes -= part;",
        f"        {FEED}.missing -= part;",
        f"        if ({FEED}.missing == 0) {{",
        f"            {call}",
        "        }",
        "    }",
        f"    return {names.macro}_OK;",
    ]
    return "\n".join([feed_head(names, options), "{", *lines, "}", ""])


def feed_check(program: Program, names: Names) -> list[str]:
    """The run function's check that all rows are there; it also lets the next ones begin another inference."""
    if row_input_layer(program) is None:
        return []
    return [
        f"    if ({FEED}.rows != {names.macro}_FEED_ROWS) {{",
        f"        return {names.macro}_ROWS_MISSING;",
        "    }",
        f"    {FEED}.rows = 0;",
    ]


def _feeding_rows(layer: Layer) -> Streaming:
    assert layer.streaming is not None
    return layer.streaming


def _fed(layer: Layer) -> Value:
    fed = _feeding_rows(layer).fed
    assert fed is not None
    return fed
