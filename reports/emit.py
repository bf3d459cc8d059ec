"""The first step of a plan as a patch to paste: a YAML for Megatron-Bridge, a shell fragment for Megatron-LM.

Comments name the fix, its evidence, what is left to check and how to verify it; values are the document's.
"""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from reports.config_sentences import answer_sentences, first_mends, no_plan_sentence
from reports.document import Document
from reports.emit_values import yaml_value
from reports.words import kind_words, percent, printable, wall_words
from traces.settings.settings import Framework
from traces.settings.spelling import change_of

_WIDTH: Final = 88
_VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9_]*=.*")
_LEFT_OUT: Final = re.compile(r"\((?:leave|left) out ([^()]+)\)")
Tree = dict[str, "str | Tree"]


def emit_config(framework: str, document: Document, everything: bool = False) -> str:
    """The patch of `fixes[0]` for `bridge` or `megatron-lm`; only comments where nothing is planned.

    It is one change whatever is asked for: `everything` adds nothing.
    """
    fix = next(iter(document["fixes"] or document["levers"]), None)
    lines = [*_comment(f"moe-diag {document['tool']['version']}: first step of the plan for {_of(document)}")]
    for said in first_mends(document):
        lines += _comment(f"Mend first: {said}")
    if fix is None:
        lines += _comment(f"No change is planned: {no_plan_sentence(document)}")
        return "\n".join(lines) + "\n"
    lines += [*_about(document, fix), "#"]
    if code := fix["knobs"]["pytorch"]:
        lines += [said for line in code for said in _comment(f"PyTorch: {line}")]
    else:
        lines += _PATCHES[framework](fix["knobs"])
    return "\n".join(lines) + "\n"


def _of(document: Document) -> str:
    names = [trace["name"] for trace in document["traces"]] or [document["about"]]
    return ", ".join(printable(name, 60) for name in names)


def _about(document: Document, fix: Mapping[str, Any]) -> Iterator[str]:
    yield from _comment(f"{fix['id']} {fix['title']}")
    yield from _comment(f"Evidence: {_evidence(document, fix['wall'])}.")
    if fix["gain_frac"] and fix["gain_frac"][1] is not None:
        yield from _comment(f"Gain: at most {percent(fix['gain_frac'][1])} of the step.")
    for said in answer_sentences(fix["checked"]):
        yield from _comment(f"Checked: {said}.")
    if fix["room"]:
        yield from _comment(f"Memory: {fix['room']['because']}.")
    for one in fix["preconditions"]:
        if one["state"] != "met":
            yield from _comment(f"To check: {one['text']}.")
    yield from _comment("Change nothing else in the same experiment; keep routing, layout and container.")
    yield from _comment(f"Verify: {fix['verify']}.")


def _evidence(document: Document, wall_id: str) -> str:
    wall = next((one for one in document["walls"] if one["id"] == wall_id), None)
    if wall is None or wall["cost_frac"] is None:
        return f"{wall_words(wall_id)}, whose cost could not be measured"
    said = f"{wall_words(wall_id)} costs at most {percent(wall['cost_frac'])} of the windows"
    parts = sorted((wall["cost_by_kind_ns"] or {}).items(), key=lambda part: -part[1])
    return f"{said} (most of it {kind_words(parts[0][0])})" if parts else said


def _comment(text: str) -> Iterator[str]:
    """A comment of our own text; a line break in it cannot end the comment."""
    yield from textwrap.wrap(
        text,
        _WIDTH,
        initial_indent="# ",
        subsequent_indent="#   ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _bridge(knobs: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Overrides as nested YAML, environment as comments: a configuration file has none."""
    for line in knobs["environment"]:
        yield from (f"# {said}" for said in _environment(line))
    tree: Tree = {}
    for line in knobs["megatron_bridge"]:
        path, mark, value = line.partition("=")
        if not mark or line.startswith("("):
            yield from _comment(_note(line))
        elif _is_to_fill_in(line, "megatron_bridge"):
            yield from _comment(f"Choose the value yourself: {line}")
        else:
            _put(tree, path.split("."), yaml_value(value))
    yield from _nested(tree, "")


def _put(tree: Tree, path: Sequence[str], value: str) -> None:
    """A value at its path."""
    *groups, name = path
    for group in groups:
        below = tree.setdefault(group, {})
        if isinstance(below, str):
            raise ValueError(f"{group} is a value and a group")
        tree = below
    tree[name] = value


def _nested(tree: Tree, margin: str) -> Iterator[str]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield f"{margin}{name}:"
            yield from _nested(value, margin + "  ")
        else:
            yield f"{margin}{name}: {value}"


def _megatron_lm(knobs: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """A fragment to source before the launch: exports, and the flags as an array."""
    for line in knobs["environment"]:
        is_shell = _VARIABLE.fullmatch(line) or _LEFT_OUT.fullmatch(line)
        yield from _environment(line) if is_shell else (f"# {said}" for said in _environment(line))
    flags = []
    for line in knobs["megatron_lm"]:
        if not line.startswith("--"):
            yield from _comment(_note(line))
        elif _is_to_fill_in(line, "megatron_lm"):
            yield from _comment(f"Choose the value yourself: {line}")
        else:
            flags.append("  " + " ".join(shlex.quote(word) for word in shlex.split(line)))
    yield from ("MOE_DIAG_ARGS=(", *flags, ")")
    yield '# append "${MOE_DIAG_ARGS[@]}" to the arguments of the training script'


def _environment(line: str) -> Iterator[str]:
    """A line of a fix's environment in the shell's words: a variable, or what else to do."""
    if _VARIABLE.fullmatch(line):
        name, _, value = line.partition("=")
        yield f"export {name}={shlex.quote(value)}"
    elif left_out := _LEFT_OUT.fullmatch(line):
        yield f"unset {left_out[1]}"
    elif line.endswith(" COMMAND"):
        yield f"Launch with: {line}"
    else:
        yield from textwrap.wrap(_note(line), _WIDTH, break_long_words=False, break_on_hyphens=False)


def _note(line: str) -> str:
    """What a line in brackets says, as a sentence."""
    said = line.removeprefix("(").removesuffix(")")
    return f"{said[:1].upper()}{said[1:]}."


def _is_to_fill_in(line: str, framework: Framework) -> bool:
    """Whether a line holds a placeholder such as N, which no framework takes."""
    return bool(change_of((line,), framework).unknown)


_PATCHES: Final[Mapping[str, Callable[[Mapping[str, Sequence[str]]], Iterator[str]]]] = {
    "bridge": _bridge,
    "megatron-lm": _megatron_lm,
}
FRAMEWORKS: Final = tuple(_PATCHES)
"""What `--emit-config` takes."""
