"""What is given about a run by options, tied to knobs; and how much of a run its files tell."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from heuristics.config.about import OPTIONS, Given
from heuristics.config.observed import Observed
from heuristics.config.versions import PACKAGES
from heuristics.config.view import Config
from traces.limits import Limit
from traces.settings.settings import FileProblem, Settings

WHOLE: Final = Limit(
    100,
    "knobs",
    "ours: overrides and scripts name tens, a dumped configuration or block of arguments every one",
)


def given_and_configured(given: Given, config: Config) -> Given:
    """What is given, filled up by what is configured: all that is known of the fields of
    `Given`.
    """
    known: dict[str, Any] = {
        **{f"{package}_version": config.version_text(package) for package in PACKAGES},
        **{name: getattr(config, name, None) for name, option in OPTIONS.items() if option.knobs},
    }
    return replace(
        given, **{name: value for name, value in known.items() if getattr(given, name) is None}
    )


def entries_of(settings: Settings, problems: Iterable[FileProblem]) -> tuple[int, int]:
    """How many entries of files were read, and how many were not."""
    read = unread = 0
    for setting in settings.by_knob.values():
        read += setting.said not in ("default", "trace") and not setting.said.startswith("--")
    for problem in problems:
        unread += problem.effect != "older_name"
    return read, unread


def is_whole(settings: Settings) -> bool:
    """Whether the file has all that the run has: what it does not name is then the framework's
    default.
    """
    return settings.framework == "megatron_lm" or len(settings.by_knob) >= WHOLE.value


def only_data_parallel(given: Given, files: Settings) -> bool:
    """Whether tensor, expert, pipeline and context parallelism are all known to be 1.

    Where files have all that the run has, what they leave out is 1.
    """
    config = Config(given, Observed(), files)
    ones = {None, 1} if is_whole(files) else {1}
    return {config.tp, config.ep, config.pp, config.cp} <= ones and config.etp in (None, 1)
