"""The one module that touches TVM's unstable names.

TVM moves names in every release (``tir`` became ``tirx``, FFI helpers wander). Everything else in uaccel imports
what it needs from here, so that a new TVM release is a change to this file and to the version pin.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from uaccel.tvm_api.absent import absent

with absent("torch"):  # where it is installed TVM loads it, which takes seconds; its own converter does so when needed
    import tvm
    from tvm import relax
import tvm.ir._ffi_api as _ir_ffi
from tvm import s_tir, te, tirx
from tvm.ir import Op
from tvm.relax.dpl.pattern import CallPattern, DFPattern, ExprPattern, OrPattern, wildcard
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as script
from tvm_ffi.structural import structural_equal, structural_walk

__all__ = [
    "TYPE_ERRORS",
    "CallPattern",
    "DFPattern",
    "DictAttrs",
    "ModuleBuilder",
    "Op",
    "OrPattern",
    "TfliteConverter",
    "TorchConverter",
    "TvmConversionError",
    "computed_once",
    "convert_onnx_node",
    "count_to",
    "knows_onnx_operator",
    "local_array",
    "make_call",
    "register_operator",
    "relax",
    "structural_equal",
    "te",
    "tirx",
    "tvm",
    "wildcard",
    "written_by_loops",
]

DictAttrs = tvm.ir.DictAttrs


def register_operator(
    name: str,
    description: str,
    num_inputs: int,
    infer_type: Callable[[Any, Any], Any],
    legalize: Callable[[Any, Any], Any],
) -> Op:
    """Register a pure Relax operator; registering the same name twice is harmless."""
    if name not in Op.list_op_names():
        _ir_ffi.RegisterOp(name, description)
    operator = Op.get(name)
    operator.set_num_inputs(num_inputs)
    operator.set_attr("FInferType", infer_type)
    operator.set_attr("FPurity", True)
    operator.set_attr("FLegalize", legalize)
    return operator


def make_call(name: str, args: list[Any], attrs: dict[str, Any]) -> relax.Call:
    """A call to a registered operator with a dictionary of attributes."""
    return relax.Call(Op.get(name), args, tvm.ir.make_node("ir.DictAttrs", **attrs))


def is_call(expr: Any) -> bool:
    return isinstance(expr, relax.Call)


def is_var(expr: Any) -> bool:
    return isinstance(expr, relax.Var)


def is_constant(expr: Any) -> bool:
    return isinstance(expr, tvm.ir.expr.GenericConst)


def is_tuple(expr: Any) -> bool:
    return isinstance(expr, relax.Tuple)


def is_shape_value(expr: Any) -> bool:
    """Whether its value is a shape, rather than a tensor of extents."""
    return isinstance(expr.ty, relax.ShapeType)


def is_tuple_type(expr: Any) -> bool:
    """Whether its value is several tensors."""
    return isinstance(expr.ty, relax.TupleType)


def is_tuple_get_item(expr: Any) -> bool:
    return isinstance(expr, relax.TupleGetItem)


def variables(expr: Any) -> Iterator[Any]:
    """Those that an expression of a normalised module reads, in order."""
    if is_var(expr):
        yield expr
    elif is_tuple_get_item(expr):
        yield from variables(expr.tuple_value)
    elif is_tuple(expr) or is_call(expr):
        for entry in expr.fields if is_tuple(expr) else expr.args:
            yield from variables(entry)


def is_operator_call(expr: Any) -> bool:
    """A call of an operator with a name; not of a function or of a variable."""
    return is_call(expr) and isinstance(expr.op, Op)


def is_module(value: Any) -> bool:
    return isinstance(value, tvm.IRModule)


def is_expression(value: Any) -> bool:
    """What a variable can be bound to."""
    return isinstance(value, relax.Expr)


def is_region_call(expr: Any) -> bool:
    """A call of a function of the module, rather than of an operator."""
    return is_call(expr) and isinstance(expr.op, tvm.ir.GlobalVar)


def plain_attributes(call: Any) -> SimpleNamespace:
    """The attributes of one of Relax's own operators as Python values."""
    fields = type(call.attrs).__tvm_ffi_type_info__.fields if call.attrs is not None else ()
    return SimpleNamespace(**{field.name: _plain(getattr(call.attrs, field.name)) for field in fields})


