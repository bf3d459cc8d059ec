"""How things are called, alike on every page: keys, foreign kernels, rows of the step with their
hue, lists.

Keys have their names in `measures.toml`. A published issue is one sentence; `plain` is for text
alone.
"""

from collections.abc import Callable, Iterable, Sequence, Sized
from typing import Final, TypeVar

from msgspec import UnsetType

from heuristics.config.versions import PACKAGE_NAMES
from heuristics.result.compared import Side
from heuristics.result.compared_ranks import Place
from heuristics.result.configured import Setting
from heuristics.result.judged import KnownIssue
from heuristics.result.result import Result
from reports.content.blocks import (
    Block,
    Cell,
    Code,
    Hue,
    Part,
    Quantity,
    Sentence,
    Span,
    Term,
    Tone,
    Words,
    words,
)
from reports.measures import named, words_of
from traces.missing import Missing, OrMissing, known
from traces.names.mangled import readable
from traces.patterns import LETTERS, compiled
from traces.sections.rank import Rank
from traces.settings.knobs import knobs
from traces.spelling import counted, gpu_model, milliseconds, numbers, percent, printable, spoken


def statement(
    text: Span | Words, label: str = "", tone: Tone = Tone.PLAIN, whole: bool = False
) -> Sentence:
    """A sentence of a text or of words."""
    return Sentence(words(text), label, tone, whole)


def titled(id: str, blocks: Iterable[Block]) -> Part:
    """A part of a page by its anchor, which has a title in `words.toml`."""
    return Part(words_of("part")[id], tuple(blocks), id)


def around(before: Span, inner: Words, after: Span = "") -> Words:
    """Words between two spans; nothing where there are none."""
    if inner:
        return words(before, inner, after)
    return ()


def share_of(share: float | None, hue: Hue = Hue.OTHER) -> Quantity:
    """A share as a quantity with its bar."""
    if share is None:
        return Quantity("unknown")
    return Quantity(percent(share), share, hue)


def joined(parts: Iterable[Span | Words], between: str = ", ") -> Words:
    spans = list[Span]()
    for part in parts:
        spans += words(between, part)
    return words(*spans[1:])


def codes(several: Iterable[str]) -> Words:
    return joined(map(Code, several))


