"""`moe-diag check-config`: a configuration without a trace."""

import diagnoser
from diagnoser.about import with_about
from diagnoser.emitted import or_patch
from diagnoser.options import (
    AskMegatron,
    CheckForms,
    ConfigArgument,
    EmitConfig,
    Force,
    Full,
    Keys,
    LogFile,
    OutputPlace,
    Redact,
    SymptomsFile,
)
from diagnoser.progress import progress_display
from diagnoser.results import output_of, plan_results, write_results
from reports.write.formats import Kind
from traces.missing import known


@with_about
def check_config(
    config: ConfigArgument,
    symptoms: SymptomsFile = None,
    log: LogFile = None,
    emit_config: EmitConfig = None,
    ask_megatron: AskMegatron = True,
    form: CheckForms = None,
    output: OutputPlace = "-",
    force_overwrite: Force = False,
    full: Full = False,
    keys: Keys = False,
    redact: Redact = True,
    about: dict[str, object] | None = None,
) -> int:
    """Is a configuration legal, and what would make it faster.

    Needs no trace, and runs nothing of the file. Exit code 0: legal; 1: illegal; 2: usage; 3: not readable.
    With --symptoms the walls are judged too, and a plan is made.

    \b
    moe-diag check-config run.yaml --core-version 0.16.1 --gpu-model H100
    moe-diag check-config train.sh --log train.log --full
    moe-diag check-config run.yaml --symptoms symptoms.json
    moe-diag check-config run.yaml --symptoms symptoms.json --emit-config bridge -o patch.yaml
    moe-diag check-config run.yaml -o checked.md

    Symptoms are measurements by the document's names: {"budget_frac": {"compute": 0.70,
    "exposed_comm": 0.26, "idle": 0.04}}; an earlier result (analyze -f json) serves as well.
    """
    wanted = output_of(or_patch(form, emit_config), output, force=force_overwrite, full=full, keys=keys)
    plan = plan_results(Kind.CONFIGURATION, wanted, [config], [log, symptoms])
    with progress_display() as progress:
        diagnosis = diagnoser.check_config(
            config,
            log=log,
            symptoms=symptoms,
            about=about,
            ask_megatron=ask_megatron,
            redact=redact,
            progress=progress,
        )
    write_results(diagnosis.result, plan, wanted)
    configuration = known(diagnosis.result.configuration)
    return 0 if configuration is None or configuration.legal else 1
