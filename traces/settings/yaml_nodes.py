"""A YAML or JSON file as its entries with their lines. Tags that would build objects are refused."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import yaml

from traces.limits import Limit
from traces.settings.configuration import NotAConfiguration
from traces.settings.values import Raw

DEEPEST: Final = Limit(40, "levels", "ours: a dumped ConfigContainer has seven")
MOST_NODES: Final = Limit(
    50_000, "entries", "ours: a dumped ConfigContainer has some 2,000; aliases multiply"
)
_PLAIN: Final = "tag:yaml.org,2002:"
_MERGE: Final = _PLAIN + "merge"
_BUILT: Final = frozenset(
    {"null", "bool", "int", "float", "str", "seq", "map", "set", "timestamp", "merge", "value"}
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A value of a mapping by the keys to it, and its line from 1."""

    path: tuple[str, ...]
    raw: Raw
    line: int


class _Loader(yaml.SafeLoader):
    """PyYAML's loader that builds plain values only; its composer keeps each node's line."""


class Document:
    """A parsed file. `name` is for errors."""

    def __init__(self, text: str, name: str) -> None:
        """Parse, without building anything.

        Raises:
            NotAConfiguration: broken, nested too deep, or with a tag that code would have to build.
        """
        self.name = name
        self.left = int(MOST_NODES.value)
        try:
            self.root = yaml.compose(text, Loader=_Loader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            where = name if mark is None else f"{name}:{mark.line + 1}"
            raise NotAConfiguration(f"{where}: broken YAML; correct it, or give the command line") from error
        except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
            raise NotAConfiguration(f"{name}: broken YAML; correct it, or give the command line") from error

    def outermost(self) -> tuple[str, ...]:
        """Keys of the outermost mapping; none where it is something else."""
        if not isinstance(self.root, yaml.MappingNode):
            return ()
        return tuple(key.value for key, _ in self.root.value if isinstance(key, yaml.ScalarNode))

    def entries(self, deep: int) -> Iterator[Entry]:
        """Values of the outermost mapping, and of mappings in it down to `deep` levels of keys.

        Raises:
            NotAConfiguration: as above, or more entries than a configuration has.
        """
        if isinstance(self.root, yaml.MappingNode):
            yield from self._walk(self.root, (), deep)

    def items(self) -> Iterator[Entry]:
        """Entries of the outermost list."""
        if isinstance(self.root, yaml.SequenceNode):
            self._count(self.root, 0)
            for node in self.root.value:
                yield Entry((), self._raw(node, 1), _line(node))

    def _walk(
        self, node: yaml.MappingNode, path: tuple[str, ...], deep: int, merged_in: int = 0
    ) -> Iterator[Entry]:
        """`merged_in`: through how many `<<` it is here; a mapping may be merged into itself."""
        self._count(node, len(path) + merged_in)
        for merged in _merged(node):
            yield from self._walk(merged, path, deep, merged_in + 1)
        for key, value in node.value:
            self._count(key, len(path))
            if key.tag == _MERGE:
                continue
            name = key.value if isinstance(key, yaml.ScalarNode) else ""
            below = (*path, name)
            is_whole = len(below) >= deep or not isinstance(value, yaml.MappingNode) or _is_made(value)
            if is_whole:
                yield Entry(below, self._raw(value, len(below)), _line(key))
            else:
                yield from self._walk(value, below, deep)

    def _raw(self, node: yaml.Node, depth: int) -> Raw:
        self._count(node, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self._raw(one, depth + 1) for one in node.value]
        if isinstance(node, yaml.MappingNode):
            return {
                str(key.value): self._raw(value, depth + 1)
                for key, value in node.value
                if isinstance(key, yaml.ScalarNode)
            }
        return _scalar(node.tag.removeprefix(_PLAIN), str(node.value))

    def _count(self, node: yaml.Node, depth: int) -> None:
        where = f"{self.name}:{_line(node)}"
        if not node.tag.startswith(_PLAIN) or node.tag.removeprefix(_PLAIN) not in _BUILT:
            raise NotAConfiguration(
                f"{where}: a YAML tag that would run code or build an object; write the plain value"
            )
        self.left -= 1
        if self.left < 0 or depth > DEEPEST.value:
            raise NotAConfiguration(
                f"{where}: more entries than a configuration has; give the overrides alone"
            )


def _merged(node: yaml.MappingNode) -> list[yaml.MappingNode]:
    """Mappings that `<<` puts under a mapping's own keys; the first of several outranks the others."""
    found: list[yaml.MappingNode] = []
    for key, value in node.value:
        if key.tag == _MERGE:
            several = value.value if isinstance(value, yaml.SequenceNode) else [value]
            found += [one for one in reversed(several) if isinstance(one, yaml.MappingNode)]
    return found


def _is_made(node: yaml.MappingNode) -> bool:
    """Whether a mapping stands for one value, such as a type or an enum."""
    keys = {key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)}
    return "_target_" in keys and keys <= {"_target_", "_call_", "_args_", "_name_", "_partial_"}


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _scalar(kind: str, text: str) -> Raw:
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() in ("true", "yes", "on")
    return text
