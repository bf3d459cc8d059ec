"""No name, text or file of a run can run, break a table or reach a terminal, in any format there is.

Formats are taken from the table of writers, so a new one is attacked without a line here; what its tables
look like is told to `tests.hostile.shapes`, by its name.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import diagnoser
from bench.simulate.export import write_export
from diagnoser.cli import run
from reports.content.page import Detail
from reports.formats import FRAMEWORKS
from reports.result.codec import Document
from tests.doubles.comparison_document import document_of, regression
from tests.doubles.document import DISPATCH, exposed
from tests.hostile.names import (
    FILE_NAME,
    HARMFUL,
    RAN,
    WORST,
    WORST_HALVES,
    compared,
    hostile_export,
    recorded,
    rewritten,
    undecodable_name,
)
from tests.hostile.shapes import SHAPES, as_text, assert_harmless
from tests.read_back.browser import Browser
from tests.read_back.rendering import ANALYSIS, COMPARISON, PICTURES, rendered
from tests.read_back.terminal import Tty

FORMATS = [("analysis", name) for name in ANALYSIS] + [("comparison", name) for name in COMPARISON]
KEPT = ("id", "wall", "path", "kind", "bound", "outcome", "unit", "source", "state", "key", "keys", "row",
        "group", "reasons", "confidence", "largest_bucket", "schema_version", "verdict", "lane", "how",
        "can_explain", "severity", "tier", "answer", "measure", "what_changed")  # fmt: skip
"""Words of ours that a document's formats go by."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(scope="module")
def documents(folder: Path) -> dict[str, Document]:
    """By command: what hostile recordings give."""
    return {"analysis": recorded(folder), "comparison": compared(folder)}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Document]:
    """By command: documents with fixes and findings, to be rewritten; no format has to shorten them."""
    path = tmp_path_factory.mktemp("small") / "run.sqlite"
    write_export(path, exposed(comm=DISPATCH))
    analysis = diagnoser.analyze(path, ask_megatron=False).to_dict()
    for section in ("missing", "refused", "choices", "fixes"):
        analysis[section] = analysis[section][:2]
    return {"analysis": analysis, "comparison": document_of(regression())}


@pytest.mark.parametrize(("command", "name"), FORMATS)
def test_names_of_a_recording_do_no_harm(command: str, name: str, documents: dict[str, Document]) -> None:
    for detail in (Detail.FULL,) if name in PICTURES else Detail:
        assert_harmless(name, rendered(documents[command], name, detail))


@pytest.mark.parametrize(("command", "name"), [one for one in FORMATS if one[1] not in FRAMEWORKS])
def test_no_text_of_a_document_does_harm(command: str, name: str, small: dict[str, Document]) -> None:
    """Whoever renders a result may have it from a stranger; patches are made of our own documents alone."""
    for text in WORST_HALVES:
        content = rendered(rewritten(small[command], text, KEPT), name, Detail.FULL)
        assert_harmless(name, content)
        if name in SHAPES and name != "svg":
            shape = SHAPES[name]
            plain = rendered(rewritten(small[command], "x", KEPT), name, Detail.FULL)
            assert shape(as_text(content)) == shape(as_text(plain))


EXPLORE = """
document.addEventListener('click', event => {
  if (event.target.closest && event.target.closest('a[href^="#"]')) event.preventDefault();
});
const every = Array.from(document.querySelectorAll('*'));
for (const one of every) {
  const box = one.getBoundingClientRect(), at = {bubbles: true, cancelable: true,
    clientX: box.x + box.width / 2, clientY: box.y + box.height / 2};
  for (const kind of ['pointerover', 'pointerenter', 'pointermove', 'mouseover', 'mousemove', 'click',
    'dblclick'])
    one.dispatchEvent(new (kind[0] === 'p' ? PointerEvent : MouseEvent)(kind, at));
  if (one.tabIndex >= 0) {
    one.focus();
    for (const key of ['Enter', ' ', 'ArrowRight', '+', 'Escape'])
      one.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}));
  }
}
for (const one of document.querySelectorAll('details')) one.open = true;
return every.length;
"""
"""Touch everything there is, since what a script shows on demand is where a name runs; links within the page
run their scripts, but go nowhere: a browser slows down who navigates hundreds of times."""


@pytest.mark.parametrize("command", ["analysis", "comparison"])
@pytest.mark.parametrize("form", ["html", "svg"])
def test_nothing_runs_in_a_browser(
    command: str,
    form: str,
    documents: dict[str, Document],
    small: dict[str, Document],
    browser: Browser,
    tmp_path: Path,
) -> None:
    for document in (documents[command], rewritten(small[command], WORST, KEPT)):
        content = rendered(document, form, Detail.FULL)
        page = tmp_path / f"page.{form}"
        page.write_bytes(content if isinstance(content, bytes) else content.encode())
        browser.open(page)
        if form == "html":
            assert browser.run(EXPLORE) > 100
        assert browser.run("return window.ran === undefined")
        assert browser.requests() == [page.as_uri()]
        assert browser.console() == []
        if form == "html":
            assert browser.run(f"return document.querySelectorAll({FOREIGN!r}).length") == 0
            assert browser.run(UNEVEN_TABLES) == []


