"""python -m tests.site OUT: the documentation as a site in the folder OUT, which is replaced."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.site.build import build, stage


def main(out: Path) -> int:
    """The exit code: 1, with what is wrong, where a page or link is broken; OUT is as it was then."""
    if out.exists() and not (out / ".buildinfo").is_file():
        print(f"{out} is no site made by this program, and is not replaced", file=sys.stderr)
        return 1
    with TemporaryDirectory() as scratch:
        staged, site = Path(scratch) / "staged", Path(scratch) / "site"
        stage(staged)
        run = build(staged, site)
        print((run.stdout + run.stderr).replace(f"{staged}/", ""), end="", file=sys.stderr)
        if run.returncode == 0:
            shutil.rmtree(out, ignore_errors=True)
            shutil.move(site, out)
            print(f"{out / 'index.html'}: open it in a browser")
        return min(run.returncode, 1)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
