"""Programs that train with Megatron, and others that do not: what of their configuration is alike
is read.

What each calls its settings, and where they stand, are rows of trainers.toml.
"""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from functools import cache
from itertools import product
from math import prod
from typing import Any, Final, Literal, cast

import tomli
from msgspec import Struct

from traces.errors import UsageError
from traces.frozen import frozen
from traces.patterns import Pattern, compiled
from traces.settings.bridge import OVERRIDE, hydra_value, take_path
from traces.settings.command import Flag, flags_of, take_environment, take_flag
from traces.settings.corrections import is_alias, spellings
from traces.settings.derive import DEFAULT, add_derived
from traces.settings.draft import Draft
from traces.settings.knobs import by_flag, by_path, knobs
from traces.settings.model_names import model_named
from traces.settings.settings import (
    PROGRAMS,
    Framework,
    NotAConfiguration,
    Values,
    settings,
)
from traces.settings.shell import UNKNOWN, Command, Script, files, read_script
from traces.settings.values import NotAValue, Raw, value_of
from traces.settings.yaml_files import DEEPEST, YamlDocument, take_argument
from traces.texts import Texts
from traces.toml_tables import read_keyed

_REFERENCE: Final = compiled(r"\$\{([\w.]+)\}")
_SIZE: Final = compiled(r"[1-9]\d{0,5}")
_TABLE: Final = compiled(r"[ \t]*\[+[ \t]*([\w.]+)[ \t]*\]")
_ASSIGNED: Final = compiled(r"(?:^|[{,])[ \t]*(\w+)[ \t]*=")
_UNLESS_SET: Final = compiled(r"\$\{[A-Z_]+:([^${}]*)\}")
_OF_EXPERTS: Final = compiled(r"(?i)[-_]A\d{1,4}(\.\d{1,2})?B\b|mixtral|moe\b")
_NOT_OF_NAME: Final = compiled(r"([-_](mcore|torch_dist|hf|slime)|\.yaml)$")


class Trainer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of trainers.toml, whose head says what its fields are."""

    id: str
    name: str
    form: Literal["paths", "arguments", "own"]
    source: str
    write: str = ""
    module: Pattern | None = None
    places: dict[str, str] = {}
    files: Texts = ()
    marks: Texts = ()
    alone: Texts = ()
    keys: Texts = ()
    written: Literal["yaml", "toml"] = "yaml"
    under: dict[str, str] = {}
    own: dict[str, str] = {}
    sets: dict[str, Values] = {}
    found: dict[str, dict[str, Pattern]] = {}
    model: Texts = ()
    defaults: Values = {}
    ranks: Texts = ()
    framework: Framework | None = None

    def group_of(self, path: str) -> str:
        """The path that Bridge has for it; empty where it stands nowhere that Megatron's settings
        do.
        """
        above = max((key for key in self.under if path.startswith(f"{key}.")), key=len, default="")
        if above:
            return f"{self.under[above]}{path.removeprefix(above)}".removeprefix(".")
        return ""


def overrides_of(program: object, lines: Iterable[str]) -> Iterator[str]:
    """Bridge's overrides as a program writes them that has places of its own for them."""
    places = next((row.places for row in trainers() if row.name == program), {"": ""})
    for line in lines:
        said = max(filter(line.startswith, places), key=len)
        if places[said] != "-":
            yield line.replace(said, places[said], 1)


@frozen
class TrainerEntry:
    """A word of a configuration with its value. Not `is_told`: only a running shell could tell
    it.
    """

    path: str
    raw: Raw
    line: int
    is_told: bool = True


def program_name(framework: str) -> str:
    """The program that is no Megatron, as people call it; empty where it is Megatron."""
    named = (one.name for one in trainers() if one.id == framework in PROGRAMS)
    return next(named, "")


@cache
def trainers() -> tuple[Trainer, ...]:
    """The rows, in the order in which a command or a file is held against them."""
    return tuple(read_keyed("traces.settings", "trainers.toml", Trainer).values())


