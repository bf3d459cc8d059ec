"""Words of scripts that are made up: as bash itself makes them, each with the line on which it begins."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from itertools import count

import pytest

from traces.settings.shell import read_script

# in these a text of its own is %t, a word %w, a value %v, what goes elsewhere %r
WORDS = (
    *("$A", '"$A"', "${A}", '"${B}%t"', "%t$B", "%t=$A", '"%t $B  $A"', "${L[@]}", '"${L[@]}"', "${L[*]}"),
    *('"%t${L[@]}%t"', "$L", '"${A[@]}"', '${M[@]}"%t"', '"${M[@]}"', "%t$((N * 2 - 7 % 4))", "$N", '"$@"'),
    *("$((N/2+(1-3)))", '"${U:-%t $A}"', "${U-%t}", "${U:-}", "'%t $A'", '"%t\\"%t\\$A\\%t \\`"', "%t\\ %t"),
    *("''", '"%t\n %t"', "${@}", '"%t\\\n%t"', "%t\\\n%t", "%t#%t", "%t'%t \\\"%t '", '"%t$"', '"$*%t"'),
    *("${A:=%t}", "${A} ${B}", '%t"$A"%t', "${M:-%t %t}", '"$C"', '"${L[*]}"'),
)  # fmt: skip
VALUES = (
    *("%t", "'%t  %t'", '"%t $B"', "$A", '"%t\n%t "', "%t\\ %t", '" %t"', "$A$B", "$N", '"$A \\\n%t"', "''"),
)  # fmt: skip
STATEMENTS = (
    *("A=%v", "B=%v", "A+=%v", "B+=%v", "export A=%v", "B=%v; A=%v", "L+=(%w)", "M+=(\n%w)"),
    *("M=(%w # why\n %w\n)", "cat <<EOF; A=%v\nrun %t\nEOF", "cat <<-'EF' >/dev/null\n \" ( '\nEF"),
    *("for I in %t %t; do :; done", "if true; then A+=%v; fi", "true && B+=%v", "C=%v D=%v", "# run %t"),
    *("declare -x C=%v", "f() { : %t; }", "case x in y) ;; esac", "if [ 1 ]; then L+=(%w); fi", "N=$((N+3))"),
    *("while false; do :; done", ": %t | cat; A=%v", "unused=(%w) A=%v", "export C=%v A"),
)  # fmt: skip
REDIRECTED = ("2>&1", ">/dev/null", "</dev/null", ">> /dev/null", "2> /dev/null", "\\\n ", "<<<%t", "")
LAST = (
    *("run %w %r %w %w", '%r run %w"%t"%w %r # %t', 'eval "run %t $N %t"', "! run %w", "time run %w"),
    *("C=%v run %w # %t", ": a | run %w>/dev/null", "(run %w)", "if run %w; then :; fi", "{ run %w; }"),
    "bash -c 'run %t %t\n'",
)  # fmt: skip


def made(chance: random.Random) -> str:
    """A script of a few statements; each of its texts has a number, so that it is found again."""
    known = ["A=%t", "B='%t %t'", "N=9", "L=(%t '%t %t')", "M=() C=%t"]
    script = "\n".join((*known, *chance.choices(STATEMENTS, k=chance.randint(0, 5)), chance.choice(LAST)))
    for hole, texts in (("%r", REDIRECTED), ("%w", WORDS), ("%v", VALUES)):
        script = re.sub(hole, lambda _, texts=texts: chance.choice(texts), script)  # type: ignore[misc]
    number = count(1)
    return re.sub("%t", lambda _: f"t{next(number)}_", script)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash to ask")
def test_words_and_their_lines_are_those_of_bash() -> None:
    chance = random.Random(7)
    scripts = [made(chance) for _ in range(300)]
    told = 'run() { for one; do printf "%s\\0" "$one" >&3; done; }\nexport -f run\nexec 3>&1 >/dev/null\n'
    asked = told + "".join(f"(\n{script}\n)\nprintf '\\1' >&3\n" for script in scripts)
    found = subprocess.run(["bash", "-c", asked], capture_output=True, check=True, text=True, env={})
    for script, words in zip(scripts, found.stdout.split("\1"), strict=False):
        command = [one for one in read_script(script).commands if one.words[0].text == "run"][-1]
        assert [word.text for word in command.words[1:]] == words.split("\0")[:-1], script
        for word in [] if re.search("[$][{]?[LM]", script) else command.words[1:]:
            if first := re.match(r"t\d+_", word.text):
                assert word.line == script[: script.index(first[0])].count("\n") + 1, script
