"""Values of overrides as YAML that every reader takes alike, whatever its edition of YAML."""

import re
from typing import Final

from traces.settings.bridge import hydra_value

_WORD: Final = re.compile(r"[A-Za-z_][\w-]*(\.[A-Za-z_][\w-]*)*")
_NUMBER: Final = re.compile(r"[+-]?\d+")
_FLOAT: Final = re.compile(r"[+-]?(\d+\.\d*|\.\d+|\d+)([eE][+-]?\d+)?")
_OTHERS: Final = frozenset(
    {"y", "n", "yes", "no", "on", "off", "null", "none", "true", "false", "nan", "inf"}
)
"""Words that some edition takes for no text."""


def yaml_value(text: str) -> str:
    """The value of an override such as `[moe_act,layernorm]`, `null` or `"Et*3|L"` as a YAML value."""
    raw = hydra_value(text)
    if raw is None:
        return "null"
    if isinstance(raw, list):
        return f"[{', '.join(_scalar(str(one)) for one in raw)}]"
    return _scalar(str(raw))


def _scalar(text: str) -> str:
    if text in ("true", "false"):
        return text
    if text in ("null", "None"):
        return "null"
    if _NUMBER.fullmatch(text):
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
    with_point = digits if "." in digits else f"{digits}.0"
    return f"{with_point}e{exponent}" if mark else with_point
