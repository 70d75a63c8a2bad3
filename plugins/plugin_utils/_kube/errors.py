# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What can go wrong with a cluster, one type per thing that a user can do something about.

The text of each is one sentence for a person: the object, the fault, the remedy.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from http import HTTPStatus

#: What the API server says, with the status of a failure of its own, to a field that the CRD lacks.
UNDECLARED = b"field not declared in schema"


class KubernetesError(Exception):
    """Base of all of them; its text can be shown as it is."""


class LibraryMissingError(KubernetesError):
    """The kubernetes package is not there, or too old to be used."""


class BadSettingsError(KubernetesError):
    """The connection options or the kubeconfig do not name a usable cluster."""


class BadManifestError(KubernetesError):
    """A file does not hold Kubernetes objects."""


class UnreachableError(KubernetesError):
    """No answer from the API server; `transient` when asking again may help."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class OverloadedError(KubernetesError):
    """The API server answers, and still fails after all retries."""


class NotAuthenticatedError(KubernetesError):
    """The credentials are not accepted."""


class NotAllowedError(KubernetesError):
    """The account lacks a right."""


class KindNotServedError(KubernetesError):
    """The cluster does not know the kind: a CRD or a newer Kubernetes is missing."""


class NotFoundError(KubernetesError):
    """The object, or the namespace that it lives in, is not there."""


class ConflictError(KubernetesError):
    """Somebody else holds the fields, or was faster."""


class ExpiredError(KubernetesError):
    """A paged read took longer than the server remembers; it starts over."""


class RefusedError(KubernetesError):
    """The object breaks a schema, a rule or an admission policy."""


class NotEstablishedError(KubernetesError):
    """A CRD was accepted, and is not served in time."""


@dataclass(frozen=True)
class Request:
    """The parts of a request that a message names."""

    server: str
    verb: str
    resource: str
    subject: str


def from_response(status: int, body: bytes, request: Request) -> KubernetesError:
    """The exception for an answer that is not a success."""
    said = _said(body) or f"HTTP status {status}"
    account = _account(said) if status == HTTPStatus.FORBIDDEN else None
    if account is not None:
        denied = re.search(r'User "[^"]*" cannot (\w+) resource', said)
        return NotAllowedError(
            f"{account} may not {denied[1] if denied else request.verb} {request.resource} "
            f"on {request.server} ({request.subject}); "
            "give the account that right or use another account."
        )
    failed = status >= HTTPStatus.INTERNAL_SERVER_ERROR and UNDECLARED not in body
    kind, text = _FAULTS.get(status, _FAILED if failed else _REFUSED)
    return kind(text.format(said=said, **asdict(request)))


_FAILED = (
    OverloadedError,
    "{server} failed to {verb} {subject}, and every retry too: {said}; look at the API server, then run again.",
)
_REFUSED = (
    RefusedError,
    "{server} refuses to {verb} {subject}: {said}; correct the object, then run again.",
)
_FAULTS: Mapping[int, tuple[type[KubernetesError], str]] = {
    HTTPStatus.UNAUTHORIZED: (
        NotAuthenticatedError,
        "{server} does not accept the credentials; log in again, or hand over a fresh token or kubeconfig.",
    ),
    HTTPStatus.NOT_FOUND: (
        NotFoundError,
        "{subject} cannot be found on {server}: {said}; create what is missing first.",
    ),
    HTTPStatus.CONFLICT: (
        ConflictError,
        "{subject} on {server} is held by somebody else: {said}; run again, and if it stays so agree with that owner.",
    ),
    HTTPStatus.GONE: (
        ExpiredError,
        "{subject} on {server} changed while they were read; run again.",
    ),
    HTTPStatus.TOO_MANY_REQUESTS: _FAILED,
}


def one_line(text: object) -> str:
    """The text without line breaks and without a full stop at its end."""
    return " ".join(str(text).split()).rstrip(".;")


def _said(body: bytes) -> str:
    """The message of a Kubernetes Status, or the text itself where a proxy answered."""
    try:
        status = json.loads(body)
    except ValueError:
        return one_line(body[:200].decode("utf-8", "replace"))
    return one_line(status.get("message", "")) if isinstance(status, Mapping) else ""


def _account(said: str) -> str | None:
    """Who lacks a right, when the authorizer said no; None when admission did."""
    found = re.search(r'User "([^"]*)" cannot', said)
    if found:
        return found.group(1) or "An account without a name"
    return "The account in use" if said.startswith(("forbidden", "HTTP status")) else None
