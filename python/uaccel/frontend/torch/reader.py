"""Reads a ``.pt2`` file, which is a zip archive with weights and a program in JSON, as checked plain data.

PyTorch's own loader is not used, because it unpickles, evaluates and compiles what the file says. Nothing of PyTorch's
is used here. What ``torch.export.save`` does not write is refused.
"""

from __future__ import annotations

import io
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from uaccel.errors import ModelError
from uaccel.frontend.checks import fixed_shape
from uaccel.frontend.torch.serialised import (
    Expression,
    Extent,
    MisfitError,
    TensorMeta,
    entries,
    fields,
    identifier,
    integer,
    items,
    need,
    parsed,
    path,
    symbolic,
    tagged,
    tensor_meta,
    text,
    truth,
)
from uaccel.model import Shape

# The zip archive: its records, in the one form in which PyTorch writes them.
#
# A zip archive describes each record twice, in the directory at its end and in a header before the record. Readers
# differ in which they believe, and in what they make of gaps, overlaps and repeated names. So both must agree, and the
# records must fill the file from its first byte to the directory. Then all readers see the same records.

LARGEST_FILE: Final = 1 << 30  # Bytes, about a thousand times what firmware can hold.
MOST_RECORDS: Final = 65_536

_LOCAL: Final = struct.Struct("<4s5H3I2H")
_LONGEST_NAME: Final = 500
_SIZES_FOLLOW, _UTF8 = 0x8, 0x800  # Flags of a record: its sizes stand behind it; its name is UTF-8.
# Sizes in a local header that are to be found elsewhere: behind the record (0), or in its extra field (Zip64).
_ELSEWHERE: Final = (0, 0xFFFFFFFF)

# Bytes from a record to the next header: none, or a data descriptor, which is a checksum of 4 bytes and two sizes of 4
# or 8 bytes, perhaps with a mark of 4 bytes before them.
_BETWEEN: Final = (0, 12, 16, 20, 24)


class RecordsError(Exception):
    """Says what is wrong with the archive."""


@dataclass(frozen=True)
class _Span:
    """Says where a record lies in the file: where its header begins, and where its bytes begin and end."""

    name: str
    header: int
    begin: int
    end: int


def names(data: bytes) -> list[str]:
    """The names of the records below the folder that holds them all, in any zip archive."""
    found = [entry.filename for entry in _directory(data)[0]]
    return [name[_root(found) :] for name in found]


def records(data: bytes) -> dict[str, memoryview]:
    """The bytes of each record by its name below the folder; RecordsError for what PyTorch does not write."""
    entries, directory = _directory(data)
    need(len(entries) <= MOST_RECORDS, f"it has {len(entries)} records, more than {MOST_RECORDS}", RecordsError)
    spans = sorted((_span(data, entry) for entry in entries), key=lambda span: span.header)
    _check_order(spans, directory)
    whole, root = memoryview(data), _root([span.name for span in spans])
    found = {span.name[root:]: whole[span.begin : span.end] for span in spans}
    need(len(found) == len(spans), "it has two records of one name", RecordsError)
    return found


