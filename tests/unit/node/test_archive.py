# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible brings the node's half in an archive, out of which a node imports it in every call: that must be cheap."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from ansible_collections.edpm.services.plugins.module_utils import _node

PACKAGE = _node.__name__
FOLDER = Path(str(_node.__file__)).parent
_IMPORTING = """
import json, sys, zlib
compiled = []
def hook(event, arguments):
    if event == "compile" and "_node" in str(arguments[1]):
        compiled.append(str(arguments[1]).rpartition("/")[2])
sys.path.insert(0, sys.argv[1])
sys.addaudithook(hook)
import {package}.calls
print(json.dumps(compiled))
"""


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "payload.zip"
    folder = Path(*PACKAGE.split("."))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for parent in folder.parents[:-1]:
            made.writestr(f"{parent}/__init__.py", "")
        for file in FOLDER.glob("*.py"):
            made.write(file, folder / file.name)
    return path


def _compiled(archive: Path) -> list[str]:
    argv = [sys.executable, "-I", "-S", "-c", _IMPORTING.format(package=PACKAGE), str(archive)]
    found: list[str] = json.loads(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)
    return [name for name in found if name != "__init__.py"]


def test_a_module_in_the_archive_is_compiled_once(archive: Path) -> None:
    names = _compiled(archive)
    assert {"calls.py", "converge.py", "generations.py"} <= set(names)
    assert sorted(names) == sorted(set(names))


def test_what_a_deployment_rarely_needs_is_not_even_read(archive: Path) -> None:
    assert not {"nftables.py", "firewalld.py", "removal.py", "previous.py", "prefetch.py"} & set(_compiled(archive))
