"""A run's configuration from a file: a YAML or overrides, a command line or script, a log's
arguments.
"""

from itertools import product
from pathlib import Path
from typing import Final

from traces.files.beneath import opened
from traces.files.plain_file import no_file
from traces.limits import Limit
from traces.names.file_names import told_path
from traces.patterns import LETTERS, compiled
from traces.settings.arguments_block import END, has_arguments, note_releases, take_arguments
from traces.settings.bridge import (
    is_older,
    is_override,
    plain_path,
    take_override,
    take_path,
    wrong_in,
)
from traces.settings.command import take_script
from traces.settings.corrections import spellings
from traces.settings.derive import add_defaults, add_derived, add_ranks
from traces.settings.draft import Draft
from traces.settings.knobs import FIRST, knobs, release
from traces.settings.names import bridge_groups
from traces.settings.settings import PROGRAMS, Configuration, NotAConfiguration
from traces.settings.trainers import take_toml, take_trainer_document, take_trainer_script
from traces.settings.yaml_files import YamlDocument, is_flat, take_flat

LARGEST: Final = Limit(
    500_000,
    "bytes",
    "ours: a dumped ConfigContainer has under 100 kB, a log's arguments under 50 kB",
)
GIVE: Final = (
    "give a YAML or overrides of Megatron-Bridge, a command line or script, or a log's arguments"
)
_MAPPING_LINE: Final = compiled(rf"[\"']?[{LETTERS}_.-]+[\"']?\s*:(\s|$)")
_CONTROL: Final = compiled(r"[\x00-\x08\x0e-\x1f]")


def read_configuration(path: Path, core_version: str | None = None) -> Configuration:
    """Read a configuration file; nothing in it is run. `core_version`: of Megatron-Core, where
    known.

    Raises:
        NotAConfiguration: missing, too large, binary, empty, broken, or of no kind that we know.
    """
    return configuration_of(_text(path), told_path(path), core_version)


def configuration_of(text: str, name: str, core_version: str | None = None) -> Configuration:
    """Read a configuration's text. `name` names it in problems and errors.

    Raises:
        NotAConfiguration: empty, broken, or of no kind that we know.
    """
    if not text.strip():
        raise NotAConfiguration(f"{name}: empty; {GIVE}")
    draft = Draft(name, core=release(core_version))
    if has_arguments(text):
        is_whole = take_arguments(draft, text.splitlines())
        if is_whole:
            at_least = release(draft.versions.get("core_at_least")) or FIRST
            add_defaults(draft, draft.core or at_least, release(draft.versions.get("core_before")))
        add_derived(draft, is_whole)
    elif name.lower().endswith(".toml") and take_toml(draft, text):
        pass
    elif _is_yaml(text, name):
        _take_document(draft, text)
    elif take_trainer_script(draft, text) or _take_overrides(draft, text):
        pass
    else:
        is_complete = take_script(draft, text)
        if is_complete:
            add_defaults(draft, draft.core)
        if draft.framework == "megatron_lm":
            add_derived(draft, is_complete)
    is_said = draft.by_knob or draft.unclear or any(problem.instead for problem in draft.problems)
    if draft.problems and not is_said and draft.framework not in PROGRAMS:
        raise NotAConfiguration(f"{name}: no setting in it that we know; {GIVE}")
    add_ranks(draft)
    _refuse_two_names(draft)
    return draft.finished()


def _text(path: Path) -> str:
    limit = LARGEST.whole
    if what := no_file(path):
        raise NotAConfiguration(f"{path.name}: {what}; {GIVE}")
    try:
        with opened(path) as file:
            raw, more = file.read(limit), file.read(1)
    except OSError as error:
        raise NotAConfiguration(f"{path.name}: cannot be read; {GIVE}") from error
    text = raw.decode("utf-8-sig", errors="replace").replace("\r\n", "\n")
    if more and not (has_arguments(text) and END.search(text)):
        raise NotAConfiguration(
            f"{path.name}: over {LARGEST.value:,.0f} bytes, too large for a configuration; "
            "cut out the part that sets the run up, such as a log's arguments"
        )
    if _CONTROL.search(text) or text.count("�") > len(text) // 100:
        raise NotAConfiguration(f"{path.name}: binary; {GIVE}")
    return text