def _plain(value: Any) -> Any:
    if isinstance(value, tirx.IntImm | tirx.FloatImm):
        return value.value
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    try:
        return tuple(_plain(entry) for entry in value)
    except TypeError:
        return str(value)


_LOOKED_INTO = ("relax.multiply", "relax.divide")
"""TVM's matcher takes the operands of these patterns for granted: it would see products in quotients."""


def operator_pattern(name: str) -> Any:
    """A pattern that matches every call of an operator; KeyError where there is no such operator."""
    if name not in Op.list_op_names():
        raise KeyError(name)
    operator = ExprPattern(Op.get(name))
    if name in _LOOKED_INTO:
        return CallPattern(operator, [wildcard(), wildcard()], False)
    return CallPattern(operator, [], True)


def operator_names() -> list[str]:
    return [str(name) for name in Op.list_op_names()]


def pattern_operator(pattern: Any) -> Any:
    """The operator that a call pattern is about; None for any other."""
    inner = pattern.op if isinstance(pattern, CallPattern) else None
    expr = inner.expr if isinstance(inner, ExprPattern) else None
    return expr if isinstance(expr, Op) else None


def matched(pattern: Any, expr: Any, bound: dict[Any, Any]) -> list[Any] | None:
    """The operator calls that a pattern covers when its root is ``expr``; None where it does not match."""
    found = pattern.extract_matched_expr(expr, bound)
    if found is None:
        return None
    return [part for key, part in found.items() if isinstance(key, CallPattern) and is_call(part)]


def function_of_bindings(
    name: str, parameters: list[Any], attributes: dict[str, str], body: Callable[[Any], Any]
) -> Any:
    """A private Relax function; ``body`` gets the open block and returns the result."""
    builder = relax.BlockBuilder()
    with builder.function(name, parameters, attrs=attributes, private=True):
        _emit_body(builder, body)
    (function,) = builder.get().functions.values()
    return function


def _emit_body(builder: Any, body: Callable[[FunctionBlock], Any]) -> None:
    """The body of an open function; where making it fails the function is closed first, or TVM complains on stderr."""
    failure: Exception | None = None
    with builder.dataflow():
        try:
            value = body(FunctionBlock(builder))
        except Exception as error:
            failure, value = error, relax.Tuple([])
        result = builder.emit_output(value)
    builder.emit_func_output(result)
    if failure is not None:
        raise failure


def replace_main(parameters: list[Any], body: Callable[[FunctionBlock], Any]) -> Any:
    """A module with a new ``main``; ``body`` may add functions to the open block's module."""
    builder = relax.BlockBuilder()
    with builder.function("main", list(parameters)):
        _emit_body(builder, body)
    return builder.get()


def add_function(block: FunctionBlock, function: Any, name: str) -> Any:
    """Its global variable; the name gets a number where it is taken."""
    return block.builder.add_func(function, name)


def module_of(function: Any) -> Any:
    """A module with this function as ``main``."""
    return tvm.IRModule({"main": function.with_attr("global_symbol", "main")})


def same_type(one: Any, other: Any) -> bool:
    """Of two functions: parameters and result."""
    return bool(structural_equal(one.ty, other.ty))


def bindings_of(function: Any) -> tuple[list[Any], list[tuple[Any, Any]], Any]:
    """Parameters, (variable, expression) bindings in order, and the result of a function; other names left out."""
    meant: dict[Any, Any] = {}
    pairs = []
    for block in function.body.blocks:
        for binding in block.bindings:
            value = binding.value
            if meant:
                changed = relax_substitute(value, meant)
                value = value if structural_equal(changed, value) else relax.BlockBuilder().normalize(changed)
            if is_var(value):
                meant[binding.var] = value
            else:
                pairs.append((binding.var, value))
    result = relax_substitute(function.body.body, meant)
    if pairs and is_tuple(pairs[-1][1]) and result.same_as(pairs[-1][0]):
        result = pairs.pop()[1]  # the variable that a block gives out stands for several
    return list(function.params), pairs, result


