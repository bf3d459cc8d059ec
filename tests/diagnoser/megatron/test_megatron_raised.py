"""What an exception of megatron-core means, by its type and its place: a refusal, or that asking failed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from heuristics.rules.megatron.answer import Answer
from heuristics.rules.megatron.request import Request
from tests.configurations.fake_core import Ask, fake_core
from traces.settings.settings import Value

REFUSALS = ("AssertionError", "ValueError")
FAILURES = (
    *("AttributeError", "TypeError", "ImportError", "ModuleNotFoundError", "KeyError", "IndexError"),
    *("RuntimeError", "NotImplementedError", "NameError", "OSError", "RecursionError", "MemoryError"),
    *("ZeroDivisionError", "StopIteration", "Exception"),
)
TIERS = {"config": 0, "stages": 1, "layer": 1}
PLACE = re.compile(r", at (?:diagnoser|traces)\.\w+\.\w+ line \d+(?:, in [\w.]+ line \d+)?$")


def request(trouble: str = "", **fields: Value) -> Request:
    return Request({"num_moe_experts": 8, "config_logger_dir": trouble, **fields}, world_size=8)


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield fake_core(tmp_path_factory.mktemp("core"), monkeypatch)


def is_failure(answer: Answer, error: str) -> bool:
    return (
        answer.answer == "not_checked"
        and answer.text.startswith(f"could not ask: {error}")
        and PLACE.search(answer.text) is not None
    )


def test_core_refuses_by_assertions_and_value_errors_of_its_own(ask: Ask) -> None:
    several = [(place, error) for place in TIERS for error in REFUSALS]
    answers = ask([request(f"{place} {error}") for place, error in several])
    for (place, _), both in zip(several, answers, strict=True):
        told = both[TIERS[place]]
        assert (told.answer, told.text) == ("rejected", "as it was told")
    ((silent, _),) = ask([request("words AssertionError")])
    assert (silent.answer, silent.text) == ("rejected", "AssertionError at raise type(error)")


def test_every_other_exception_says_that_asking_failed_and_where(ask: Ask) -> None:
    several = [(place, error) for place in TIERS for error in FAILURES]
    answers = ask([request(f"{place} {error}") for place, error in several])
    for (place, error), both in zip(several, answers, strict=True):
        assert is_failure(both[TIERS[place]], error), (place, error, both)
    assert {both[1].answer for both in answers} == {"not_checked"}


PLACES: tuple[tuple[Request, int, str], ...] = (
    (request("torch AssertionError"), 0, "AssertionError"),  # "Torch not compiled with CUDA enabled"
    (request("torch ValueError"), 0, "ValueError"),
    (request("enum_name AssertionError"), 0, "KeyError"),
    (request("enum_value AssertionError"), 0, "ValueError"),
    (request("late AssertionError"), 0, "ValueError"),  # of a module, as it is imported
    (request(attention_backend="odd"), 0, "KeyError"),  # of our own reading
    (request(params_dtype="odd"), 0, "AttributeError"),
    (request(num_moe_experts=14), 1, "AttributeError"),  # of the specification's function
    (request(num_moe_experts=15), 1, "AttributeError"),  # of what it gives, which is none we know
    (request(expert_tensor_parallel_size=13), 1, "RuntimeError"),
    (request(expert_tensor_parallel_size=14), 1, "AssertionError"),  # of groups, which we set up
)


def test_the_place_decides_as_well(ask: Ask) -> None:
    for (asked, tier, error), both in zip(PLACES, ask([one for one, _, _ in PLACES]), strict=True):
        assert is_failure(both[tier], error), (asked, both)


def test_what_only_this_host_lacks_is_no_refusal(ask: Ask) -> None:
    errors = (*REFUSALS, "TypeError", "ImportError")
    both = ask([request(f"{place} {error}") for place in ("packaged", "version") for error in errors])
    assert {config.answer for config, _ in both} == {"needs"}
    assert {config.text for config, _ in both} == {
        "accepted where there is another package, new enough",
        "accepted where there is Transformer Engine, new enough: give --te-version",
    }


@pytest.mark.parametrize(("module", "error"), [
    ("transformer_config", "AssertionError"), ("moe_module_specs", "ValueError"),
    ("token_dispatcher", "ModuleNotFoundError"),
])  # fmt: skip
def test_what_an_import_raises_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, error: str
) -> None:
    ask = fake_core(tmp_path, monkeypatch, **{module: f'raise {error}("as it was told")\n'})
    ((config, layer),) = ask([request()])
    assert (config.answer, layer.answer) == ("not_checked", "not_checked")
    assert f"could not ask: {error}: as it was told, at diagnoser.megatron.library line" in config.text
    assert f"{module} line 1" in config.text
