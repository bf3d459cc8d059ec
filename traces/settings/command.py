"""A training command of a script: flags of Megatron-LM, overrides and flags of Bridge, ranks it
starts.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Final

from traces.frozen import frozen
from traces.patterns import compiled
from traces.settings.bridge import (
    is_override,
    take,
    take_correction,
    unclear,
    wrong_in,
)
from traces.settings.corrections import Correction, alias, corrected_flag, is_alias, spellings
from traces.settings.draft import Draft
from traces.settings.harness import harness_count, runs_scripts, take_harness
from traces.settings.knobs import Knob, by_flag, knobs
from traces.settings.names import known_names, lm_flags, nearest_in, say_unknown, shown
from traces.settings.releases import say_if_absent, say_later_words, stay_of_flag
from traces.settings.settings import NotAConfiguration
from traces.settings.shell import UNKNOWN, Command, Script, Word, Words, files, read_script, texts
from traces.settings.values import Raw
from traces.texts import Texts

BINDERS: Final = frozenset({"numactl", "bindpcie", "bindpcie.sh"})
"""Launchers that bind a rank (Megatron-Bridge, docs/performance-guide.md; mlperf-common)."""

DIRECT: Final = "run_script.py"
"""What Megatron-Bridge's executor starts on each rank with variables that it sets: by hand it has
none."""
_NO_WORD: Final = Word("", 0)


def _counts(words: Iterable[Word]) -> dict[str, int | None]:
    """The last number after flags of a launcher, as `--nodes=4`, `--nodes 4`, `-N4`; None: none is
    plain.
    """
    counts = {}
    for word, after in pairwise((*words, _NO_WORD)):
        flag, value = word.name, word.value or after
        if short := compiled(r"(-[Nn])(\d{1,9})").fullmatch(word.text):
            flag, value = short[1], replace(word, text=short[2])
        if counted := known_names().launchers.get(flag):
            counts[counted] = _plain_number(value)
    return counts


def _started(launch: Sequence[Word], script: Script) -> Iterator[tuple[str, int | None]]:
    """Ranks in all and of a node, one a GPU, where numbers of the launcher or of `#SBATCH` tell
    them.
    """
    is_torchrun = any(map(_is_torchrun, launch))
    directed, typed = _counts(script.directives), _counts(launch)

    def number(name: str) -> int | None:
        return typed.get(name) or directed.get(name)

    of_node, nodes, tasks = number("of_node"), number("nodes"), number("tasks_of_node")
    world = _plain_number(script.assigned.get("WORLD_SIZE"))
    if is_torchrun and of_node:
        world = of_node * (nodes or 1)
        if not nodes and "nodes" in {*directed, *typed}:
            world = None
    elif not is_torchrun and world is None:
        world = number("tasks")
        if world is None and nodes and tasks:
            world = nodes * tasks
    yield "world_size", world
    # of torchrun one task a node starts all ranks of it
    yield (
        "launcher.gpus_per_node",
        of_node or number("gpus_of_node") or (None if is_torchrun else tasks),
    )


def _is_torchrun(word: Word) -> bool:
    return word.file == "torchrun" or word.text.startswith("torch.distributed.")


def _plain_number(word: Word | None) -> int | None:
    if not word or not word.sure or not compiled(r"[1-9]\d{0,6}").fullmatch(word.text.strip()):
        return None
    return int(word.text)


_STRICT: Final = compiled(r"(pretrain_\w+|train_rl)\.py")
"""Megatron-LM's own programs, which stop at flags they do not know; others may have flags of their
own."""


@frozen
class Flag:
    """A flag with the words behind it. Not `sure`: a condition decides whether it is there."""

    name: str
    words: Words
    line: int
    sure: bool

    @property
    def is_told(self) -> bool:
        """Whether each of its words is known, and there for sure."""
        return self.sure and all(word.is_told for word in self.words)

    @property
    def raw(self) -> Raw:
        raws = list[Raw](texts(self.words))
        if len(raws) == 1:
            (only,) = raws
            return only
        return raws


def take_script(draft: Draft, text: str) -> bool:
    """Take what the training command of a script says. Whether it is Megatron-LM's and told in
    full.

    Raises:
        NotAConfiguration: no command of it has a flag or an override that we know.
    """
    script = read_script(text)
    command = _training(draft, script)
    launch, arguments = _split(command.words)
    if draft.framework == "megatron_bridge":
        draft.is_strict = runs_scripts(command.words)
        take_harness(draft, arguments, draft.is_strict)
        if DIRECT in files(command.words):
            draft.put("launcher.direct", True, command.words[0].line)
        is_complete = False
    else:
        draft.is_strict = any(map(_STRICT.fullmatch, files(launch)))
        is_complete = _take_flags(draft, arguments)
    take_environment(draft, script, command, launch)
    around = (*command.around, *launch)
    for knob, count in _started(around, script):
        if count is not None and knob not in draft.by_knob:
            draft.put(knob, count, command.words[0].line)
    if not BINDERS.isdisjoint(files(around)):
        draft.put("launcher.numa_binding", True, (launch or arguments)[0].line)
    _container(draft, script)
    return is_complete


def flags_of(words: Words) -> Iterator[Flag]:
    """Flags with their words; words before the first flag are left out."""
    starts = [place for place, word in enumerate(words) if word.is_flag]
    for start, end in pairwise((*starts, len(words))):
        word, behind = words[start], words[start + 1 : end]
        if word.value:
            behind = (word.value, *behind)
        yield Flag(word.name, behind, word.line, word.sure)


def _training(draft: Draft, script: Script) -> Command:
    scores = list(map(_score, script.commands))
    best = max(scores, default=(0, 0))
    if not any(best):
        raise NotAConfiguration(
            f"{draft.name}: no training command in it that we know; give the file that has "
            f"Megatron's flags, "
            "a YAML of Megatron-Bridge or a log with its arguments"
        )
    draft.framework = "megatron_bridge" if best[0] < best[1] else "megatron_lm"
    last = len(scores) - 1 - scores[::-1].index(best)
    for place, command in enumerate(script.commands):
        if max(scores[place]) > 2 and place != last:
            draft.problem(
                command.words[0].line, "another training command, which was not read", "one a file"
            )
    return script.commands[last]


def _score(command: Command) -> tuple[int, int]:
    """How many flags of Megatron-LM a command has, and how many flags or overrides of Bridge."""
    names, overrides = set[str](), 0
    for word in command.words:
        overrides += is_override(word.text)
        if word.is_flag:
            names.add(word.name)
    if runs_scripts(command.words):
        return 0, overrides + len(names) + 1
    return sum(map(_is_megatrons, names)), overrides + harness_count(names)


def _is_megatrons(name: str) -> bool:
    return name in by_flag() or name in spellings() or is_alias(name)


def _split(words: Words) -> tuple[Words, Words]:
    """The words to the program or module that trains, and those behind it."""
    for place, (before, word) in enumerate(pairwise((_NO_WORD, *words)), 1):
        is_module = before.text == "-m" and not word.text.startswith("torch.distributed")
        if is_module or word.text.endswith(".py"):
            return words[:place], words[place:]
    return (), words


def _take_flags(draft: Draft, words: Words) -> bool:
    """Take Megatron-LM's flags. Whether none of them is hidden in a variable from outside."""
    pairs = pairwise((_NO_WORD, *words))
    is_complete = all(_is_value(before) for before, word in pairs if word.text == UNKNOWN)
    for flag in flags_of(words):
        take_flag(draft, flag)
    if not is_complete:
        draft.problem(
            words[0].line,
            "flags come from outside the file, so that no default is certain",
            "a log of it",
        )
    return is_complete