def field_names(bindings: Sequence[tuple[Any, Any]]) -> dict[tuple[Any, int], str]:
    """The names under which the fields of a tuple are bound, by the tuple's variable and the field's number."""
    names: dict[tuple[Any, int], str] = {}
    for var, expr in bindings:
        if is_tuple_get_item(expr) and is_var(expr.tuple_value):
            names.setdefault((expr.tuple_value, int(expr.index)), var.name)
    return names


def main_bindings(module: Any) -> tuple[list[Any], list[tuple[Any, Any]]]:
    """The parameters of ``main`` and its (variable, expression) bindings in order."""
    function = module["main"]
    pairs = [(b.var, b.value) for block in function.body.blocks for b in block.bindings]
    return list(function.params), pairs


def main_result(module: Any) -> Any:
    return module["main"].body.body


TYPE_ERRORS = (TypeError, ValueError, tvm.error.InternalError)
"""What TVM's type rules raise where an operator's operands do not go together."""


class TvmConversionError(Exception):
    """One of TVM's converters refused an operator; the text is its last line."""


class TvmRefusalError(Exception):
    """TVM refused to lower something; the text is the last line of its message."""


class TfliteConverter:
    """TVM's own operator converter, driven one operator at a time."""

    def __init__(self, model: Any, subgraph: Any, builder: Any) -> None:
        from tvm.relax.frontend.tflite import tflite_frontend

        self._frontend = tflite_frontend
        self._table = tflite_frontend.ExprTable()
        self._subgraph = subgraph
        self._converter = tflite_frontend.OperatorConverter(model, subgraph, self._table, builder)
        self._builder = builder

    def knows(self, operator: str) -> bool:
        return operator in self._converter.convert_map

    def define(self, tensor_index: int, expr: Any) -> None:
        """Say what an input tensor is."""
        name = self._frontend.get_tensor_name(self._subgraph, tensor_index)
        self._table.set_expr(name, expr, force_override=True)

    def convert(self, operator: str, table: Any, outputs: int) -> list[Any]:
        """The expressions of the operator's outputs."""
        quantised = operator not in self._converter._SUPPORTED_QUANTIZED_OPS and any(
            tensor.qnn_params
            for tensor in (*self._converter.get_input_tensors(table), *self._converter.get_output_tensors(table))
        )
        if quantised:
            raise TvmConversionError("quantised operands of this operator are not supported")
        try:
            result = self._builder.normalize(self._converter.convert_map[operator](op=table))
        except Exception as error:  # TVM raises a dozen unrelated types here, assertions among them
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise TvmConversionError(f"TVM's converter says: {lines[-1] if lines else type(error).__name__}") from error
        return [result] if outputs == 1 else [relax.TupleGetItem(result, i) for i in range(outputs)]


class TorchConverter:
    """TVM's converter of PyTorch's exported programs, driven one node at a time."""

    def __init__(self, builder: Any) -> None:
        from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter

        self._importer = ExportedProgramImporter()
        self._importer.block_builder = builder

    def knows(self, operator: str) -> bool:
        """Named with its overload: ``conv2d.default``."""
        return operator in self._importer.convert_map

    def operators(self) -> list[str]:
        return [str(name) for name in self._importer.convert_map]

    def define(self, node: Any, expr: Any) -> None:
        """Say what an operand is."""
        self._importer.env[node] = expr

    def convert(self, operator: str, node: Any) -> Any:
        """The node's value, several ones as a list or as a variable of a tuple's type."""
        try:
            return self._importer.convert_map[operator](node)
        except Exception as error:  # TVM raises a dozen unrelated types here, assertions among them
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise TvmConversionError(f"TVM's converter says: {lines[-1] if lines else type(error).__name__}") from error


