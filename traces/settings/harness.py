"""A command of Megatron-Bridge: its scripts/performance with their flags, or any program with
overrides.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from traces.settings.bridge import (
    is_override,
    take,
    take_correction,
    take_override,
    take_variable,
    unclear,
)
from traces.settings.corrections import alias, is_alias
from traces.settings.draft import Draft
from traces.settings.harness_recipes import (
    PRECISION,
    PRECISIONS,
    RECIPE,
    Flags,
    precision_asked,
    precisions_ever,
    take_recipe,
)
from traces.settings.knobs import MAIN, Knob, Release, by_harness, by_path, knobs
from traces.settings.names import harness_flags, long_flag, say_unknown
from traces.settings.settings import Setting
from traces.settings.shell import UNKNOWN, Word, Words, files

SCRIPTS: Final = frozenset({"run_script.py", "setup_experiment.py"})
"""Programs of Megatron-Bridge, scripts/performance, that take these flags."""

_DEEPEP: Final = ("h100", "b200", "b300")
_BY_HELPER: Final = (
    "moe_token_dispatcher_type",
    "moe_flex_dispatcher_backend",
    "moe_shared_expert_overlap",
)
_FALLS_BACK: Final = Release((0, 19, 0))
_OWN_LENGTH: Final = ("rp2", "c4")
"""Data whose length an override may set: for all else the scripts make a dataset of the model's
length (scripts/performance/utils/overrides.py, set_user_overrides)."""


def harness_count(names: Iterable[str]) -> int:
    """How many flags are of Bridge's scripts by their underscores; Megatron-LM's have dashes."""
    known = {*by_harness(), "--moe_a2a_overlap", PRECISION, "--recompute_modules"}
    return sum("_" in name for name in known.intersection(names))


def runs_scripts(words: Iterable[Word]) -> bool:
    """Whether a command runs one of the performance scripts: other programs have flags of their
    own.
    """
    return not SCRIPTS.isdisjoint(files(words))


def take_harness(draft: Draft, words: Words, is_script: bool = True) -> None:
    """Take the flags of the scripts and the overrides among the words.

    `is_script`: a flag that they do not have is a mistake, not some other program's own.
    """
    plain = {}
    pairs = list(_pairs(words))
    if is_script:  # run_script.py sets overrides first, so that a flag wins wherever it stands
        pairs.sort(key=lambda pair: pair[0].is_flag)
    for word, value in pairs:
        if word.is_flag:
            _take_flag(draft, word, value, is_script)
            flag = long_flag(word.text)
            if word.sure and value.is_told:
                plain[flag] = value.text
            elif flag == PRECISION:
                plain[flag] = UNKNOWN
        elif is_override(word.text) and word.is_told:
            take_override(draft, word.text, word.line)
        elif hidden := by_path().get(word.name):
            unclear(draft, hidden, hidden.bridge, word.line)
    if is_script:
        if "--seq_length" in plain or plain.get("--data", "mock") not in _OWN_LENGTH:
            draft.by_knob.pop("dataset.sequence_length", None)
        _without_deepep(draft, plain)
        take_recipe(draft, plain)
        _check_preset(draft, plain, words)


def _check_preset(draft: Draft, flags: Flags, words: Iterable[Word]) -> None:
    """The scripts stop where no preset has the precision; of an unknown release, where none ever
    had it.

    Source: utils/utils.py, get_workload_base_config, of v0.3.1 to v0.5.1; v0.6.0 looks for the
    recipe's name.
    """
    code, known = precision_asked(flags), draft.view.value(PRECISIONS)
    if not isinstance(known, tuple) or code in known:
        return
    gpu = str(draft.by_knob["launcher.gpu"].value)
    if draft.core is None and code in precisions_ever(str(draft.by_knob[RECIPE].value), gpu):
        return
    line = next((word.line for word in words if long_flag(word.name) == PRECISION), None)
    text = (
        f"Bridge's scripts have no preset of -c {code} for this model, -g {gpu} and release, "
        f"and stop"
    )
    choice = f"-c {' or -c '.join(map(str, known))}" if known else "a GPU that has a preset"
    draft.problem(line, text, choice, "stops")


def _without_deepep(draft: Draft, flags: Flags) -> None:
    """What the flag for DeepEP sets on a GPU without it: alltoall since 0.6, before it nothing.

    Source: training/flex_dispatcher_backend.py, apply_flex_dispatcher_backend, of v0.4.0 to
    067f987d; a configuration file is not changed so, but refused.
    """
    gpu = draft.by_knob.get("launcher.gpu")
    if flags.get("--moe_flex_dispatcher_backend") != "deepep" or not gpu or gpu.value in _DEEPEP:
        return
    set_before = {knob: draft.by_knob.pop(knob) for knob in _BY_HELPER}
    backend = set_before["moe_flex_dispatcher_backend"]
    draft.by_knob["launcher.flex_backend"] = Setting("deepep", backend.said)
    if (draft.core or MAIN) >= _FALLS_BACK:
        draft.by_knob["moe_token_dispatcher_type"] = Setting("alltoall", backend.said)
        draft.by_knob["moe_flex_dispatcher_backend"] = Setting(None, backend.said)


def _pairs(words: Words) -> Iterator[tuple[Word, Word]]:
    """Flags with the word behind each, `true` where none is; other words with themselves."""
    left = deque(words)
    while left:
        word = left.popleft()
        if not word.is_flag:
            yield word, word
        elif value := word.value:
            yield replace(word, text=word.name), value
        elif left and not left[0].is_flag:
            yield word, left.popleft()
        else:
            yield word, Word("true", word.line)


def _take_flag(draft: Draft, word: Word, value: Word, is_script: bool) -> None:
    flag, text = long_flag(word.text), value.text
    knob = by_harness().get(flag)
    if not (word.sure and value.is_told):
        if flag == PRECISION:
            knob = knobs()["mixed_precision"]
        if knob:
            unclear(draft, knob, flag, word.line)
    elif flag in ("--env", "--custom_env_vars"):
        for pair in text.split(","):
            name, equals, set_to = pair.partition("=")
            if equals:
                take_variable(draft, name.strip(), set_to, word.line)
    elif is_alias(flag):
        if meant := alias(flag, text):
            take_correction(draft, flag, meant, text, word.line)
        else:
            problem = f"{flag} does not take this word"
            draft.problem(word.line, problem, "one that it takes", "stops")
    elif knob:
        if not (flag == "--virtual_pipeline_model_parallel_size" and text == "-1"):
            _check_words(draft, knob, flag, text, word.line)
            take(draft, knob, flag, text, word.line, "stops" if knob.choices else "unread")
    elif is_script and flag not in harness_flags() and flag.startswith("--"):
        what = "no flag of Bridge's scripts that we know"
        say_unknown(draft, word.line, flag, harness_flags(), what)


def _check_words(draft: Draft, knob: Knob, flag: str, text: str, line: int) -> None:
    """A word that the framework takes, or another release, but not the parser of these scripts."""
    taken = knob.choices if draft.core is None else knob.words_in(draft.core)
    takes = knob.harness_choices or taken
    words = map(str.strip, text.split(","))
    refused = [word for word in words if word in knob.choices and word not in takes]
    if refused:
        known = ", ".join(takes)
        text = f"{flag} of Bridge's scripts takes {known}, but not {', '.join(refused)}"
        draft.problem(line, text, f"one of {known}", "stops")
