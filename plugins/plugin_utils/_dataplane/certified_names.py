# SPDX-License-Identifier: GPL-3.0-or-later
"""By what other computes call a node when guests migrate there over TLS: something that its certificate has.

Certificates of the data plane operator have the node's name and address on the control plane's network, which need
not be the names by which Nova knows the compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address

from .built_in import LIBVIRT, NOVA_COMPUTE
from .planned import ServicePlan

_VARIABLE, _TLS = "edpm_nova_compute_migration", "tls"
_PKI = "/etc/pki"
_CERTIFICATE = (f"{_PKI}/libvirt", "tls.crt")


def with_certified_names(services: Sequence[ServicePlan], ansible_host: str | None) -> tuple[ServicePlan, ...]:
    """The services of a node; its computes that migrate over TLS are called by what libvirt's certificate has."""
    libvirt = next((one for one in services if one.service == LIBVIRT.name), None)
    if libvirt is None or not any(_over_tls(one) for one in services):
        return tuple(services)
    given = [one for one in libvirt.sources if (one.directory, one.file_name) == _CERTIFICATE]
    if given:
        names = _names(given[0].content)
        return tuple(_called(one, names, ansible_host) if _over_tls(one) else one for one in services)
    if any(one.target.startswith(_PKI) for one in libvirt.extra_mounts):
        return tuple(services)
    return tuple(replace(one, notes=(*one.notes, _without(one))) if _over_tls(one) else one for one in services)


@dataclass(frozen=True, slots=True)
class _Names:
    """What a certificate is for."""

    hosts: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()

    def have(self, name: str) -> bool:
        """Whether whoever calls the node so believes the certificate."""
        try:
            return str(ip_address(name)) in self.addresses
        except ValueError:
            plain = name.lower()
            return plain in self.hosts or f"*.{plain.partition('.')[2]}" in self.hosts

    def first(self) -> str | None:
        """One of them that is a whole name or an address."""
        return next((one for one in (*self.addresses, *self.hosts) if not one.startswith("*")), None)


def _over_tls(service: ServicePlan) -> bool:
    return service.service == NOVA_COMPUTE.name and service.options.get(_VARIABLE) == _TLS


def _called(service: ServicePlan, names: _Names, ansible_host: str | None) -> ServicePlan:
    who = service.identity
    if who is None:
        return service
    # Addresses first: a guest's QEMU looks names up by itself, with what the node knew of names when the guest started.
    known = (who.my_ip, ansible_host, who.peer_name)
    name = next((one for one in known if one and names.have(one)), names.first() or who.peer_name)
    return replace(service, identity=replace(who, peer_name=name))


def _names(pem: bytes) -> _Names:
    """Those of a certificate; one that cannot be read has none."""
    # Ansible itself brings it; who has no certificates does not wait for it.
    from cryptography import x509  # noqa: PLC0415  (see above)

    try:
        found = x509.load_pem_x509_certificate(pem).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (ValueError, x509.ExtensionNotFound, x509.DuplicateExtension):
        return _Names()
    hosts = found.value.get_values_for_type(x509.DNSName)
    addresses = found.value.get_values_for_type(x509.IPAddress)
    return _Names(tuple(one.lower() for one in hosts), tuple(map(str, addresses)))


def _without(service: ServicePlan) -> str:
    return (
        f"{service.name}: guests shall migrate over TLS, and libvirt is given no certificate for it; list a Secret "
        "with tls.crt, tls.key and ca.crt among its data sources, or ask for one in its tlsCerts."
    )
