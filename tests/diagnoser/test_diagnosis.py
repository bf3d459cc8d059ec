"""What `analyze` and `check_config` return: typed parts, and a first screen for notebooks."""

from __future__ import annotations

from html import unescape

from msgspec.structs import replace

import diagnoser
from bench.simulate.recording import Recording
from diagnoser.diagnosis import Diagnosis
from tests.doubles.document import exposed
from tests.places import Export


def test_no_name_of_a_recording_opens_a_tag_in_a_notebook(export: Export) -> None:
    recording: Recording = exposed()
    found = diagnoser.analyze(export(recording))
    named = replace(found.result.traces[0], name="<script>alert(1)</script>.sqlite")
    hostile = Diagnosis(replace(found.result, traces=(named,)))
    assert hostile._repr_html_().count("<") == 2  # of <iframe> and </iframe>
    assert "<script>alert(1)" not in unescape(hostile._repr_html_())
