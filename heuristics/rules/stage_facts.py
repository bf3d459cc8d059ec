"""Facts of pipeline stages: layout strings, stages of their own size, what embedding and loss count for."""

from collections.abc import Callable, Mapping
from typing import Final

from heuristics.config.facts import Fact
from heuristics.config.logic import all_of
from heuristics.config.view import Config
from traces.settings.values import unrolled

_VPP: Final = "virtual_pipeline_model_parallel_size"
_LAYOUT: Final = "pipeline_model_parallel_layout"
_FIRST: Final = "num_layers_in_first_pipeline_stage"
_LAST: Final = "num_layers_in_last_pipeline_stage"
_EMBEDDING: Final = "account_for_embedding_in_pipeline_split"
_LOSS: Final = "account_for_loss_in_pipeline_split"
_PP: Final = "pipeline_model_parallel_size"
_PATTERN: Final = "hybrid_layer_pattern"
_BATCH: Final = "train.global_batch_size"
_MICRO: Final = "train.micro_batch_size"


def _letters(config: Config) -> str | None:
    """A layout string with its repeats written out."""
    text = config.value(_LAYOUT)
    return unrolled(text) if isinstance(text, str) else None


def _of_layout(tell: Callable[[str], object]) -> Callable[[Config], object]:
    """What the letters of the layout tell, where there are any."""
    return lambda config: None if (letters := _letters(config)) is None else tell(letters)


def _in_stages(config: Config) -> int | None:
    letters = _letters(config)
    if letters is None or not config.pp:
        return None
    stages = letters.count("|") + 1
    return None if stages % config.pp else stages // config.pp


def _ends(letters: str) -> bool:
    layers = letters.replace("|", "")
    return layers[:1] == "E" and layers[-1:] == "L" and (layers.count("E"), layers.count("L")) == (1, 1)


def _spread(config: Config) -> int | None:
    """Layers that are spread: embedding and loss count as one each where they are accounted for."""
    layers = config.count("num_layers")
    extra = (config.on(_EMBEDDING), config.on(_LOSS))
    return None if layers is None or None in extra else layers + sum(map(bool, extra))


def _between(config: Config) -> tuple[int, int] | None:
    """Layers and stages that are left between stages of their own size."""
    layers, stages = config.count("num_layers"), config.pp
    if layers is None or stages is None or not all(map(config.known, (_FIRST, _LAST))):
        return None
    ends = [count for count in (config.count(_FIRST), config.count(_LAST)) if count is not None]
    return layers - sum(ends), stages - len(ends)


def _middle_fits(config: Config) -> bool | None:
    """What is left for the stages between divides, and is none where no stage is left."""
    if (left := _between(config)) is None:
        return None
    layers, stages = left
    return bool(layers) == bool(stages) and not (stages and layers % stages)


def _virtual_fits(config: Config) -> bool | None:
    """Virtual stages divide the layers of the first, the last and the stages between."""
    left, virtual = _between(config), config.count(_VPP)
    if left is None or not virtual:
        return None
    layers, stages = left
    counts = (config.count(_FIRST), config.count(_LAST), layers // stages if stages else 0)
    return not any(count % virtual for count in counts if count is not None)


def _microbatches(config: Config) -> int | None:
    """Of a rank in a step, where the batch divides."""
    batch, size, copies = config.count(_BATCH), config.count(_MICRO), config.dp
    if not batch or not size or not copies or batch % (size * copies):
        return None
    return batch // (size * copies)


def _last_virtual(config: Config) -> bool | None:
    """All MTP layers of a layout stand in one stage, of the last round of virtual stages."""
    letters, stages = _letters(config), config.pp
    if letters is None or not stages:
        return None
    parts = letters.split("|")
    holding = [at for at, part in enumerate(parts) if "m" in part]
    return len(holding) <= 1 and all(at >= len(parts) - stages for at in holding)


def _segments(config: Config) -> int | None:
    """Segments between the bars of a pattern of layers; MTP layers stand behind the first slash."""
    pattern = config.word(_PATTERN)
    return pattern.split("/")[0].count("|") + 1 if pattern else None


def _segments_fit(config: Config) -> bool | None:
    """A pattern without bars is cut by Megatron-LM itself."""
    segments = _segments(config)
    return None if segments is None or not config.pp else segments == 1 or segments % config.pp == 0


def _pattern_virtual_fits(config: Config) -> bool | None:
    segments = _segments(config)
    if segments is None or not config.pp or not config.known(_VPP):
        return None
    return (config.count(_VPP) or 1) == (max(segments // config.pp, 1))


STAGE_FACTS: Final[Mapping[str, Fact]] = {
    "layout_text": Fact(
        lambda c: isinstance(c.value(_LAYOUT), str) if c.known(_LAYOUT) else None,
        (_LAYOUT,),
        words="a layout string",
    ),
    "layout_reads": Fact(
        lambda c: _letters(c) is not None, (_LAYOUT,), words="a layout string of its letters"
    ),
    "layout_stages": Fact(
        _of_layout(lambda letters: letters.count("|") + 1), (_LAYOUT,), words="stages of the layout"
    ),
    "layout_vpp": Fact(_in_stages, (_LAYOUT, _PP), words="virtual stages of the layout"),
    "layout_layers": Fact(
        _of_layout(lambda letters: letters.count("t")), (_LAYOUT,), words="t in the layout"
    ),
    "layout_mtp": Fact(_of_layout(lambda letters: letters.count("m")), (_LAYOUT,), words="m in the layout"),
    "layout_ends": Fact(_of_layout(_ends), (_LAYOUT,), words="E first and L last"),
    "layout_mtp_last": Fact(
        _of_layout(lambda letters: "t" not in letters.partition("m")[2]), (_LAYOUT,), words="m after all t"
    ),
    "layout_mtp_together": Fact(_last_virtual, (_LAYOUT, _PP), words="all m in one last stage"),
    "microbatches": Fact(_microbatches, (_BATCH, _MICRO, "world_size", _PP), words="micro-batches"),
    "pattern_segments": Fact(_segments, (_PATTERN,), words="segments of the pattern"),
    "pattern_stages_fit": Fact(_segments_fit, (_PATTERN, _PP), words="segments that PP divides"),
    "pattern_virtual_fits": Fact(
        _pattern_virtual_fits, (_PATTERN, _VPP, _PP), words="the virtual stages of the pattern"
    ),
    "even_stages": Fact(
        lambda c: all_of(c.null(_LAYOUT), c.null(_FIRST), c.null(_LAST), "|" not in (c.word(_PATTERN) or "")),
        (_LAYOUT, _FIRST, _LAST),
        words="stages of one size",
    ),
    "spread_layers": Fact(
        _spread, ("num_layers", _EMBEDDING, _LOSS), words="layers, with what is accounted for"
    ),
    "middle_fits": Fact(
        _middle_fits, (_FIRST, _LAST, "num_layers", _PP), words="even stages between the first and the last"
    ),
    "virtual_fits": Fact(
        _virtual_fits, (_FIRST, _LAST, "num_layers", _PP, _VPP), words="even virtual stages of uneven ones"
    ),
}
"""By name, as in `heuristics.config.facts`."""
