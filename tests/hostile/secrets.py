"""Recordings, configurations and logs that keep a secret wherever one can stand, and the search for it."""

from __future__ import annotations

import base64
import json
import re
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from bench.simulate.export import write_export
from tests.configurations.check import BRIDGE, SCRIPT, log_lines
from tests.hostile.names import named_run
from tests.recordings.kineto import as_profiler_json
from traces.settings.knobs import Knob

SECRET = "hunter2_sesame"
ADDRESS = "10.98.97.96"
HOST, USER = "node0421", "alicewonder"
PRIVATE = {
    "host with its domain": f"{HOST}.cluster.qcorp.com", "address": "10.11.12.13",
    "address and port": "10.11.12.13:29500", "address in a name": "ip-10-11-12-13",
    "long address": "fe80::1ff:fe23:4567:890a", "long address of the net": "2001:db8::8a2e:370:7334",
    "mail": f"{USER}@qcorp.com", "token of hf": "hf_QwErTyUiOpAsDfGhJkLzXcVbNm",
    "token of GitHub": "ghp_QwErTyUiOpAsDfGhJkLzXcVbNm0123456789", "key of AWS": "AKIAQWERTYUIOPASDFGH",
    "JWT": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.QwErTyUiOp",
    "key of a service": "sk-QwErTyUiOpAsDfGhJkLz", "home": f"/home/{USER}/runs/secret_run",
    "share": f"/lustre/{USER}/secret_run/", "tilde": f"~{USER}/secret_run",
    "storage": f"s3://{USER}-bucket/secret_run", "password": "password=QwErTyUiOp",
}  # fmt: skip
FOUND = (
    *(HOST, "qcorp", "10.11.12.13", "10-11-12-13", "fe23", "8a2e", USER, "QwErTy", "QWERTYUIOP", "eyJzdWIi"),
    "secret_run",
)
"""What of them is looked for, in capitals or not."""
OWN = (
    f"{HOST}.cluster.qcorp.com_{USER}_1234.sqlite", "trace_10.11.12.13.sqlite", f"{HOST}_{USER}.sqlite",
    f"report_{USER}.sqlite", f"{HOST}_1234.1690000000000.pt.trace.json",
)  # fmt: skip
"""Names of recordings."""
PUBLIC = {"demangledName", "shortName", "mangledName", "textId"}
"""Columns whose StringIds texts a report may print: kernel and NVTX names."""


def plant(path: Path) -> int:
    """Overwrite every text but kernel and NVTX names with the secret; how many cells were."""
    with closing(sqlite3.connect(path)) as db:
        tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        public = " UNION ".join(public_ids(db, tables)) or "SELECT 0 WHERE 0"
        changed = db.execute(f"UPDATE StringIds SET value = ? WHERE id NOT IN ({public})", [SECRET]).rowcount
        for table in tables:
            for column in columns(db, table):
                if (table, column) in {("StringIds", "value"), ("NVTX_EVENTS", "text")}:
                    continue
                changed += db.execute(
                    f'UPDATE "{table}" SET "{column}" = ? WHERE typeof("{column}") IN (\'text\', \'blob\')',
                    [SECRET],
                ).rowcount
        db.execute("INSERT OR IGNORE INTO StringIds VALUES (999999, ?)", [SECRET])
        db.commit()
    return changed


def columns(db: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]


def public_ids(db: sqlite3.Connection, tables: list[str]) -> Iterator[str]:
    for table in tables:
        for column in PUBLIC & set(columns(db, table)):
            if table in ("CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS"):
                yield f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL"


def planted(path: Path, longer_us: int = 0, names: Sequence[str] = (*PRIVATE.values(), HOST, USER)) -> Path:
    """A recording that keeps secrets wherever one can; its own steps are named as those of any run.

    It tells its host, its user and the variables of its process, as nsys does; `names` of kernels hold them.
    """
    recording = named_run(names, longer_us)
    recording.gpu(f"NVIDIA {SECRET}")
    recording.diagnostic(f"{SECRET} {ADDRESS}: 17 records were lost")
    for registered in (False, True):
        recording.range(f"{SECRET} {ADDRESS}", 1_010_000, 1_020_000, registered=registered)
        recording.range(f"/home/{SECRET}/data", 1_021_000, 1_022_000, registered=registered)
    write_export(path, recording, lazy=False)
    assert plant(path) >= 10
    host = PRIVATE["host with its domain"]
    variables = f"PATH=/usr/bin\nUSER={USER}\nHOSTNAME={host}\nHF_TOKEN={SECRET}\nKEY={SECRET} {ADDRESS}"
    with closing(sqlite3.connect(path)) as db, db:
        for table in ("TARGET_INFO_SYSTEM_ENV", "ANALYSIS_DETAILS"):
            db.execute(f"CREATE TABLE IF NOT EXISTS {table} (name TEXT, value TEXT)")
            for name, value in (("Hostname", host), ("DeviceEnvironment", variables)):
                row = [{"name": name, "value": value}.get(one, variables) for one in columns(db, table)]
                db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    return path


