"""A shell script's words, as a shell would make them."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from traces.settings.expressions import pattern_of, sum_of
from traces.settings.shell import read_script
from traces.settings.values import layout_of, stage_count, unrolled

SCRIPTS = [
    "A=1 B='two words'; run $A \"$B\" $B",
    "ARGS=(--a 1 # why\n --b \"x y\" )\nARGS+=(--c)\nrun \"${ARGS[@]}\" --d",
    "ARGS=(--a '1 2')\nrun ${ARGS[@]} \"${ARGS[*]}\" $ARGS",
    "X=\"--a 1 \\\n  --b 2\"\nX=\"$X --c\"\nrun $X --e=$UNSET_HERE_:-x",
    "N=$((2 * (3 + 4) - 1)); run $N $((N / 2)) $((N % 5))",
    "run ${NOT_SET_ONE:-a b} \"${NOT_SET_ONE:-a b}\" ${NOT_SET_ONE:-}",
    "Y=1\nif true; then Y=1; fi\nrun $Y 2>&1 >/dev/null # tail",
    "cat <<EOF\nrun no\nEOF\nrun yes\\ no a\"b\"'c'd",
    "export Z=4; run \"$Z\"\\\n-$Z --last",
    "for I in 1 2; do :; done; run done",
    "run \"a#b\" a#b '$A' \"\\$A\" \"\"",
    "f() { run in f; }\nf",
]  # fmt: skip


def words_of(script: str) -> list[str]:
    commands = [command for command in read_script(script).commands if command.words[0].text == "run"]
    return [word.text for word in commands[-1].words[1:]]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash to ask")
@pytest.mark.parametrize("script", SCRIPTS)
def test_words_are_those_that_bash_makes(script: str) -> None:
    asked = 'run() { printf "%s\\0" "$@" >&3; }\nexec 3>&1 >/dev/null\n' + script
    told = subprocess.run(["bash", "-c", asked], capture_output=True, check=True, text=True, env={})
    assert words_of(script.replace("$UNSET_HERE_", "")) == told.stdout.split("\0")[:-1]


def test_a_word_keeps_the_line_it_was_written_on() -> None:
    (command,) = read_script('A="--x \\\n 1"\n\nrun $A \\\n --y').commands
    assert [(word.text, word.line) for word in command.words] == [
        ("run", 4),
        ("--x", 1),
        ("1", 2),
        ("--y", 5),
    ]


def test_sums_are_whole_numbers_or_nothing() -> None:
    numbers = {"A": 7, "B": 2}
    assert sum_of("A / B + 1", numbers.get) == 4
    assert sum_of("-7 / 2", numbers.get) == -3
    assert sum_of("A / 0", numbers.get) is None
    assert sum_of("A + C", numbers.get) is None
    assert sum_of("A ** B", numbers.get) is None
    assert sum_of("+".join("1" * 5000), numbers.get) is None
    assert sum_of("(" * 300 + "1" + ")" * 300, numbers.get) is None


def test_layer_patterns_and_layouts_are_unrolled() -> None:
    assert pattern_of("([0]*3+[1]*2)*2") == [0, 0, 0, 1, 1] * 2
    assert unrolled("Et*2|(t|)*2mL") == "Ett|t|t|mL"
    assert stage_count("Et*3|(tt|)*29m|L") == 32
    assert layout_of([["embedding", "decoder"], ["mtp", "loss"]]) == "Et|mL"
    assert stage_count("(t|)*9999*9999") is None
    with pytest.raises(ValueError):  # noqa: PT011
        pattern_of("[1]*9999")
