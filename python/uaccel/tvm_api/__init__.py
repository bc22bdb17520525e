"""Wraps TVM: this is the one package that touches its unstable names. Relax is here, other parts have own modules.

TVM moves names in every release (``tir`` became ``tirx``, FFI helpers wander). Everything else in uaccel imports
what it needs from here, so that a new TVM release is a change to this folder and to the version pin.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

from uaccel.tvm_api.absent import absent

with absent("torch"):  # where it is installed TVM loads it, which takes seconds; its own converter does so when needed
    import tvm
    from tvm import relax
import tvm.ir._ffi_api as _ir_ffi
from tvm import te, tirx
from tvm.ir import Op
from tvm.relax.dpl.pattern import CallPattern, DFPattern, ExprPattern, OrPattern, wildcard
from tvm_ffi.structural import structural_equal, structural_hash

from uaccel.tvm_api.extremes import register_extremes
from uaccel.tvm_api.places import register_places

__all__ = [
    "TYPE_ERRORS",
    "CallPattern",
    "DFPattern",
    "DictAttrs",
    "ModuleBuilder",
    "Op",
    "OrPattern",
    "make_call",
    "of_relax",
    "register_operator",
    "relax",
    "structural_equal",
    "structural_hash",
    "te",
    "tirx",
    "tvm",
    "wildcard",
]

DictAttrs = tvm.ir.DictAttrs
register_extremes()
register_places()


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


def of_relax(name: str) -> Callable[..., Any]:
    """The function that calls Relax's own operator of this name, such as ``nn.relu``."""
    call: Callable[..., Any] = attrgetter(name)(relax.op)
    return call


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
    """The variables that an expression of a normalised module reads, in order."""
    if is_var(expr):
        yield expr
    elif is_tuple_get_item(expr):
        yield from variables(expr.tuple_value)
    elif is_tuple(expr) or is_call(expr):
        for entry in expr.fields if is_tuple(expr) else expr.args:
            yield from variables(entry)


def is_operator_call(expr: Any) -> bool:
    """Whether it calls an operator with a name; not a function or a variable."""
    return is_call(expr) and isinstance(expr.op, Op)


def is_module(value: Any) -> bool:
    return isinstance(value, tvm.IRModule)


def is_expression(value: Any) -> bool:
    """Whether a variable can be bound to it."""
    return isinstance(value, relax.Expr)


def is_region_call(expr: Any) -> bool:
    """Whether it calls a function of the module, rather than an operator."""
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


def with_type(call: Any, args: list[Any], old: str, new: str) -> Any:
    """The same call with other arguments; attributes that name the type ``old`` name ``new`` instead."""
    attrs = call.attrs
    if attrs is not None:
        info = type(attrs).__tvm_ffi_type_info__
        values = {field.name: getattr(attrs, field.name) for field in info.fields}
        named = {name: new for name, value in values.items() if str(value) == old}
        attrs = tvm.ir.make_node(info.type_key, **(values | named)) if named else attrs
    return relax.Call(call.op, args, attrs)


# Operators whose patterns need explicit operands. TVM's matcher rearranges products and quotients and takes the
# operands of such patterns for granted; without them it would see products in quotients.
_LOOKED_INTO = ("relax.multiply", "relax.divide")


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
    """Emit the body of an open function; if that fails, the function is closed first, or TVM complains on stderr."""
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
    """Add a function to the module and return its global variable; the name gets a number where it is taken."""
    return block.builder.add_func(function, name)


def module_of(function: Any) -> Any:
    """A module with this function as ``main``."""
    return tvm.IRModule({"main": function.with_attr("global_symbol", "main")})


def same_type(one: Any, other: Any) -> bool:
    """Whether two functions have the same types of parameters and result."""
    return bool(structural_equal(one.ty, other.ty))


def bindings_of(function: Any) -> tuple[list[Any], list[tuple[Any, Any]], Any]:
    """Parameters, (variable, expression) bindings in order, and the result of a function.

    Bindings that only give a variable a second name are left out, and the first name is used throughout.
    """
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
        result = pairs.pop()[1]  # the block gives out a variable that is bound to a tuple: several results
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


# The errors that TVM's type rules raise where operands do not fit together.
TYPE_ERRORS = (TypeError, ValueError, tvm.error.InternalError)


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


