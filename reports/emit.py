"""The first step of a plan as a patch to paste: a YAML for Megatron-Bridge, a shell fragment for Megatron-LM.

Comments name the fix, its evidence, what is left to check and how to verify it; values are the document's.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from reports.document import Document
from reports.words import kind_words, percent, printable, wall_words

_WIDTH: Final = 88
_Tree = dict[str, Any]


def emit_config(framework: str, document: Document, everything: bool = False) -> str:
    """The patch of `fixes[0]` for `bridge` or `megatron-lm`; only comments where nothing is planned.

    It is one change whatever is asked for: `everything` adds nothing.
    """
    fix = next(iter(document["fixes"] or document["levers"]), None)
    lines = [*_comment(f"moe-diag {document['tool']['version']}: first step of the plan for {_of(document)}")]
    if fix is None:
        lines += _comment(f"No change is planned: {'; '.join(document['verdict']['because'])}.")
        return "\n".join(lines) + "\n"
    lines += [*_about(document, fix), "#", *_PATCHES[framework](fix["knobs"])]
    return "\n".join(lines) + "\n"


def _of(document: Document) -> str:
    names = [trace["name"] for trace in document["traces"]] or [document["about"]]
    return ", ".join(printable(name, 60) for name in names)


def _about(document: Document, fix: Mapping[str, Any]) -> Iterator[str]:
    yield from _comment(f"{fix['id']} {fix['title']}")
    yield from _comment(f"Evidence: {_evidence(document, fix['wall'])}.")
    if fix["gain_frac"] and fix["gain_frac"][1] is not None:
        yield from _comment(f"Gain: at most {percent(fix['gain_frac'][1])} of the step.")
    for answer in fix["checked"]:
        yield from _comment(f"Checked ({answer['tier']}): {answer['answer']}. {answer['text']}".rstrip())
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
    yield from (f"# {line}" for line in textwrap.wrap(text, _WIDTH, break_long_words=False))


def _bridge(knobs: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Overrides as nested YAML, environment as comments: a configuration file has none."""
    yield from (f"# export {line}" for line in knobs["environment"])
    tree: _Tree = {}
    for line in knobs["megatron_bridge"]:
        path, mark, value = line.partition("=")
        if not mark or line.startswith("("):
            yield from _comment(line)
            continue
        *groups, name = path.split(".")
        place = tree
        for group in groups:
            place = place.setdefault(group, {})
        place[name] = value
    yield from _nested(tree, "")


def _nested(tree: _Tree, margin: str) -> Iterator[str]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield f"{margin}{name}:"
            yield from _nested(value, margin + "  ")
        else:
            yield f"{margin}{name}: {value}"


def _megatron_lm(knobs: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """A fragment to source before the launch: exports, and the flags as an array."""
    yield from (f"export {line}" if "=" in line else f"# {line}" for line in knobs["environment"])
    for line in knobs["megatron_lm"]:
        if not line.startswith("--"):
            yield from _comment(line)
    yield "MOE_DIAG_ARGS=("
    yield from (f"  {line}" for line in knobs["megatron_lm"] if line.startswith("--"))
    yield ")"
    yield '# append "${MOE_DIAG_ARGS[@]}" to the arguments of the training script'


_PATCHES: Final[Mapping[str, Callable[[Mapping[str, Sequence[str]]], Iterator[str]]]] = {
    "bridge": _bridge,
    "megatron-lm": _megatron_lm,
}
FRAMEWORKS: Final = tuple(_PATCHES)
"""What `--emit-config` takes."""