def take_toml(draft: Draft, text: str) -> bool:
    """Take a TOML of one of these programs; False where it is none. Raises `NotAConfiguration`."""
    try:
        document = tomli.loads(text)
    except (tomli.TOMLDecodeError, RecursionError) as error:
        cure = "correct it, or give the command line"
        raise NotAConfiguration(f"{draft.name}: broken TOML; {cure}") from error
    lines, above = dict[str, int](), ""
    for number, line in enumerate(text.splitlines(), 1):
        if table := _TABLE.match(line):
            above = f"{table[1]}."
        for match in _ASSIGNED.finditer(line):
            lines.setdefault(f"{above}{match[1]}", number)
            lines.setdefault(match[1], number)  # of a table that stands in one line
    return _take_document(draft, "toml", {*document}, _leaves(document, "", lines))


def _leaves(
    table: Mapping[str, Any], above: str, lines: Mapping[str, int]
) -> Iterator[TrainerEntry]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{above}{key}.", lines)
        else:
            yield TrainerEntry(
                f"{above}{key}", value, lines.get(f"{above}{key}", lines.get(key, 1))
            )


def take_trainer_document(draft: Draft, document: YamlDocument) -> bool:
    """Take a YAML of one of these programs; False where it is none of theirs."""
    entries = document.entries(DEEPEST.whole)
    said = (TrainerEntry(entry.dotted, entry.raw, entry.line) for entry in entries)
    return _take_document(draft, "yaml", {*document.outermost()}, said)


def _take_document(draft: Draft, syntax: str, keys: Set[str], said: Iterable[TrainerEntry]) -> bool:
    for trainer in trainers():
        known = {*trainer.alone}, {*trainer.keys}
        if trainer.written == syntax and (keys & known[0] or len(keys & known[1]) > 1):
            entries = {entry.path: entry for entry in said}
            _take_entries(draft, trainer, [_resolved(one, entries) for one in entries.values()])
            return True
    return False


def take_trainer_script(draft: Draft, text: str) -> bool:
    """Take a script that starts one of these programs; False where it starts none.

    Raises:
        NotAConfiguration: its variables grow without bound.
    """
    script = read_script(text)
    for command, trainer in product(script.commands, trainers()):
        if not _starts(command, trainer):
            continue
        entries = [*_entries_of_command(trainer, command), *_variables(script, command)]
        _take_entries(draft, trainer, entries)
        if trainer.form == "arguments":
            for flag in flags_of(command.words):
                if _is_megatrons(flag):
                    take_flag(draft, flag)
        take_environment(draft, script, command, ())
        return True
    return False


def _starts(command: Command, trainer: Trainer) -> bool:
    names = [word.name for word in command.words]
    if trainer.module and any(map(trainer.module.fullmatch, names)):
        return True
    is_program = not trainer.files or not files(command.words).isdisjoint(trainer.files)
    return is_program and not {*trainer.marks}.isdisjoint(names)


def _entries_of_command(trainer: Trainer, command: Command) -> Iterator[TrainerEntry]:
    if trainer.form == "paths":
        for word in command.words:
            if (
                (match := OVERRIDE.fullmatch(word.text))
                and match[1] != "~"
                and match[3] is not None
            ):
                yield TrainerEntry(match[2], hydra_value(match[3]), word.line, word.is_told)
        return
    for flag in flags_of(command.words):
        is_theirs = trainer.form == "arguments" and _is_megatrons(flag)
        name = flag.name if is_theirs else flag.name.lstrip("-").replace("-", "_")
        yield TrainerEntry(name, _value(flag), flag.line, flag.is_told)


def _is_megatrons(flag: Flag) -> bool:
    """Whether it is a flag as Megatron-LM has it, which switches nothing off by a word."""
    return flag.name in by_flag() and _value(flag) is not False


def _value(flag: Flag) -> Raw:
    if not flag.words:
        return True
    return {"true": True, "false": False}.get(str(flag.raw).lower(), flag.raw)


def _variables(script: Script, command: Command) -> Iterator[TrainerEntry]:
    """Variables that tell how many GPUs run, as `$NAME`."""
    for name, word in {**script.exported, **command.environment}.items():
        yield TrainerEntry(f"${name}", word.text, word.line, word.is_told)


