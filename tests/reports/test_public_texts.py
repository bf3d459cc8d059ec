"""What is taken out of a user's text: paths, addresses, secrets; and what reads like them and stays."""

from __future__ import annotations

import pytest

from reports.redaction import public

NBSP, WIDE = "\u00a0", "\u3000"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see /home/alice/runs/base.sqlite.", "see base.sqlite."),
        ("kept in /scratch/alice, ~/runs/ and ../x/y.json", "kept in [folder], [folder] and y.json"),
        (r"C:\Users\alice\run.json", "run.json"),
        (
            "https://jira.example/X-1 by bob@box.example on 10.1.2.3:8080",
            "[address] by [address] on [address]",
        ),
        ("password: hunter2_sesame", "password: [withheld]"),
        ("export WANDB_API_KEY=abc123 first", "export WANDB_API_KEY=[withheld] first"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer [withheld]"),
        ("with hf_abcdefghijklmnopqrst", "with [withheld]"),
        ("Zm9vYmFyMTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM", "[withheld]"),
        # whatever the script that people and folders are named in
        ("in /home/josé/läufe", "in [folder]"), ("in /home/jose\u0301/x", "in [folder]"),
        ("/データ/山田/run.log", "run.log"), ("(~müller/x)", "([folder])"),
        ("PATH=/usr/bin:~/bin", "PATH=[folder]"), ("見よhttp://host.example/x", "見よ[address]"),
        ("von jörg.müller@größe.example an", "von [address] an"),
        (f"password{NBSP}:{WIDE}hunter2", f"password{NBSP}:{WIDE}[withheld]"),
        ("パスワードpassword=hunter2", "パスワードpassword=[withheld]"), (f"鍵{'aB3' * 12}", "鍵[withheld]"),
        ("auf 10.0.0.12.", "auf [address]."), ("ärger mit 10.0.0.12:8080ü", "ärger mit [address]ü"),
    ],
)  # fmt: skip
def test_what_tells_where_or_opens_something_is_withheld(text: str, shown: str) -> None:
    assert public(text, redact=True)[0] == shown
    assert public(text, redact=True)[1] > 0


@pytest.mark.parametrize(
    "text",
    [
        "TP=2/PP=4 on H100 80GB: --moe-token-dispatcher-type flex, 3 ms/step and/or 0.5/1.0 s",
        "token = 4096 a step, 20.1 -> 31.9 s over 199 iterations",
        "commit 1d9edcf8a2b3c4d5e6f7a8b9c0d1e2f3a4b5c6d7, nsys 2026.2.1.210",
        "ncclDevKernel_AllGather_RING_LL, sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x256x64",
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>",
        *("Größe/Zeit", "输入/输出", "1.2.3.4.5", "v1.2.3.4rc1"),
    ],
)
def test_what_reports_speak_of_stays(text: str) -> None:
    assert public(text, redact=True) == (text, 0)
