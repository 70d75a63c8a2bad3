# SPDX-License-Identifier: GPL-3.0-or-later
"""Plain options take the way of a cluster's objects: same contents, same bytes, same digest."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.bundle import Bundle, bundle
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.parcel import parcel
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.plain import plan
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.plan import resolve
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import Layer, ServicePlan
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.stores import snapshot_of
from hypothesis import given
from hypothesis import strategies as st

MANIFESTS = Path(__file__).parents[3] / "docs/tutorial/manifests"
IMAGE = "images.example/openstack/nova-compute:30"
SNIPPET = "[DEFAULT]\n# {{ nothing }} here is {% read %}\n\tcpu_allocation_ratio = 3.0\r\n"


def options(service: str = "nova_compute", **others: Any) -> dict[str, Any]:
    return {"service": service, "image": IMAGE, "host": "edpm-compute-0", **others}


def made(**others: Any) -> Bundle:
    wanted = plan(options(**others))
    assert wanted.errors == ()
    return bundle(wanted)


def content(of: Bundle, name: str) -> bytes:
    return next(file.content for file in of.files if file.name == name)


def faults(service: str = "nova_compute", **others: Any) -> tuple[str, ...]:
    return plan(options(service, **others)).errors


def from_the_cluster(*more: dict[str, Any]) -> ServicePlan:
    """nova_compute of the sample data plane's first node, with an image and these further objects."""
    bodies = [yaml.safe_load(file.read_text()) for file in sorted(MANIFESTS.glob("*.yaml"))]
    images = {"RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT": IMAGE}
    node = resolve(snapshot_of([*bodies, *more], images)).by_name()["edpm-compute-0"]
    return next(service for service in node.services if service.service == "nova_compute")


def test_the_plan_of_a_cluster_and_that_of_plain_options_with_the_same_contents_have_one_digest() -> None:
    cluster = from_the_cluster()
    contents = {source.file_name: source.content.decode() for source in cluster.sources}
    plain = plan(
        options(
            cell="nova-cell1",
            my_ip="192.168.122.100",
            files=[{"name": "01-nova.conf", "content": contents["01-nova.conf"]}],
            profile=contents["02-nova-compute-profile.conf"],
            custom_service_config=contents["02-nova-override.conf"],
        )
    )
    ours, theirs = bundle(plain), bundle(cluster)
    assert plain.errors == ()
    assert {file.path: file.content for file in ours.files} == {file.path: file.content for file in theirs.files}
    assert ours.digest == theirs.digest
    wanted, others = parcel(plain, ours), parcel(cluster, theirs)
    assert wanted is not None
    assert wanted == others


def test_a_deployers_file_of_the_cluster_and_one_of_the_layer_deployer_sort_alike() -> None:
    late = {"99-late.conf": "[DEFAULT]\nmy_option = late\n", "provider-one.yaml": "meta: {schema_version: '1.0'}\n"}
    extra = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "extra", "namespace": "openstack"},
        "data": late,
    }
    service = {
        "apiVersion": "dataplane.openstack.org/v1beta1",
        "kind": "OpenStackDataPlaneService",
        "metadata": {"name": "nova", "namespace": "openstack"},
        "spec": {"dataSources": [{"configMapRef": {"name": "extra"}}]},
    }
    cluster = from_the_cluster(extra, service)
    contents = {source.file_name: source.content.decode() for source in cluster.sources}
    files = [{"name": name, "content": text, "layer": "deployer", "secret": False} for name, text in late.items()]
    plain = made(
        cell="nova-cell1",
        my_ip="192.168.122.100",
        files=[{"name": "01-nova.conf", "content": contents["01-nova.conf"]}, *files],
        profile=contents["02-nova-compute-profile.conf"],
        custom_service_config=contents["02-nova-override.conf"],
    )
    assert plain.digest == bundle(cluster).digest
    assert plain.conf_d_files[-1].name == "99-late.conf"


@given(st.text().filter(lambda text: bool(text.strip())))
def test_a_snippet_arrives_verbatim(text: str) -> None:
    wanted = plan(options(custom_service_config=text))
    snippet = next(source for source in wanted.sources if source.layer is Layer.OVERRIDE)
    assert (snippet.file_name, snippet.content) == ("02-nova-override.conf", text.encode())


