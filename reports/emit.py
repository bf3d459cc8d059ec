"""The first step of a plan as a patch to paste: a YAML for Megatron-Bridge, a shell fragment for
Megatron-LM.

Comments name the fix, its evidence, what is left to check and how to verify it; values are the
document's.
"""

import shlex
import textwrap
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from msgspec.structs import asdict

from heuristics.result.judged import Fix, Knobs
from heuristics.result.result import Result
from reports.content.check_defects import answer_words, defect_words, first_errors
from reports.content.names import capital, name_of, optional, plain, when
from reports.content.page import Detail
from reports.rows import each, those
from traces.missing import known
from traces.patterns import compiled
from traces.sections.tables import WallId
from traces.settings.bridge import hydra_value
from traces.settings.printed import LEFT_OUT
from traces.settings.spelling import is_open
from traces.spelling import percent, printable

_WIDTH: Final = 88
_VARIABLE: Final = compiled(r"[A-Z][A-Z0-9_]*=.*")
Tree = dict[str, "str | Tree"]
Lines = Iterator[str]
Patch = Callable[[Knobs], Lines]


def emit_config(framework: str, result: Result) -> str:
    """The patch of the plan's first step for `bridge` or `megatron-lm`; only comments where there
    is none.
    """
    return "".join(f"{line}\n" for line in _lines(result, _PATCHES[framework]))


def _lines(result: Result, patch: Patch) -> Lines:
    names = each(result.traces, "name")
    if result.about:
        names.append(result.about)
    of = ", ".join(printable(name, 60) for name in names)
    comments = [f"moe-diag {result.tool.version}: first step of the plan for {of}"]
    for error in first_errors(result):
        text = plain(defect_words(error, Detail.FIRST))
        comments.append(f"Fix first: {printable(text, len(text))}")
    fix = _to_set(result.fixes or result.levers)
    if not fix:
        why = "; ".join(dict.fromkeys(result.verdict.because))
        if result.judged is False:
            why = (
                "nothing was measured. Give --symptoms S.json, or analyze a trace with --config "
                "FILE"
            )
        yield from _comments(*comments, f"No change is planned: {why}.")
        return
    for other in result.fixes:
        if other.id in fix.after and not _sets(other):
            comments.append(f"First: {other.id} {other.title}")
    yield from (*_comments(*comments, *_about(result, fix)), "#")
    if not fix.arms:
        yield from _comments(*(f"PyTorch: {line}" for line in fix.knobs.pytorch))
        if not fix.knobs.pytorch:
            yield from patch(fix.knobs)
        return
    # every arm, commented out: which of them is set is the experiment's choice, not ours
    arms = " and ".join(each(fix.arms, "name"))
    yield from _comments(
        f"The guide names no best one: measure {arms} under the same routing, one run each. Remove "
        "the comment signs from one arm at a time."
    )
    for arm in fix.arms:
        yield from ("#", f"# Arm {arm.name}:")
        for line in patch(arm.knobs):
            yield f"# {line.removeprefix('# ')}"


def _to_set(steps: Sequence[Fix]) -> Fix | None:
    """The first step; where that is an upgrade, which sets nothing, the fix that stands on it."""
    first = next(iter(steps), None)
    if not first or _sets(first):
        return first
    for fix in steps:
        if first.id in fix.after:
            return fix
    return first


def _sets(fix: Fix) -> bool:
    return any(asdict(fix.knobs).values())


def _about(result: Result, fix: Fix) -> Lines:
    yield f"{fix.id} {fix.title}"
    yield f"Evidence: {_evidence(result, fix.wall)}."
    if gain := fix.gain_frac:
        is_most = "at most" if fix.gain_replayed else "not replayed. Acts on"
        yield f"Gain: {is_most} {percent(gain[1])} of the step."
    for answer in answer_words(fix.checked):
        yield f"Checked: {answer}"
    if room := fix.room:
        yield f"Memory: {room.because}."
    yield from fix.how
    for precondition in fix.preconditions:
        if precondition.state != "met":
            yield f"To check: {precondition.text}."
    yield "Change nothing else in the same experiment; keep routing, layout and container."
    yield f"Verify: {fix.verify}."


def _evidence(result: Result, wall_id: WallId) -> str:
    for wall in those(result.walls, id=wall_id):
        if (cost := known(wall.cost_frac)) is not None:
            kinds = wall.cost_by_kind_ns or {}
            most = optional(
                " (most of it {})", max(kinds, key=kinds.__getitem__, default=None), name_of
            )
            return f"{name_of(wall_id)} costs at most {percent(cost)} of the step{most}"
    return f"{name_of(wall_id)}, whose cost could not be measured"


