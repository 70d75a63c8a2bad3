# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kubernetes objects out of files and folders: several documents in a file, Lists, YAML or JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import yaml

from .errors import BadManifestError, one_line

SUFFIXES = (".yaml", ".yml", ".json")
STANDARD_INPUT = "-"
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # which of the two it is depends on the machine
    """Reads what looks like a date as text, as Kubernetes does."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, Any]]]] = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in _Base.yaml_implicit_resolvers.items()
    }


@dataclass(frozen=True)
class Manifest:
    """One object as its author wrote it, and where."""

    api_version: str
    kind: str
    name: str
    namespace: str | None
    body: Mapping[str, Any]
    source: str

    def __str__(self) -> str:
        return f"{self.kind} {f'{self.namespace}/' if self.namespace else ''}{self.name}"


def load(paths: Iterable[Path]) -> tuple[Manifest, ...]:
    """All objects, folders in byte order of their files' names. The same object twice is an error."""
    return tuple(stream(paths))


def stream(paths: Iterable[Path]) -> Iterator[Manifest]:
    """The same one by one, for a reader that need not keep them."""
    seen: dict[tuple[str, str], str] = {}
    for path in paths:
        for file in _files(path):
            for manifest in _read(file):
                key = (manifest.api_version, str(manifest))
                if key in seen:
                    raise BadManifestError(
                        f"{manifest} is in {seen[key]} and in {manifest.source}; remove one of them."
                    )
                seen[key] = manifest.source
                yield manifest


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())
    return [path]


def _read(file: Path) -> Iterator[Manifest]:
    shown = "standard input" if str(file) == STANDARD_INPUT else str(file)
    try:
        content = _standard_input() if str(file) == STANDARD_INPUT else file.read_bytes()
        for document, line in _documents(content):
            yield from _objects(document, f"{shown}:{line}")
    except OSError as error:
        raise BadManifestError(f"The manifest {shown} cannot be read: {error.strerror}; correct the path.") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{shown}:{mark.line + 1}" if mark is not None else shown
        fault = one_line(getattr(error, "problem", None) or error)
        raise BadManifestError(f"The manifest {where} is not YAML: {fault}; correct the file.") from error


@cache
def _standard_input() -> bytes:
    """Kept, since it can be read only once and an inventory is read again when a play refreshes it."""
    if sys.stdin is None or sys.stdin.isatty():
        raise BadManifestError("There are no manifests on standard input; pipe them in, or name a file or folder.")
    return sys.stdin.buffer.read()


def _documents(content: bytes) -> Iterator[tuple[object, int]]:
    """Every document and the line that it begins in. JSON is YAML too, but has a parser that is far quicker."""
    if content.lstrip().startswith(b"{"):
        try:
            yield json.loads(content), 1
        except ValueError:
            pass  # The YAML parser reads several documents, and names the line of a fault.
        else:
            return
    loader = _Loader(content)
    while loader.check_node():
        node = loader.get_node()
        yield loader.construct_document(node), node.start_mark.line + 1


def _objects(document: object, source: str) -> Iterator[Manifest]:
    if document is None or (isinstance(document, Mapping) and _is_kustomization(document)):
        return
    if not isinstance(document, Mapping):
        raise BadManifestError(
            f"The document at {source} is not a Kubernetes object but {_type(document)}; correct the file."
        )
    if str(document.get("kind", "")).endswith("List") and isinstance(document.get("items"), list):
        for item in document["items"]:
            yield from _objects(item, source)
        return
    metadata = document.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    fields = {
        "apiVersion": document.get("apiVersion"),
        "kind": document.get("kind"),
        "metadata.name": metadata.get("name"),
    }
    for field, value in fields.items():
        if not isinstance(value, str) or not value:
            raise BadManifestError(f"The object at {source} has no {field}; add it.")
    yield Manifest(
        api_version=document["apiVersion"],
        kind=document["kind"],
        name=metadata["name"],
        namespace=metadata.get("namespace"),
        body=document,
        source=source,
    )


def _is_kustomization(document: Mapping[str, Any]) -> bool:
    """Whether it is the list of the files around it, which lies in many folders of manifests and is no object."""
    return str(document.get("apiVersion", "")).startswith("kustomize.config.k8s.io/")


def _type(value: object) -> str:
    return {list: "a list", str: "text", bool: "a truth value"}.get(type(value), "a number")
