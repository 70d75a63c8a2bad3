# SPDX-License-Identifier: GPL-3.0-or-later
"""By what computes call each other over TLS: the name or address of a node that its libvirt's certificate has."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from edpm_lab.pki import create_authority

from .conftest import Change, Json, Load, Objects, Planned, PlanOf, known

NODE = "OpenStackDataPlaneNode/compute-0"
HOST, ADDRESS, INTERNAL = "compute-0.example.com", "192.0.2.10", "198.51.100.10"
ON_CONTROL_PLANE = "compute-0.ctlplane.example.com"
MISSING = (
    "nova_compute: guests shall migrate over TLS, and libvirt is given no certificate for it; list a Secret with "
    "tls.crt, tls.key and ca.crt among its data sources, or ask for one in its tlsCerts."
)


@cache
def certificate(*hosts: str) -> str:
    with TemporaryDirectory() as folder:
        return create_authority(Path(folder) / "ca", "ca").server("node", hosts).certificate.read_text()


def secret(crt: str) -> Json:
    meta = {"name": f"cert-libvirt-default-{HOST}", "namespace": "openstack"}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": meta,
        "stringData": {"tls.crt": crt, "tls.key": "k", "ca.crt": "c"},
    }


def service(**spec: object) -> Json:
    meta = {"name": "libvirt", "namespace": "openstack"}
    given = {"edpmServiceType": "libvirt", "tlsCerts": {"default": {}}, **spec}
    version = "dataplane.openstack.org/v1beta1"
    return {"apiVersion": version, "kind": "OpenStackDataPlaneService", "metadata": meta, "spec": given}


def variables(over: str = "tls", **more: str) -> Json:
    return {"spec": {"node": {"ansibleVars": {"edpm_nova_compute_migration": over, **more}}}}


def peer_name(planned: Planned, name: str = "nova_compute") -> str:
    return known(planned.service("compute-0", name).identity).peer_name


@pytest.fixture
def objects(load: Load, change: Change) -> Objects:
    return [*change(load("base"), NODE, variables()), service()]


@pytest.mark.parametrize(
    ("certified", "called"),
    [
        ((HOST, ADDRESS), ADDRESS),
        ((HOST,), HOST),
        ((HOST.upper(),), HOST),
        (("*.example.com",), HOST),
        ((ON_CONTROL_PLANE, ADDRESS), ADDRESS),
        ((ON_CONTROL_PLANE,), ON_CONTROL_PLANE),
        ((ON_CONTROL_PLANE, "192.0.2.99"), "192.0.2.99"),
        ((HOST, "192.0.2.99"), HOST),
        (("*.ctlplane.example.com", "192.0.2.99"), "192.0.2.99"),
        (("*.ctlplane.example.com",), HOST),
        ((), HOST),
    ],
)
def test_a_compute_is_called_by_what_its_certificate_has(
    objects: Objects, plan_of: PlanOf, certified: tuple[str, ...], called: str
) -> None:
    assert peer_name(plan_of([*objects, secret(certificate(*certified))])) == called


def test_an_address_on_another_network_than_the_certificates_is_not_taken(
    objects: Objects, plan_of: PlanOf, change: Change
) -> None:
    """The operator's own libvirt service asks for the control plane's network alone."""
    changed = change(objects, NODE, variables(edpm_nova_my_ip=INTERNAL))
    one, both = (
        plan_of([*changed, secret(certificate(ON_CONTROL_PLANE, *addresses))])
        for addresses in ((ADDRESS,), (ADDRESS, INTERNAL))
    )
    assert (peer_name(one), peer_name(both)) == (ADDRESS, INTERNAL)
    assert known(one.service("compute-0").identity).my_ip == INTERNAL


def test_an_instance_is_called_like_its_node(objects: Objects, plan_of: PlanOf, change: Change) -> None:
    asked = {"metadata": {"annotations": {"edpm.openstack.org/instances-nova_compute": "fast"}}}
    planned = plan_of([*change(objects, NODE, asked), secret(certificate(HOST))])
    found = {name: peer_name(planned, name) for name in planned.services("compute-0") if name != "libvirt"}
    assert found == dict.fromkeys(("nova_compute", "nova_compute@fast"), HOST)
    assert known(planned.service("compute-0", "nova_compute@fast").identity).host == f"{HOST}-fast"


def test_a_certificate_that_cannot_be_read_changes_nothing(objects: Objects, plan_of: PlanOf) -> None:
    assert peer_name(plan_of([*objects, secret("no certificate")])) == HOST


def test_over_ssh_nobody_looks_at_certificates(objects: Objects, plan_of: PlanOf, change: Change) -> None:
    planned = plan_of([*change(objects, NODE, variables("ssh")), secret(certificate(ON_CONTROL_PLANE))])
    assert peer_name(planned) == HOST


def test_a_libvirt_without_a_certificate_is_told(objects: Objects, plan_of: PlanOf, change: Change) -> None:
    assert MISSING in plan_of(objects).service("compute-0").notes
    assert MISSING not in plan_of([*objects, secret(certificate(HOST))]).service("compute-0").notes
    assert MISSING not in plan_of(change(objects, NODE, variables("none"))).service("compute-0").notes


def test_nothing_is_told_where_the_certificates_are_mounted(objects: Objects, plan_of: PlanOf, change: Change) -> None:
    volume = {"name": "pki", "hostPath": {"path": "/etc/pki", "type": "Directory"}}
    mount = {"volumes": [volume], "mounts": [{"name": "pki", "mountPath": "/etc/pki/libvirt"}]}
    mounted = change(objects, NODE, {"spec": {"node": {"extraMounts": [mount]}}})
    planned = plan_of(mounted)
    assert planned.service("compute-0", "libvirt").extra_mounts
    assert MISSING not in planned.service("compute-0").notes