_wrapped: Final = partial(
    textwrap.wrap, width=_WIDTH, break_long_words=False, break_on_hyphens=False
)


def _comments(*texts: str) -> Lines:
    """Comments of our own texts; a line break in one cannot end it."""
    for text in texts:
        yield from _wrapped(text, initial_indent="# ", subsequent_indent="#   ")


def _bridge(knobs: Knobs) -> Lines:
    for line in knobs.environment:
        yield from _commented(line)
    tree = Tree()
    for line in knobs.megatron_bridge:
        path, mark, value = line.partition("=")
        if comment := _asked(line, bool(mark) and not line.startswith("("), value):
            yield from _comments(comment)
        else:
            _put(tree, path.split("."), yaml_value(value))
    yield from _nested(tree, "")


def _asked(line: str, is_set: bool, value: str) -> str:
    """What is said of a line that sets nothing, or whose value is for the user to choose."""
    if not is_set:
        return _note(line)
    return when(is_open(value.strip('"')), f"Choose the value yourself: {line}")


def _put(tree: Tree, path: Sequence[str], value: str) -> None:
    *groups, name = path
    for group in groups:
        below = tree.setdefault(group, {})
        if isinstance(below, str):
            raise ValueError(f"{group} is a value and a group")
        tree = below
    tree[name] = value


def _nested(tree: Tree, margin: str) -> Lines:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield f"{margin}{name}:"
            yield from _nested(value, margin + "  ")
        else:
            yield f"{margin}{name}: {value}"


def _megatron_lm(knobs: Knobs) -> Lines:
    for line in knobs.environment:
        is_shell = _VARIABLE.fullmatch(line) or LEFT_OUT.fullmatch(line)
        yield from _environment(line) if is_shell else _commented(line)
    flags = []
    for line in knobs.megatron_lm:
        if comment := _asked(line, line.startswith("--"), line.partition(" ")[2]):
            yield from _comments(comment)
        else:
            flags.append("  " + " ".join(map(shlex.quote, shlex.split(line))))
    yield from ("MOE_DIAG_ARGS=(", *flags, ")")
    yield '# append "${MOE_DIAG_ARGS[@]}" to the arguments of the training script'


def _commented(line: str) -> Lines:
    for variable in _environment(line):
        yield f"# {variable}"


def _environment(line: str) -> Lines:
    if _VARIABLE.fullmatch(line):
        name, _, value = line.partition("=")
        yield f"export {name}={shlex.quote(value)}"
    elif left_out := LEFT_OUT.fullmatch(line):
        yield f"unset {left_out[1]}"
    elif line.startswith("("):
        yield from _wrapped(_note(line))
    else:
        yield f"Beside the command: {line}"


def _note(line: str) -> str:
    return f"{capital(line.removeprefix('(').removesuffix(')'))}."


_PATCHES: Final = {"bridge": _bridge, "megatron-lm": _megatron_lm}
"""Frameworks, and what writes a change for each."""


_WORD: Final = compiled(r"[A-Za-z_][\w-]*(\.[A-Za-z_][\w-]*)*")
_NUMBER: Final = compiled(r"[+-]?\d+")
_FLOAT: Final = compiled(r"[+-]?(\d{1,40}\.\d{0,40}|\.\d{1,40}|\d{1,40})([eE][+-]?\d{1,9})?")
_OTHERS: Final = frozenset(
    {"y", "n", "yes", "no", "on", "off", "null", "none", "true", "false", "nan", "inf"}
)
"""Words that some edition takes for no text."""


def yaml_value(text: str) -> str:
    """The value of an override such as `[moe_act,layernorm]`, `null` or `"Et*3|L"` as a YAML
    value.
    """
    raw = hydra_value(text)
    if isinstance(raw, list):
        return f"[{', '.join(map(_scalar, map(str, raw)))}]"
    return _scalar(str(raw))


def _scalar(text: str) -> str:
    if text in ("null", "None"):
        return "null"
    if text in ("true", "false") or _NUMBER.fullmatch(text):
        return text
    if _FLOAT.fullmatch(text):
        return _float(text)
    if _WORD.fullmatch(text) and text.lower() not in _OTHERS:
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _float(text: str) -> str:
    """With a point and a sign in the exponent: YAML 1.1 takes 1e-2 for a text."""
    digits, mark, exponent = repr(float(text)).partition("e")
    return digits + when("." not in digits, ".0") + mark + exponent
