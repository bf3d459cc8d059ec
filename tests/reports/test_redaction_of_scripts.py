"""What is withheld of a text does not hang on the script that people and folders are named in."""

from __future__ import annotations

import pytest

from reports.redaction import public

NBSP, WIDE = "\u00a0", "\u3000"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("in /home/josé/läufe", "in [folder]"), ("in /home/jose\u0301/x", "in [folder]"),
        ("/データ/山田/run.log", "run.log"), ("(~müller/x)", "([folder])"),
        ("PATH=/usr/bin:~/bin", "PATH=[folder]"), ("見よhttp://host.example/x", "見よ[address]"),
        ("von jörg.müller@größe.example an", "von [address] an"),
        (f"password{NBSP}:{WIDE}hunter2", f"password{NBSP}:{WIDE}[withheld]"),
        ("パスワードpassword=hunter2", "パスワードpassword=[withheld]"), (f"鍵{'aB3' * 12}", "鍵[withheld]"),
        ("auf 10.0.0.12.", "auf [address]."), ("ärger mit 10.0.0.12:8080ü", "ärger mit [address]ü"),
    ],
)  # fmt: skip
def test_names_of_every_script_are_withheld(text: str, told: str) -> None:
    assert public(text, redact=True)[0] == told


@pytest.mark.parametrize(
    "text", ["Größe/Zeit", "输入/输出", "12 ms/step", "token = 4096", "1.2.3.4.5", "v1.2.3.4rc1"]
)
def test_what_is_no_name_stays(text: str) -> None:
    assert public(text, redact=True) == (text, 0)