def _directory(data: bytes) -> tuple[list[zipfile.ZipInfo], int]:
    """The entries of the directory at the archive's end, and where the directory begins."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            need(not archive.comment, "something follows the archive", RecordsError)
            return archive.infolist(), archive.start_dir
    except zipfile.BadZipFile as error:
        raise RecordsError(str(error).rstrip(".")) from error
    except (ValueError, RuntimeError, OverflowError, struct.error) as error:  # as zipfile says it
        raise RecordsError("its directory makes no sense") from error


def _root(found: list[str]) -> int:
    """How many characters of each name are the common folder with its slash; 0 without one."""
    roots = {name.partition("/")[0] for name in found if "/" in name}
    return len(roots.pop()) + 1 if len(roots) == 1 and all("/" in name for name in found) else 0


def _span(data: bytes, entry: zipfile.ZipInfo) -> _Span:
    """Check a record, and say where it lies: directory and header must agree, and the checksum be right."""
    name = entry.orig_filename
    plain = name.isprintable() and "\\" not in name and ".." not in name.split("/") and not name.startswith("/")
    if not plain or name != entry.filename or len(name) > _LONGEST_NAME:
        raise RecordsError(f"a record has the name {name[:80]!r}")
    if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
        raise RecordsError(f"{name} is compressed, which PyTorch does not do")
    if entry.flag_bits & ~(_SIZES_FOLLOW | _UTF8) or entry.volume:
        raise RecordsError(f"{name} is encrypted or in several parts, which PyTorch does not do")
    header = data[entry.header_offset : entry.header_offset + _LOCAL.size]
    need(len(header) == _LOCAL.size and entry.header_offset >= 0, f"{name} lies outside the file", RecordsError)
    mark, _, flags, method, _, _, checksum, stored, size, name_size, extra_size = _LOCAL.unpack(header)
    begin = entry.header_offset + _LOCAL.size + name_size + extra_size
    end = begin + entry.file_size
    need(mark == b"PK\x03\x04" and end <= len(data), f"{name} lies outside the file", RecordsError)
    local = data[entry.header_offset + _LOCAL.size : begin - extra_size]
    behind = _ELSEWHERE if flags & _SIZES_FOLLOW or extra_size else ()
    same = local == name.encode("utf-8" if entry.flag_bits & _UTF8 else "cp437")
    same = same and (flags, method) == (entry.flag_bits, entry.compress_type)
    same = same and all(said == entry.file_size or said in behind for said in (stored, size))
    if not same or (checksum != entry.CRC and not (flags & _SIZES_FOLLOW and checksum == 0)):
        raise RecordsError(f"the archive says two things of {name}")
    need(zlib.crc32(memoryview(data)[begin:end]) == entry.CRC, f"the checksum of {name} is wrong", RecordsError)
    return _Span(name, entry.header_offset, begin, end)


def _check_order(spans: list[_Span], directory: int) -> None:
    """Check that the records fill the file from its first byte to the directory, without gap or overlap."""
    need(spans and spans[0].header == 0, "something precedes the archive", RecordsError)
    ends = [*(span.header for span in spans[1:]), directory]
    for span, end in zip(spans, ends, strict=True):
        need(end - span.end in _BETWEEN, f"{span.name} overlaps what follows it, or leaves a gap", RecordsError)


# The program: operators with the names of their operands and results, in types of our own.

MOST_NODES: Final = 50_000
_SCHEMA: Final = 8  # The major version of the JSON's schema that this reads.
_DEEPEST: Final = 8  # Levels of graphs within operators.
# Kinds of inputs that are tensors of the file, and of outputs that write to something, with the entry that names it.
_TENSORS: Final = {"parameter": "parameter_name", "buffer": "buffer_name", "tensor_constant": "tensor_constant_name"}
_BUFFER: Final = "buffer_mutation"
_CHANGES: Final = {
    _BUFFER: "buffer_name",
    "parameter_mutation": "parameter_name",
    "user_input_mutation": "user_input_name",
}
_RESULT: Final = "user_output"

Value = tuple[str, Any]  # The kind of an argument, such as ``as_tensor``, and its content, not yet checked.


@dataclass(frozen=True)
class Argument:
    """Holds an operand. ``kind`` is 1 for one given by its place, 2 by its name, 0 where the file does not say."""

    name: str
    kind: int
    value: Value


@dataclass(frozen=True)
class FileNode:
    """Describes an operator. ``results`` has None for an unused one; ``several`` says whether they stand in a list."""

    target: str
    inputs: tuple[Argument, ...]
    results: tuple[str | None, ...]
    several: bool
    name: str

    @property
    def lines(self) -> int:
        """How many operators PyTorch's listing has for it: taking each result out of a list is one more."""
        return 1 + (len(self.results) if self.several else 0)


@dataclass(frozen=True)
class FileGraph:
    """Describes a graph. ``tensors`` is what the file says of them, which may be wrong; ``numbers`` names extents."""

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    nodes: tuple[FileNode, ...]
    tensors: dict[str, TensorMeta]
    numbers: frozenset[str]

    def uses(self, prefix: str) -> bool:
        """Whether any operator, also of graphs inside, has a name that begins so."""
        inner = (argument.value for node in self.nodes for argument in node.inputs)
        return any(node.target.startswith(prefix) for node in self.nodes) or any(
            tag == "as_graph" and graph.uses(prefix) for tag, graph in inner
        )


