"""Prints the C function that runs the model."""

from __future__ import annotations

from typing import Final

from uaccel.codegen.layer_text import feed_check, function_name, resident_inputs, row_input_layer
from uaccel.codegen.layers import activated, found_again, hook, is_activated
from uaccel.codegen.options import EmitOptions, Names, address
from uaccel.codegen.state import GIVEN, run_of_own_state, run_with_head, state_check
from uaccel.codegen.weights import PrefetchPlan
from uaccel.lower.placement import Placement
from uaccel.lower.program import Layer, Program, Value
from uaccel.util.c_text import wrap_call

# The run function: the layers in order, between the activation and the deactivation of the accelerators.

PLAIN_STATUS: Final = "UACCEL_PLAIN_STATUS"  # With this macro a failed accelerator returns -1, as in microTVM.
RETURNED: Final = (
    f"#ifdef {PLAIN_STATUS}",
    "    failure = status;",
    "    return status == 0 ? 0 : -1;",
    "#else",
    "    return status;",
    "#endif",
)


def run_parameters(program: Program, names: Names, options: EmitOptions) -> list[str]:
    """The parameters of the run function, all of them pointers."""
    structs = [] if options.workspace_io else ["inputs", "outputs"]
    structs += ["workspace_pools"] if options.given_pools else []
    structs += ["devices"] if program.devices else []
    return [f"struct {names.prefix}_{struct} *{struct}" for struct in structs]


def failure_function(names: Names) -> str:
    """The head of the function that gives what the last run would have returned without that macro."""
    return f"int32_t {names.prefix}_failure(void)"


