"""Limits of what is read of a configuration, each met from both sides."""

from __future__ import annotations

from pathlib import Path

import pytest

from traces.settings.read import configuration_of, read_configuration
from traces.settings.settings import NotAConfiguration
from traces.settings.shell import UNKNOWN, read_script

ARGUMENTS = "-------- arguments --------\n  num_layers ... 4\n-------- end of arguments --------\n"
LINE = "model.num_layers=4 # "


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        (LINE.ljust(500_000, "x"), True), (LINE.ljust(500_001, "x"), False),
        (ARGUMENTS.ljust(500_001, "x"), True), (ARGUMENTS[:60].ljust(500_001, "x"), False),
        (LINE + "\x80" + "x" * 78, True), (LINE + "\x80\x80" + "x" * 77, False),
        (LINE + "\x80" + "x" * 77, False), (LINE + "\x0b", True), (LINE + "\x1f", False),
        (LINE + "\x08", False),
    ],
)  # fmt: skip
def test_a_file_may_be_large_and_not_binary(text: str, is_read: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(text.encode("latin-1"))
    if is_read:
        assert read_configuration(path).settings.value("num_layers") == 4
    else:
        with pytest.raises(NotAConfiguration):
            read_configuration(path)


@pytest.mark.parametrize(("lists", "more"), [(38, 90), (39, 90), (38, 91)])
def test_a_yaml_has_forty_levels_and_fifty_thousand_entries(lists: int, more: int) -> None:
    aliases = f"  y: &a [{'1,' * 99}]\n  z: [{'*a,' * 498}]\n"  # with all mappings and keys 49,908 entries
    few = f"model:\n  num_layers: 4\n  w: {'[' * lists}1{']' * lists}\n"
    for text in (few, f"model:\n  num_layers: 4\n{aliases}  w: [{'1,' * more}]\n"):
        is_read = lists == 38 if text is few else more == 90
        if is_read:
            configuration_of(text, "a.yaml")
        else:
            with pytest.raises(NotAConfiguration, match="more entries"):
                configuration_of(text, "a.yaml")


@pytest.mark.parametrize(("merges", "is_read"), [(39, True), (40, False)])
def test_a_mapping_is_merged_through_forty_levels(merges: int, is_read: bool) -> None:
    text = f"model: {'{<<: ' * merges}{{num_layers: 4}}{'}' * merges}\n"
    if is_read:
        assert configuration_of(text, "a.yaml").settings.value("num_layers") == 4
    else:
        with pytest.raises(NotAConfiguration, match="more entries"):
            configuration_of(text, "a.yaml")


def test_a_script_is_followed_eight_deep_and_through_four_million_characters() -> None:
    for deep in (7, 8):
        command = read_script("eval x\n" + "eval " * deep + "run").commands[-1]
        assert command.words[0].text == ("run" if deep == 7 else "eval")
        (command,) = read_script("run ${U:-y} " + "${U:-" * deep + "x" + "}" * deep).commands
        assert command.words[-1].text == ("x" if deep == 7 else UNKNOWN)
    script = f"A={'x' * 9999}\nrun {'$A ' * 398}"  # with the four of the command's own word 3,990,004
    assert len(read_script(script + "y" * 9995).commands) == 1
    with pytest.raises(NotAConfiguration, match="grow"):
        read_script(script + "y" * 9996)


@pytest.mark.parametrize(("unknown", "meant"), [(99, 1), (100, 0)])
def test_of_a_hundred_unknown_names_the_ones_meant_are_looked_for(unknown: int, meant: int) -> None:
    own = "".join(f"  zzz{number}: 1\n" for number in range(unknown))
    text = f"model:\n  _target_: x.y\n  num_layers: 4\n{own}  hidden_sizee: 3\n"
    assert len(configuration_of(text, "dump.yaml").problems) == meant