def _is_value(before: Word) -> bool:
    """Whether what follows a word is the value of a flag that takes one: then it hides no flags."""
    rows = by_flag().get(before.text, ())
    if rows:
        return {knob.kind for knob, _ in rows} != {"bool"}
    return before.text in lm_flags()


def take_flag(draft: Draft, flag: Flag) -> None:
    """Take a flag of Megatron-LM with its value."""
    wrong = wrong_in(draft, flag.name)
    rows = by_flag().get(flag.name)
    if wrong:
        _take_meant(draft, flag, wrong)
        if wrong.sets:
            return
    if rows is not None:
        for knob, is_off in rows:
            _take_knob(draft, flag, knob, is_off)
            draft.note_name(knob.id, flag.name, flag.line)
        # a flag that the release lacks, or a word: Megatron-LM stops at what it does not know
        stay = stay_of_flag(flag.name)
        if stay is not None and flag.is_told:
            words = texts(flag.words)
            say_if_absent(draft, flag.name, stay, flag.line, "stops")
            say_later_words(draft, flag.name, knobs()[stay.knob], words, flag.line, "stops")
    elif is_alias(flag.name):
        if meant := alias(flag.name, str(flag.raw)):
            _take_meant(draft, flag, meant)
    elif flag.name in lm_flags():  # Megatron-LM has it, and nothing here depends on it
        return
    elif meant := corrected_flag(flag.name):
        _take_meant(draft, flag, meant)
    else:
        what = "no flag of Megatron-LM that we know"
        say_unknown(draft, flag.line, flag.name, lm_flags(), what, is_parsed=flag.is_told)