@dataclass(frozen=True)
class FileInput:
    """Describes an input. ``stored`` names the tensor of the file that it is, None where the caller gives it."""

    name: str
    stored: str | None
    value: Value


@dataclass(frozen=True)
class FileProgram:
    """Holds the program. ``changed`` names parameters and inputs that it writes to, and ``kept`` has what buffers
    become; ``ranges`` bounds each symbol, None for an open bound."""

    graph: FileGraph
    inputs: tuple[FileInput, ...]
    outputs: tuple[Value, ...]
    changed: tuple[str, ...]
    kept: Mapping[str, Value]
    ranges: dict[str, tuple[int | None, int | None]]
    conditions: tuple[str, ...] = ()

    def uses(self, library: str) -> bool:
        """Whether it calls operators of ``torch.ops.<library>``."""
        return self.graph.uses(f"torch.ops.{library}.")


def program_file(content: bytes | memoryview) -> FileProgram:
    """Read the program's JSON; MisfitError says what is wrong with it."""
    whole = parsed(content, "program")
    module, ranges, version, conditions = fields(
        whole,
        "program",
        *("graph_module", "range_constraints", "schema_version", "guards_code?"),
        *("verifiers?", "torch_version?", "opset_version?"),
    )[:4]
    major, _ = fields(version, "schema version", "major", "minor")
    need(major == _SCHEMA, f"program has the schema {str(major)[:20]}, wanted {_SCHEMA}; export it with PyTorch 2.13")
    body, signature = fields(
        module, "module", "graph", "signature", "module_call_graph?", "metadata?", "treespec_namedtuple_fields?"
    )[:2]
    given, results = fields(signature, "signature", "input_specs", "output_specs")
    specs = items(results, "output", _output)
    changed = tuple(target for kind, target, _ in specs if kind not in (_BUFFER, _RESULT))
    kept = {target: value for kind, target, value in specs if kind == _BUFFER}
    return FileProgram(
        graph=_graph(body, "graph", 0),
        inputs=items(given, "input", _input),
        outputs=tuple(value for kind, _, value in specs if kind == _RESULT),
        changed=changed,
        kept=kept,
        ranges=entries(ranges, "range of", _range),
        conditions=items(conditions or [], "condition", text),
    )


def _input(value: Any, what: str) -> FileInput:
    kind, content = tagged(value, what)
    if kind in _TENSORS:
        argument, target = fields(content, what, "arg", _TENSORS[kind], "persistent?")[:2]
        (tensor,) = fields(argument, what, "name")
        return FileInput(identifier(tensor, what), path(target, what), ("as_tensor", argument))
    if kind == "constant_input":
        return FileInput("", None, tagged(fields(content, what, "name", "value")[1], what))
    need(kind == "user_input", f"{what} is a {kind[:40]!r}; only tensors and numbers can be")
    tag, inner = tagged(fields(content, what, "arg")[0], what)
    return FileInput(identifier(fields(inner, what, "name")[0], what) if tag == "as_tensor" else "", None, (tag, inner))


def _output(value: Any, what: str) -> tuple[str, str, Value]:
    """The kind of an output, the name of what it is written to, empty for a result; and the value."""
    kind, content = tagged(value, what)
    if kind in _CHANGES:
        argument, target = fields(content, what, "arg", _CHANGES[kind])
        prefix = "input " if kind == "user_input_mutation" else ""
        return kind, prefix + path(target, what), ("as_tensor", argument)
    need(kind == _RESULT, f"{what} is a {kind[:40]!r}; only results can be")
    return kind, "", tagged(fields(content, what, "arg")[0], what)


def _range(value: Any, what: str) -> tuple[int | None, int | None]:
    low, high = (None if bound is None else integer(bound, what) for bound in fields(value, what, "min_val", "max_val"))
    return low, high


