# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates that the data plane operator asks for, one Secret for each service, certificate and node.

They are read where a definition has a place for them. A node whose certificate is not there yet does without.
"""

from __future__ import annotations

from .model import Reference
from .placement import Placement
from .secrets import Use
from .services import Wanted

#: Of the keys of other certificates than this one the place's pattern has the certificate's name before it.
DEFAULT = "default"
KEYS = ("tls.crt", "tls.key", "ca.crt")


def certificate_uses(placement: Placement, wanted: Wanted) -> tuple[Use, ...]:
    """The Secrets with the certificates of one service on one node."""
    role, asking = placement.role, [service for service in wanted.dataplane_services if service.tls_certs]
    if not asking or role is None or not role.tls_enabled:
        return ()
    host = placement.node.host_name or placement.node.name
    return tuple(
        Use(
            (Reference("Secret", placement.node.namespace, f"cert-{service.meta.ref.name}-{certificate}-{host}"),),
            missing="",
            optional=True,
            derived=True,
            prefix="" if certificate == DEFAULT else f"{certificate}-",
            only=KEYS,
        )
        for service in asking
        for certificate in service.tls_certs
        if _has_place(wanted, certificate)
    )


def _has_place(wanted: Wanted, certificate: str) -> bool:
    prefix = "" if certificate == DEFAULT else f"{certificate}-"
    return any(wanted.definition.place_of(prefix + key) is not None for key in KEYS)