FOREIGN = "img, iframe, object, embed, base, form, link, video, audio, [onload], [onerror], [onfocus]"
"""Elements that no page of ours has."""
UNEVEN_TABLES = """
const cells = row => Array.from(row.cells).reduce((sum, cell) => sum + cell.colSpan, 0);
return Array.from(document.querySelectorAll('table'))
  .filter(table => !table.querySelector('[rowspan]') && new Set(Array.from(table.rows, cells)).size > 1)
  .map(table => table.outerHTML.slice(0, 300));
"""


def test_the_browser_would_notice(browser: Browser) -> None:
    browser.open(f"<title>x</title><div onclick='{RAN}'>a</div><p>b<img src=http://evil.example/x.png></p>")
    browser.run(EXPLORE)
    assert browser.run("return window.ran") == 1
    assert browser.requests()[1:] == ["http://evil.example/x.png"]
    assert any("ERR_NAME_NOT_RESOLVED" in line for line in browser.console())


def hostile_yaml(path: Path) -> Path:
    """A configuration whose own keys and values are hostile, beside known knobs that are."""
    quoted = json.dumps(WORST)
    path.write_text(
        "model:\n  num_moe_experts: 8\n  moe_router_topk: 2\n"
        f"  moe_token_dispatcher_type: {quoted}\n  recompute_granularity: {quoted}\n  {quoted}: {quoted}\n"
        f"  recompute_modules: [{quoted}]\ntrain:\n  micro_batch_size: {quoted}\n{quoted}:\n  {quoted}: 1\n",
        encoding="utf-8",
    )
    return path


def hostile_script(path: Path) -> Path:
    """The same as a script for Megatron-LM; with control characters it would be no text."""
    path.write_text(
        f"export NCCL_DEBUG='{RAN}\u202e|<b>'\n"
        "torchrun pretrain_gpt.py --num-experts 8 --moe-router-topk 2 \\\n"
        f"  --moe-token-dispatcher-type '<script>{RAN}</script>\u202e|`x`{{{{ 7*7 }}}}' \\\n"
        "  --recompute-modules '=1+1|<b>' --no-such-<b>|`flag` '<b>|'\n",
        encoding="utf-8",
    )
    return path


def hostile_log(path: Path) -> Path:
    """Lines that are known up to a point, and hostile from there."""
    tail = f"<script>{RAN}</script>|`x`\x1b]0;o\x07\u202e\x9b31m{{{{ 7*7 }}}}"
    line = " [2026-08-22 10:00:00.000000] iteration {:8d}/     100 | elapsed time per iteration"
    path.write_text(
        "".join(f"{line.format(index)} (ms): 40.0 | {tail} |\n" for index in range(1, 20))
        + f"[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tail}\n"
        f"NCCL version 2.29{tail}\n[Rank 0] {tail}: NCCL WARN {tail}\nMegatron-Core {tail}\n",
        encoding="utf-8",
    )
    return path


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Path]:
    """Hostile files beside a recording, under a hostile name."""
    return {
        "trace": hostile_export(tmp_path / FILE_NAME),
        "yaml": hostile_yaml(tmp_path / f"{FILE_NAME}.yaml"),
        "script": hostile_script(tmp_path / f"{FILE_NAME}.sh"),
        "log": hostile_log(tmp_path / f"{FILE_NAME}.log"),
    }


@pytest.mark.parametrize("config", ["yaml", "script"])
def test_configurations_and_logs_do_no_harm(
    config: str, given: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    document = diagnoser.analyze(
        given["trace"], config=given[config], log=given["log"], ask_megatron=False
    ).to_dict()
    for name in {*ANALYSIS} - {*PICTURES}:  # no figure shows a configuration
        assert_harmless(name, rendered(document, name, Detail.FULL))
    for form in ("text", "markdown", "html", "json"):
        words = ["check-config", str(given[config]), "--log", str(given["log"]), "--no-megatron", "-f", form]
        assert run(words) in (0, 1)
        assert_harmless(form, capsys.readouterr().out)


def test_configurations_of_a_comparison_do_no_harm(given: dict[str, Path], tmp_path: Path) -> None:
    new = hostile_export(tmp_path / f"new {FILE_NAME}", longer_us=50)
    document = diagnoser.compare(
        given["trace"], new, base_config=given["yaml"], new_config=given["script"],
        base_log=given["log"], new_log=given["log"],
    ).to_dict()  # fmt: skip
    assert document["changed"]
    for name in {*COMPARISON} - {*PICTURES}:
        assert_harmless(name, rendered(document, name, Detail.FULL))


@pytest.mark.parametrize(
    "words",
    [
        ["analyze", "{}"], ["analyze", "{}", "--steps", "\x1b[31mx"],
        ["analyze", "{}", "--nvtx", "\x1b]0;o\x07("], ["compare", "{}", "{}"], ["check-config", "{}"],
        ["doctor", "{}"], ["report", "{}"], ["explain", "\x1b]0;o\x07\u202e"],
        ["analyze", "none.sqlite", "-f", "\x1b[31m"], ["demo", "\x1b[31m"], ["history", "add", "{}"],
        ["history", "baseline", "\x1b[31m", "{}"],
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", [FILE_NAME, undecodable_name()])
def test_an_error_does_not_reach_the_terminal(
    words: list[str], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    path.write_bytes(b"\x1b[31mno trace\n" * 9)
    screen = Tty()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("MOE_DIAG_HISTORY", str(tmp_path / "history.sqlite"))
    assert run([word.format(path) for word in words]) in (2, 3)
    assert screen.got()
    assert not HARMFUL & set(screen.got())