def listed(names: Sequence[str]) -> str:
    """Names as a sentence takes them: `a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


Known = TypeVar("Known")


def told(value: OrMissing[Known], written: Callable[[Known], str] = str) -> str:
    if (known_value := known(value)) is None:
        return "unknown"
    return written(known_value)


def told_ms(time_ns: OrMissing[float]) -> str:
    """A time in ms, without its unit."""
    return told(time_ns, milliseconds)


def optional(
    text: str, value: OrMissing[Known] | UnsetType, written: Callable[[Known], object] = str
) -> str:
    """The text with the value in its gap; nothing where that is empty, absent or not known."""
    known_value = known(value)
    if known_value is None or (isinstance(known_value, Sized) and not known_value):
        return ""
    return text.format(written(known_value))


def when(holds: object, text: str) -> str:
    """A text that stands only where something holds."""
    if holds:
        return text
    return ""


def beyond(count: int, shown: int, text: str = " and {} more", *nouns: str) -> str:
    """How many there are beside those shown, counted by `nouns`; nothing where these are all."""
    others = count - shown
    if others <= 0:
        return ""
    return text.format(counted(others, *nouns) if nouns else others)


def rank_numbers(ranks: Sequence[int]) -> str:
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {numbers(ranks)}"


def ended(text: str) -> str:
    """A text with one full stop, or its question mark."""
    if text.endswith("?"):
        return text
    return f"{text.rstrip('.')}."


def sentence(text: str) -> str:
    return ended(capital(text))


KERNEL_WIDTH: Final = 28
WHOLE_NAME: Final = 400
_WRAPPERS: Final = compiled(
    r"(?i)^(kernel\d?|device_kernel|(vectorized_|unrolled_|legacy_)?elementwise_kernel\w*|reduce_kernel)$"
)
"""Kernels that are named by their template argument."""
_NAMELESS: Final = compiled(r"<unnamed>|\(anonymous namespace\)")
_RETURNED: Final = compiled(r"^(?:std::)?enable_if(?:_t)?<.*?>(?:::type)? ")
"""What a template returns, where that depends on its arguments."""
_SHARED: Final = compiled(r"(?i)^(?:\w*traits|at|native|kernel|lambda)$")
"""Words of templates that say nothing of a kernel: what stands before them in their path may."""
_FUNCTOR: Final = compiled(r"Functor|^[A-Z][A-Za-z]*Op$")
"""Template arguments that many functions share: shown after the function, which is what one
searches for."""
_PLAIN: Final = {
    "void",
    "int",
    "long",
    "float",
    "double",
    "bool",
    "char",
    "unsigned",
    "true",
    "false",
    "__half",
    "__nv_bfloat16",
}
_WORD: Final = compiled(r"[A-Za-z_]\w+(?:::\w+)*")


_FAMILIES: Final = {"comm": "communication", "copy": "copies"}
"""Keys of what is known by its family alone."""


def name_of(key: str) -> str:
    """The name of a key, or of one after a family: `launch_starved.python`, `compute.gemm`."""
    if known := named(key):
        if key.startswith("longest_"):
            return f"longest {known[0].title}"
        return known[0].title
    family, dot, last = key.rpartition(".")
    if dot and family:
        return name_of(last)
    return _FAMILIES.get(key, key.replace("_", " "))


VERSION: Final = "version"
"""The family of the versions of packages: `version.nccl`."""


def version_of(package: str) -> str:
    called = PACKAGE_NAMES.get(package) or words_of("package").get(package, package)
    return f"version of {called}"


_CHUNK: Final = compiled(rf"[{LETTERS}_./:-]+")
_KEY: Final = compiled(r"([a-z][a-z0-9]*(?:[._][a-z0-9]+)+)(?:[.:-](?:[./:-].*)?)?")
"""What may be a key within a sentence: no part of a path, an address or another name."""


def keyed(text: str) -> Words:
    """A sentence whose keys of measures (`launch_starved.data`) are terms, and whose settings are
    code.
    """
    spans, place = [], 0
    for chunk in _CHUNK.finditer(text):
        key = _KEY.fullmatch(chunk[0])
        if key and (span := _span(key[1])) is not None:
            spans += [text[place : chunk.start()], span]
            place = chunk.start() + key.end(1)
    return words(*spans, text[place:])


def _span(key: str) -> Span | None:
    """What stands for a key; None for what is none."""
    family, _, last = key.rpartition(".")
    if family == VERSION:
        return version_of(last)
    if named(key) or (family and named(last)):
        return Term(key)
    if key in knobs():
        return Code(key)
    return None


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def is_cure(cure: str) -> bool:
    """Whether there is something to do: cures of what nothing can tell begin with "none"."""
    return bool(cure) and compiled(r"none\b").match(cure) is None


def how_to_learn(cure: str) -> str:
    return when(is_cure(cure), f" To learn it: {cure.rstrip('.')}.")


def unknown_words(gap: Missing) -> str:
    """That something is unknown, why, and how to learn it."""
    return f"unknown: {ended(gap.reason)}{how_to_learn(gap.cure)}"


def settings_of(result: Result) -> dict[str, Setting]:
    """The settings of the configuration by their knobs; none without one."""
    if configuration := result.configuration:
        return {setting.knob: setting for setting in configuration.settings}
    return {}


def is_set(result: Result, knob: str) -> bool:
    """Whether the configuration sets a knob to true."""
    setting = settings_of(result).get(knob)
    return setting is not None and setting.value is True


def kernel_name(recorded: str, width: int = KERNEL_WIDTH) -> str:
    """A kernel in a few characters: without its types, or by its template argument where that names
    it.
    """
    bare = _NAMELESS.sub("", printable(readable(recorded), WHOLE_NAME)).removeprefix("void ")
    head, _, inside = _RETURNED.sub("", bare).partition("<")
    base = head.partition("(")[0].rpartition("::")[2].strip()
    if _WRAPPERS.match(base) and "(" not in head:
        for word in _WORD.findall(inside):
            last = ""
            for part in word.split("::"):
                if not _SHARED.fullmatch(part):
                    last = part
            if not last or last in _PLAIN or _WRAPPERS.match(last) or "gpu_kernel" in last:
                continue
            return shortened(f"{base} {last}" if _FUNCTOR.search(last) else last, width)
    return shortened(base or bare, width)


def kernel_code(recorded: str, width: int = KERNEL_WIDTH) -> Code:
    """The same with the whole name, where there is room for that on demand."""
    return short_code(printable(recorded, WHOLE_NAME), kernel_name(recorded, width))


def short_code(whole: str, short: str = "") -> Code:
    short = short or shortened(whole)
    return Code(short, when(short != whole, whole))


def names_apart(names: Sequence[str]) -> dict[str, str]:
    """Whole names shortened; those that would read alike by where they begin to differ."""
    short, half = {}, KERNEL_WIDTH // 2 - 3
    for name in names:
        short[name] = shortened(name)
        alike = {other for other in names if shortened(other) == short[name]}
        if len(alike) > 1:
            low, high = min(alike), max(alike)
            begin = next(at for at, letter in enumerate(high) if letter != low[at : at + 1])
            short[name] = f"{name[:half]}...{shortened(name[begin:], half + 3)}"
    return short


def shortened(name: str, width: int = KERNEL_WIDTH) -> str:
    if len(name) <= width:
        return name
    return name[: width - 3] + "..."


def gpu_of(of: Rank | Side) -> str:
    return optional("{}", of.gpu, gpu_model) or "GPU model not known"


def who(of: Rank | Side | Place) -> str:
    return f"{optional('rank {}, ', of.rank)}GPU {of.device}"


def grid_words(grid: OrMissing[tuple[int, int, int]]) -> str:
    return " x ".join(map(str, grid or ()))


def plain(spoken_words: Words) -> str:
    """The words one after the other; keys by their names. What is foreign is as foreign as
    before.
    """
    texts = []
    for span in spoken_words:
        if isinstance(span, Term):
            texts.append(name_of(span.key))
        else:
            texts.append(span.text if isinstance(span, Code) else span)
    return "".join(texts)


def cell_text(cell: Cell) -> str:
    """The text of a quantity, or the words of a cell."""
    if isinstance(cell, Quantity):
        return cell.text
    return plain(cell)


def issue_sentence(issue: KnownIssue, of_a_run: bool = True) -> str:
    """Where it was met, what happens, what helps, and its source. `of_a_run`: with what is unknown
    of it.

    The first package stands for all: their releases are the same in time.
    """
    where = issue.releases[0] + optional(", on {}", issue.gpus, " or ".join)
    if of_a_run and issue.only_if:
        unknown = ", ".join(map(spoken, issue.only_if))
        where = f"if your release is {where}; not known here: {unknown}"
    return f"({where}): {issue.what}. Workaround: {issue.workaround}. {issue.source}."


def piece_of(row: str, other: str = "") -> tuple[str, Hue]:
    """The piece of a row of the ledger that has this name, or the other one, and its colour."""
    for begin, name in words_of("piece").items():
        if row.startswith(begin) or other.startswith(begin):
            return name, Hue(words_of("piece_hue")[begin])
    return "other time", Hue.OTHER  # a row of a later version


def hue_of(row: str) -> Hue:
    """The colour of a row of the step; a comparison names idle rows without their first word."""
    return piece_of(row, f"idle.{row}")[1]