def _take_meant(draft: Draft, flag: Flag, meant: Correction) -> None:
    raw = flag.raw if flag.words else True
    if flag.is_told:
        take_correction(draft, shown(flag.name), meant, raw, flag.line)
        return
    for knob_id, _ in meant.sets:
        unclear(
            draft, knobs()[knob_id], shown(flag.name), flag.line, "it comes from outside the file"
        )


def _take_knob(draft: Draft, flag: Flag, knob: Knob, is_off: bool) -> None:
    if not flag.is_told:
        why = (
            "its value comes from outside the file"
            if flag.sure
            else "a condition of the script decides"
        )
        unclear(draft, knob, flag.name, flag.line, why)
    elif is_off:
        draft.put(knob.id, False, flag.line)
    elif knob.kind == "bool":
        draft.put(knob.id, True, flag.line)
        if flag.words and flag.raw not in ("true", "True"):
            draft.problem(
                flag.line,
                f"{flag.name} takes no value; Megatron-LM stops at one",
                flag.name,
                "stops",
            )
    elif flag.words:
        is_checked = knob.choices and knob.kind != "list" and not knob.free
        take(draft, knob, flag.name, flag.raw, flag.line, "stops" if is_checked else "unread")
    elif knob.kind == "list":
        draft.put(knob.id, (), flag.line)
    else:
        draft.leave(knob.id)
        draft.problem(flag.line, f"{flag.name} has no value", "the value behind it", "stops")


def take_environment(draft: Draft, script: Script, command: Command, launch: Words) -> None:
    """Variables that matter to a run, and no others: a script's environment holds secrets."""
    words = dict(script.exported) | command.environment
    for word in (*command.around, *launch):
        if word.value:
            words[word.name] = word.value
    for name, word in words.items():
        knob = knobs().get(f"env.{name}")
        if not knob:
            stem, alike = name.rpartition("_")[0], list[str]()
            if stem.count("_") > 1:
                alike = [env for env in _variables() if env.startswith(stem)]
            if near := nearest_in(draft, name, alike):
                what = "an environment variable nobody reads"
                draft.problem(word.line, f"{shown(name, near)}: {what}", near)
        elif word.is_told:
            take(draft, knob, name, word.text, word.line)
        else:
            unclear(draft, knob, name, word.line)


@cache
def _variables() -> Texts:
    return tuple(knob.removeprefix("env.") for knob in knobs() if knob.startswith("env."))


def _container(draft: Draft, script: Script) -> None:
    """The NeMo container that a script names: releases of a run hang on it."""
    words, bridges = list[Word](), known_names().bridges
    for command in script.commands:
        words += (*command.around, *command.words)
    for word in (*words, *script.assigned.values(), *script.directives):
        if match := compiled(r"\bnemo[:/_-](\d{2}\.\d{2}(?:\.\d{2})?)\b").search(word.text):
            draft.versions["container"] = f"nemo:{match[1]}"
            if draft.framework == "megatron_bridge" and match[1] in bridges:
                draft.versions["bridge"] = bridges[match[1]]