class ModuleBuilder:
    """Builds a module with one dataflow function ``main``."""

    def __init__(self) -> None:
        self.module: Any = None
        self._builder = relax.BlockBuilder()

    @contextlib.contextmanager
    def function(self, parameters: list[Any]) -> Iterator[FunctionBlock]:
        with self._builder.function("main", parameters):
            with self._builder.dataflow():
                block = FunctionBlock(self._builder)
                yield block
                result = self._builder.emit_output(block.result)
            self._builder.emit_func_output(result)
        self.module = self._builder.get()


class FunctionBlock:
    """The open dataflow block of a function under construction."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder
        self.result: Any = relax.Tuple([])

    def emit(self, expr: Any, name: str) -> Any:
        """Bind an expression to a new variable of this name; a type that does not fit raises TypeError."""
        return self.builder.emit(expr, name_hint=name)

    def stand_in(self, shape: tuple[int, ...], dtype: str) -> Any:
        """A variable of this type, for what could not be converted."""
        return relax.Var("stand_in", relax.TensorType(shape, dtype))

    def finish(self, result: Any) -> None:
        self.result = result


def with_all_bindings(module: Any) -> Any:
    """The module with a ``main`` that returns every bound tensor after its results, for looking at intermediates."""
    return rebuild_main(module, lambda _var, expr: expr, all_bindings=True)


def rebuild_main(module: Any, change: Callable[[Any, Any], Any], *, all_bindings: bool = False) -> Any:
    """``main`` bound anew, all other functions as they are.

    ``change`` gives the expression of each binding, a constant for one that is known.
    """
    function = module["main"]
    builder = relax.BlockBuilder()
    bound: dict[Any, Any] = {}
    with builder.function("main", list(function.params)):
        with builder.dataflow():
            for var, value in main_bindings(module)[1]:
                expr = change(var, relax_substitute(value, bound))
                bound[var] = expr if is_constant(expr) else builder.emit(expr, name_hint=var.name)
            wanted = relax_substitute(function.body.body, bound)
            result = builder.emit_output(relax.Tuple([wanted, *bound.values()]) if all_bindings else wanted)
        builder.emit_func_output(result)
    return _with_functions_of(module, builder.get())


def each_by_itself(module: Any, given: Sequence[Any], shown: Sequence[Any] = ()) -> Any:
    """A ``main`` in which every binding of ``given`` is computed from parameters: of the rest of the model, and one
    more for each value that such a binding had. It returns those bindings' values, then the arguments of the calls
    that ``shown`` bind."""
    function = module["main"]
    fresh = {var: [relax.Var(f"{var.name}_given", type_) for type_ in _fields_of(var)] for var in given}
    builder = relax.BlockBuilder()
    env: dict[Any, Any] = {}
    values: dict[Any, Any] = {}
    arguments: dict[Any, list[Any]] = {}
    with builder.function("main", [*function.params, *(each for some in fresh.values() for each in some)]):
        with builder.dataflow():
            for var, value in main_bindings(module)[1]:
                expr = relax_substitute(value, env)
                values[var] = bound = builder.emit(expr, name_hint=var.name)
                arguments[var] = list(expr.args) if is_call(expr) else []
                single = not hasattr(var.ty, "fields")
                env[var] = bound if var not in fresh else fresh[var][0] if single else relax.Tuple(fresh[var])
            wanted = [*(values[var] for var in given), *(each for var in shown for each in arguments[var])]
            result = builder.emit_output(relax.Tuple(wanted))
        builder.emit_func_output(result)
    return _with_functions_of(module, builder.get())


def _fields_of(var: Any) -> list[Any]:
    return list(var.ty.fields) if hasattr(var.ty, "fields") else [var.ty]


def _with_functions_of(module: Any, rebuilt: Any) -> Any:
    """With all functions that the other module has besides ``main``."""
    for name, other in module.functions.items():
        if name.name_hint != "main":
            rebuilt[name] = other
    return rebuilt


def with_names(module: Any, names: Mapping[Any, str]) -> Any:
    """``main`` with new names for some of its variables, each bound once, and with indices that stay in bounds."""
    parameters, bindings, result = bindings_of(module["main"])
    bound: dict[Any, Any] = {}

    def body(block: FunctionBlock) -> Any:
        for var, expr in bindings:
            safe = _within_bounds(relax_substitute(expr, bound))
            bound[var] = block.emit(safe, names.get(var, var.name))
        return relax_substitute(result, bound)

    return replace_main(parameters, body)


def _within_bounds(expr: Any) -> Any:
    """Wrong indices give the nearest element; TVM's own way, to read whatever lies there, it warns of itself."""
    if is_operator_call(expr) and expr.op.name == "relax.take" and expr.attrs.mode == "fast":
        data, indices = expr.args
        return relax.op.take(data, indices, expr.attrs.axis, mode="clip")
    return expr


