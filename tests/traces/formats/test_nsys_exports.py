"""nsys at work on a report: how it fails, what is said then, and that nothing is left."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.recordings.nsys import desk
from traces.errors import DamagedTrace, ExportFailed, MoeDiagError

SAYS = 'echo "Exportation error: {}" >&2; exit 1'
MISSING_FIELDS = """cat >&2 <<'END'
[libprotobuf ERROR a.cc:123] Can't parse message of type "X" because it is missing required fields: y
END
exit 1"""


@pytest.mark.parametrize(
    ("export", "error", "says"),
    [
        ('echo junk >"$out"; ' + SAYS.format("LZ4 decompression failed."), DamagedTrace, "is damaged"),
        ('cat "$here/without_metadata.sqlite" >"$out"', ExportFailed, "lacks the metadata table"),
        ('head -c 5000 "$here/good.sqlite" >"$out"', ExportFailed, "no whole SQLite file"),
        ("exit 0", ExportFailed, "left no export"),
        ("kill -9 $$", ExportFailed, "signal 9 killed it"),
        ("exit 1", ExportFailed, "gives no reason"),
        ('echo "cannot commit" >&2; ' + SAYS.format("database or disk is full"), ExportFailed, "--cache-dir"),
        ('echo "database or disk is full" >&2; >"$out"', ExportFailed,
         "the disk of the cache folder is full"),
        (SAYS.format("No '/home/me/a b' at /x/y.cpp(7): why"), ExportFailed, ": No … at … why."),
    ],
)  # fmt: skip
def test_a_failed_export_leaves_nothing_and_says_why_in_one_line(
    tmp_path: Path, export: str, error: type[MoeDiagError], says: str
) -> None:
    refused = desk(tmp_path, export=export).refusal()
    assert type(refused) is error
    assert says in str(refused)


@pytest.mark.parametrize(
    ("collector", "error", "says"),
    [("2022.4.9.1", ExportFailed, "newer than 2022.4.2"), ("2022.4.2.1", DamagedTrace, "is damaged")],
)
def test_missing_fields_mean_a_newer_report_only_where_it_can_be_newer(
    tmp_path: Path, collector: str, error: type[MoeDiagError], says: str
) -> None:
    refused = desk(tmp_path, collector, MISSING_FIELDS).refusal()
    assert type(refused) is error
    assert says in str(refused)


def test_a_report_that_changes_meanwhile_is_not_kept(tmp_path: Path) -> None:
    here = desk(tmp_path)

    def grow(doing: str, fraction: float | None = None, rows: int | None = None) -> None:
        here.report.write_bytes(here.report.read_bytes() + b"U3w[END]")

    with pytest.raises(DamagedTrace, match="changed while it was exported"):
        here.export(grow)
    assert not list(here.cache.iterdir())


def test_ctrl_c_kills_nsys_and_all_it_started(tmp_path: Path) -> None:
    beating = 'while :; do echo beat >>"$here/beats"; sleep 0.02; done & echo junk >"$out"; wait'
    here = desk(tmp_path, export=beating)
    beats = here.nsys.folder / "beats"
    said: list[str] = []

    def interrupt(doing: str, fraction: float | None = None, rows: int | None = None) -> None:
        said.append(doing)
        if len(said) > 2 and beats.exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        here.export(interrupt)
    heard = beats.stat().st_size
    time.sleep(0.2)
    assert beats.stat().st_size == heard
    assert set(said) == {"exporting run.nsys-rep with nsys 2022.4.2"}
    assert not list(here.cache.iterdir())
    here.nsys.write()
    assert here.export().is_file()


@pytest.mark.parametrize("says", ["", "	--include-blobs=\n\n	Possible values are 'true' or 'false'.\n"])
def test_what_nccl_notes_is_exported_by_an_nsys_that_can(tmp_path: Path, says: str) -> None:
    here = desk(tmp_path)
    (here.nsys.folder / "help").write_text(says)
    here.export()
    assert here.nsys.asked_for("--type=sqlite")
    assert here.nsys.asked_for("--include-blobs=true") == bool(says)
