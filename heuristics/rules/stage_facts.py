"""Facts of pipeline stages: layout strings, stages of their own size, what embedding and loss count for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from heuristics.config.facts import Fact
from heuristics.config.logic import all_of
from heuristics.config.view import Config
from traces.settings.stages import unrolled

_VPP: Final = "virtual_pipeline_model_parallel_size"
_LAYOUT: Final = "pipeline_model_parallel_layout"
_FIRST: Final = "num_layers_in_first_pipeline_stage"
_LAST: Final = "num_layers_in_last_pipeline_stage"
_EMBEDDING: Final = "account_for_embedding_in_pipeline_split"
_LOSS: Final = "account_for_loss_in_pipeline_split"
_PP: Final = "pipeline_model_parallel_size"


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
    "even_stages": Fact(
        lambda c: all_of(c.null(_LAYOUT), c.null(_FIRST), c.null(_LAST)),
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