def relax_substitute(expr: Any, replacement: dict[Any, Any]) -> Any:
    """The expression with variables replaced; normalised modules nest no deeper than a call's arguments."""
    if is_var(expr):
        return replacement.get(expr, expr)
    if is_tuple(expr):
        return relax.Tuple([relax_substitute(entry, replacement) for entry in expr.fields])
    if is_tuple_get_item(expr):
        return relax.TupleGetItem(relax_substitute(expr.tuple_value, replacement), expr.index)
    if is_call(expr):
        return relax.Call(expr.op, [relax_substitute(arg, replacement) for arg in expr.args], expr.attrs, expr.ty_args)
    return expr


# What the printer of plain C (cprinter/) needs to walk and to prepare TIR.

Call = tvm.ir.Call
TensorLoad = tvm.ir.TensorLoad


ScheduleError = s_tir.schedule.ScheduleError


def dtype_of(expr: Any) -> str:
    """The element type of a TIR expression."""
    return str(expr.ty.dtype)


def buffer_dtype(buffer: Any) -> str:
    """The element type of a TIR buffer."""
    return str(buffer.ty.dtype.dtype)


def walk(root: Any, kind: type, visit: Callable[[Any], object]) -> None:
    """Call ``visit`` on every node of a type below ``root``."""

    def callback(node: Any) -> None:
        visit(node)

    structural_walk(root, (kind, callback))


def lower_intrinsic(call: Any) -> Any | None:
    """What TVM's rule makes of an intrinsic for a target without one of its own; None without a rule."""
    for key in ("default.FLowerIntrinsic", "default.FLegalize"):
        rule = call.op.get_attr(key) if isinstance(call.op, Op) else None
        lowered = rule(call) if rule is not None else None
        if lowered is not None and not lowered.same_as(call):
            return lowered
    return None


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """Whatever TVM raises inside as ``TvmRefusalError``: it has a dozen unrelated types, assertions among them."""
    try:
        yield
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise TvmRefusalError(lines[-1] if lines else type(error).__name__) from error


@refusals()
def lower_blocks(func: Any) -> Any:
    """A TIR function of blocks over tensors as loops over flat buffers."""
    passes = [
        tirx.transform.BindTarget(tvm.target.Target("c", host="c")),
        s_tir.transform.LowerInitBlock(),
        s_tir.transform.PlanAndUpdateBufferAllocationLocation(),
        s_tir.transform.ConvertBlocksToOpaque(),
        s_tir.transform.CompactBufferAllocation(),
        s_tir.transform.LowerMatchBuffer(),
        s_tir.transform.LowerOpaqueBlock(),
        tirx.transform.FlattenBuffer(),
        tirx.transform.StmtSimplify(),
        tirx.transform.RemoveNoOp(),
        tirx.transform.CommonSubexprElim(),
    ]
    module = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
    return tvm.transform.Sequential(passes)(module)["main"]


@refusals()
def legalise(call: Any, parameters: list[Any]) -> Any:
    """A module whose ``main`` computes an operator call with TIR functions."""
    from tvm.relax.backend import DispatchSortScan

    builder = relax.BlockBuilder()
    normal = builder.normalize(call)  # before a function is open: what fails inside one complains on stderr
    with builder.function("main", parameters):
        builder.emit_func_output(builder.emit(normal))
    with tvm.target.Target("llvm"):
        return relax.transform.LegalizeOps()(DispatchSortScan()(builder.get()))