def test_a_snippet_from_a_file_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "snippet.conf").write_bytes(SNIPPET.encode())
    wanted = plan(options(custom_service_config_file="snippet.conf"), find=lambda path: str(tmp_path / path))
    assert wanted.errors == ()
    assert content(bundle(wanted), "02-nova-override.conf") == SNIPPET.encode()
    assert bundle(wanted).digest == made(custom_service_config=SNIPPET).digest


def test_a_text_that_cannot_be_parsed_is_told_by_its_option_and_line() -> None:
    (sentence,) = bundle(plan(options(custom_service_config="[DEFAULT]\nnonsense\n"))).errors
    assert sentence.startswith("option custom_service_config of nova_compute, its text, line 2: ")


def test_a_blank_snippet_makes_no_file() -> None:
    assert [file.name for file in made(custom_service_config=" \n").files] == ["02-nova-host-specific.conf"]


def test_the_snippet_wins_over_files_whose_names_sort_after_it() -> None:
    found = made(files=[{"name": "99-cell.conf", "content": "[DEFAULT]\n"}], custom_service_config=SNIPPET)
    assert [file.name for file in found.conf_d_files] == [
        *("02-nova-host-specific.conf", "99-cell.conf", "99-cell.conf-02-nova-override.conf"),
    ]
    assert "its file is named 99-cell.conf-02-nova-override.conf" in found.notes[0]


def test_contents_come_as_text_as_base64_or_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"\x00key")
    files = [
        {"name": "ceph.client.openstack.keyring", "src": str(tmp_path / "key")},
        {"name": "provider-a.yaml", "content_b64": base64.b64encode(b"a: 1\n").decode()},
        {"name": "wrapped", "content": "text", "directory": "/etc/partner/", "secret": False},
    ]
    found = {file.path: (file.content, file.secret) for file in made(files=files).files}
    assert found["/etc/ceph/ceph.client.openstack.keyring"] == (b"\x00key", True)
    assert found["/etc/nova/provider_config/provider-a.yaml"] == (b"a: 1\n", True)
    assert found["/etc/partner/wrapped"] == (b"text", False)


def test_a_folder_counts_as_a_secret_with_its_files_as_keys(tmp_path: Path) -> None:
    (tmp_path / "01-nova.conf").write_text("[DEFAULT]\n")
    (tmp_path / "notes.txt").write_text("not for the node\n")
    (tmp_path / "deeper").mkdir()
    wanted = plan(options(config_folder=str(tmp_path)))
    assert wanted.errors == ()
    assert [source.file_name for source in wanted.sources] == ["01-nova.conf", "02-nova-host-specific.conf"]
    assert wanted.sources[0].secret
    assert [left.sentence for left in wanted.left_out] == [
        "option config_folder of nova_compute, key notes.txt: is left out, since nova_compute has no place for such a "
        "file."
    ]


def test_the_host_is_the_nodes_own_name_and_my_ip_its_connections_address() -> None:
    wanted = plan({"service": "nova_compute", "image": IMAGE}, node="compute-7", address="192.0.2.7")
    assert wanted.identity is not None
    assert (wanted.identity.host, wanted.identity.my_ip) == ("compute-7", "192.0.2.7")
    named = plan({"service": "nova_compute", "image": IMAGE}, node="compute-7", address="compute-7.example").identity
    assert named is not None
    assert named.my_ip is None


def test_an_instance_has_a_host_and_a_state_of_its_own() -> None:
    wanted = plan(options(instance="fast")).identity
    assert wanted is not None
    assert (wanted.host, wanted.state_path) == ("edpm-compute-0-fast", "/var/lib/nova-fast")


def test_over_tls_an_instance_is_called_like_its_node_which_is_what_a_certificate_can_have() -> None:
    found = content(made(instance="fast", options={"edpm_nova_compute_migration": "tls"}), "02-nova-host-specific.conf")
    assert b"host = edpm-compute-0-fast\n" in found
    assert b"live_migration_inbound_addr = edpm-compute-0\n" in found


def test_a_service_without_an_identity_has_no_host_file() -> None:
    files = [{"name": "01.conf", "content": "[DEFAULT]\n"}]
    wanted = plan(options("cinder_volume", custom_service_config="[DEFAULT]\ndebug = True\n", files=files))
    assert (wanted.identity, wanted.errors) == (None, ())
    assert [file.name for file in bundle(wanted).files] == ["01.conf", "99-override.conf"]


