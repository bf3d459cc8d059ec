"""What a log says of its run's configuration and of its packages: blocks of settings, and versions.

Megatron-LM prints `---- arguments ----` to `---- end of arguments ----` (_print_args in
megatron/training/arguments.py, core_v0.12.0 to d98e8a64). Megatron-Bridge prints a summary between
lines of `=` with `[group] ...` headings and `field: value` lines
(ConfigContainer.log_non_default_values in training/config.py, v0.2.2 to 067f987d).

Megatron-LM prints `> PyTorch version ... 2.9.0`, `> Megatron-Core version`, `> Transformer Engine
version` (pretrain_gpt.py, core_v0.19.0 to d98e8a64); NCCL_DEBUG=VERSION prints `NCCL version
2.29.3+cuda13.0`; NVIDIA's containers begin with `NVIDIA Release 26.02` and `PyTorch Version
2.9.0a0`; asserts name Transformer Engine's version; `pip freeze` prints `megatron-core==0.16.1`; a
traceback's paths name Python's, and DeepEP's where it is an egg. NVSHMEM prints `NVSHMEM v3.6.5`,
DeepSpeed `DeepSpeed info: version=0.17.2`, and nvidia-smi its driver's.
"""

from contextlib import suppress
from typing import Final, NamedTuple

from traces.limits import Limit
from traces.patterns import Pattern, compiled, whole_number
from traces.settings.draft import Draft
from traces.settings.knobs import by_path
from traces.settings.read import configuration_of
from traces.settings.settings import Setting, Settings
from traces.settings.values import NotAValue, value_of
from traces.toml_tables import read_table

WORDS: Final = (
    b" arguments -",
    b"Configuration Summary (Non-Default",
    b"ersion",
    b"NVIDIA Release",
    b"==",
    b"NVSHMEM v",
    b"nvshmem",
    b"deep_ep-",
    b"DeepSpeed info:",
)
LONGEST_BLOCK: Final = Limit(
    5_000,
    "lines",
    "ours: Megatron-LM has under 1,500 arguments; other ranks' lines may lie between",
)
_ARGUMENTS: Final = compiled(r"^(.{0,120}?)-{20,} arguments -{20,}$")
_ARGUMENTS_END: Final = compiled(r"-{10,} end of arguments -{10,}")
_SUMMARY: Final = compiled(
    r"^(.{0,120}?)Configuration Summary \(Non-Default Values vs Megatron Core\)$"
)
_SUMMARY_END: Final = compiled(r"={60,}")
_HEADING: Final = compiled(r"^\[(\w{1,40})\](?: Non-default values .*)?:$")
_FIELD: Final = compiled(r"^  (\w{1,80}): (.*?)(?:  \(Mcore default: .*\))?$")
_SUMMARY_RULES: Final = 2
"""Rules of `=` after the title: one under it, one at the end."""


Lines = list[tuple[int, str]]
"""Each with its number."""


class Blocks:
    """Collects the blocks of one log. `open`: the next line belongs to one."""

    def __init__(self, name: str) -> None:
        self.open = False
        self._name = name
        self._arguments = Lines()
        self._summary = Lines()
        self._lines = self._arguments
        self._prefix = ""
        self._rules = 0
        self._end = _ARGUMENTS_END

    def begins(self, number: int, text: str) -> bool:
        """Whether the line opens a block; the first of each kind is read."""
        if " arguments -" not in text and "Configuration Summary" not in text:
            return False
        for pattern, end, lines in (
            (_ARGUMENTS, _ARGUMENTS_END, self._arguments),
            (_SUMMARY, _SUMMARY_END, self._summary),
        ):
            match = pattern.match(text)
            if match and not lines:
                self.open, self._prefix, self._end, self._lines = True, match[1], end, lines
                self._rules = 1 if end is _ARGUMENTS_END else _SUMMARY_RULES
                self._lines.append((number, text.removeprefix(self._prefix)))
                return True
        return False

    def take(self, number: int, text: str) -> None:
        """A line of the open block; other ranks' lines may be among them."""
        text = text.removeprefix(self._prefix)
        if self._end.search(text):
            self._rules -= 1
        self._lines.append((number, text))
        self.open = self._rules > 0 and len(self._lines) < LONGEST_BLOCK.value

    def settings(self, core_version: str | None) -> Settings | None:
        """What the blocks say together, in Megatron-Core's version; None where the log holds
        none.
        """
        settings = None
        if self._arguments:
            text = "\n".join(line for _, line in self._arguments)
            argued = configuration_of(text, self._name, core_version).settings
            settings = _moved(argued, self._name, self._arguments[0][0] - 1)
        if self._summary:
            summary = _read_summary(self._summary, self._name)
            settings = summary if settings is None else settings.under(summary)
        return settings


def _moved(settings: Settings, name: str, lines_before: int) -> Settings:

    def place(place_said: str) -> str:
        head, _, line = place_said.rpartition(":")
        number = whole_number(line)
        if head == name and number is not None:
            return f"{name}:{number + lines_before}"
        return place_said

    moved = {knob: Setting(said.value, place(said.said)) for knob, said in settings.by_knob.items()}
    return Settings(moved, settings.framework)


def _read_summary(lines: Lines, name: str) -> Settings:
    """Known knobs of the summary: only what differs from Megatron-Core's defaults is in it."""
    draft = Draft(name, "megatron_bridge")
    group = ""
    for number, text in lines:
        if heading := _HEADING.match(text):
            group = heading[1]
        elif (field := _FIELD.match(text)) and (knob := by_path().get(f"{group}.{field[1]}")):
            with suppress(NotAValue):
                draft.put(knob.id, value_of(knob, field[2].strip("'\"")), number)
    return draft.finished().settings


_VERSION: Final = r"([0-9]{1,3}(?:\.[0-9]{1,4}){1,3}(?:(?:a|b|rc|\.dev|\.post)[0-9]{1,4})*)"


class _Row(NamedTuple):
    literal: str
    package: str
    says: Pattern


def _pattern(text: str) -> Pattern:
    return compiled(text.replace("VERSION", _VERSION))


_SAID: Final = read_table(
    "traces.training_log", "versions.toml", dict[str, tuple[_Row, ...]], {Pattern: _pattern}
)["said"]


def versions_in(text: str) -> dict[str, str]:
    """Versions that a line says, by package."""
    versions = dict[str, str]()
    for literal, package, says in _SAID:
        if literal in text and (match := says.search(text)):
            version = match[1]
            if "." not in version:  # cu130 is CUDA 13.0
                version = f"{version[:-1]}.{version[-1]}"
            versions.setdefault(package, version)
    return versions


def versions_of_frame(frame: str) -> dict[str, str]:
    """Python's version by a path of its library, as a traceback shows it; DeepEP's by that of its
    egg.
    """
    match = compiled(r"/python(3\.[0-9]{1,2})/").search(frame)
    versions = {} if match is None else {"python": match[1]}
    return versions | (versions_in(frame) if "deep_ep-" in frame else {})
