"""A YAML or JSON as entries with their lines; files that name Megatron-LM's arguments without
groups.
"""

from collections.abc import Collection, Iterator
from typing import Final

import yaml

from traces.frozen import frozen
from traces.limits import Limit
from traces.patterns import compiled
from traces.settings.bridge import is_override, take, take_path, take_variable
from traces.settings.command import flags_of, take_flag
from traces.settings.derive import add_defaults, add_derived
from traces.settings.draft import Draft
from traces.settings.knobs import by_dest, flag_named, knobs
from traces.settings.names import lm_flags, say_unknown
from traces.settings.settings import NotAConfiguration
from traces.settings.shell import Word
from traces.settings.values import Raw
from traces.texts import Texts

DEEPEST: Final = Limit(40, "levels", "ours: a dumped ConfigContainer has seven")
MOST_NODES: Final = Limit(
    50_000, "entries", "ours: a dumped ConfigContainer has some 2,000; aliases multiply"
)
_PLAIN: Final = "tag:yaml.org,2002:"
_MERGE: Final = _PLAIN + "merge"
_BUILT: Final = frozenset(
    {"null", "bool", "int", "float", "str", "seq", "map", "set", "timestamp", "merge", "value"}
)


@frozen
class Entry:
    """A value of a mapping by the keys to it, and its line from 1."""

    path: Texts
    raw: Raw
    line: int

    @property
    def dotted(self) -> str:
        return ".".join(self.path)


class YamlDocument:
    """A parsed file. `name` is for errors."""

    def __init__(self, text: str, name: str) -> None:
        """Parse, without building anything.

        Raises:
            NotAConfiguration: broken, nested too deep, or with a tag that code would have to build.
        """
        self.name = name
        self.left = MOST_NODES.whole
        try:
            self.root = yaml.compose(text, Loader=yaml.SafeLoader)
        except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
            mark = getattr(error, "problem_mark", None)  # of a syntax error alone
            where = f"{name}:{mark.line + 1}" if mark else name
            raise NotAConfiguration(
                f"{where}: broken YAML; correct it, or give the command line"
            ) from error

    def outermost(self) -> Texts:
        if not isinstance(self.root, yaml.MappingNode):
            return ()
        return _keys(self.root)

    def entries(self, deep: int) -> Iterator[Entry]:
        """Values of the outermost mapping, and of mappings in it down to `deep` levels of keys.

        Raises:
            NotAConfiguration: as above, or more entries than a configuration has.
        """
        if isinstance(self.root, yaml.MappingNode):
            yield from self._walk(self.root, (), deep)

    def items(self) -> Iterator[Entry]:
        if isinstance(self.root, yaml.SequenceNode):
            self._count(self.root, 0)
            for node in self.root.value:
                yield Entry((), self._raw(node, 1), _line(node))

    def _walk(
        self, node: yaml.MappingNode, path: Texts, deep: int, merged_in: int = 0
    ) -> Iterator[Entry]:
        """`merged_in`: through how many `<<` it is here; a mapping may be merged into itself."""
        self._count(node, len(path) + merged_in)
        for merged in _merged(node):
            yield from self._walk(merged, path, deep, merged_in + 1)
        for key, value in node.value:
            self._count(key, len(path))
            if key.tag == _MERGE or not isinstance(key, yaml.ScalarNode):
                continue
            below = (*path, key.value)
            is_whole = (
                len(below) >= deep or not isinstance(value, yaml.MappingNode) or _is_made(value)
            )
            if is_whole:
                yield Entry(below, self._raw(value, len(below)), _line(key))
            else:
                yield from self._walk(value, below, deep)

    def _raw(self, node: yaml.Node, depth: int) -> Raw:
        self._count(node, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self._raw(item, depth + 1) for item in node.value]
        if isinstance(node, yaml.MappingNode):
            return {str(key.value): self._raw(value, depth + 1) for key, value in node.value}
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
    """Mappings that `<<` puts under a mapping's own keys; the first of several outranks the
    others.
    """
    mappings = []
    for key, value in node.value:
        if key.tag == _MERGE:
            several = value.value if isinstance(value, yaml.SequenceNode) else [value]
            mappings += [node for node in reversed(several) if isinstance(node, yaml.MappingNode)]
    return mappings


