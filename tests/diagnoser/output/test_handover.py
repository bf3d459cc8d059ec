"""`moe-diag open`: what is served and to whom, and the handshake with a stand-in of Perfetto's page."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from diagnoser import analyze
from diagnoser.cli import run
from diagnoser.demo import unpack
from diagnoser.output.handover import Handover, hand_over
from reports.content.moments import moment_of, moments
from reports.content.page import Detail
from reports.write.perfetto.analysis import write_perfetto
from reports.write.perfetto.place import place_in
from tests.places import ROOT
from tests.read_back.browser import started
from traces.errors import UsageError

STAND_IN = """<!doctype html><title>stand-in</title><script>
window.log = [];
setTimeout(() => {
  let open = false;
  window.addEventListener("message", event => {
    if (event.source !== window.opener) { log.push("stranger"); return; }
    if (event.data === "PING") {
      if (document.readyState !== "complete") return;
      if (!open) log.push("PING");
      open = true;
      event.source.postMessage("PONG", event.origin);
      return;
    }
    const given = event.data.perfetto;
    if (!open || !given) { log.push("too early, or unknown"); return; }
    if (given.buffer instanceof ArrayBuffer) {
      const text = new TextDecoder().decode(given.buffer);
      log.push(["trace", given.title, given.keepApiOpen, JSON.parse(text).traceEvents.length]);
    } else {
      log.push(["range", given.timeStart, given.timeEnd]);
    }
  });
}, 300);
</script>"""
"""As ui.perfetto.dev answers: not before it listens, to its opener alone, and the trace before a range."""
GIVEN = Handover(
    '{"traceEvents":[]}', "run: step 1", "step 1 </script><b>", 4_000, 8_000, "https://ui.perfetto.dev"
)


def asked(address: str, method: str = "GET", path: str = "", host: str = "") -> tuple[int, bytes]:
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 0, timeout=10)
    connection.request(method, parts.path + path, headers={"Host": host or parts.netloc})
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_the_trace_is_served_to_who_knows_the_address_until_it_is_handed_over() -> None:
    seen: list[Any] = []

    def opened(address: str) -> None:
        parts = urlsplit(address)
        bare = f"http://{parts.netloc}/"
        seen.append(parts.hostname)
        seen.append([asked(address)[0], asked(address, path="trace.json")])
        seen.append([asked(bare)[0], asked(bare, path="trace.json")[0], asked(bare, path="x/trace.json")[0]])
        seen.append(asked(address, path="trace.json", host="evil.example")[0])
        seen.append(asked(address, path="../../etc/passwd")[0])
        seen.append(asked(address, "POST", "done")[0])

    assert hand_over(GIVEN, opened, 20)
    assert seen == ["127.0.0.1", [200, (200, GIVEN.trace.encode())], [404, 404, 404], 404, 410, 200]


def test_nothing_is_given_twice() -> None:
    seen: list[list[int]] = []

    def opened(address: str) -> None:
        for path in ("", "trace.json"):
            seen.append([asked(address, path=path)[0] for _ in range(3)])
        asked(address, "POST", "done")
        seen.append([asked(address, "POST", "done")[0]])

    assert hand_over(GIVEN, opened, 20)
    assert seen == [[200, 410, 410], [200, 410, 410], [410]]


def test_a_request_that_never_ends_holds_nobody_up() -> None:
    def opened(address: str) -> None:
        parts = urlsplit(address)
        with socket.create_connection((parts.hostname or "", parts.port or 0)) as silent:
            silent.sendall(b"GET /")
            assert asked(address)[0] == 200
        asked(address, "POST", "done")

    assert hand_over(GIVEN, opened, 20)


def test_the_page_holds_foreign_text_as_data() -> None:
    page = GIVEN.page()
    assert "</script><b>" not in page
    assert "\\u003c/script>" in page
    assert "visStart=3000&visEnd=9000" in page  # a quarter of the span on both sides


@pytest.mark.parametrize("ui", ["javascript:alert(1)", "file:///etc/passwd", "ui.perfetto.dev", ""])
def test_a_perfetto_that_is_no_web_address_is_refused(ui: str) -> None:
    with pytest.raises(UsageError, match="is no address of a Perfetto page"):
        Handover("{}", "a", "b", 0, 1, ui).page()


@contextmanager
def stand_in() -> Iterator[str]:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            data = STAND_IN.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def waited(condition: Any) -> Any:
    end = time.monotonic() + 20
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def test_a_browser_gets_the_trace_at_the_evidence_through_the_handshake(tmp_path: Path) -> None:
    recording = tmp_path / "run.sqlite"
    unpack(recording, "communication")
    result = analyze(recording).result
    (wall,) = (one for one in result.walls if one.id == "communication")
    evidence = next(moments(wall))
    events = len(json.loads(write_perfetto(result, Detail.FIRST))["traceEvents"])
    with started(tmp_path) as browser, stand_in() as ui:
        noted, line = tmp_path / "noted", [sys.executable, "-m", "diagnoser", "open", str(recording)]
        given = {**os.environ, "BROWSER": f"sh -c 'echo \"$0\" >{noted}' %s", "XDG_CACHE_HOME": str(tmp_path)}
        with subprocess.Popen(
            [*line, "--at", "COM-1", "--ui", ui], cwd=ROOT, env=given, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            said = [process.stdout.readline().strip() for _ in range(3)]
            assert said[0] == "communication: longest expert combine"
            assert "GPU 0: 0.545517373s to 0.546310450s, as nsys' GUI counts it" in said[1]
            driver = browser.driver
            assert waited(lambda: noted.exists() and noted.read_text())
            driver.get(noted.read_text(encoding="utf-8").strip())
            assert waited(lambda: driver.current_url == said[2])
            assert driver.execute_script("return document.referrer") == ""
            button = driver.find_element("id", "open")
            assert waited(button.is_enabled)
            button.click()
            assert waited(lambda: len(driver.window_handles) == 2)
            assert process.wait(20) == 0
            driver.switch_to.window(driver.window_handles[1])
            assert waited(lambda: len(driver.execute_script("return window.log")) >= 3)
            log, hash = driver.execute_script("return [window.log, location.hash]")
    title = "run: communication: longest expert combine"
    span = [evidence.start_ns / 1e9, evidence.end_ns / 1e9]
    assert log == ["PING", ["trace", title, True, events], ["range", *span]]
    margin_ns = (evidence.end_ns - evidence.start_ns) // 4
    assert hash == f"#!/?visStart={evidence.start_ns - margin_ns}&visEnd={evidence.end_ns + margin_ns}"


@contextmanager
def opening(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str, Path]]:
    """`open` of a run, with a browser that notes what it is given and keeps it: program, address, note."""
    folder.chmod(0o755)
    unpack(folder / "run.sqlite", "communication")
    browser, noted = folder / "browser", folder / "noted"
    browser.write_text(f"#!/bin/sh\necho \"$1\" >'{noted}.new'; mv '{noted}.new' '{noted}'; sleep 20\n")
    browser.chmod(0o755)
    line = [sys.executable, "-m", "diagnoser", "open", "run.sqlite", "--cache-dir", str(folder / "cache")]
    given = {**os.environ, "BROWSER": f"{browser} %s &", "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [*line, *words], cwd=folder, env=given, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            *_, address = (process.stdout.readline().strip() for _ in range(3))
            yield process, address, noted
        finally:
            process.kill()


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that everybody may look into, unlike those of the tests."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def test_the_file_that_leads_on_is_the_users_alone_and_goes(shared: Path) -> None:
    with opening(shared) as (process, address, noted):
        assert waited(noted.exists)
        given = urlsplit(noted.read_text(encoding="utf-8").strip())
        page = Path(given.path)
        assert (given.scheme, page.stat().st_mode & 0o777) == ("file", 0o600)
        assert page.parent.stat().st_mode & 0o777 == 0o700
        assert f'url={address}"' in page.read_text(encoding="utf-8")
        assert asked(address, "POST", "done")[0] == 200
        assert process.wait(20) == 0
        assert not page.parent.exists()


def test_a_moment_is_found_by_wall_fix_and_number(tmp_path: Path) -> None:
    unpack(tmp_path / "run.sqlite", "communication")
    result = analyze(tmp_path / "run.sqlite").result
    (wall,) = (one for one in result.walls if one.id == "communication")
    there = [*moments(wall)]
    assert there
    for finding in ("communication", "Communication", "com-1", "COM-2", "communication:1"):
        assert moment_of(result, finding) == there[0]
    step = result.ranks[0].steps.used[0]
    shown = moment_of(result, "compute")
    assert (shown.start_ns, shown.end_ns) == (step.start_ns, step.end_ns)
    assert shown.said == f"compute, step {step.index}"
    for wrong, why in (("comunication", "Did you mean communication"), ("communication:9", "It has 1 to")):
        with pytest.raises(UsageError, match=why):
            moment_of(result, wrong)


def test_a_moment_is_where_the_written_file_has_it(tmp_path: Path) -> None:
    """Of several ranks on one clock too: the slice of the evidence begins there."""
    unpack(tmp_path / "ranks", "ranks")
    result = analyze(tmp_path / "ranks").result
    written = write_perfetto(result, Detail.FIRST)
    begins = {round(one["ts"] * 1000) for one in json.loads(written)["traceEvents"] if one["ph"] == "X"}
    found = [one for wall in result.walls for one in moments(wall)]
    assert found
    assert {place_in(written, result, one)[0] for one in found} <= begins


def test_what_has_no_timeline_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "plan.json"
    assert run(["plan", "Qwen3-30B-A3B", "--gpus", "16", "--gpu-model", "H100", "-o", str(kept)]) == 0
    assert run(["open", str(kept)]) == 2
    assert "is no diagnosis of a run" in capsys.readouterr().err


def test_a_page_is_opened_once_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpack(tmp_path / "run.sqlite", "healthy")
    opened: list[str] = []

    def open_page(address: str) -> bool:
        assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
        opened.append(address)
        return True

    monkeypatch.setattr("webbrowser.open", open_page)
    line = ["analyze", str(tmp_path / "run.sqlite"), "-o", str(tmp_path / "page.html"), "--open"]
    assert run(line) == 0
    assert opened == [(tmp_path / "page.html").as_uri()]


@pytest.mark.parametrize("words", [[], ["-o", "run.json"], ["-f", "html"]])
def test_what_is_no_page_in_a_file_is_not_opened(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unpack(tmp_path / "run.sqlite", "healthy")
    assert run(["analyze", str(tmp_path / "run.sqlite"), *words, "--open"]) == 2
    assert "-o page.html --open" in capsys.readouterr().err