def copying_function(shape: tuple[int, ...], dtype: str) -> Any:
    """A TIR function that copies a tensor."""
    source = te.placeholder(shape, dtype, name="source")
    return te.create_prim_func([source, te.compute(shape, lambda *index: source(*index), name="copy")])


def schedule(func: Any) -> Any:
    """TVM's scheduler on a module with this function as ``main``."""
    return s_tir.Schedule(tvm.IRModule({"main": func.with_attr("global_symbol", "main")}))


@refusals()
def with_plain_buffers(func: Any) -> Any:
    """The function with contiguous parameters that start at their pointer, where it left that open."""
    plain = {}
    for parameter in func.params:
        kind = parameter.ty
        if not isinstance(kind, tirx.BufferType):
            continue
        if not isinstance(kind.elem_offset, tirx.IntImm) or kind.strides:
            plain[parameter] = tirx.decl_buffer(kind.shape, kind.dtype, parameter.name)
    return func.specialize(plain) if plain else func


def _onnx_converters() -> dict[str, Any]:
    from tvm.relax.frontend.onnx import onnx_frontend

    converters: dict[str, Any] = onnx_frontend._get_convert_map()
    return converters


def knows_onnx_operator(operator: str) -> bool:
    return operator in _onnx_converters()


def convert_onnx_node(
    builder: Any, operator: str, inputs: list[Any], attributes: Any, opset: int, outputs: int, name: str
) -> list[Any]:
    """What TVM's own converter makes of an ONNX node: the expressions of its outputs, with their types."""
    from tvm.relax.frontend.onnx import onnx_frontend

    importer = onnx_frontend.ONNXGraphImporter({}, "float32")
    importer.bb = builder
    try:
        parsed = importer._parse_attr(attributes)
        parsed["tvm_custom"] = {"name": name, "num_outputs": outputs}
        result = importer._convert_operator(operator, onnx_frontend.onnx_input(inputs), parsed, opset)
        if is_tuple(result):
            return [builder.normalize(field) for field in result.fields]
        if is_tuple_type(result):
            bound = builder.emit(result)
            return [builder.normalize(relax.TupleGetItem(bound, i)) for i in range(len(bound.ty.fields))]
        return [result]
    except Exception as error:  # TVM raises a dozen unrelated types here, assertions among them
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise TvmConversionError(f"TVM's converter says: {lines[-1] if lines else type(error).__name__}") from error


def written_by_loops(
    outputs: list[tuple[tuple[int, ...], str]], inputs: list[Any], write: Callable[..., None], name: str
) -> list[Any]:
    """TE tensors of these shapes and types that ``write`` fills: it is given inputs and outputs as arrays, indexed
    as they lie in memory, and loops with ``count_to``. For what depends on its own earlier results."""

    def statement(sources: Any, targets: Any) -> Any:
        with IRBuilder() as builder:
            with count_to(1):  # arrays want a frame to stand in
                write(*(script.buffer_proxy(buffer) for buffer in (*sources, *targets)))
            return builder.get()

    shapes, dtypes = [shape for shape, _ in outputs], [dtype for _, dtype in outputs]
    return list(te.extern(shapes, inputs, statement, name=name, dtype=dtypes))


def count_to(extent: int) -> Any:
    """A loop of ``written_by_loops``: ``with count_to(4) as i``."""
    return script.serial(0, extent)


def local_array(count: int, dtype: str) -> Any:
    """An array inside ``written_by_loops``."""
    return script.buffer_proxy(script.decl_buffer([count], dtype, scope="local"))


def computed_once(value: Any) -> Any:
    """A value inside ``written_by_loops`` that expressions may use often without growing by it."""
    array = local_array(1, str(value.ty.dtype))
    array[0] = value
    return array[0]