def _resolved(entry: TrainerEntry, every: Mapping[str, TrainerEntry]) -> TrainerEntry:
    """An entry that only names another as that; one that a resolver would have to compute is not
    told.
    """
    if not isinstance(entry.raw, str) or "${" not in entry.raw:
        return entry
    usual = _UNLESS_SET.sub(lambda match: match[1], entry.raw)
    if "${" not in usual:
        return replace(entry, raw=usual)
    match = _REFERENCE.fullmatch(entry.raw.strip())
    raw = every[match[1]].raw if match and match[1] in every else None
    is_told = raw is not None and not (isinstance(raw, str) and "${" in raw)
    return TrainerEntry(entry.path, raw, entry.line, is_told)


def _take_entries(draft: Draft, trainer: Trainer, entries: Iterable[TrainerEntry]) -> None:
    every = {entry.path: entry for entry in entries}
    is_megatron = trainer.form == "arguments" or any(map(trainer.group_of, every))
    draft.framework = trainer.framework if is_megatron else cast(Framework, trainer.id)
    for said in every.values():
        if said.is_told:
            _take_one(draft, trainer, said)
    _take_ranks(draft, trainer, every)
    _take_model(draft, trainer, every)
    draft.fill(settings(trainer.defaults, DEFAULT))
    note = f"of a configuration of {trainer.name} what has a meaning here is read"
    if is_megatron:
        add_derived(draft, False)
        part = f"of {trainer.name} its Megatron part is read"
        note = f"{part}; a setting is written as {trainer.write}"
    draft.problem(None, note)


def _take_one(draft: Draft, trainer: Trainer, entry: TrainerEntry) -> None:
    if (own := trainer.own.get(entry.path)) is not None:
        _put(draft, own, entry.raw, entry.line)
        return
    for knob, value in trainer.sets.get(f"{entry.path}={str(entry.raw).lower()}", {}).items():
        _put(draft, knob, value, entry.line)
    for knob, pattern in trainer.found.get(entry.path, {}).items():
        if match := pattern.search(str(entry.raw)):
            _put(draft, knob, match[1], entry.line)
    path = trainer.group_of(entry.path)
    if trainer.form == "arguments":
        take_argument(draft, path or entry.path, entry.raw, entry.line)
    elif (path in by_path() or path in spellings() or is_alias(path)) and entry.raw is not None:
        take_path(draft, path, entry.raw, entry.line)


def _put(draft: Draft, knob: str, raw: Any, line: int) -> None:
    """Set a knob by a program's own word; `auto`, or a number below 0, leaves it to the program."""
    try:
        value = value_of(knobs()[knob], raw)
    except NotAValue:
        return
    if raw is not None and not (isinstance(value, int) and value < 0):
        draft.put(knob, value, line)


def _take_ranks(draft: Draft, trainer: Trainer, entries: Mapping[str, TrainerEntry]) -> None:
    sizes, line = [], None
    for rank_key in trainer.ranks:
        name, _, usual = rank_key.partition("=")
        if name in entries:
            sizes.append(_size(entries[name]))
            line = line or entries[name].line
        else:
            sizes.append(int(usual or 0))
    if sizes and sizes[-1]:
        draft.put("launcher.gpus_per_node", sizes[-1], line)
    if sizes and all(sizes) and "world_size" not in draft.by_knob:
        draft.put("world_size", prod(sizes), line)


def _size(entry: TrainerEntry) -> int:
    """A count; 0 where it is not told."""
    text = str(entry.raw).strip() if entry.is_told else ""
    if _SIZE.fullmatch(text):
        return int(text)
    return 0


def _take_model(draft: Draft, trainer: Trainer, entries: Mapping[str, TrainerEntry]) -> None:
    """The sizes of a model that we know by its name, where the file does not set them itself."""
    for words in trainer.model:
        said = [entries[word] for word in words.split() if word in entries]
        name = " ".join(str(entry.raw).rstrip("/") for entry in said)
        if not name or UNKNOWN in name:
            continue
        try:
            draft.fill(model_named(_NOT_OF_NAME.sub("", name)).settings)
        except UsageError:
            if _OF_EXPERTS.search(name):
                draft.fill(settings({"launcher.sparse": True}, f"the model's name in {draft.name}"))
            continue
        return
