"""A configuration judged without a trace, alone or with symptoms that are said of the run."""

from pathlib import Path

from diagnoser.command_line import command_line
from diagnoser.configuration import read_configured
from diagnoser.diagnosis import Diagnosis
from diagnoser.version import VERSION
from heuristics.evidence.fit import with_fit
from heuristics.evidence.symptoms import Symptoms, observed_from, read_symptoms
from heuristics.judging.judgement import judge_observed
from heuristics.plan.allowed import Ask
from heuristics.run.given import Given
from reports.result.fill.result import result_of_run
from traces.errors import InputError
from traces.files.plain_file import read_text
from traces.progress import Progress, silent


def check_config(
    config: Path,
    *,
    log: Path | None = None,
    symptoms: Path | None = None,
    given: Given | None = None,
    ask: Ask | None = None,
    progress: Progress = silent,
    redact: bool = True,
    command: str | None = None,
) -> Diagnosis:
    """Judge a configuration. `symptoms`: JSON of measurements by the contract's names, or an earlier result.

    `ask`: asks Megatron-Core itself; `command`: the line that makes the result again, None for that without
    options. Raises `InputError` for files that are not what they should be.
    """
    given = given or Given()
    configured = read_configured(config, log, given, progress)
    said = Symptoms() if symptoms is None else read_symptoms(_text(symptoms), symptoms.name)
    progress("checking the configuration", None)
    observed = with_fit(observed_from(said, configured.settings), given, configured.log)
    judgement = judge_observed(observed, given, configured, ask)
    judged = symptoms is not None or any(wall.outcome != "unmeasurable" for wall in judgement.walls)
    result = result_of_run(
        VERSION,
        judgement,
        about=config.name,
        judged=judged,
        warnings=said.unread,
        redact=redact,
        command=command or command_line("check-config", [config], {}, redact=redact),
    )
    return Diagnosis(result)


def _text(path: Path) -> str:
    try:
        return read_text(path)
    except (OSError, ValueError):
        raise InputError(f"{path}: cannot be read as text. Give a JSON file of symptoms.") from None
