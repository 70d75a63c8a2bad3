# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that run beside the control plane, in its Python with openstacksdk, and answer in JSON.

They get their arguments as JSON on standard input. What OpenStack refuses becomes one sentence.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from .command import Result
from .errors import LabError

#: One call: where in openstacksdk's connection it is, such as `compute.services`, and its arguments.
Call = tuple[str, Sequence[Any], dict[str, Any]]

_FRAME = """
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

def main(given, cloud):
%s
    return answer

given = json.load(sys.stdin)
try:
    answer = main(given, openstack.connect(cloud="default"))
except (openstack.exceptions.SDKException, ClientException, TimeoutError, AttributeError) as error:
    sys.exit("OpenStack: " + " ".join(str(error).split()))
print(json.dumps(plain(answer)))
"""

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


def program(body: str) -> str:
    """A whole program around a body that reads `given` and `cloud` and sets `answer`."""
    return _FRAME % "\n".join(f"    {line}" for line in body.strip("\n").splitlines())


def answer(result: Result) -> Any:
    """What a program printed, or what it said was wrong."""
    if result.returncode != 0:
        lines = result.stderr.strip().splitlines() or [f"it ended with {result.returncode} and printed nothing"]
        raise OpenStackError(lines[-1])
    return json.loads(result.stdout)
