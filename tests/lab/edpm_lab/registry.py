# SPDX-License-Identifier: GPL-3.0-or-later
"""A container registry beside the nodes, with TLS from an authority of its own and a user who must log in.

It tells who asked it for what, so that a test can show that somebody did, or that nobody did.
"""

from __future__ import annotations

import base64
import io
import json
import re
import secrets
import shutil
import ssl
import tarfile
import time
import urllib.error
import urllib.request
from contextlib import suppress
from typing import Self

import yaml

from . import hosts, images, pki, podman
from .errors import LabError
from .labs import Lab
from .progress import step

#: The registry's place in the lab's network, and what nodes call it. The dot tells podman that it is a registry.
ADDRESS_NUMBER = 4
NAME = "registry.lab"
PORT = 5000
USER = "lab"

_START_LIMIT = 30.0
_FIRST_PROCESS = f"""htpasswd -i -B -c /run/users {USER} < /srv/registry/password
exec docker-registry serve /srv/registry/config.yml"""

#: What the shell of a tiny image answers to, beside its own name.
_PROGRAMS = ("sh", "cat", "grep", "sleep", "test", "true")


class Registry:
    """The registry of one lab."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._folder = lab.folder / "registry"

    @property
    def place(self) -> str:
        """What comes before the name of an image that is kept here."""
        return f"{NAME}:{PORT}"

    @property
    def address(self) -> str:
        """Where it is in the lab's network."""
        return podman.network(self._lab.name).address(ADDRESS_NUMBER)

    @property
    def authority(self) -> str:
        """The certificate that a client must trust, as PEM."""
        return pki.Authority(self._folder / "pki").certificate.read_text()

    def credentials(self, password: str | None = None, *places: str) -> str:
        """What `podman login` would have written, with the right password unless another is given."""
        word = f"{USER}:{self._password if password is None else password}"
        entry = {"auth": base64.b64encode(word.encode()).decode()}
        return json.dumps({"auths": dict.fromkeys(places or (self.place,), entry)})

    def up(self) -> Self:
        """Start it, empty; one that runs is left alone, one that was stopped comes back with what it had."""
        podman.containers_work()
        image = images.image("registry")
        with step("the registry"):
            if not self._folder.exists():
                self._write()
                hosts.remember(self._lab, {NAME: self.address})
                podman.run("rm", "--force", "--ignore", "--volumes", self._container)
                podman.run(
                    *("create", "--name", self._container, "--hostname", "registry"),
                    *podman.labels(self._lab.name),
                    *podman.network(self._lab.name).at(self.address),
                    *("--volume", f"{self._folder}:/srv/registry:ro", "--volume", "/var/lib/docker-registry"),
                    *(image, "/bin/sh", "-e", "-c", _FIRST_PROCESS),
                )
            podman.run("start", self._container)
            self._wait()
        return self

    def stop(self) -> None:
        """Let it answer nobody, until `up` is called again."""
        podman.run("stop", "--time", "1", self._container)

    def down(self) -> None:
        """Remove it with all that it held."""
        podman.run("rm", "--force", "--ignore", "--time", "0", "--volumes", self._container)
        shutil.rmtree(self._folder, ignore_errors=True)

    def push(self, reference: str, name: str) -> str:
        """Put an image of the lab's podman into it as `name`, such as `probe:1`; the answer is what nodes call it."""
        podman.run(
            *("push", "--quiet", "--cert-dir", self._trust, "--authfile", self._folder / "auth.json"),
            *(reference, f"docker://{self.address}:{PORT}/{name}"),
            timeout=300,
        )
        return f"{self.place}/{name}"

    def requests(self) -> list[str]:
        """What it was asked for so far by others than this lab's host: method and path, with the status it gave."""
        shown = podman.run("logs", self._container)
        line = re.compile(r'^(\S+) - .*"([A-Z]+ \S+) HTTP/[\d.]+" (\d+) ')
        found = [line.match(each) for each in (shown.stdout + shown.stderr).splitlines()]
        host = podman.network(self._lab.name).address(1)
        return [f"{match[2]} {match[3]}" for match in found if match and match[1].partition(":")[0] != host]

    @property
    def _container(self) -> str:
        return f"edpm-{self._lab.name}-registry"

    @property
    def _password(self) -> str:
        return (self._folder / "password").read_text()

    @property
    def _trust(self) -> str:
        return str(self._folder / "trust")

    def _write(self) -> None:
        self._folder.mkdir(mode=0o700)
        authority = pki.create_authority(self._folder / "pki", "edpm lab registry")
        identity = authority.server("registry", [NAME, self.address])
        pki.write_private(self._folder / "password", secrets.token_hex(12).encode())
        pki.write_private(self._folder / "auth.json", self.credentials(None, f"{self.address}:{PORT}").encode())
        (self._folder / "trust").mkdir()
        (self._folder / "trust" / "ca.crt").write_text(self.authority)
        inside = "/srv/registry/pki"
        settings = {
            "version": "0.1",
            "log": {"level": "warn"},
            "storage": {"filesystem": {"rootdirectory": "/var/lib/docker-registry"}},
            "auth": {"htpasswd": {"realm": "lab", "path": "/run/users"}},
            "http": {
                "addr": f":{PORT}",
                "tls": {
                    "certificate": f"{inside}/{identity.certificate.name}",
                    "key": f"{inside}/{identity.key.name}",
                },
            },
        }
        (self._folder / "config.yml").write_text(yaml.safe_dump(settings))

    def _wait(self) -> None:
        end = time.monotonic() + _START_LIMIT
        while not self._answers():
            if time.monotonic() > end:
                shown = podman.run("logs", "--tail", "3", self._container, check=False)
                last = " / ".join((shown.stdout + shown.stderr).strip().splitlines())
                raise LabError(
                    f"the registry does not answer within {_START_LIMIT:.0f} s: {last or 'it printed nothing'}"
                )
            time.sleep(0.2)

    def _answers(self) -> bool:
        trusting = urllib.request.HTTPSHandler(context=ssl.create_default_context(cadata=self.authority))
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}), trusting)
        with suppress(OSError):
            try:
                direct.open(f"https://{self.address}:{PORT}/v2/", timeout=5)
            except urllib.error.HTTPError as refused:
                return refused.code == 401
        return False


def tiny_image(tag: str) -> str:
    """An image of two megabytes with a shell in it; a tag has its own content, so that no two are one."""
    reference = f"localhost/edpm-lab/tiny:{tag}"
    if podman.run("image", "exists", reference, check=False).returncode == 0:
        return reference
    archive = podman.storage().parent / f".tiny-{tag}.tar"
    shell = base64.b64decode(podman.run("run", "--rm", images.image("registry"), "base64", "/bin/busybox").stdout)
    try:
        with tarfile.open(archive, "w") as tar:
            _add(tar, "bin/busybox", shell)
            _add(tar, "etc/tag", tag.encode())
            for name in _PROGRAMS:
                link = tarfile.TarInfo(f"bin/{name}")
                link.type, link.linkname = tarfile.SYMTYPE, "busybox"
                tar.addfile(link)
        podman.run("import", "--quiet", archive, reference)
    finally:
        archive.unlink(missing_ok=True)
    return reference


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o755
    tar.addfile(entry, io.BytesIO(content))