def _product(expr: Any) -> Any:
    """TVM takes a product with the number 0 for 0, which it is not if the other factor is NaN or infinite. It computes
    one with a tensor of one element, so the number becomes that."""
    if not is_operator_call(expr) or expr.op.name != "relax.multiply":
        return expr
    one, other = expr.args
    first, second = _spread(one, other), _spread(other, one)
    return expr if first is one and second is other else relax.op.multiply(first, second)


def _spread(factor: Any, other: Any) -> Any:
    """The factor; the number 0 as a tensor, if the other factor has dimensions."""
    if not is_constant(factor) or is_constant(other) or not getattr(other.ty, "ndim", 0):
        return factor
    value = factor.value.numpy()
    return relax.const(value.reshape(1)) if value.ndim == 0 and value.dtype.kind == "f" and value == 0 else factor


class FunctionBlock:
    """Holds the open dataflow block of a function under construction."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder
        self.result: Any = relax.Tuple([])

    def emit(self, expr: Any, name: str) -> Any:
        """Bind an expression to a new variable of this name; a type that does not fit raises TypeError."""
        return self.builder.emit(_product(expr), name_hint=name)

    def stand_in(self, shape: tuple[int, ...], dtype: str) -> Any:
        """A variable of this type, for what could not be converted."""
        return relax.Var("stand_in", relax.TensorType(shape, dtype))

    def finish(self, result: Any) -> None:
        self.result = result


def with_all_bindings(module: Any) -> Any:
    """The module with a ``main`` that returns every bound tensor after its results, for looking at intermediates."""
    return rebuild_main(module, lambda _var, expr: expr, all_bindings=True)


def with_constants(module: Any, known: Mapping[int, Any]) -> Any:
    """``main`` with arrays in place of some parameters, by their places; they are no longer parameters."""
    parameters = module["main"].params
    return relax.transform.BindParams("main", {parameters[place]: value for place, value in known.items()})(module)


def rebuild_main(module: Any, change: Callable[[Any, Any], Any], *, all_bindings: bool = False) -> Any:
    """``main`` bound anew, all other functions as they are.

    ``change`` gives the expression of each binding, a constant for one that is known.
    """

    def write(emit: Emit, var: Any, value: Any) -> Any:
        expr = change(var, value)
        return expr if is_constant(expr) else emit(expr, var.name)

    return rewrite_main(module, write, all_bindings=all_bindings)


Emit = Callable[[Any, str], Any]


def rewrite_main(module: Any, write: Callable[[Emit, Any, Any], Any], *, all_bindings: bool = False) -> Any:
    """``main`` bound anew as in :func:`rebuild_main`, by ``write``: it may emit any number of bindings for one, and
    returns the value that stands for it."""
    function = module["main"]
    builder = relax.BlockBuilder()
    bound: dict[Any, Any] = {}

    def emit(expr: Any, name: str) -> Any:
        return builder.emit(expr, name_hint=name)

    with builder.function("main", list(function.params)):
        with builder.dataflow():
            for var, value in main_bindings(module)[1]:
                bound[var] = write(emit, var, relax_substitute(value, bound))
            wanted = relax_substitute(function.body.body, bound)
            result = builder.emit_output(relax.Tuple([wanted, *bound.values()]) if all_bindings else wanted)
        builder.emit_func_output(result)
    return _with_functions_of(module, builder.get())


def each_by_itself(module: Any, given: Sequence[Any], shown: Sequence[Any] = ()) -> Any:
    """A ``main`` in which the bindings of ``given`` no longer depend on each other.

    Each of them gets a further parameter, which takes its place wherever its value was used (several for a tuple). So
    every binding is computed from values that the caller gives. The results are the values of ``given``, then the
    arguments of the calls that ``shown`` bind.
    """
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


def reordered_main(module: Any, parameters: Sequence[int], results: Sequence[int]) -> Any:
    """``main`` with its parameters and results in another order, told by their numbers."""
    given, bindings, result = bindings_of(module["main"])
    made = list(result.fields) if is_tuple(result) else [result]
    bound: dict[Any, Any] = {}

    def body(block: FunctionBlock) -> Any:
        for var, expr in bindings:
            bound[var] = block.emit(relax_substitute(expr, bound), var.name)
        return relax.Tuple([relax_substitute(made[number], bound) for number in results])

    return _with_functions_of(module, replace_main([given[number] for number in parameters], body))


def _with_functions_of(module: Any, rebuilt: Any) -> Any:
    """The rebuilt module with all functions that the other one has besides ``main``."""
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
    """A ``take`` that clips its indices, so that wrong ones give the nearest element. TVM's default reads whatever lies
    there."""
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