def test_registry_files_and_pull_reach_the_plan(tmp_path: Path) -> None:
    for name in ("auth.json", "ca.pem", "mirrors.conf"):
        (tmp_path / name).write_text(name)
    files = {"auth_file": "auth.json", "ca_file": "ca.pem", "registries_file": "mirrors.conf"}
    registry = {key: str(tmp_path / name) for key, name in files.items()}
    found = plan(options(registry=registry, options={"edpm_image_pull": "always"})).registry
    assert found is not None
    assert (found.auth, dict(found.certificates), found.registries, found.pull) == (
        *("auth.json", {"ca.crt": "ca.pem"}, "mirrors.conf", "always"),
    )
    assert plan(options()).registry is None


def test_extra_mounts_are_paths_of_the_node_or_files() -> None:
    mounts = [
        {"source": "/srv/share", "target": "/srv/share", "options": ["ro"]},
        {"target": "/etc/partner", "files": [{"name": "token", "content": "t"}]},
    ]
    path, files = plan(options(extra_mounts=mounts)).extra_mounts
    assert (path.source, path.target, path.options, path.files) == ("/srv/share", "/srv/share", ("ro",), ())
    assert [(one.directory, one.file_name, one.content, one.secret) for one in files.files] == [
        ("/etc/partner", "token", b"t", True)
    ]


def test_a_users_own_kolla_config_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(b'{"command": "true"}')
    assert plan(options(kolla_config_file=str(tmp_path / "config.json"))).user_kolla == b'{"command": "true"}'


@pytest.mark.parametrize(
    ("given_options", "sentence"),
    [
        ({"service": "nova_compute", "image": ""}, "option image of nova_compute: is empty; name the image that"),
        ({"cell": "cell0"}, "option cell of nova_compute: cell0 has no computes"),
        ({"host": "no host"}, 'option host of nova_compute: "no host" is no host name'),
        ({"my_ip": "internal"}, 'option my_ip of nova_compute: "internal" is not an address'),
        (
            {"custom_service_config": "[DEFAULT]", "custom_service_config_file": "/dev/null"},
            "option custom_service_config_file of nova_compute: is given together with custom_service_config",
        ),
        (
            {"custom_service_config_file": "/not/there"},
            "option custom_service_config_file of nova_compute: /not/there cannot be read (No such file or directory)",
        ),
        ({"config_folder": "/not/there"}, "option config_folder of nova_compute: /not/there cannot be read"),
        ({"kolla_config_file": "/not/there"}, "option kolla_config_file of nova_compute: /not/there cannot be read"),
        ({"registry": {"ca_file": "/not/there"}}, "option registry.ca_file of nova_compute: /not/there cannot be read"),
        ({"files": [{"name": "../x", "content": ""}]}, 'option files of nova_compute: "../x" is no name for a file'),
        ({"files": [{"name": "x.conf"}]}, "option files of nova_compute: x.conf needs exactly one of content"),
        (
            {"files": [{"name": "x.conf", "content": "", "src": "/dev/null"}]},
            "option files of nova_compute: x.conf needs exactly one of content",
        ),
        (
            {"files": [{"name": "x.conf", "content_b64": "?"}]},
            "files, x.conf of nova_compute: content_b64 is not base64",
        ),
        ({"files": 2 * [{"name": "x.conf", "content": ""}]}, "option files of nova_compute: x.conf is listed twice"),
        (
            {"files": [{"name": "x", "content": ""}]},
            "option files of nova_compute, key x: nothing tells where this file goes; name its directory.",
        ),
        (
            {"files": [{"name": "x", "content": "", "directory": "etc"}]},
            'option files of nova_compute: directory "etc" of x is no absolute path',
        ),
        (
            {"extra_mounts": [{"target": "x", "source": "/x"}]},
            'option extra_mounts[0] of nova_compute: target "x" is not',
        ),
        ({"extra_mounts": [{"target": "/x"}]}, "option extra_mounts[0] of nova_compute: has either a source"),
    ],
)
def test_a_fault_is_a_sentence_that_names_the_option(given_options: dict[str, Any], sentence: str) -> None:
    found = plan(options(**given_options)).errors
    assert len(found) == 1, found
    assert sentence in found[0]
    assert found[0].endswith(".")


