"""A trace handed to Perfetto's page in the user's browser: served on 127.0.0.1, to the tab that
opens it.

The page of ours opens Perfetto's and speaks its documented protocol: PING until PONG, then the
trace, then the span (perfetto.dev/docs/visualization/deep-linking-to-perfetto-ui). Paths have a
secret that only this run and the browser that it opens know, and any other name of this machine is
refused. Each thing is given once. A browser's command line can be read by everybody here, so it
names a file of the user's alone that leads on.
"""

import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final
from urllib.parse import urlsplit

from traces.errors import OutputNotWritable, UsageError
from traces.files.scratch import cache_opened, scratch_folder
from traces.frozen import frozen
from traces.limits import QUARTER, Limit

HOST: Final = "127.0.0.1"
PATIENCE: Final = Limit(
    600, "seconds", "ours: somebody who asked for it presses the button within minutes"
)
WAITS: Final = Limit(10, "seconds", "ours: a browser of this machine sends a request at once")
_PAGE: Final = Path(__file__).with_name("handover.html")
_LONGEST_TITLE: Final = 200
_LEADS: Final = "open.html"
_LEADS_ON: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}">
<title>moe-diag: open in Perfetto</title>
<p><a href="{address}">Open the timeline</a></p>
</html>
"""


@frozen
class Handover:
    """A trace in Perfetto's JSON, its title, what is to be seen, and where: ns of the file's
    clock.
    """

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
                f"--ui {self.ui!r} is no address of a Perfetto page. Give one such as "
                f"https://ui.perfetto.dev"
            )
        margin_ns = int((self.end_ns - self.start_ns) * QUARTER.value)
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


@contextmanager
def leading_to(address: str, cache_dir: Path) -> Iterator[str]:
    """The address of a file that leads a browser to `address`, readable by this user alone; gone
    afterwards.

    Raises `OutputNotWritable`.
    """
    with cache_opened(cache_dir) as cache, scratch_folder(cache) as folder:
        path = folder.path / _LEADS
        try:
            folder.write_new(_LEADS, _LEADS_ON.format(address=address).encode(), 0o600)
        except OSError as error:
            raise OutputNotWritable(
                f"{path} cannot be written ({error.strerror}). Check the disk."
            ) from None
        yield path.absolute().as_uri()


def hand_over(
    given: Handover, opened: Callable[[str], object], patience_s: float = PATIENCE.value
) -> bool:
    """Serve until the trace was handed over; False where nobody took it in time.

    `opened` is called with the address as soon as it answers.
    """
    secret, done = secrets.token_urlsafe(16), Event()
    unserved = {
        ("GET", ""): ("text/html; charset=utf-8", given.page().encode()),
        ("GET", "trace.json"): ("application/json", given.trace.encode()),
        ("POST", "done"): ("text/plain", b""),
    }
    with ThreadingHTTPServer((HOST, 0), _handler(secret, unserved, done)) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        thread.start()
        try:
            opened(f"http://{HOST}:{server.server_port}/{secret}/")
            return done.wait(patience_s)
        finally:
            server.shutdown()
            thread.join()


def _handler(
    secret: str, left: dict[tuple[str, str], tuple[str, bytes]], done: Event
) -> type[BaseHTTPRequestHandler]:
    """Answers requests with what is `left`, each once: of two that ask at the same time one gets
    it.
    """

    class Handler(BaseHTTPRequestHandler):
        """Answers for two files and the word that all is done."""

        server: ThreadingHTTPServer
        timeout = WAITS.value

        def do_GET(self) -> None:
            if (below := self._asked()) is None:
                self.send_error(404)
                return
            kind, data = left.pop((self.command, below), ("", None))
            if data is None:
                self.send_error(410, explain="It is given once. Type moe-diag open again.")
                return
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Referrer-Policy", "no-referrer")
            self.end_headers()
            self.wfile.write(data)
            if below == "done":
                done.set()

        def do_POST(self) -> None:
            self.do_GET()

        def _asked(self) -> str | None:
            """The path below the secret; None for another host and a path without it."""
            mine = f"{HOST}:{self.server.server_port}"
            typed_secret, _, below = self.path.removeprefix("/").partition("/")
            is_ours = secrets.compare_digest(typed_secret.encode(), secret.encode())
            if is_ours and self.headers.get("Host") == mine:
                return below
            return None

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: requests are no news."""

    return Handler