def profiled(path: Path) -> Path:
    """The same of the PyTorch profiler, with variables wherever one can stand beside what is read."""
    variables = {"HF_TOKEN": SECRET, "env": [f"WANDB_API_KEY={SECRET}", ADDRESS]}
    recording = named_run([*PRIVATE.values()])
    del recording.rows["MPI_RANKS"]
    document = json.loads(as_profiler_json(recording))
    for event in document["traceEvents"]:
        event["args"] |= variables
    document["distributedInfo"] = {"rank": 0, "world_size": 1, "backend": SECRET, **variables}
    document["deviceProperties"] = [{"id": 0, "name": f"NVIDIA {SECRET}", **variables}]
    path.write_text(json.dumps({**document, "environ": variables}), encoding="utf-8")
    return path


def keeping_secrets(folder: Path) -> dict[str, Path]:
    """Configurations whose texts, and a log whose lines, have the secret wherever a run may put one."""
    script = SCRIPT.replace("--bf16", f"--bf16 --save /home/{SECRET}/out --wandb-project {SECRET}").replace(
        "export CUDA", f"export WANDB_API_KEY={SECRET}\nexport NCCL_DEBUG={SECRET}\nexport CUDA"
    )
    bridge = (
        f"{BRIDGE}  save: /home/{SECRET}/out\nlogger:\n  wandb_project: {SECRET}\n"
        f"my:\n  own: [{SECRET}, {ADDRESS}]\n"
        f"tokenizer:\n  tokenizer_model: /home/{SECRET}/tokens\ndataset:\n  blend: [/data/{SECRET}]\n"
    )
    files = {"script": folder / "train.sh", "bridge": folder / "train.yaml", "log": folder / "train.log"}
    files["script"].write_text(f"# {SECRET}\n{script}\n# {ADDRESS}\n", encoding="utf-8")
    files["bridge"].write_text(f"# {SECRET}\n{bridge}", encoding="utf-8")
    lines = [
        f"[{SECRET}:{ADDRESS}] W0822 launched by {SECRET}@{SECRET}.example: torchrun /home/{SECRET}/train.py",
        f"{SECRET}:1234:1301 [0] NCCL INFO Bootstrap : Using eth0:{ADDRESS}<0>",
        f"{SECRET}:1234:1301 [0] NCCL INFO NCCL_DEBUG set by environment to {SECRET}",
        *log_lines(),
        f'[rank3]:   File "/home/{SECRET}/train.py", line 10, in {SECRET}',
        f"[rank3]: RuntimeError: {SECRET} at {ADDRESS}: cannot open /home/{SECRET}/data",
        f"{SECRET}: NCCL WARN Call to connect returned Connection refused by {ADDRESS}",
    ]
    files["log"].write_text("\n".join(lines) + "\n", encoding="utf-8")
    return files


def spellings(secret: str) -> list[bytes]:
    """A secret as a format might carry it: as it is, in base64 at each place, in UTF-16, per cent encoded."""
    raw = secret.encode()
    inner = [base64.b64encode(b" " * shift + raw)[4 if shift else 0 : -4] for shift in range(3)]
    return [raw, *inner, raw.hex().encode(), secret.encode("utf-16-be"), secret.encode("utf-16-le"),
            quote(secret, safe="").replace("_", "%5F").encode(), secret.replace("_", "\\_").encode(),
            secret.replace("_", "&#95;").encode()]  # fmt: skip


def laid_open(content: bytes) -> bytes:
    """With every packed stream of a picture beside it, and text that a PDF shows piece by piece in one."""
    parts = [content]
    for found in re.finditer(rb"stream\r?\n|IDAT|zTXt....|iTXt", content):
        try:
            parts.append(zlib.decompressobj().decompress(content[found.end() :]))
        except zlib.error:
            continue
    shown = [b"".join(re.findall(rb"\(((?:[^()\\]|\\.)*)\)", part)) for part in parts]
    return b"\n".join([*parts, *shown])


def secrets_in(content: bytes) -> list[bytes]:
    whole = laid_open(content)
    lower = whole.lower()
    found = [one for one in spellings(SECRET) if one in whole]
    return found + [one for one in map(str.encode, (SECRET, ADDRESS, *FOUND)) if one.lower() in lower]


def knobs_in_yaml(group: Iterable[Knob]) -> str:
    """A configuration of Bridge in which these knobs are the secret."""
    tree: dict[str, Any] = yaml.safe_load(BRIDGE)
    for knob in group:
        *path, last = knob.bridge.split(".")
        inner = tree
        for part in path:
            inner = inner.setdefault(part, {}) if isinstance(inner, dict) else {}
        if isinstance(inner, dict):
            inner[last] = SECRET
    return json.dumps(tree)


def knobs_in_script(group: Iterable[Knob]) -> str:
    """The same for Megatron-LM."""
    words = [f"{knob.flag} {SECRET}" for knob in group if knob.flag]
    return SCRIPT.replace("--bf16", "--bf16 " + " ".join(words))