def test_libvirt_takes_files_and_no_snippet_and_on_the_node_itself_no_image() -> None:
    assert faults("libvirt", custom_service_config="[DEFAULT]\n") == (
        "option custom_service_config of libvirt: libvirt reads no such text; give it its files by the option files.",
    )
    assert faults("libvirt", image="", options={"edpm_libvirt_mode": "host"}) == ()


def test_an_instance_has_a_name_and_only_where_the_service_takes_some() -> None:
    assert faults(instance="Fast") == (
        'option instance of nova_compute: "Fast" is no instance; use lower case letters, digits and dashes.',
    )
    assert faults("libvirt", instance="fast") == (
        "option instance of libvirt: libvirt runs only once on a node; leave it empty.",
    )


def test_a_service_that_nobody_described_is_refused() -> None:
    (sentence,) = plan({"service": "partner", "image": IMAGE}).errors
    assert sentence.startswith(
        "option definition of partner: is needed, since partner is none of libvirt, nova_compute"
    )


ACME: dict[str, Any] = {"version": 1, "command": "acme-agent", "user": "acme", "conf_d": "/etc/acme/acme.conf.d"}


def test_a_partners_definition_is_a_mapping_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "edpm-service.yaml").write_text(yaml.safe_dump(ACME))
    given_options = {"files": [{"name": "01.conf", "content": "[DEFAULT]\n"}], "custom_service_config": SNIPPET}
    mapping = plan(options("acme", definition=ACME, **given_options))
    path = plan(options("acme", definition=str(tmp_path / "edpm-service.yaml"), **given_options))
    assert (mapping.errors, path.errors) == ((), ())
    assert mapping.definition == path.definition
    assert mapping.definition is not None
    assert mapping.definition["command"] == "acme-agent"
    assert [(one.directory, one.file_name) for one in path.sources] == [
        ("/etc/acme/acme.conf.d", "01.conf"),
        ("/etc/acme/acme.conf.d", "99-override.conf"),
    ]
    assert bundle(mapping).digest == bundle(path).digest


def test_a_partners_image_is_its_definitions_unless_the_options_name_one() -> None:
    definition = {**ACME, "image": "registry.example/acme:1"}
    wanted = [plan(options("acme", definition=definition, image=image)).image for image in ("", IMAGE)]
    assert [one and one.name for one in wanted] == ["registry.example/acme:1", IMAGE]


def test_files_that_a_partners_definition_needs_must_be_given() -> None:
    definition = {**ACME, "required_keys": ["01.conf", "02.conf"]}
    files = [{"name": "01.conf", "content": "[DEFAULT]\n"}]
    assert faults("acme", definition=definition, files=files) == (
        "option files of acme: acme needs the file 02.conf; list it, or put it into config_folder.",
    )


def test_a_kolla_config_that_a_definition_asks_for_is_taken_from_the_files_or_named() -> None:
    definition = {"version": 1, "user": "acme", "kolla_config": "acme.json"}
    files = [{"name": "acme.json", "content": '{"command": "true"}'}]
    wanted = plan(options("acme", definition=definition, files=files))
    assert (wanted.errors, wanted.user_kolla, wanted.sources) == ((), b'{"command": "true"}', ())
    assert faults("acme", definition=definition) == (
        "option kolla_config_file of acme: is empty, but acme starts by acme.json; name the file.",
    )


def test_faults_of_a_definition_name_the_option_the_file_and_the_field(tmp_path: Path) -> None:
    (tmp_path / "edpm-service.yaml").write_text(yaml.safe_dump({**ACME, "user": 5}))
    path = str(tmp_path / "edpm-service.yaml")
    (sentence,) = faults("acme", definition=path)
    assert sentence.startswith(f"option definition of acme ({path}), field user: ")
    assert faults("acme", definition="/not/there") == (
        "option definition of acme: /not/there cannot be read (No such file or directory); name a file of the "
        "controller.",
    )
    assert faults("acme", definition=[1]) == (
        "option definition of acme: is neither a path nor a mapping; correct it.",
    )
    (again,) = faults(definition={**ACME, "name": "nova_compute"})
    assert "nova_compute is defined by this collection" in again
