# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that run beside the control plane, in its Python with openstacksdk, and answer in JSON.

One process runs all of them, each with a connection of its own: to load openstacksdk costs more than most of them do.
What OpenStack refuses becomes one sentence.
"""

from __future__ import annotations

import contextlib
import json
import select
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from .errors import LabError

#: One call: where in openstacksdk's connection it is, such as `compute.services`, and its arguments.
Call = tuple[str, Sequence[Any], dict[str, Any]]

#: Reads a line with a program and what it is given, and writes one with its answer, until there are no more.
_SERVE = """
import json, sys, time, types
import openstack
from keystoneauth1.exceptions import ClientException

def plain(value):
    if isinstance(value, openstack.resource.Resource):
        return plain(value.to_dict(computed=False))
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, set, types.GeneratorType)):
        return [plain(one) for one in value]
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)

def told(asked):
    try:
        names = {"time": time, "plain": plain, "given": asked["given"], "cloud": openstack.connect(cloud="default")}
        exec(asked["body"], names)
        return {"answer": plain(names["answer"])}
    except (openstack.exceptions.SDKException, ClientException, TimeoutError, AttributeError) as error:
        return {"refused": "OpenStack: " + " ".join(str(error).split())}
    except Exception as error:
        return {"refused": type(error).__name__ + ": " + " ".join(str(error).split())}

for line in sys.stdin:
    print(json.dumps(told(json.loads(line))), flush=True)
"""

ARGV = ("python3", "-W", "ignore", "-c", _SERVE)

ASK = """
answer = []
for path, args, kwargs in given:
    method = cloud
    for name in path.split("."):
        method = getattr(method, name)
    answer.append(plain(method(*args, **kwargs)))
"""

#: Project, users, roles and the catalog; what is there is left, so it can be run again.
OBJECTS = """
identity = cloud.identity
project = identity.find_project("service") or identity.create_project(name="service", domain_id="default")
roles = [identity.find_role(name) or identity.create_role(name=name) for name in ("admin", "service")]
for name in given["users"]:
    user = identity.find_user(name) or identity.create_user(
        name=name, password=given["password"], domain_id="default", default_project_id=project.id)
    for role in roles:
        identity.assign_project_role_to_user(project, user, role)
known = {(endpoint.service_id, endpoint.interface) for endpoint in identity.endpoints()}
for name, kind, place in given["catalog"]:
    service = identity.find_service(name) or identity.create_service(name=name, type=kind)
    for interface in ("public", "internal"):
        if (service.id, interface) not in known:
            identity.create_endpoint(service_id=service.id, interface=interface, region_id=given["region"],
                                     url="http://" + given["address"] + place)
answer = [service.name for service in identity.services()]
"""

#: Nova's own services; they report to the database of their cell, from where the API reads them.
UP = """
end = time.monotonic() + given["seconds"]
while True:
    services = [(service.binary, service.state) for service in cloud.compute.services()]
    up = [binary for binary, state in services if state == "up"]
    if all(up.count(binary) >= count for binary, count in given["wanted"].items()):
        break
    if time.monotonic() > end:
        raise TimeoutError(f"of {given['wanted']} only {up} are up")
    time.sleep(0.5)
answer = up
"""


class OpenStackError(LabError):
    """OpenStack refused; the text is what it said."""


@dataclass
class Programs:
    """The process that runs them; it is started when it is needed, and ends with this one, which holds its input."""

    argv: Sequence[str | Path]
    env: Mapping[str, str]
    log: Path
    _process: subprocess.Popen[bytes] | None = None
    _alone: threading.Lock = field(default_factory=threading.Lock)

    def run(self, body: str, given: object, *, timeout: float) -> Any:
        """What a program, which reads `given` and `cloud`, has put into `answer`."""
        asked = json.dumps({"body": body, "given": given}).encode() + b"\n"
        with self._alone:
            told = self._ask(asked, timeout)
        if not told:
            raise OpenStackError(self._last_words())
        found: dict[str, Any] = json.loads(told)
        if "refused" in found:
            raise OpenStackError(found["refused"])
        return found["answer"]

    def end(self) -> None:
        """End the process, whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _ask(self, asked: bytes, timeout: float) -> bytes:
        """A line of the answer, or nothing where the process ended before it had one."""
        source, sink = self._pipes()
        with contextlib.suppress(BrokenPipeError):
            sink.write(asked)
            sink.flush()
        if not select.select([source], [], [], timeout)[0]:
            self.end()
            raise LabError(f"a program beside the control plane did not end within {timeout:.0f} s")
        told = source.readline()
        if not told:
            self.end()
        return told

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        if self._process is None or self._process.poll() is not None:
            self.end()
            with self.log.open("wb") as log:
                self._process = subprocess.Popen(
                    [str(word) for word in self.argv],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=dict(self.env),
                    cwd="/",
                )
        assert self._process is not None
        source, sink = self._process.stdout, self._process.stdin
        assert source is not None
        assert sink is not None
        return source, sink

    def _last_words(self) -> str:
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it ended and printed nothing"