def _keys(node: yaml.MappingNode) -> Texts:
    return tuple(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))


def _is_made(node: yaml.MappingNode) -> bool:
    """Whether a mapping stands for one value, such as a type or an enum."""
    keys = {*_keys(node)}
    return "_target_" in keys and keys <= {"_target_", "_call_", "_args_", "_name_", "_partial_"}


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _scalar(kind: str, text: str) -> Raw:
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() in ("true", "yes", "on")
    return text


_BRACKETS: Final = compiled(r"\[([^\]]+)\]")
FLAG_GROUPS: Final = frozenset({"MODEL_ARGS", "ARGS", "ENV_VARS", "arguments", "args"})
"""Megatron-LM, tests/functional_tests/test_cases/*/model_config.yaml: flags and variables as
keys."""
_WHOLE: Final = (("MODEL_ARGS",), ("language_model", "model_parallel"))
"""Groups by which a file is a run's whole set of arguments: of a functional test, or of --yaml-cfg,
whose file stands for all of them (Megatron-LM, megatron/training/yaml_arguments.py)."""


def is_flat(keys: Collection[str]) -> bool:
    """Whether outermost keys are flags, or names of Megatron-LM's arguments."""
    is_argument_seen = False
    for key in keys:
        if key in FLAG_GROUPS or key.startswith("--") or _is_argument(key):
            is_argument_seen = True
        elif is_override(f"{key}.x=1"):
            return False
    return is_argument_seen


def _is_argument(key: str) -> bool:
    return key in by_dest() or flag_named(key) in lm_flags()


def take_flat(draft: Draft, document: YamlDocument) -> None:
    """Take such a file. Only a whole set of arguments leaves the rest at Megatron-LM's defaults."""
    draft.framework = "megatron_lm"
    groups = {*document.outermost()}
    grouped = not FLAG_GROUPS.isdisjoint(groups)
    for entry in document.entries(2):
        group, name = entry.path[0], entry.path[-1]
        if grouped and (group not in FLAG_GROUPS or len(entry.path) == 1):
            continue  # of the test, or of a later run of it
        if group == "ENV_VARS":
            take_variable(draft, name, entry.raw, entry.line)
        elif name.startswith("--"):
            _take_flag(draft, name, entry)
        elif "." in name:
            take_path(draft, name, entry.raw, entry.line)
        else:
            _take_argument(draft, name, entry)
    is_complete = any(map(groups.issuperset, _WHOLE))
    if is_complete:
        add_defaults(draft, draft.core)
    add_derived(draft, is_complete)


def _take_flag(draft: Draft, name: str, entry: Entry) -> None:
    if entry.raw is False or entry.raw is None:
        return
    line = [Word(name, entry.line)]
    for text in _words(entry.raw) if entry.raw is not True else ():
        line.append(Word(text, entry.line))
    for flag in flags_of(tuple(line)):
        take_flag(draft, flag)


def _words(raw: Raw) -> list[str]:
    """Words as the test runner's shell cuts them, also within an entry of a list or between
    brackets.

    Source: Megatron-LM, tests/functional_tests/shell_test_utils/_run_training.sh.
    """
    words = list[str]()
    for entry in raw if isinstance(raw, list) else [raw]:
        match = _BRACKETS.fullmatch(str(entry).strip())
        words += (match[1] if match else str(entry)).split()
    return words


def take_argument(draft: Draft, name: str, raw: Raw, line: int) -> bool:
    """Take an argument of Megatron-LM by the name that it prints; False where no knob has it."""
    rows = by_dest().get(name, ())
    for knob in rows:
        if knob.dest_is_opposite and isinstance(raw, bool):
            draft.put(knob.id, not raw, line)
        else:
            take(draft, knob, name, raw, line)
    return bool(rows)


def _take_argument(draft: Draft, name: str, entry: Entry) -> None:
    if take_argument(draft, name, entry.raw, entry.line) or _is_argument(name):
        return
    if known := knobs().get(name):
        take(draft, known, name, entry.raw, entry.line)
    else:
        say_unknown(draft, entry.line, name, by_dest(), "no argument of Megatron-LM that we know")
