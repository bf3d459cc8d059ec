"""Facts of how layers are spread over pipeline stages: by a layout's text, a pattern of layers, or
counts.
"""

from collections.abc import Callable
from typing import Final

from heuristics.config.logic import all_of
from heuristics.config.view import Config
from heuristics.facts.dictionary import enter, told_by
from traces.settings.knobs import PP, STAGE_LAYOUT, VIRTUAL_STAGES
from traces.settings.values import letters_of, unrolled

_FIRST: Final = "num_layers_in_first_pipeline_stage"
_LAST: Final = "num_layers_in_last_pipeline_stage"
_EMBEDDING: Final = "account_for_embedding_in_pipeline_split"
_LOSS: Final = "account_for_loss_in_pipeline_split"
_PATTERN: Final = "hybrid_layer_pattern"


def _letters(config: Config) -> str | None:
    """A layout string with its repeats written out."""
    text = config.value(STAGE_LAYOUT)
    if isinstance(text, str):
        return unrolled(text)
    return None


@told_by(STAGE_LAYOUT)
def layout_text(config: Config) -> bool | None:
    """Whether the layout is a text."""
    if config.known(STAGE_LAYOUT):
        return isinstance(config.value(STAGE_LAYOUT), str)
    return None


@told_by(STAGE_LAYOUT)
def layout_reads(config: Config) -> bool:
    """Whether it is one that reads."""
    return _letters(config) is not None


def _of_layout(name: str, tell: Callable[[str], object]) -> None:
    """A fact that the letters of the layout tell, where there are any."""

    def of(config: Config) -> object:
        if (letters := _letters(config)) is None:
            return None
        return tell(letters)

    enter(name, of, Config, STAGE_LAYOUT)


def _ends(letters: str) -> bool:
    layers = letters.replace("|", "")
    return (
        layers[:1] == "E"
        and layers[-1:] == "L"
        and (layers.count("E"), layers.count("L")) == (1, 1)
    )


_of_layout("layout_stages", lambda letters: letters.count("|") + 1)
_of_layout("layout_layers", lambda letters: letters.count("t"))
_of_layout("layout_mtp", lambda letters: letters.count("m"))
_of_layout("layout_ends", _ends)
_of_layout("layout_mtp_last", lambda letters: "t" not in letters.partition("m")[2])


_of_layout("layout_filled", lambda letters: [*letters.split("|"), ""].index(""))


@told_by(STAGE_LAYOUT, PP)
def even_layout(config: Config) -> str | None:
    """A layout of about as many stages, each with about as many of its layers; None of one."""
    letters, stages = _letters(config) or "", config.pp or 1
    stages *= max(1, round((letters.count("|") + 1) / stages))
    if stages < 2:
        return None
    each, more = divmod(letters.count("t"), stages)
    return letters_of([each + 1] * more + [each] * (stages - more), letters.count("m"))


@told_by(STAGE_LAYOUT, PP)
def layout_mtp_together(config: Config) -> bool | None:
    """All MTP layers of a layout stand in one stage, of the last round of virtual stages."""
    letters, stages = _letters(config), config.pp
    if letters is None or not stages:
        return None
    parts = letters.split("|")
    holding = [at for at, part in enumerate(parts) if "m" in part]
    return not holding or (len(holding) == 1 and holding[0] >= len(parts) - stages)


@told_by(_PATTERN)
def pattern_segments(config: Config) -> int | None:
    """Segments between the bars of a pattern of layers; MTP layers stand behind the first slash."""
    pattern = config.word(_PATTERN)
    if pattern:
        return pattern.split("/")[0].count("|") + 1
    return None


@told_by(_PATTERN, VIRTUAL_STAGES, PP)
def pattern_virtual_fits(config: Config) -> bool | None:
    segments = pattern_segments(config)
    if segments is None or not config.pp or not config.known(VIRTUAL_STAGES):
        return None
    return (config.count(VIRTUAL_STAGES) or 1) == max(segments // config.pp, 1)


@told_by(STAGE_LAYOUT, _FIRST, _LAST)
def even_stages(config: Config) -> bool | None:
    """Neither a layout, nor counts of the ends, nor a pattern cuts the layers."""
    uncut = "|" not in (config.word(_PATTERN) or "")
    return all_of(config.null(STAGE_LAYOUT), config.null(_FIRST), config.null(_LAST), uncut)


@told_by(PP, STAGE_LAYOUT)
def plain_ends(config: Config) -> bool | None:
    """Stages of equal layers, while the first also embeds and the last also has the loss."""
    if config.pp_layout or config.on(_EMBEDDING) or config.on(_LOSS):
        return False
    if config.pp is None:
        return None
    return config.positive(_FIRST) is None and config.positive(_LAST) is None and config.pp > 1


@told_by("num_layers", _EMBEDDING, _LOSS)
def spread_layers(config: Config) -> int | None:
    """Layers that are spread: embedding and loss count as one each where they are accounted for."""
    layers = config.count("num_layers")
    extra = config.on(_EMBEDDING), config.on(_LOSS)
    if layers is None or None in extra:
        return None
    return layers + sum(map(bool, extra))


def _between(config: Config) -> tuple[int, int] | None:
    """Layers and stages that are left between stages of their own size."""
    layers, stages = config.count("num_layers"), config.pp
    if layers is None or stages is None or not all(map(config.known, (_FIRST, _LAST))):
        return None
    for ends in (config.count(_FIRST), config.count(_LAST)):
        if ends is not None:
            layers, stages = layers - ends, stages - 1
    return layers, stages


@told_by(_FIRST, _LAST, "num_layers", PP)
def middle_fits(config: Config) -> bool | None:
    """What is left for the stages between divides, and is none where no stage is left."""
    if (middle := _between(config)) is None:
        return None
    layers, stages = middle
    return bool(layers) == bool(stages) and not (stages and layers % stages)


@told_by(_FIRST, _LAST, "num_layers", PP, VIRTUAL_STAGES)
def virtual_fits(config: Config) -> bool | None:
    """Virtual stages divide the layers of the first, the last and the stages between."""
    middle, virtual = _between(config), config.count(VIRTUAL_STAGES)
    if middle is None or not virtual:
        return None
    layers, stages = middle
    counts = (config.count(_FIRST), config.count(_LAST), layers // stages if stages else 0)
    return not any(count % virtual for count in counts if count is not None)