def _graph(value: Any, what: str, depth: int) -> FileGraph:
    need(depth < _DEEPEST, f"{what} nests deeper than {_DEEPEST}")
    given, results, nodes, tensors, numbers, flags = fields(
        value,
        what,
        *("inputs", "outputs", "nodes", "tensor_values", "sym_int_values", "sym_bool_values"),
        *("sym_float_values?", "is_single_tensor_return?", "custom_obj_values?"),
    )[:6]
    need(not value.get("custom_obj_values"), f"{what} has objects that are no tensors")
    need(isinstance(nodes, list) and len(nodes) <= MOST_NODES, f"{what} has more than {MOST_NODES} operators")
    plain = {"as_int", "as_bool", "as_float"}
    named: set[str] = set()
    for group in (numbers, flags, value.get("sym_float_values") or {}):
        for key, (tag, content) in entries(group, f"{what}: number", tagged).items():
            if tag not in plain:
                symbolic(tag, content, f"{what}: number {key[:40]!r}")
            named.add(identifier(key, f"{what}: number"))
    return FileGraph(
        items(given, f"{what}: input", tagged),
        items(results, f"{what}: output", tagged),
        items(nodes, f"{what}: operator", lambda node, where: _node(node, where, depth)),
        {identifier(key, what): meta for key, meta in entries(tensors, f"{what}: tensor", tensor_meta).items()},
        frozenset(named),
    )


def _node(value: Any, what: str, depth: int) -> FileNode:
    target, given, results, _, single, called = fields(
        value, what, "target", "inputs", "outputs", "metadata?", "is_hop_single_tensor_return?", "name?"
    )
    arguments = items(given, f"{what}: argument", lambda one, where: _argument(one, where, depth))
    given_names = [argument.name for argument in arguments if argument.name]
    need(len(set(given_names)) == len(given_names), f"{what} has two arguments of one name")
    made = items(results, f"{what}: result", tagged)
    names = tuple(found for value in made for found in _results(value, what))
    several = len(made) != 1 or made[0][0] == "as_tensors" or single is False
    first = next((found for found in names if found), "unnamed")
    fits = re.fullmatch(r"[\w.]{1,200}", text(target, what), re.ASCII)
    need(fits, f"{what} is {str(target)[:40]!r}, no operator's name")
    return FileNode(target, arguments, names, several, identifier(called, what) if called else first)


def _results(value: Value, what: str) -> list[str | None]:
    """The names in one entry of an operator's results: of a tensor, a list of tensors, or a number."""
    tag, content = value
    if tag == "as_none":
        return [None]
    if tag == "as_tensor":
        return [identifier(fields(content, what, "name")[0], what)]
    if tag == "as_tensors":
        return list(items(content, what, lambda one, where: identifier(fields(one, where, "name")[0], where)))
    need(tag in ("as_sym_int", "as_sym_float", "as_sym_bool"), f"{what} makes a {tag[:40]!r}")
    return [identifier(fields(content, what, "as_name")[0], what)]


def _argument(value: Any, what: str, depth: int) -> Argument:
    called, content, kind = fields(value, what, "name", "arg", "kind?")
    tag, inner = tagged(content, what)
    if tag == "as_graph":
        inner = _graph(fields(inner, what, "name", "graph")[1], what, depth + 1)
    kind = integer(kind or 0, what)
    need(kind in (0, 1, 2), f"{what} is of the unknown kind {kind}")
    return Argument(text(called, what), kind, (tag, inner))


# The whole file: which records it may have, and its tensors.
#
# A record whose name is not listed here could hold a pickle, so the file is refused.

WANTED: Final = "give what torch.export.save(torch.export.export(model.eval(), inputs), path) writes"

_PROGRAM: Final = "models/model.json"
# For each folder of tensors its name, the record that says where each tensor's bytes lie, and how the names of records
# of plain tensors begin.
_WEIGHTS: Final = ("data/weights/", "model_weights_config.json", "weight_")
_CONSTANTS: Final = ("data/constants/", "model_constants_config.json", "tensor_")
_CONFIGS: Final = (_WEIGHTS[0] + _WEIGHTS[1], _CONSTANTS[0] + _CONSTANTS[1])
# Small records, and patterns of what each may say.
_SAYS: Final = {
    "archive_format": rb"pt2",
    "archive_version": rb"0",
    "byteorder": rb"little",
    ".data/serialization_id": rb"[0-9]{1,64}",
    **dict.fromkeys(("version", ".data/version", ".format_version", ".storage_alignment"), rb"[0-9]{1,8}\n?"),
}
_IGNORED: Final = ("data/sample_inputs/model.pt",)  # A pickle that every file has, and that is never opened.
_EXTRA: Final = "extra/"  # Files that the author added, which are never opened either.

