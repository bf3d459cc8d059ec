"""Processes of calls that do not end as they should: what a library, a file or the system can do to one."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from typing import Any


def stuck_in_a_library(*_: Any) -> None:
    """No signal is taken while a pattern is searched."""
    os.setsid()
    re.match(r"(a|aa)+$", "a" * 90 + "!")


def deaf(*_: Any) -> None:
    """It hears nothing of being asked to end, and has started something in its session."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.run([sys.executable, "-c", "import time; time.sleep(60)"], check=False)


def killed(*_: Any) -> None:
    """Whatever ended it."""
    os.kill(os.getpid(), signal.SIGKILL)


def too_talkative(pipe: Any, *_: Any) -> None:
    """More than any answer has."""
    pipe.send_bytes(b"x" * 1_000_000)
