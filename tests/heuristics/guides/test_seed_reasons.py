"""The reasons of the dispatcher guide reach the user: a row for each sentence of seed 000, by its number."""

from __future__ import annotations

import pytest

from heuristics.config.about import Given, Guidance
from heuristics.config.observed import Observed
from heuristics.guides.choices import choose_all
from heuristics.result.judged import Choice
from heuristics.run.run import Run
from reports.content.explain.page import explain_page
from tests.read_back.plain_page import plain

MAIN = "main-2026-08"
EDITIONS: tuple[Guidance, ...] = ("seed", "main-2026-08")


def choice(about: str, guidance: str = "seed", **what: object) -> Choice:
    given = Given(guidance=guidance, stage="tuned", flex_package=True, **what)  # type: ignore[arg-type]
    run = Run(Observed(moe=True, dispatcher="alltoall"), given)
    return next(one for one in choose_all(run) if one.about == about)


def everything(one: Choice) -> str:
    return " ".join((one.reason, *one.notes, one.other_reason))


@pytest.mark.parametrize(
    ("item", "what", "says"),
    [
        (4, {"gpu": "H100", "ep": 64, "guidance": MAIN}, "not name one best"),
        (5, {"gpu": "H100", "ep": 64}, "good default for EP across nodes on Hopper"),
        (7, {"gpu": "B200", "ep": 64}, "unless this platform has its own HybridEP"),
        (9, {"gpu": "GB200", "ep": 16}, "within the NVLink domain and needs less memory"),
        (12, {"gpu": "H100", "ep": 16}, "worthwhile at medium EP"),
        (16, {"gpu": "H100", "ep": 64, "family": "dsv3"}, "more as EP and PP grow"),
        (
            17,
            {"gpu": "H100", "ep": 64, "family": "qwen3_235b", "guidance": MAIN},
            "alltoall with EP",
        ),
        (19, {"gpu": "GB200", "ep": 64, "family": "qwen3_235b"}, "needs less memory"),
        (20, {"gpu": "H100", "ep": 16, "family": "qwen3_30b", "guidance": MAIN}, "fastest on 16 H100"),
        (21, {"gpu": "H100", "ep": 16, "family": "qwen3_30b"}, "save time too, but less"),
        (27, {"gpu": "GB200", "ep": 32, "family": "vlm"}, "memory and host overhead both matter"),
        (31, {"gpu": "GB200", "ep": 64}, "with CUDA graphs and CPU binding"),
        (34, {"gpu": "GB200", "ep": 64, "family": "qwen3_235b"}, "somewhat faster"),
        (
            38,
            {"gpu": "GB200", "family": "qwen3_next", "precision": "mxfp8"},
            "grouped GEMM can matter almost as",
        ),
        (42, {"gpu": "H100", "ep": 64}, "only a start"),
        (56, {"gpu": "H100", "ep": 64, "precision": "fp8_blockwise"}, "communication and host overhead take"),
        (57, {"gpu": "H100", "ep": 64, "precision": "fp8_blockwise"}, "measure again before you change"),
        (65, {"gpu": "B200", "ep": 64}, "first choice before hybridep"),
        (74, {"gpu": "H100", "ep": 64, "guidance": MAIN}, "faster in some runs only"),
        (
            78,
            {"gpu": "GB200", "ep": 64, "family": "qwen3_235b", "memory_tight": True},
            "even if it saves little",
        ),
    ],
)
def test_a_sentence_of_the_dispatcher_guide_is_part_of_its_choice(
    item: int, what: dict[str, object], says: str
) -> None:
    assert says in everything(choice("dispatcher", **what)), item  # type: ignore[arg-type]


def test_items_54_and_224_both_editions_say_why_attention_is_in_the_graph_or_not() -> None:
    one = choice("cuda_graphs", MAIN, gpu="H100", routing="dropless", memory_tight=False, pp=1)
    assert "attn" not in one.answer
    assert "attn" in one.other
    assert "narrowest scope first" in one.reason
    assert "dropless experts cannot" in one.other_reason


def test_items_217_219_and_222_the_precision_says_why_and_what_stays_wide() -> None:
    hopper = choice("precision", MAIN, gpu="H100", precision="bf16")
    assert "proven in production" in hopper.reason
    assert "the only recipe" in hopper.other_reason
    assert "expert GEMMs gain most" in everything(hopper)
    assert "experiment" in choice("precision", gpu="GB200", precision="mxfp8").reason


def test_item_14_the_sizes_of_ep_are_numbers() -> None:
    page = plain(explain_page("small-ep"))
    assert "EP: up to 8" in page
    assert "EP: 9 to 31" in plain(explain_page("medium-ep"))


@pytest.mark.parametrize("topic", ["dispatcher", "com-2", "mem-5"])
def test_w21_the_dispatcher_table_of_both_editions_can_be_read(topic: str) -> None:
    seed, main = (" ".join(plain(explain_page(topic, one)).split()) for one in EDITIONS)
    assert "hopper: deepep, then alltoall" in seed
    assert "nvl8: measure deepep against hybridep" in main
    assert "nvl8: measure" not in seed


@pytest.mark.parametrize("topic", ["cmp-3", "mem-4", "mem-2", "mem-9"])
def test_w21_an_explanation_shows_the_table_and_no_module(topic: str) -> None:
    page = plain(explain_page(topic))
    assert not {name for name in ("precision", "recompute") if f"heuristics.guides.{name}" in page}
    assert "Edition main-2026-08" in page