# Bytes that a tensor may have whose elements share places in the file. With strides of 0 a few bytes of a file could
# otherwise become a tensor that fills the memory.
_EXPANDED: Final = 1 << 24


@dataclass(frozen=True)
class StoredTensor:
    """Holds a tensor of the file. ``meta`` has numbers alone, and no element lies outside ``content``."""

    meta: TensorMeta
    content: memoryview


@dataclass(frozen=True)
class Stored:
    """Holds all that is read of a ``.pt2`` file."""

    program: FileProgram
    tensors: Mapping[str, StoredTensor]


def read(where: Path, data: bytes) -> Stored:
    """Read the file at ``where``, whose content is ``data``; ModelError for all that it should not hold."""
    need(data, f"{where} is empty; {WANTED}", ModelError)
    try:
        _check_kind(where, names(data))
        found = records(data)
        _check_names(where, found)
        weights, constants = _tensors(where, found, *_WEIGHTS), _tensors(where, found, *_CONSTANTS)
        need(weights.keys().isdisjoint(constants), "weights and constants share a name")
        _check_used(where, found, weights | constants)
        return Stored(program_file(found[_PROGRAM]), weights | constants)
    except RecordsError as error:
        if not data.startswith(b"PK"):
            seen = "a pickle" if data[:1] == b"\x80" else f"something that starts with {data[:4]!r}"
            raise ModelError(f"{where} is not an exported program but {seen}; {WANTED}") from error
        raise ModelError(f"{where} is damaged: {error}; {WANTED}") from error
    except MisfitError as error:
        raise ModelError(f"{where} cannot be read: its {error}; {WANTED}") from error


def _check_kind(where: Path, found: list[str]) -> None:
    """Recognise other files of PyTorch's by their records, so that the error can name them."""
    if {_PROGRAM, "archive_format", *_CONFIGS} <= set(found):
        return
    others = {
        "constants.pkl": "a TorchScript module (torch.jit.save)",
        "data.pkl": "what torch.save writes, a state_dict or a pickled module",
    }
    kind = next((what for name, what in others.items() if name in found), "an archive without models/model.json")
    if _PROGRAM in found or "serialized_exported_program.json" in found:
        kind = "one of an older PyTorch, with pickled weights"
    raise ModelError(f"{where} is not an exported program of a current PyTorch but {kind}; {WANTED}")


def _check_names(where: Path, found: Mapping[str, memoryview]) -> None:
    """Check that each record is one that an exported program of plain tensors has."""
    plain = [re.compile(re.escape(folder + prefix) + r"[0-9]{1,9}") for folder, _, prefix in (_WEIGHTS, _CONSTANTS)]
    for name, content in found.items():
        if name in _SAYS:
            if not re.fullmatch(_SAYS[name], bytes(content[:100])):
                raise ModelError(f"{where}: its record {name} says {bytes(content[:20])!r}; {WANTED}")
        elif not (
            name in (_PROGRAM, *_CONFIGS, *_IGNORED)
            or name.startswith(_EXTRA)
            or any(pattern.fullmatch(name) for pattern in plain)
        ):
            raise ModelError(
                f"{where}: its record {name[:100]} is not one of an exported program of plain tensors, could hold any "
                f"code and is not loaded; {WANTED}"
            )


def _tensors(
    where: Path, found: Mapping[str, memoryview], folder: str, config: str, prefix: str
) -> dict[str, StoredTensor]:
    """The tensors of a folder by their names in the program."""
    (listing,) = fields(parsed(found[folder + config], config), config, "config")
    need(isinstance(listing, dict), f"{config} lists nothing")
    tensors = {}
    for name, entry in listing.items():
        path(name, "weight")
        file, is_parameter, use_pickle, meta = fields(
            entry, f"{config}: {name!r}", "path_name", "is_param", "use_pickle", "tensor_meta?"
        )
        truth(is_parameter, f"{config}: {name!r}")
        if use_pickle or not meta or not re.fullmatch(rf"{prefix}[0-9]{{1,9}}", text(file, config)):
            raise ModelError(
                f'{where}: weight "{name}" is pickled, which can hold any code and is not loaded; '
                "export the model with plain tensors as weights"
            )
        need(folder + file in found, f"weight {name!r} is missing")
        tensors[name] = _stored(tensor_meta(meta, f"weight {name!r}"), found[folder + file], name)
    return tensors


