# SPDX-License-Identifier: GPL-3.0-or-later
"""A user's folder with an inventory of manifests, and the programs that a user runs there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[3]
TUTORIAL = ROOT / "docs" / "tutorial" / "manifests"
SPECIFICATION = ROOT / "tests" / "fixtures" / "specification"

Object = dict[str, Any]
Run = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class User:
    """Runs programs in a folder, with nothing of this machine's in the environment."""

    folder: Path

    @property
    def inventory(self) -> Path:
        return self.folder / "my.dataplane.yml"

    def reads(self, *manifests: Path | str, **options: Any) -> None:
        """The inventory file."""
        named = {"manifests": [str(path) for path in manifests]} if manifests else {}
        self.inventory.write_text(yaml.safe_dump({"plugin": "edpm.services.dataplane", **named, **options}))

    def has(self, objects: list[Object], **options: Any) -> None:
        """Manifests of these objects, and the inventory file."""
        (self.folder / "manifests.yaml").write_text(yaml.safe_dump_all(objects, allow_unicode=True))
        self.reads("manifests.yaml", **options)

    def run(self, program: str, *args: str | Path, **env: str) -> Run:
        kept = {
            name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR", "KUBEBUILDER_ASSETS") if name in os.environ
        }
        home = {"HOME": str(self.folder), "ANSIBLE_HOME": str(self.folder / ".ansible"), "ANSIBLE_NOCOLOR": "1"}
        return subprocess.run(
            [BIN / program, *args],
            cwd=self.folder,
            env={**kept, **home, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def playbook(self, name: str, *args: str | Path, **variables: str) -> Run:
        """A playbook of the collection with `-i` and `-e`."""
        more = [word for key, value in variables.items() for word in ("-e", f"{key}={value}")]
        return self.run("ansible-playbook", f"edpm.services.{name}", "-i", self.inventory, *more, *args)

    def play(self, *tasks: Object, inventory: str = "", **play: Any) -> Run:
        """A play of the user's own, on the controller."""
        body = {"hosts": "all", "gather_facts": False, "connection": "local", **play, "tasks": list(tasks)}
        body["vars"] = {"ansible_python_interpreter": sys.executable, **play.get("vars", {})}
        (self.folder / "play.yml").write_text(yaml.safe_dump([body], allow_unicode=True))
        return self.run("ansible-playbook", "play.yml", "-i", inventory or self.inventory)


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path)


def thing(api_version: str, kind: str, name: str, **rest: Any) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "openstack"}, **rest}


def shown(run: Run) -> str:
    """What the task displayed, without Ansible's own lines."""
    assert run.returncode == 0, run.stdout + run.stderr
    found = re.search(r"TASK \[.*?\] \**\n(.*?)^(?:ok|changed): \[localhost\]", run.stdout, re.DOTALL | re.MULTILINE)
    assert found is not None, run.stdout
    return found[1]


def told(run: Run) -> str:
    """The sentence that a run failed with."""
    assert run.returncode != 0, run.stdout
    assert "Traceback" not in run.stdout + run.stderr
    found = re.search(r'FAILED! => .*?"msg": "((?:[^"\\]|\\.)*)"', run.stdout, re.DOTALL)
    assert found is not None, run.stdout + run.stderr
    return str(yaml.safe_load(f'"{found[1]}"'))
