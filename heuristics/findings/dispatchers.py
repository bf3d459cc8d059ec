"""Facts of a case about its dispatcher: what is asked for, what runs, and why another one does."""

from typing import Final

from heuristics.config.features import FLEX
from heuristics.config.given import WHOLE
from heuristics.facts.dictionary import fact
from heuristics.findings.case import Case
from heuristics.rules.check import limits, past_limit
from heuristics.words import say

DEFAULT_BACKEND: Final = "deepep"
"""Of `moe_flex_dispatcher_backend` in Megatron-Core 0.16 to main (transformer_config.py)."""
_BACKEND: Final = "moe_flex_dispatcher_backend"


def _backend(case: Case) -> str | None:
    """A backend of flex, whether or not flex itself is asked for."""
    backend = case.run.config.word(_BACKEND)
    if backend in FLEX:
        return backend
    return None


@fact
def chosen_backend(case: Case) -> str | None:
    """A backend that somebody chose: not the default as every whole configuration repeats it."""
    backend, written = _backend(case), case.files.written
    if backend != DEFAULT_BACKEND:
        return backend
    knobs = [setting for setting in written.by_knob.values() if setting.said != "default"]
    if written.said(_BACKEND) == "default" or len(knobs) >= WHOLE.value:
        return None
    return backend


@fact
def flex_of_nothing(case: Case) -> bool:
    """Flex with a backend of null: nothing is left that could dispatch."""
    files = case.files.written
    is_null = (
        _BACKEND in files and files.value(_BACKEND) is None and not files.value("moe_enable_deepep")
    )
    return files.value("moe_token_dispatcher_type") == "flex" and is_null


def _skipped(case: Case) -> tuple[str, str] | tuple[None, None]:
    """A backend that Megatron-Bridge skips, replaces or refuses on its GPU, and what says so."""
    for line in ("flex-skipped", "deepep-gpu", "hybridep-gpu"):
        if line in case.lines:
            backend = _logged_backend(case, line) or _backend(case) or "the backend"
            return backend, say("findings.logged", line=case.line_of(line))
    run, backend = case.run, case.files.dispatcher or ""
    of_bridge = (
        run.settings.framework == "megatron_bridge" or case.files.version_text("bridge") is not None
    )
    if not of_bridge or run.observed.dispatcher == backend:
        return None, None
    family = run.config.gpu_family
    on = say("findings.on-gpu", family=family.name) if family else ""
    for rule in limits(backend):
        if rule.by == "megatron_bridge" and past_limit(rule, run.config):
            return backend, f"{on}{rule.text}"
    return None, None


def _logged_backend(case: Case, line: str) -> str | None:
    for line_ in case.run.log.those(line) if case.run.log else ():
        if "backend" in line_.said:
            return line_.said["backend"].lower()
    return None


@fact
def skipped(case: Case) -> str | None:
    """A backend that does not run as asked for."""
    return _skipped(case)[0]


@fact
def skipped_by(case: Case) -> str | None:
    """What says so."""
    return _skipped(case)[1]
