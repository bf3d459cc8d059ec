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
from traces.settings.yaml_files import DEEPEST, Document, take_argument
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
        above = max((one for one in self.under if path.startswith(f"{one}.")), key=len, default="")
        if above:
            return f"{self.under[above]}{path.removeprefix(above)}"
        return ""


@frozen
class Said:
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
    if (trainer := _trainer_of({*document}, "toml")) is None:
        return False
    _take_numbers(draft, trainer, _entries_of(document, trainer, text))
    return True


def _entries_of(document: Mapping[str, Any], trainer: Trainer, text: str) -> Iterator[Said]:
    lines = dict[str, int]()
    for found in _ASSIGNED.finditer(text):
        lines.setdefault(found[1], _line_at(text, found.end()))
    for path in trainer.own:
        value: Any = document
        for step in path.split("."):
            value = value.get(step) if isinstance(value, dict) else None
        yield Said(path, value, lines.get(path.rpartition(".")[2], 1))


def _line_at(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def take_flags_of_titan(draft: Draft, text: str) -> bool:
    """Take the flags of a script that starts torchtitan; False where it does not, or with none."""
    said = [Said(one[1], one[2], _line_at(text, one.start())) for one in _FLAG.finditer(text)]
    for trainer in trainers():
        if said and trainer.written == "toml" and trainer.module and trainer.module.search(text):
            _take_numbers(draft, trainer, said)
            return True
    return False


def take_trainer_document(draft: Draft, document: Document) -> bool:
    """Take a YAML of one of these programs; False where it is none of theirs."""
    if (trainer := _trainer_of({*document.outermost()}, "yaml")) is None:
        return False
    said = dict[str, Said]()
    for entry in document.entries(int(DEEPEST.value)):
        said[entry.dotted] = Said(entry.dotted, entry.raw, entry.line)
    if trainer.form == "numbers":
        _take_numbers(draft, trainer, said.values())
        return True
    if not any(map(trainer.group_of, said)):
        return False
    _take(draft, trainer, [_resolved(one, said) for one in said.values()])
    return True


def _trainer_of(keys: Set[str], written: str) -> Trainer | None:
    for one in trainers():
        if one.written == written and (one.alone in keys or len(keys & {*one.keys}) > 1):
            return one
    return None


def _take_numbers(draft: Draft, trainer: Trainer, said: Iterable[Said]) -> None:
    draft.framework = trainer.framework
    for one in said:
        knob, number = trainer.own.get(one.path), whole_number(str(one.raw))
        if knob in ("bf16", "fp16"):
            draft.put(knob, one.raw is True, one.line)
        elif knob is not None and number is not None and (number > 0 or knob in _MAY_BE_NONE):
            draft.put(knob, number, one.line)
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
        said = [*_said(trainer, command), *_variables(script, command)]
        _take(draft, trainer, said)
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


def _said(trainer: Trainer, command: Command) -> Iterator[Said]:
    if trainer.form == "paths":
        for word in command.words:
            if (
                (found := OVERRIDE.fullmatch(word.text))
                and found[1] != "~"
                and found[3] is not None
            ):
                yield Said(found[2], hydra_value(found[3]), word.line, word.is_told)
        return
    for flag in flags_of(command.words):
        name = flag.name if _is_megatrons(flag) else flag.name.lstrip("-").replace("-", "_")
        yield Said(name, _value(flag), flag.line, flag.is_told)


def _is_megatrons(flag: Flag) -> bool:
    """Whether it is a flag as Megatron-LM has it, which switches nothing off by a word."""
    return flag.name in by_flag() and _value(flag) is not False


def _value(flag: Flag) -> Raw:
    if not flag.words:
        return True
    return {"true": True, "false": False}.get(str(flag.raw).lower(), flag.raw)


def _variables(script: Script, command: Command) -> Iterator[Said]:
    """Variables that tell how many GPUs run, as `$NAME`."""
    for name, word in {**script.exported, **command.environment}.items():
        yield Said(f"${name}", word.text, word.line, word.is_told)


def _resolved(one: Said, every: Mapping[str, Said]) -> Said:
    """An entry that only names another as that; one that a resolver would have to compute is not
    told.
    """
    if not isinstance(one.raw, str) or "${" not in one.raw:
        return one
    found = _REFERENCE.fullmatch(one.raw.strip())
    raw = every[found[1]].raw if found and found[1] in every else None
    is_told = raw is not None and not (isinstance(raw, str) and "${" in raw)
    return Said(one.path, raw, one.line, is_told)


def _take(draft: Draft, trainer: Trainer, said: Iterable[Said]) -> None:
    draft.framework = trainer.framework
    every = {one.path: one for one in said}
    for one in every.values():
        if one.is_told:
            _take_one(draft, trainer, one)
    _take_ranks(draft, trainer, every)
    _take_model(draft, trainer, every)
    draft.fill(settings(trainer.defaults, DEFAULT))
    add_derived(draft, False)
    told = f"of {trainer.name} its Megatron part is read; a setting is written as {trainer.write}"
    draft.problem(None, told)


def _take_one(draft: Draft, trainer: Trainer, one: Said) -> None:
    if (own := trainer.own.get(one.path)) is not None:
        take(draft, knobs()[own], one.path.rpartition(".")[2], one.raw, one.line)
        return
    for knob, value in trainer.sets.get(f"{one.path}={str(one.raw).lower()}", {}).items():
        draft.put(knob, value, one.line)
    if trainer.form == "arguments":
        take_argument(draft, one.path, one.raw, one.line)
        return
    path = trainer.group_of(one.path)
    known = path in by_path() or path in spellings() or is_alias(path)
    if known and one.raw is not None:
        take_path(draft, path, one.raw, one.line)


def _take_ranks(draft: Draft, trainer: Trainer, said: Mapping[str, Said]) -> None:
    sizes, line = list[int](), None
    for one in trainer.ranks:
        name, _, usual = one.partition("=")
        if name in said:
            sizes.append(_size(said[name]))
            line = line or said[name].line
        else:
            sizes.append(int(usual or 0))
    if sizes[-1]:
        draft.put("launcher.gpus_per_node", sizes[-1], line)
    if all(sizes) and "world_size" not in draft.by_knob:
        draft.put("world_size", prod(sizes), line)


def _size(said: Said) -> int:
    """A count; 0 where it is not told."""
    text = str(said.raw).strip() if said.is_told else ""
    if _SIZE.fullmatch(text):
        return int(text)
    return 0


def _take_model(draft: Draft, trainer: Trainer, said: Mapping[str, Said]) -> None:
    """The sizes of a model that we know by its name, where the file does not set them itself."""
    for name in trainer.model:
        one = said.get(name)
        if one is None or not isinstance(one.raw, str) or UNKNOWN in one.raw:
            continue
        try:
            model = model_named(
                compiled(r"[-_](mcore|torch_dist|hf)$").sub("", one.raw.rstrip("/"))
            )
        except UsageError:
            continue
        draft.fill(model.settings)
        draft.fill(settings(trainer.of_model, f"the model {model.name}"))
        return