def _stored(meta: TensorMeta, content: memoryview, name: str) -> StoredTensor:
    """Check that all elements lie in the record. No stride is negative, so the one of largest indices lies last."""
    numbers: list[Any] = [*meta.shape, *meta.strides, meta.offset]
    need(all(type(value) is int and value >= 0 for value in numbers), f"weight {name!r} has no fixed place")
    shape, strides = numbers[: len(meta.shape)], numbers[len(meta.shape) : -1]
    need(meta.dtype in SIZES, f"weight {name!r} has the unknown type {meta.dtype}")
    expanded = math.prod(max(size, 1) for size in shape) * SIZES[meta.dtype]
    need(expanded <= max(len(content), _EXPANDED), f"weight {name!r} has {expanded} bytes of the same few")
    last = numbers[-1] + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    inside = 0 in shape or (last + 1) * SIZES[meta.dtype] <= len(content)
    need(inside and len(content) % SIZES[meta.dtype] == 0, f"weight {name!r} is larger than its record")
    return StoredTensor(meta, content)


def _check_used(where: Path, found: Mapping[str, memoryview], tensors: Mapping[str, StoredTensor]) -> None:
    """Check that each record of a tensor belongs to one that the program names."""
    used = {id(tensor.content) for tensor in tensors.values()}
    for name, content in found.items():
        if name.startswith((_WEIGHTS[0], _CONSTANTS[0])) and name not in _CONFIGS and id(content) not in used:
            raise ModelError(f"{where}: its record {name} belongs to no weight; {WANTED}")


# Bytes of an element, by PyTorch's number for its type.
SIZES: Final = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 2, 7: 4, 8: 8, 9: 4, 10: 8, 11: 16, 12: 1, 13: 2, 28: 2} | {
    **dict.fromkeys(range(29, 34), 1),
    34: 4,
    35: 8,
}


# Shapes of inputs: the file's, with the extents that the user gives where the file leaves them open.

InputShapes = Mapping[str, Shape]


def fixed_shapes(path: Path, file: FileProgram, given: InputShapes) -> tuple[dict[str, Shape], dict[str, int]]:
    """The shape of each input that a caller gives, and the number that each symbol stands for."""
    names = [entry.name for entry in file.inputs if entry.stored is None and entry.value[0] == "as_tensor"]
    for name in given:
        if name not in names:
            raise ModelError(f'{path} has no input "{name}" for --input-shape; its inputs are: {", ".join(names)}')
    for entry in file.inputs:
        if entry.value[0].startswith("as_sym"):
            raise ModelError(f"{path}: an input is a number that may vary; export with a fixed one")
    shapes: dict[str, Shape] = {}
    symbols: dict[str, int] = {}
    for name in names:
        need(name in file.graph.tensors, f"input {name!r} has no shape")
        declared = file.graph.tensors[name].shape
        shown = ["?" if isinstance(extent, Expression) else extent for extent in declared]
        shapes[name] = fixed_shape(path, name, shown, given.get(name), "export without dynamic_shapes, or ")
        _bind(path, name, declared, shapes[name], file, symbols)
    return shapes, symbols


def _bind(
    path: Path, name: str, declared: tuple[Extent, ...], shape: Shape, file: FileProgram, symbols: dict[str, int]
) -> None:
    """Note the number that each symbol stands for: the same wherever it stands, and within its range."""
    for axis, (extent, value) in enumerate(zip(declared, shape, strict=True)):
        if isinstance(extent, (int, Expression)):
            continue
        where = f'{path}: dimension {axis} of input "{name}" is {value}'
        if symbols.setdefault(extent, value) != value:
            raise ModelError(f'{where}; "{extent}" is {symbols[extent]} elsewhere, and the same everywhere')
        low, high = file.ranges.get(extent, (None, None))
        if (low is not None and value < low) or (high is not None and value > high):
            bounds = f"from {low if low is not None else 0}" + (f" to {high}" if high is not None else "")
            raise ModelError(f"{where}; the program takes extents {bounds}")
