# SPDX-License-Identifier: GPL-3.0-or-later
"""A call of a module as it is sent to a node: the node's half of this collection and the question, on one stdin.

Ansible's own way would bring its whole machinery for modules along, build it anew in each run and have every node read
it in each call: that is more than half of what a call with nothing to change takes, and none of it is used there.
"""

from __future__ import annotations

import functools
import json
import shlex
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.errors import UnsupportedError
from ansible_collections.edpm.services.plugins.module_utils import _node
from ansible_collections.edpm.services.plugins.module_utils._node import options

_TEXT = {"path": {"type": "str"}, "list of path": {"elements": "str"}}


@dataclass(frozen=True)
class Module:
    """A module that works on a node: the file in which its work is, and what its options are."""

    name: str
    room: str
    spec: options.Spec
    needs: Sequence[tuple[str, str, list[str]]] = ()

    @property
    def full_name(self) -> str:
        """As a task calls it."""
        return f"edpm.services.{self.name}"

    @property
    def controllers(self) -> options.Spec:
        """Its options as the controller reads them: a path is the node's, and `~` in it is no home of this machine."""
        return {name: {**one, **_TEXT.get(_kind(one), {})} for name, one in self.spec.items()}

    def checked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All options, those with defaults too; refused as Ansible refuses them."""
        found = ArgumentSpecValidator(self.controllers, required_if=self.needs).validate(dict(given))
        if found.unsupported_parameters:
            unknown = next(error for error in found.errors if isinstance(error, UnsupportedError))
            raise RefusedOptionsError(f"Unsupported parameters for ({self.full_name}) module: {unknown.msg}")
        if found.error_messages:
            raise RefusedOptionsError("; ".join(found.error_messages))
        return dict(found.validated_parameters)

    def shown(self, checked: Mapping[str, Any]) -> str:
        """What the node's log is told of a call; that a value is secret is told instead of it."""
        secret = {name for name, one in self.spec.items() if one.get("no_log")}
        told = {name: one for name, one in checked.items() if one is not None}
        texts = (f"{name}={'NOT_LOGGING_PARAMETER' if name in secret else one}" for name, one in told.items())
        return f"Invoked with {' '.join(texts)}"


class RefusedOptionsError(Exception):
    """A module's options are not what it takes."""


MODULES = {
    one.name: one
    for one in (
        Module("service", "calls", options.SERVICE, options.SERVICE_NEEDS),
        Module("service_facts", "telling", options.SERVICE_FACTS),
    )
}
_ANSIBLES = ("ansible_", "_ansible_")
OLDEST_PYTHON = (3, 9)
#: The key of an answer in which a Python says that it is not new enough.
TOO_OLD = "python_too_old"
#: It must run in every Python there ever was, and say so where it goes no further.
_START = """\
import json, sys
if sys.version_info < {oldest}:
    print(json.dumps({{"failed": True, "{key}": True, "msg":
        "The Python of the node, %s, is %s, and services need {version} or newer there; install one and name it in "
        "ansible_python_interpreter." % (sys.executable, sys.version.split()[0])}}))
else:
    texts, space = {texts}, {{}}
    exec(compile(texts["arrival"], "arrival.py", "exec"), space)
    space["begin"](texts, sys.stdin.buffer, sys.stdout)
"""


@functools.cache
def program() -> bytes:
    """The node's half, ready to be sent."""
    folder = Path(_node.__file__).parent
    texts = {path.stem: path.read_text("utf-8") for path in sorted(folder.glob("*.py"))}
    version = ".".join(map(str, OLDEST_PYTHON))
    start = _START.format(oldest=OLDEST_PYTHON, key=TOO_OLD, version=version, texts=ascii(texts))
    return zlib.compress(start.encode(), 1)


def command(python: str) -> str:
    """How an interpreter is told to read the program and to run it."""
    read = f"getattr(sys.stdin, 'buffer', sys.stdin).read({len(program())})"
    return f'{shlex.quote(python)} -c "import sys, zlib; exec(zlib.decompress({read}))"'


def question(module: Module, call: Mapping[str, Any], log: Mapping[str, str]) -> bytes:
    """What follows the program."""
    return json.dumps({"room": module.room, "work": module.name, "call": call, "log": log}).encode()


def answer(said: str) -> dict[str, Any] | None:
    """What the node answered, on the last line of all that it said; None when it did not come that far.

    What Ansible takes for its own in an answer is not a node's to tell.
    """
    try:
        found = json.loads(said.strip().rpartition("\n")[2])
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    return {key: one for key, one in found.items() if not key.startswith(_ANSIBLES) and (one or key != "warnings")}


def last_words(said: str) -> str:
    """What a program that failed said last, behind a colon."""
    lines = said.strip().splitlines()
    return f": {lines[-1].strip()}" if lines else ""


def _kind(option: Mapping[str, Any]) -> str:
    return f"list of {option['elements']}" if "elements" in option else str(option["type"])