def _is_yaml(text: str, name: str) -> bool:
    if Path(name).suffix.lower() in (".yaml", ".yml", ".json") or text.lstrip().startswith(
        ("{", "---", "%YAML")
    ):
        return True
    if text.startswith("#!"):
        return False
    has_key = False
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not _MAPPING_LINE.match(line) and not (has_key and line[0] in " \t-"):
            return False
        has_key = True
    return has_key


def _take_overrides(draft: Draft, text: str) -> bool:
    """Take a text of overrides alone, without comments, list marks and continuations; False where
    one of its lines is something else.
    """
    words = {}
    for number, line in enumerate(text.splitlines(), 1):
        cut = compiled(r"(^|\s)#.*$").sub("", line).strip().removesuffix("\\").strip()
        words[number] = cut.removeprefix("- ").strip()
        if words[number] and not is_override(words[number]):
            return False
    draft.framework = "megatron_bridge"
    for number, word in words.items():
        take_override(draft, word, number)
    return True


def _take_document(draft: Draft, text: str) -> None:
    # valid JSON has tabs only between its values, where YAML does not take them
    document = YamlDocument(text.replace("\t", " "), draft.name)
    items = list(document.items())
    if items:
        draft.framework = "megatron_bridge"
        for item in items:
            if isinstance(item.raw, str) and is_override(item.raw):
                take_override(draft, item.raw, item.line)
            else:
                draft.problem(item.line, "no override of Megatron-Bridge", "group.name=value")
        return
    keys = document.outermost()
    if text.strip() == "{}":
        return  # said to be empty: nothing is known
    if take_trainer_document(draft, document):
        return
    if is_flat(keys):
        take_flat(draft, document)
        return
    known = sum(key.removeprefix("cfg.").partition(".")[0] in bridge_groups() for key in keys)
    if known == 0 or 2 * known < len(keys):
        raise NotAConfiguration(f"{draft.name}: no group or argument in it that we know; {GIVE}")
    _take_groups(draft, document)


def _take_groups(draft: Draft, document: YamlDocument) -> None:
    draft.framework = "megatron_bridge"
    entries = [*document.entries(3)]
    paths = {entry.dotted for entry in entries}
    dumped = "model._target_" in paths
    if dumped:  # an older name that is set outranks the default of the new one
        entries.sort(key=lambda entry: is_older(plain_path(entry.dotted)))
    for entry in entries:
        path = entry.dotted.removeprefix("cfg.")
        take_path(draft, path, entry.raw, entry.line, dumped)
    if not dumped:
        return
    names = {path.removeprefix("model.").removeprefix("transformer.") for path in paths}
    used, missing = [], []
    for knob in knobs().values():
        if knob.is_core and knob.id in names:
            used.append(max(knob.since, knob.renamed))
        elif knob.is_core:
            missing.append(knob.since)
    note_releases(draft, used, missing)


_NOTHING: Final = ((), ("full",))
"""Values of a list beside which an older name of it may stand (transformer_config.py,
core_v0.18.0)."""


def _refuse_two_names(draft: Draft) -> None:
    """An older and the newer name of one setting together, where Megatron-Core refuses that."""
    for names in draft.names.values():
        older, newer = [], []
        for name, (value, _) in names.items():
            if name in spellings() and spellings()[name].refused_beside_newer:
                older.append(name)
            elif value not in _NOTHING:
                newer.append(name)
        for old, new in product(older, newer):
            if draft.core is None or wrong_in(draft, old):
                text = f"{old} and {new} are one setting, and Megatron-Core refuses both together"
                draft.problem(names[old][1], text, f"{new} alone", "stops", always=True)
