"""Programs that train with Megatron, and two that do not: what of their configuration is alike is
read.

What each calls its settings, and where they stand, are rows of trainers.toml.
"""

from collections.abc import Iterable, Iterator, Mapping, Set
from functools import cache
from itertools import product
from math import prod
from typing import Any, Final, Literal

import tomli
from msgspec import Struct

from traces.errors import UsageError
from traces.frozen import frozen
from traces.patterns import Pattern, compiled, whole_number
from traces.settings.bridge import OVERRIDE, hydra_value, take, take_path
from traces.settings.command import Flag, flags_of, take_environment, take_flag
from traces.settings.corrections import is_alias, spellings
from traces.settings.derive import DEFAULT, add_derived
from traces.settings.draft import Draft
from traces.settings.knobs import by_flag, by_path, knobs
from traces.settings.model_names import model_named
from traces.settings.settings import Framework, NotAConfiguration, Values, settings
from traces.settings.shell import UNKNOWN, Command, Script, files, read_script
from traces.settings.values import Raw
from traces.settings.yaml_files import DEEPEST, YamlDocument, take_argument
from traces.texts import Texts
from traces.toml_tables import read_keyed

_REFERENCE: Final = compiled(r"\$\{([\w.]+)\}")
_SIZE: Final = compiled(r"[1-9]\d{0,5}")
_ASSIGNED: Final = compiled(r"(?m)^[ \t]*(\w+)[ \t]*=")
_FLAG: Final = compiled(
    r"--((?:training|parallelism)\.[a-z_]{1,40}(?:\.[a-z_]{1,40})?)(?:=|\s{1,4})[\"']?(-?[0-9]{1,9})\b"
)
_MAY_BE_NONE: Final = ("data_loader.num_workers", "deepspeed.zero_stage")


class Trainer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of trainers.toml, whose head says what its fields are."""

    id: str
    name: str
    form: Literal["paths", "arguments", "numbers"]
    module: Pattern | None
    write: str
    source: str
    places: dict[str, str] = {}
    files: Texts = ()
    marks: Texts = ()
    alone: str = ""
    keys: Texts = ()
    written: Literal["yaml", "toml"] = "yaml"
    under: dict[str, str] = {}
    own: dict[str, str] = {}
    sets: dict[str, Values] = {}
    model: Texts = ()
    of_model: Values = {}
    defaults: Values = {}
    ranks: Texts = ()
    framework: Framework

    def group_of(self, path: str) -> str:
        """The path that Bridge has for it; empty where it stands nowhere that Megatron's settings
        do.
        """
        above = max((key for key in self.under if path.startswith(f"{key}.")), key=len, default="")
        if above:
            return f"{self.under[above]}{path.removeprefix(above)}"
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


@cache
def trainers() -> tuple[Trainer, ...]:
    """The rows, in the order in which a command or a file is held against them."""
    return tuple(read_keyed("traces.settings", "trainers.toml", Trainer).values())


def take_toml(draft: Draft, text: str) -> bool:
    """Take a TOML of torchtitan's sections; False where it is none. Raises `NotAConfiguration`."""
    try:
        document = tomli.loads(text)
    except (tomli.TOMLDecodeError, RecursionError) as error:
        cure = "correct it, or give the command line"
        raise NotAConfiguration(f"{draft.name}: broken TOML; {cure}") from error
    if not (trainer := _trainer_of({*document}, "toml")):
        return False
    _take_numbers(draft, trainer, _entries_of(document, trainer, text))
    return True


def _entries_of(document: Mapping[str, Any], trainer: Trainer, text: str) -> Iterator[TrainerEntry]:
    lines = dict[str, int]()
    for match in _ASSIGNED.finditer(text):
        lines.setdefault(match[1], _line_at(text, match.end()))
    for path in trainer.own:
        value: Any = document
        for step in path.split("."):
            value = value.get(step) if isinstance(value, dict) else None
        yield TrainerEntry(path, value, lines.get(path.rpartition(".")[2], 1))


