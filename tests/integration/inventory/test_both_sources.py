# SPDX-License-Identifier: GPL-3.0-or-later
"""The manifests source and the live source give equal plans for the same objects, whatever the objects are."""

from __future__ import annotations

import base64
import json
import uuid
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.plan import resolve
from ansible_collections.edpm.services.plugins.plugin_utils._kube import snapshot
from ansible_collections.edpm.services.plugins.plugin_utils._kube.connection import Settings
from edpm_lab.access import Access
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

DATAPLANE = "dataplane.openstack.org/v1beta1"
NOVA = "nova.openstack.org/v1beta1"
CELLS = ("nova-cell1", "nova-cell2")
ROLES = ("compute", "network")

Body = dict[str, Any]

texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)
snippets = st.one_of(st.just("[DEFAULT]\ndebug = True\n"), st.just("[a]\r\nb = {{ c }}"), texts)
scalars = st.one_of(texts, st.integers(-(2**31), 2**31), st.booleans())
variables = st.dictionaries(
    st.sampled_from(
        ["rack", "edpm_nova_host", "ansible_user", "deep", "edpm_libvirt_mode", "edpm_image_pull", "edpm_other_x"]
    ),
    st.one_of(scalars, st.lists(scalars, max_size=2), st.dictionaries(st.sampled_from("ab"), scalars, max_size=2)),
    max_size=3,
)
volumes = st.sampled_from(
    [{"hostPath": {"path": "/srv"}}, {"secret": {"secretName": "more"}}, {"nfs": {"server": "192.0.2.1", "path": "/"}}]
)
mounts = volumes.map(
    lambda volume: {"volumes": [{"name": "v", **volume}], "mounts": [{"name": "v", "mountPath": "/mnt/v"}]}
)
sections = st.fixed_dictionaries(
    {},
    optional={
        "ansibleUser": st.sampled_from(["root", "cloud-admin"]),
        "ansiblePort": st.integers(1, 65535),
        "ansibleVars": st.one_of(variables, variables.map(yaml.safe_dump)),
        "ansibleSSHPrivateKeySecret": st.just("ssh-key"),
        "extraMounts": st.lists(mounts, max_size=2),
        "networks": st.lists(st.just({"name": "internalapi", "fixedIP": "192.0.2.9"}), max_size=1),
    },
)
annotated = st.fixed_dictionaries(
    {},
    optional={
        "nova.openstack.org/cell": st.sampled_from(CELLS),
        "neutron.openstack.org/sriov-agent": st.sampled_from(["true", "false", "perhaps"]),
        "neutron.openstack.org/ovn-metadata-agent": st.sampled_from(["true", "false"]),
        "cinder.openstack.org/volume": st.just("true"),
        "edpm.openstack.org/profile-nova_compute": st.sampled_from(["defaults", "missing"]),
        "edpm.openstack.org/deploy-libvirt": st.just("false"),
        "edpm.openstack.org/registry-secret": st.sampled_from(["registry", "missing"]),
        "other.example.com/other": st.just("true"),
    },
)
OTHER = {"version": 1, "user": "other", "command": "other", "conf_d": "/etc/other"}
definitions = st.sampled_from(
    [
        OTHER,
        {**OTHER, "asked_by": ["other.example.com/other"], "required_keys": ["x"]},
        {**OTHER, "comand": "x"},
        "text",
    ]
).map(yaml.safe_dump)
keys = st.sampled_from(["01-nova.conf", "05-nova-metadata.conf", "nova-blank.conf", "ceph.conf", "provider1.yaml", "x"])
contents = st.dictionaries(keys, st.one_of(snippets.map(str.encode), st.binary(max_size=12)), max_size=4)


def thing(api_version: str, kind: str, name: str, **rest: Any) -> Body:
    noted = rest.pop("annotations", None)
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "annotations": noted or {}}, **rest}


def encoded(data: dict[str, bytes]) -> dict[str, str]:
    return {key: base64.b64encode(content).decode() for key, content in data.items()}


def secret(name: str, data: dict[str, bytes]) -> Body:
    return thing("v1", "Secret", name, data=encoded(data))


def config_map(name: str, data: dict[str, bytes]) -> Body:
    """Text under data and the rest under binaryData, as the API server insists."""
    text, binary = {}, {}
    for key, content in data.items():
        try:
            text[key] = content.decode()
        except UnicodeDecodeError:
            binary[key] = content
    return thing("v1", "ConfigMap", name, data=text, binaryData=encoded(binary))


