"""What a comparison must be with its sides swapped: every difference negated, all else where it was."""

from __future__ import annotations

from typing import Any, Final

_TURNED: Final = {
    "regression": "improvement",
    "improvement": "regression",
    "slower": "faster",
    "faster": "slower",
    "more": "fewer",
    "fewer": "more",
    "new": "gone",
    "gone": "new",
}
_NEGATED: Final = frozenset(
    {
        *("step_delta_ns", "delta_ns", "count_ns", "duration_ns", "overlap_ns", "module_delta_ns"),
        *("explains_ns", "share_frac"),
    }
)
_INTERVALS: Final = frozenset({"step_delta_ci95_ns", "ci95_ns"})
_HELD: Final = (
    "verdict", "comparable", "base", "new", "step_delta_ns", "step_delta_ci95_ns", "attribution", "reasons",
    "modules", "layers", "kernels", "changed", "suspects", "pairs", "exchanged",
)  # fmt: skip
"""Parts of the document that mirror; sentences and shares of the base need not."""
_SENTENCES: Final = frozenset({"because", "seen", "title", "next"})


def held(document: dict[str, Any]) -> dict[str, Any]:
    """The parts that mirror, without sentences."""
    return {key: _without_sentences(document[key]) for key in _HELD}


def mirrored(document: dict[str, Any]) -> dict[str, Any]:
    """What `held` must be of the document with the sides swapped."""
    turned: dict[str, Any] = _turned("", held(document))
    return turned


def _without_sentences(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_sentences(one) for key, one in value.items() if key not in _SENTENCES}
    return [_without_sentences(one) for one in value] if isinstance(value, list) else value


def _turned(key: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {_other(name): _turned(name, one) for name, one in value.items()}
    if key in _INTERVALS and value is not None:
        return [-value[1], -value[0]]
    if isinstance(value, list):
        return [_turned("", one) for one in value]
    if key in _NEGATED and value is not None:
        return -value
    return _TURNED.get(value, value) if key in ("verdict", "change") else value


def _other(name: str) -> str:
    """The key of the other side."""
    for side, other in (("base", "new"), ("new", "base")):
        if name == side or name.startswith((f"{side}_", f"said_{side}")):
            return name.replace(side, other, 1)
    return name