def _line_at(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def take_flags_of_titan(draft: Draft, text: str) -> bool:
    """Take the flags of a script that starts torchtitan; False where it does not, or with none."""
    flags = [
        TrainerEntry(flag[1], flag[2], _line_at(text, flag.start()))
        for flag in _FLAG.finditer(text)
    ]
    for trainer in trainers():
        if flags and trainer.written == "toml" and trainer.module and trainer.module.search(text):
            _take_numbers(draft, trainer, flags)
            return True
    return False


def take_trainer_document(draft: Draft, document: YamlDocument) -> bool:
    """Take a YAML of one of these programs; False where it is none of theirs."""
    if not (trainer := _trainer_of({*document.outermost()}, "yaml")):
        return False
    entries = {}
    for entry in document.entries(int(DEEPEST.value)):
        entries[entry.dotted] = TrainerEntry(entry.dotted, entry.raw, entry.line)
    if trainer.form == "numbers":
        _take_numbers(draft, trainer, entries.values())
        return True
    if not any(map(trainer.group_of, entries)):
        return False
    _take_entries(draft, trainer, [_resolved(entry, entries) for entry in entries.values()])
    return True


def _trainer_of(keys: Set[str], syntax: str) -> Trainer | None:
    for trainer in trainers():
        if trainer.written == syntax and (trainer.alone in keys or len(keys & {*trainer.keys}) > 1):
            return trainer
    return None


def _take_numbers(draft: Draft, trainer: Trainer, entries: Iterable[TrainerEntry]) -> None:
    draft.framework = trainer.framework
    for entry in entries:
        knob, number = trainer.own.get(entry.path), whole_number(str(entry.raw))
        if knob in ("bf16", "fp16"):
            draft.put(knob, entry.raw is True, entry.line)
        elif knob is not None and number is not None and (number > 0 or knob in _MAY_BE_NONE):
            draft.put(knob, number, entry.line)
    what = "only batch, sizes and what known incidents ask for is read"
    draft.problem(None, f"of a configuration of {trainer.name} {what}")


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
    if trainer.module and trainer.form == "paths":
        return any(map(trainer.module.fullmatch, names))
    is_program = not files(command.words).isdisjoint(trainer.files)
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
        name = flag.name if _is_megatrons(flag) else flag.name.lstrip("-").replace("-", "_")
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
    match = _REFERENCE.fullmatch(entry.raw.strip())
    raw = every[match[1]].raw if match and match[1] in every else None
    is_told = raw is not None and not (isinstance(raw, str) and "${" in raw)
    return TrainerEntry(entry.path, raw, entry.line, is_told)


def _take_entries(draft: Draft, trainer: Trainer, entries: Iterable[TrainerEntry]) -> None:
    draft.framework = trainer.framework
    every = {entry.path: entry for entry in entries}
    for said in every.values():
        if said.is_told:
            _take_one(draft, trainer, said)
    _take_ranks(draft, trainer, every)
    _take_model(draft, trainer, every)
    draft.fill(settings(trainer.defaults, DEFAULT))
    add_derived(draft, False)
    note = f"of {trainer.name} its Megatron part is read; a setting is written as {trainer.write}"
    draft.problem(None, note)


def _take_one(draft: Draft, trainer: Trainer, entry: TrainerEntry) -> None:
    if (own := trainer.own.get(entry.path)) is not None:
        take(draft, knobs()[own], entry.path.rpartition(".")[2], entry.raw, entry.line)
        return
    for knob, value in trainer.sets.get(f"{entry.path}={str(entry.raw).lower()}", {}).items():
        draft.put(knob, value, entry.line)
    if trainer.form == "arguments":
        take_argument(draft, entry.path, entry.raw, entry.line)
        return
    path = trainer.group_of(entry.path)
    known = path in by_path() or path in spellings() or is_alias(path)
    if known and entry.raw is not None:
        take_path(draft, path, entry.raw, entry.line)


def _take_ranks(draft: Draft, trainer: Trainer, entries: Mapping[str, TrainerEntry]) -> None:
    sizes, line = [], None
    for rank_key in trainer.ranks:
        name, _, usual = rank_key.partition("=")
        if name in entries:
            sizes.append(_size(entries[name]))
            line = line or entries[name].line
        else:
            sizes.append(int(usual or 0))
    if sizes[-1]:
        draft.put("launcher.gpus_per_node", sizes[-1], line)
    if all(sizes) and "world_size" not in draft.by_knob:
        draft.put("world_size", prod(sizes), line)


def _size(entry: TrainerEntry) -> int:
    """A count; 0 where it is not told."""
    text = str(entry.raw).strip() if entry.is_told else ""
    if _SIZE.fullmatch(text):
        return int(text)
    return 0


def _take_model(draft: Draft, trainer: Trainer, entries: Mapping[str, TrainerEntry]) -> None:
    """The sizes of a model that we know by its name, where the file does not set them itself."""
    for name in trainer.model:
        entry = entries.get(name)
        if not entry or not isinstance(entry.raw, str) or UNKNOWN in entry.raw:
            continue
        try:
            model = model_named(
                compiled(r"[-_](mcore|torch_dist|hf)$").sub("", entry.raw.rstrip("/"))
            )
        except UsageError:
            continue
        draft.fill(model.settings)
        draft.fill(settings(trainer.of_model, f"the model {model.name}"))
        return
