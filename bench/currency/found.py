"""What a release has, as facts: fields, choices, defaults, flags, refusals, presets."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from bench.currency.source import Source
from traces.settings.values import Raw

_CLASSES: Final = {
    "ModelParallelConfig": "model",
    "TransformerConfig": "model",
    "MLATransformerConfig": "model",
    "DistributedDataParallelConfig": "ddp",
    "OptimizerConfig": "optimizer",
}
"""Classes of Megatron-Core whose fields a configuration names, each with the group in Megatron-Bridge."""
_FLAGS: Final = (
    "megatron/training/arguments.py",
    "megatron/post_training/arguments.py",
    "megatron/elastification/arguments.py",
    "scripts/performance/argument_parser.py",
)
_PRESETS: Final = "megatron/bridge/perf_recipes/"
_PRECISION: Final = "megatron/bridge/training/mixed_precision.py"
_CALLABLE: Final = ("Callable", "callable")


class Fact(NamedTuple):
    """One thing that a release has. `place`: the path of a field, a flag, or where a text stands."""

    kind: str
    place: str
    detail: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, self))


def facts(source: Source, read_in: Iterable[str]) -> Iterator[Fact]:
    """All of a release. `read_in`: paths of the modules whose refusals a configuration may meet."""
    yield from (_fields_of_core if source.package == "core" else _fields_of_bridge)(source)
    yield from _flags(source)
    yield from _refusals(source, tuple(read_in))
    yield from _presets(source)


# fields


def _fields_of_core(source: Source) -> Iterator[Fact]:
    for name, group in _CLASSES.items():
        yield from _own_fields(source.classes.get(name), group)


def _fields_of_bridge(source: Source) -> Iterator[Fact]:
    for field in _annotated(source.classes["ConfigContainer"]):
        for name in _names(field.annotation):
            yield from _all_fields(source, name, str(ast.unparse(field.target)))
    for path, tree in source.modules("megatron/bridge/models/"):
        for node in tree.body if path.endswith("provider.py") else ():
            if isinstance(node, ast.ClassDef) and node.name.endswith("Provider") and not _is_data(node):
                yield from _own_fields(node, "model")


def _is_data(node: ast.ClassDef) -> bool:
    return any("Data" in ast.unparse(base) for base in (ast.Name(node.name), *node.bases))


def _all_fields(source: Source, name: str, group: str) -> Iterator[Fact]:
    """Of a class and of those that it is made from, where this package has them."""
    node = source.classes.get(name)
    yield from _own_fields(node, group)
    for base in node.bases if node else ():
        yield from _all_fields(source, ast.unparse(base).rpartition(".")[2], group)


def _own_fields(node: ast.ClassDef | None, group: str) -> Iterator[Fact]:
    for field in _annotated(node) if node else ():
        name = ast.unparse(field.target)
        if not name.startswith("_") and not any(one in _CALLABLE for one in _names(field.annotation)):
            path = f"{group}.{name}"
            yield Fact("field", path)
            yield from (Fact("choice", path, word) for word in _literals(field.annotation))


def _annotated(node: ast.ClassDef) -> Iterator[ast.AnnAssign]:
    yield from (one for one in node.body if isinstance(one, ast.AnnAssign))


def _names(annotation: ast.expr) -> Iterator[str]:
    for one in ast.walk(annotation):
        if isinstance(one, ast.Name | ast.Attribute):
            yield ast.unparse(one).rpartition(".")[2]
        elif isinstance(one, ast.Constant) and isinstance(one.value, str) and one.value.isidentifier():
            yield one.value


def _literals(annotation: ast.expr) -> Iterator[str]:
    for one in ast.walk(annotation):
        if isinstance(one, ast.Subscript) and ast.unparse(one.value).endswith("Literal"):
            yield from (word for word in _constants(one.slice) if word != "None")


# flags


def _flags(source: Source) -> Iterator[Fact]:
    for _, tree in source.modules(*_FLAGS):
        nodes = [*ast.walk(tree)]
        lists = {ast.unparse(one.targets[0]): one.value for one in nodes if isinstance(one, ast.Assign)}
        for node in nodes:
            if isinstance(node, ast.Call):
                yield from _flags_of_call(source, node, lists)


def _flags_of_call(source: Source, call: ast.Call, lists: Mapping[str, ast.expr]) -> Iterator[Fact]:
    said = {one.arg: one.value for one in call.keywords}
    name = ast.unparse(call.func).rpartition(".")[2]
    if name == "add_argument":
        words = [one.value for one in call.args if isinstance(one, ast.Constant)]
        yield from _flag([str(one) for one in words if str(one).startswith("--")], said)
    elif name == "ArgumentGroupFactory" and call.args:
        exclude = said.get("exclude", ast.List([]))
        left_out = {*_constants(lists.get(ast.unparse(exclude), exclude))}
        for field in _inherited(source, ast.unparse(call.args[0])):
            if ast.unparse(field.target) not in left_out:
                yield from _flag_of_field(field)


def _inherited(source: Source, name: str) -> Iterator[ast.AnnAssign]:
    if (node := source.classes.get(name)) is not None:
        yield from _annotated(node)
        for base in node.bases:
            yield from _inherited(source, ast.unparse(base).rpartition(".")[2])


def _flag_of_field(field: ast.AnnAssign) -> Iterator[Fact]:
    """The flag that Megatron-LM makes of a field: named in its metadata, else by the field."""
    name = ast.unparse(field.target)
    dashed, value = name.replace("_", "-"), field.value
    if isinstance(value, ast.Call):
        yield from _flag_of_made(name, {one.arg: one.value for one in value.keywords})
    elif "bool" in _names(field.annotation) and isinstance(value, ast.Constant) and value.value is True:
        yield from _flag(
            [f"--no-{dashed}", f"--disable-{dashed}"], {"dest": ast.Constant(name), "default": value}
        )
    else:
        yield from _flag([f"--{dashed}"], {"dest": ast.Constant(name), "default": value})


def _flag_of_made(name: str, said: dict[str | None, ast.expr]) -> Iterator[Fact]:
    """Of a field that `dataclasses.field` makes; none where it is not to be given."""
    if "init" in said:
        return
    named = [one for one in _constants(said.get("metadata")) if one.startswith("--")]
    default = said.get("default") if "default_factory" not in said else ast.Call(ast.Name("made"), [], [])
    if ast.unparse(said.get("default_factory", ast.Name(""))) == "list":
        default = ast.List([])
    yield from _flag(
        named or ["--" + name.replace("_", "-")], {"dest": ast.Constant(name), "default": default}
    )


def _constants(node: ast.expr | None) -> list[str]:
    """Plain values anywhere in an expression, as texts."""
    return [str(one.value) for one in ast.walk(node) if isinstance(one, ast.Constant)] if node else []


def _flag(names: list[str], said: Mapping[str | None, ast.expr | None]) -> Iterator[Fact]:
    action = ast.unparse(said.get("action") or ast.Name(""))
    for name in names:
        yield Fact("flag", name)
        if action.endswith("BooleanOptionalAction"):
            yield Fact("flag", f"--no-{name[2:]}")
        yield from (Fact("choice", name, word) for word in _words(said.get("choices")))
    if names and (default := _default(action, said.get("default"))):
        dest = said.get("dest")
        named = dest.value if isinstance(dest, ast.Constant) else names[0][2:].replace("-", "_")
        yield Fact("default", str(named), default)


def _words(choices: ast.expr | None) -> Iterator[str]:
    if isinstance(choices, ast.List | ast.Tuple):
        yield from _constants(choices)


def _default(action: str, said: ast.expr | None) -> str:
    """As a text; empty where it is no plain value."""
    if "store_true" in action or "store_false" in action:
        return repr("false" in action)
    try:
        value: Raw = None if said is None else ast.literal_eval(said)
    except ValueError:
        return ""
    return repr(value)


# refusals


def _refusals(source: Source, read_in: tuple[str, ...]) -> Iterator[Fact]:
    for path, tree in source.modules(*read_in) if read_in else ():
        for place, node in _placed(tree, ""):
            if isinstance(node, ast.Assert):
                yield Fact("refusal", f"{path}, {place}", _texts(node.test, node.msg))
            elif isinstance(node, ast.If):
                raised = [one.exc for one in node.body if isinstance(one, ast.Raise) and one.exc]
                yield from (Fact("refusal", f"{path}, {place}", _texts(node.test, one)) for one in raised)


def _placed(node: ast.AST, within: str) -> Iterator[tuple[str, ast.AST]]:
    """Every node below one, each with the names of the class and the functions that it stands in."""
    for child in ast.iter_child_nodes(node):
        below = f"{within}.{child.name}" if isinstance(child, ast.ClassDef | ast.FunctionDef) else within
        yield below.lstrip("."), child
        yield from _placed(child, below)


def _texts(test: ast.expr, message: ast.expr | None) -> str:
    return f"{ast.unparse(test)}: {ast.unparse(message)}" if message else ast.unparse(test)


# presets


def _presets(source: Source) -> Iterator[Fact]:
    """Each preset with what its function and all that it calls say; and the names of precision recipes."""
    functions = {
        node.name: node
        for _, tree in source.modules("megatron/bridge/")
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }
    for _, tree in source.modules(_PRESETS):
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name.endswith("_config") and node.name[0] != "_":
                yield Fact("preset", node.name, _digest(node, functions))
    for _, tree in source.modules(_PRECISION):
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and any(
                "register" in ast.unparse(one) for one in node.decorator_list
            ):
                yield Fact("choice", "mixed_precision", node.name)


def _digest(function: ast.FunctionDef, functions: dict[str, ast.FunctionDef]) -> str:
    """A hash of a function's text and of those that it calls, without their documentation."""
    found, left = {function.name: function}, [function]
    while left:
        for name in {one.id for one in ast.walk(left.pop()) if isinstance(one, ast.Name)} - found.keys():
            if name in functions:
                found[name] = functions[name]
                left.append(functions[name])
    text = "\n".join(_text(found[name]) for name in sorted(found))
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _text(function: ast.FunctionDef) -> str:
    is_said = (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) for one in function.body)
    return "\n".join(ast.unparse(one) for one, said in zip(function.body, is_said, strict=True) if not said)
