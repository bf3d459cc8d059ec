"""What each tool of `moe-diag mcp` answers: the first screen, below 4 kB, and where all of it is kept.

A tool is a function here: its docstring and its parameters are what a program reads of it.
"""

import hashlib
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import diagnoser
from diagnoser.diagnosis import ComparisonResult, Diagnosis, FilesResult, LayoutsResult
from diagnoser.output import base_name, raised_at
from diagnoser.running.files import asked_of_files, compare_files
from reports.result.codec import encode
from reports.result.json_text import render_json
from traces.errors import OutputNotWritable
from traces.files.aside import write_whole
from traces.files.cache_folder import default_cache_dir, not_writable
from traces.limits import Limit
from traces.spelling import counted, file_word

SIZE: Final = Limit(4_000, "bytes", "ours: a tool's answer stays in a program's context, where room is dear")

About = dict[str, str | int | bool | list[str]]
"""Facts of a run, by the names of `Given`: {"gpu": "H100", "ep": 16, "core_version": "0.16.1"}."""
Shown = Diagnosis | ComparisonResult | FilesResult | LayoutsResult


def answer_of(text: str, pointers: tuple[str, ...] = ()) -> str:
    """A text with pointers below it, shorter than `SIZE`: where it would be too long, its last lines go."""
    lines = text.rstrip("\n").split("\n")
    for kept in range(len(lines), -1, -1):
        gone = len(lines) - kept
        cut = (f"({counted(gone, 'more line', 'more lines')} left out)",) if gone else ()
        answer = "\n".join((*lines[:kept], *cut, *pointers))
        if len(answer.encode()) < SIZE.value:
            break
    return answer


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools. `folder`: where whole documents are kept, by default in the user's cache folder."""

    folder: Path | None = None

    def all(self) -> tuple[Callable[..., str], ...]:
        """Those that a program is offered."""
        return self.analyze, self.compare, self.check_config, self.plan, self.explain

    def analyze(
        self,
        paths: list[str],
        config: str | None = None,
        log: str | None = None,
        steps: str | None = None,
        about: About | None = None,
    ) -> str:
        """Diagnose recordings of one training run: which wall holds it back, what to change first.

        paths: .nsys-rep, .sqlite exports, PyTorch profiler .json[.gz], a folder or a pattern; all of one run.
        config: the run's configuration (Megatron-Bridge YAML or overrides, Megatron-LM command or script), so
        that no change is proposed that it forbids. log: what the run printed. steps: "A:B", recorded steps.
        about: facts that no file tells, such as {"gpu": "H100", "ep": 16, "core_version": "0.16.1"}.
        """
        found = diagnoser.analyze(paths, config=config, log=log, steps=steps, about=about)
        return self._answer(found, Path(paths[0]))

    def compare(
        self,
        base: str,
        new: str,
        base_config: str | None = None,
        new_config: str | None = None,
        base_log: str | None = None,
        new_log: str | None = None,
        about: About | None = None,
    ) -> str:
        """Compare two runs: is the new one really slower or faster, by how much, where, and what changed.

        base, new: each a recording, a folder of one run's recordings, or the JSON that analyze kept; or two
        configurations, with logs and without any recording. base_config, new_config, base_log, new_log: what
        belongs to each side. about: facts of both runs, as for analyze.
        """
        typed: dict[str, Any] = {"base_config": base_config, "new_config": new_config}
        typed |= {"base_log": base_log, "new_log": new_log, "about": about}
        found: Shown
        if (of_files := asked_of_files(Path(base), Path(new), typed)) is not None:
            found = compare_files(of_files)
        else:
            found = diagnoser.compare(base, new, **typed)
        return self._answer(found, Path(new))

    def check_config(
        self, path: str, log: str | None = None, symptoms: str | None = None, about: About | None = None
    ) -> str:
        """Judge a configuration without a recording: is it legal, does it fit, what would make it faster.

        path: Megatron-Bridge YAML or overrides, Megatron-LM command or script. log: what a run with it
        printed, also of one that failed. symptoms: a JSON file of measurements, or what analyze kept.
        about: facts that the file does not tell, as for analyze.
        """
        return self._answer(diagnoser.check_config(path, log=log, symptoms=symptoms, about=about), Path(path))

    def plan(
        self,
        model: str,
        gpus: int | None = None,
        seq_length: int | None = None,
        global_batch: int | None = None,
        about: About | None = None,
    ) -> str:
        """List parallel layouts of a model that fit some GPUs, the one to try first, before anything runs.

        model: a name such as "Qwen3-30B-A3B", or a configuration. gpus: how many. about: {"gpu": "H100"} says
        which; other facts as for analyze.
        """
        found = diagnoser.plan(
            model, gpus=gpus, seq_length=seq_length, global_batch=global_batch, about=about
        )
        return self._answer(found, Path(model))

    def explain(self, word: str) -> str:
        """What a word of any answer means: a wall, a fix (COM-2), a measure, rule, setting or JSON key."""
        return answer_of(diagnoser.explain(word), (f"Whole: moe-diag explain {shlex.quote(word)}",))

    def _answer(self, found: Shown, named: Path) -> str:
        kept = self._kept(found, base_name(named) or "run")
        report = f"moe-diag report {file_word(str(kept))}"
        pointers = (
            f"Whole result (JSON, docs/json.md): {kept}",
            f"More: {report} --full | {report} -o page.html | moe-diag explain WORD",
        )
        return answer_of(found.text(), pointers)

    def _kept(self, found: Shown, name: str) -> Path:
        """The file of the whole document, named by what it is of and holds; the same result has the same."""
        text = render_json(encode(found.result)).encode()
        digest = hashlib.sha256(text).hexdigest()[:8]
        path = self._folder() / f"{name}-{digest}.json"
        try:
            write_whole(path, text, True)
        except OSError as error:
            raise OutputNotWritable(f"{path} cannot be written ({error.strerror}).") from None
        return path

    def _folder(self) -> Path:
        folder = self.folder or default_cache_dir() / "answers"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise not_writable(folder, error) from None
        return folder.resolve()


@contextmanager
def said_as(kind: Callable[[str], Exception]) -> Iterator[None]:
    """Errors in one line, as the command says them: ours as they are, a bug by its place alone."""
    try:
        yield
    except diagnoser.MoeDiagError as error:
        raise kind(str(error)) from None
    except Exception as error:
        where = f"{type(error).__name__} at {raised_at(error)}"
        raise kind(f"a bug of moe-diag ({where}). Please report it.") from None