class RunFunction:
    """Prints the run function in one of three forms. That of a model with a state is given the state, and a second one
    runs it with the executor's own.

    Without accelerators: the layers, one after the other. If the CPU can take the place of every accelerated layer: no
    error ends the run. Else a static function runs the layers until one fails, so that its caller deactivates the
    devices on every way out.
    """

    def __init__(
        self, program: Program, placement: Placement, names: Names, options: EmitOptions, ahead: PrefetchPlan
    ) -> None:
        self.program = program
        self.ahead = ahead
        self.placement = placement
        self.names = names
        self.options = options

    def render(self) -> str:
        own = run_of_own_state(self.names, self._public()) if self.program.state else ""
        return f"{self._called_by_its_header()}{own}\n{self._by_name()}"

    def _called_by_its_header(self) -> str:
        if not self.program.engines:
            body = [*self._workspace(), *self._layers(), f"    return {self.names.macro}_OK;"]
            return self._run_function([*self._checks(), *body])
        if all(layer.otherwise for layer in self.program.layers if layer.on_accelerator):
            whole = self._run_function([*self._checks(), *self._with_cpu_in_place()])
            return "\n".join([*map(found_again, filter(is_activated, self.program.engines)), whole])
        return self._layers_apart()

    def _function(self, head: str, body: list[str]) -> str:
        return "\n".join([wrap_call(head, self._parameters()), "{", *body, "}", ""])

    def _run_function(self, body: list[str]) -> str:
        if not self.program.state:
            return self._function(f"int32_t {self.names.prefix}_run", body)
        return "\n".join([run_with_head(self.names, self._public()), "{", *body, "}", ""])

    def _public(self) -> list[str]:
        return run_parameters(self.program, self.names, self.options)

    def _parameters(self) -> list[str]:
        return [*([f"void *{GIVEN}"] if self.program.state else []), *self._public()]

    def _layers_apart(self) -> str:
        """The form that can fail: an error returns from the inner function; the outer one deactivates the devices."""
        names = self.names
        inner = [*self._workspace(), "    int32_t status;", *self._layers(), f"    return {names.macro}_OK;"]
        arguments = ", ".join(parameter.rpartition("*")[2] for parameter in self._parameters())
        first: dict[str, int] = {}
        for layer in self.program.layers:
            if layer.on_accelerator:
                first.setdefault(layer.engine, layer.index)
        outer = [
            *self._checks(),
            "    int32_t status;",
            *activated(self.program.engines, first, f"layers({arguments})"),
        ]
        head = "/* The layers in order, until one fails. */\n"
        return "\n".join(
            [
                head + self._function("static int32_t layers", inner),
                f"#ifdef {PLAIN_STATUS}\nstatic int32_t failure;\n\n"
                f"{failure_function(names)}\n{{\n    return failure;\n}}\n#endif\n",
                self._run_function([*outer, *self._all_copied(), *RETURNED]),
            ]
        )

    def _by_name(self) -> str:
        """The run function under its documented name, in shared libraries. The header renames it by a macro, but who
        loads a library looks for the documented name."""
        run, parameters = f"{self.names.prefix}_run", self._public()
        head = wrap_call(f"int32_t {run}", parameters)
        arguments = ", ".join(parameter.rpartition("*")[2] for parameter in parameters)
        return (
            "#if defined(__PIC__) && !defined(__PIE__)\n"
            "/* In a shared library, for whoever looks the function up by its name. */\n"
            f"#undef {run}\n{head};\n\n{head}\n{{\n    return {run}_c({arguments});\n}}\n#endif\n"
        )

    def _with_cpu_in_place(self) -> list[str]:
        """The form that cannot fail: the CPU computes what an accelerator does not. An engine's status variable stays 0
        while the engine may be called; once it is not, all its further layers go to the CPU."""
        engines = self.program.engines
        lines = self._workspace()
        for engine in engines:
            began = f"{hook(engine, 'Activate')}(devices->{engine.name})" if is_activated(engine) else "0"
            lines.append(f"    int32_t {_status(engine.name)} = {began};")
        lines += self._layers()
        for engine in engines:
            if "Deactivate" in engine.hooks:
                lines += [
                    f"    if ({_status(engine.name)} == 0) {{",
                    f"        (void){hook(engine, 'Deactivate')}(devices->{engine.name});",
                    "    }",
                ]
        return [*lines, f"    return {self.names.macro}_OK;"]

    def _workspace(self) -> list[str]:
        return [
            f"    uint8_t *const {self.options.array(self.names, pool)} = workspace_pools->{pool};"
            for pool in self._used_pools()
        ]

    def _used_pools(self) -> list[str]:
        """The application's pools in which something lies."""
        sizes = self.placement.pools
        return [pool for pool in self.options.given_pools if sizes.get(pool, self.placement.arena)]

    def _checks(self) -> list[str]:
        pointers = [GIVEN] if self.program.state else []
        if not self.options.workspace_io:
            pointers += ["inputs", "outputs"]
            pointers += [f"inputs->{member}" for member in resident_inputs(self.program, self.names.inputs)]
            pointers += [f"outputs->{member}" for member in self.names.outputs]
        if self.options.given_pools:
            pointers += ["workspace_pools", *(f"workspace_pools->{pool}" for pool in self._used_pools())]
        if self.program.devices:
            pointers.append("devices")
        marked = state_check(self.names) if self.program.state else []
        begin = [*marked, *feed_check(self.program, self.names)]
        if not pointers:
            return begin
        condition = " ||\n        ".join(f"{pointer} == NULL" for pointer in pointers)
        return [f"    if ({condition}) {{", f"        return {self.names.macro}_NULL_POINTER;", "    }", "", *begin]

    def _layers(self) -> list[str]:
        return [line for layer in self.program.layers for line in self._layer(layer)]

    def _layer(self, layer: Layer) -> list[str]:
        if layer.is_view:
            return [f"    /* {layer.name}: {layer.outputs[0].info} is a view of {layer.inputs[0].name} */"]
        model = self.program.name
        if layer is row_input_layer(self.program):
            work = ["    /* Its rows were handed over: it is done. */"]
        else:
            work = self._on_accelerator(layer) if layer.on_accelerator else [f"    {self._call(layer)};"]
        return [
            f'    UACCEL_LAYER_BEGIN("{model}", {layer.index});',
            *self._copies(layer),
            *work,
            *(
                f'    UACCEL_LAYER_END("{model}", {layer.index}, {i}, {self._address(value)}, {value.info.size});'
                for i, value in enumerate(layer.outputs)
            ),
        ]

    def _copies(self, layer: Layer) -> list[str]:
        """The prefetch calls before a layer: wait for its own constants, then begin to copy the next layer's.

        In this order only the next layer's copies are under way while a layer computes. The memory plan relies on it: a
        block lives from the layer before its own to its own. The first layer has none before it, so its copies begin
        and are waited for at once. Views compute nothing and are passed over.
        """
        computed = [each for each in self.program.layers if not each.is_view]
        place, lines = computed.index(layer), []
        if layer.index in self.placement.ahead:
            lines += [*(self._begin(layer) if place == 0 else []), "    uaccel_fetch_wait();"]
        following = computed[place + 1 : place + 2]
        return lines + [line for after in following for line in self._begin(after)]

    def _begin(self, layer: Layer) -> list[str]:
        where = self.placement.ahead.get(layer.index)
        return [] if where is None else self.ahead.copies(layer, address(where, self.options))

    def _all_copied(self) -> list[str]:
        """The wait that ends a run which may have stopped early: no copy goes on into a workspace that the application
        may use for something else."""
        return ["    uaccel_fetch_wait();"] if self.ahead else []

    def _call(self, layer: Layer, *before: str) -> str:
        arguments = [*before, *(self._address(value) for value in (*layer.inputs, *layer.outputs))]
        if layer.kernel.scratch:
            arguments.append(address(self.placement.scratch[layer.index], self.options))
        if self.ahead.parameters(layer):
            arguments.append(address(self.placement.ahead[layer.index], self.options))
        return f"{function_name(layer)}({', '.join(arguments)})"

    def _on_accelerator(self, layer: Layer) -> list[str]:
        engine = self.program.engine(layer)
        call = self._call(layer, *([f"devices->{engine.name}"] if engine.has_device else []))
        account = f"    UACCEL_ACCOUNT_LAYER({layer.index});"
        if layer.twin is None:
            return [
                account,
                f"    status = {call};",
                "    if (status != 0) {",
                f"        return uaccel_layer_failed({layer.index}, status);",
                "    }",
            ]
        status = _status(layer.engine)
        return [
            account,
            f"    if ({status} != 0 || {call} != 0) {{",
            f"        UACCEL_ACCOUNT_FALLBACK({layer.index});",
            *(
                [f"        {status} = {engine.name}_found_again({status}, devices->{engine.name});"]
                if is_activated(engine)
                else []
            ),
            f"        {self._call(layer.twin)};",
            "    }",
        ]

    def _address(self, value: Value) -> str:
        place = self.placement.places[value.name]
        if place.kind == "input":
            return f"inputs->{self.names.inputs[place.index]}"
        if place.kind == "output":
            return f"outputs->{self.names.outputs[place.index]}"
        return f"STATE({place.offset})" if place.kind == "state" else address(place, self.options)


def _status(engine: str) -> str:
    """The run function's variable for an engine's status; no parameter has such a name."""
    return f"{engine}_status"