def role(name: str, noted: dict[str, str], section: Body, services: list[str]) -> Body:
    spec = {"dataPlane": "openstack-edpm", "nodeTemplate": section, "services": services}
    return thing(DATAPLANE, "OpenStackDataPlaneRole", name, annotations=noted, spec=spec)


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Body:
    spec = {
        "role": draw(st.sampled_from([*ROLES, "missing"])),
        "hostName": name,
        "ansibleHost": f"192.0.2.{name[-1]}",
        "node": draw(sections),
    }
    return thing(DATAPLANE, "OpenStackDataPlaneNode", name, annotations=draw(annotated), spec=spec)


@st.composite
def computes(draw: st.DrawFn, name: str) -> Body:
    spec = draw(
        st.fixed_dictionaries(
            {"dataplaneNodeName": st.just(name), "cellName": st.sampled_from(CELLS)},
            optional={
                "customServiceConfig": snippets,
                "deploy": st.booleans(),
                "novaComputeContainerImage": st.just("example.com/nova-compute:30"),
            },
        )
    )
    return thing(NOVA, "NovaExternalCompute", name, spec=spec)


@st.composite
def worlds(draw: st.DrawFn) -> list[Body]:
    """A small data plane: some of it missing, some of it contradictory."""
    listed = st.lists(st.sampled_from(["nova", "libvirt", "install-os", "other"]), unique=True, max_size=3)
    templates: Body = {"cellTemplates": {"cell1": {}, "cell2": {}}}
    sources = [{"configMapRef": {"name": "extra"}}, {"secretRef": {"name": "more", "optional": draw(st.booleans())}}]
    everything = [
        *(role(name, draw(annotated), draw(sections), draw(listed)) for name in ROLES),
        *(draw(nodes(f"node-{number}")) for number in range(draw(st.integers(1, 4)))),
        draw(computes("node-0")),
        thing(NOVA, "Nova", "nova", spec=templates),
        *(thing(NOVA, "NovaCell", name, spec={"cellName": name.removeprefix("nova-")}) for name in CELLS),
        *(secret(f"{name}-compute-config", draw(contents)) for name in CELLS),
        secret("nova-metadata-compute-config", draw(contents)),
        secret("more", draw(contents)),
        secret("ssh-key", {"ssh-privatekey": b"no key"}),
        config_map("extra", draw(contents)),
        thing(DATAPLANE, "OpenStackDataPlaneService", "nova", spec={"dataSources": sources}),
        thing(DATAPLANE, "OpenStackDataPlaneService", "other", spec={"configMaps": ["other", "extra"]}),
        thing("v1", "ConfigMap", "other", data={"edpm-service.yaml": draw(definitions), "10-other.conf": "[a]\n"}),
        secret("registry", draw(st.sampled_from([{"auth.json": b'{"auths": {}}'}, {"ca.crt": b"x"}, {}]))),
        thing("edpm.openstack.org/v1beta1", "ServiceProfile", "defaults", spec={
            "service": "nova_compute", "customServiceConfig": draw(snippets),
        }),
    ]  # fmt: skip
    return [everything[0], *(body for body in everything[1:] if draw(st.integers(0, 9)) < 9)]


@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(world=worlds(), as_json=st.booleans())
def test_the_same_objects_give_the_same_plan(
    installed: Access, tmp_path: Path, world: list[Body], as_json: bool
) -> None:
    namespace = f"both-{uuid.uuid4().hex[:8]}"
    for body in world:
        body["metadata"]["namespace"] = namespace
    listed = {"apiVersion": "v1", "kind": "List", "items": world}
    file = tmp_path / ("world.json" if as_json else "world.yaml")
    file.write_text(json.dumps(listed) if as_json else yaml.safe_dump_all(world, allow_unicode=True))
    installed.kubectl("create", "namespace", namespace)
    try:
        installed.kubectl("create", "-f", "-", stdin=json.dumps(listed))
        from_files = snapshot.read(snapshot.Source(manifests=(str(file),)))
        kubeconfig = Settings(kubeconfig=str(installed.kubeconfig))
        from_cluster = snapshot.read(snapshot.Source(settings=kubeconfig, namespaces=(namespace,)))
    finally:
        installed.kubectl("delete", "namespace", namespace, "--wait=false")
        file.unlink()
    assert resolve(from_cluster) == resolve(from_files)
    assert from_cluster.stores == from_files.stores
