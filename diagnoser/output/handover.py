"""A trace handed to Perfetto's page in the user's browser: served on 127.0.0.1, to the tab that opens it.

The page of ours opens Perfetto's and speaks its documented protocol: PING until PONG, then the trace, then
the span (perfetto.dev/docs/visualization/deep-linking-to-perfetto-ui). Paths have a secret that only this run
and the browser that it opens know, and any other name of this machine is refused.
"""

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Final
from urllib.parse import urlsplit

from traces.errors import UsageError
from traces.limits import Limit

HOST: Final = "127.0.0.1"
PATIENCE: Final = Limit(600, "seconds", "ours: somebody who asked for it presses the button within minutes")
_MARGIN: Final = Limit(0.25, "of the span", "ours: what stands right before and after a moment is seen too")
_PAGE: Final = Path(__file__).with_name("handover.html")
_LONGEST_TITLE: Final = 200


@dataclass(frozen=True, slots=True)
class Handover:
    """A trace in Perfetto's JSON, its title, what is to be seen, and where: ns of the file's clock."""

    trace: str
    title: str
    said: str
    start_ns: int
    end_ns: int
    ui: str

    def page(self) -> str:
        """The page that hands it over. Raises `UsageError` for a `ui` that is no web address."""
        parts = urlsplit(self.ui)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise UsageError(
                f"--ui {self.ui!r} is no address of a Perfetto page. Give one such as https://ui.perfetto.dev"
            )
        margin_ns = int((self.end_ns - self.start_ns) * _MARGIN.value)
        start_ns, end_ns = max(self.start_ns - margin_ns, 0), self.end_ns + margin_ns
        about = {
            "said": self.said,
            "title": self.title[:_LONGEST_TITLE],
            "origin": f"{parts.scheme}://{parts.netloc}",
            "address": f"{self.ui.rstrip('/')}/#!/?visStart={start_ns}&visEnd={end_ns}",
            "start_s": self.start_ns / 1e9,
            "end_s": self.end_ns / 1e9,
        }
        text = json.dumps(about).replace("<", "\\u003c")
        return _PAGE.read_text(encoding="utf-8").replace("ABOUT", text, 1)


def hand_over(given: Handover, opened: Callable[[str], object], patience_s: float = PATIENCE.value) -> bool:
    """Serve until the trace was handed over; False where nobody took it in time.

    `opened` is called with the address as soon as it answers.
    """
    secret, done = secrets.token_urlsafe(16), Event()
    files = {
        "": ("text/html; charset=utf-8", given.page().encode()),
        "trace.json": ("application/json", given.trace.encode()),
    }
    with ThreadingHTTPServer((HOST, 0), _handler(secret, files, done)) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        thread.start()
        try:
            opened(f"http://{HOST}:{server.server_port}/{secret}/")
            return done.wait(patience_s)
        finally:
            server.shutdown()
            thread.join()


def _handler(secret: str, files: dict[str, tuple[str, bytes]], done: Event) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Answers for two files and the word that all is done."""

        server: ThreadingHTTPServer

        def do_GET(self) -> None:
            kind, data = files.get(self._asked(), ("", b""))
            if not kind:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Referrer-Policy", "no-referrer")
            self.end_headers()
            self.wfile.write(data)

        def do_POST(self) -> None:
            if self._asked() != "done":
                self.send_error(404)
                return
            self.send_response(204)
            self.end_headers()
            done.set()

        def _asked(self) -> str:
            """The path below the secret; "?" for another host, a path without it, or no path of ours."""
            mine = f"{HOST}:{self.server.server_port}"
            _, given, *rest = [*self.path.split("/"), "?", "?"]
            is_ours = self.headers.get("Host") == mine and secrets.compare_digest(
                given.encode(), secret.encode()
            )
            return rest[0] if is_ours else "?"

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: requests are no news."""

    return Handler
