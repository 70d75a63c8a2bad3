# SPDX-License-Identifier: GPL-3.0-or-later
"""What the host must have. As root on Debian what is missing is installed; elsewhere it is named."""

from __future__ import annotations

import os
import platform
import shutil
from dataclasses import dataclass
from pathlib import Path

from .cache import building
from .command import run
from .errors import LabError, NotOnThisHost
from .progress import step


@dataclass(frozen=True)
class Tool:
    """A program that a part of the lab calls, and the Debian package that has it."""

    command: str
    package: str

    @property
    def present(self) -> bool:
        """Debian keeps some of these outside an ordinary user's PATH."""
        path = os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin:/usr/lib/podman:/usr/libexec/podman"
        return shutil.which(self.command, path=path) is not None


def require(purpose: str, *tools: Tool) -> None:
    """See to it that the tools are there, or say in one sentence what to install."""
    missing = [tool for tool in tools if not tool.present]
    if not missing:
        return
    packages = sorted({tool.package for tool in missing})
    names = ", ".join(tool.command for tool in missing)
    if not (is_root() and is_debian()):
        raise LabError(f"{purpose} needs {names}: install {' '.join(packages)} (as root on Debian the lab does it)")
    _install(packages)
    if left := [tool.command for tool in tools if not tool.present]:
        raise LabError(f"{purpose} needs {', '.join(left)}, which installing {' '.join(packages)} did not bring")


def require_root(purpose: str) -> None:
    """System containers need root; say so before anything is begun."""
    if not is_root():
        raise NotOnThisHost(f"{purpose} needs root, and this is the user {os.environ.get('USER') or os.getuid()}")


def is_root() -> bool:
    """Whether this process may install packages and run system containers."""
    return os.geteuid() == 0


def is_debian() -> bool:
    """Whether packages can be installed with apt-get."""
    return Path("/etc/debian_version").exists() and shutil.which("apt-get") is not None


def architecture() -> str:
    """The machine's architecture in Debian's and Go's word: amd64 or arm64."""
    machine = platform.machine()
    try:
        return {"x86_64": "amd64", "aarch64": "arm64"}[machine]
    except KeyError:
        raise NotOnThisHost(f"the lab knows amd64 and arm64, and this machine is {machine}") from None


def _install(packages: list[str]) -> None:
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    with building("packages"), step(f"installing {' '.join(packages)}"):
        run(["apt-get", "update", "-qq"], timeout=600, env=quiet)
        run(
            ["apt-get", "-o", "DPkg::Lock::Timeout=300", "install", "-y", "-qq", "--no-install-recommends", *packages],
            timeout=1200,
            env=quiet,
        )
