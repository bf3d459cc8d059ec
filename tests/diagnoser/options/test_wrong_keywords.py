"""What a function of the package does not take, it says in the words of its options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import diagnoser
from traces.errors import UsageError

asked: Any = diagnoser
"""As somebody calls it who reads no types."""


@pytest.mark.parametrize(("call", "said"), [
    (lambda: asked.analyze("x", ep=8), 'about={"ep": 8}'),
    (lambda: asked.plan("x", gpu_model="H100"), "about={\"gpu\": 'H100'}"),
    (lambda: asked.plan("x", gpu="H100"), "about={\"gpu\": 'H100'}"),
    (lambda: asked.check_config("x", core="0.19"), "about={\"core_version\": '0.19'}"),
    (lambda: asked.analyze("x", gpu="H100"), "gpu must be a whole number"),
    (lambda: asked.analyze("x", confg="y"), "The nearest is config."),
    (lambda: asked.analyze("x", about={"gpu_model": "H100"}), "The nearest is gpu."),
    (lambda: asked.analyze(), "missing a required argument: 'paths'"),
    (lambda: asked.compare("x"), "missing a required argument: 'new'"),
    (lambda: asked.analyze("x", about=8), "about must be a mapping"),
    (lambda: asked.analyze("x", jobs="2"), "jobs must be a whole number"),
    (lambda: asked.analyze("x", steps=3), "steps must be a text"),
    (lambda: asked.compare("x", "y", expect="com-3=6ms"), "expect must be a list"),
    (lambda: asked.plan("x", gpus="16"), "gpus must be a whole number"),
])  # fmt: skip
def test_a_wrong_keyword_names_what_was_meant(call: Callable[[], object], said: str) -> None:
    with pytest.raises(UsageError) as error:
        call()
    assert said in str(error.value)
    assert "__init__" not in str(error.value)
