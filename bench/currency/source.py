"""A wheel or a source tree as parsed modules; nothing of it is run."""

from __future__ import annotations

import ast
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from traces.errors import InputError
from traces.settings.knobs import Release

_NUMBERS: Final = ("MAJOR", "MINOR", "PATCH")
_PACKAGES: Final = {
    "core": "megatron/core/package_info.py",
    "bridge": "megatron/bridge/package_info.py",
}


class NotARelease(InputError):
    """A path that holds neither of the two packages. The message names it and what to give instead."""


@dataclass(frozen=True)
class Source:
    """Modules by their path from `megatron/` on, or from `scripts/` of a tree of Megatron-Bridge."""

    package: str
    release: Release
    texts: Mapping[str, str]

    def modules(self, *begins: str) -> Iterator[tuple[str, ast.Module]]:
        """Modules whose path begins so, in the order of their paths."""
        yield from ((path, tree) for path, tree in self._parsed.items() if path.startswith(begins))

    @cached_property
    def _parsed(self) -> Mapping[str, ast.Module]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return {path: ast.parse(text) for path, text in sorted(self.texts.items())}

    @cached_property
    def classes(self) -> Mapping[str, ast.ClassDef]:
        """Each class by its name; of several the first, by path."""
        nodes = [node for _, tree in self.modules("") for node in tree.body]
        return {node.name: node for node in reversed(nodes) if isinstance(node, ast.ClassDef)}


def opened(path: Path) -> Source:
    """The package in a wheel, or in a checkout of its repository.

    Raises:
        NotARelease: there is none in it.
    """
    texts = dict(_of_wheel(path) if path.suffix == ".whl" else _of_tree(path))
    package = next((name for name, info in reversed(_PACKAGES.items()) if info in texts), None)
    if package is None:
        raise NotARelease(f"{path}: no Megatron-Core or Megatron-Bridge; give a wheel or a checkout")
    return Source(package, _release(texts[_PACKAGES[package]]), texts)


def _of_wheel(path: Path) -> Iterator[tuple[str, str]]:
    with zipfile.ZipFile(path) as wheel:
        for name in wheel.namelist():
            if name.startswith("megatron/") and name.endswith(".py"):
                yield name, wheel.read(name).decode("utf-8")


def _of_tree(path: Path) -> Iterator[tuple[str, str]]:
    root = path / "src" if (path / "src/megatron").is_dir() else path
    for place in (root / "megatron", path / "scripts/performance"):
        base = root if place.is_relative_to(root / "megatron") else path
        for file in place.rglob("*.py"):
            yield file.relative_to(base).as_posix(), file.read_text(encoding="utf-8")


def _release(text: str) -> Release:
    """Its number, by what the package says of itself."""
    said = {
        target.id: node.value.value
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    major, minor, micro = (int(str(said[name])) for name in _NUMBERS)
    return Release((major, minor, micro))
