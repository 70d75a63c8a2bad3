# SPDX-License-Identifier: GPL-3.0-or-later
"""From a service in a plan to its files and their digest."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.bundle import Bundle, bundle, explanation
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.digest import digest, short
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.files import MODE, File, conf_d
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.judged import judge
from ansible_collections.edpm.services.plugins.plugin_utils._config.sources import Layer as ConfigLayer
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.model import Reference
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import (
    ConfigSource,
    Image,
    Layer,
    NodePlan,
    Origin,
    Plan,
    ServicePlan,
)
from hypothesis import given
from hypothesis import strategies as st

FOLDER = "/etc/nova/nova.conf.d"
CELL = Reference("Secret", "openstack", "nova-cell1-compute-config")
EXTRA = Reference("ConfigMap", "openstack", "nova-extra-config")
COMPUTE = Reference("NovaExternalCompute", "openstack", "edpm-compute-0")


def source(
    ref: Reference, name: str, content: bytes, layer: Layer = Layer.GENERATED, *, directory: str = FOLDER, key: str = ""
) -> ConfigSource:
    field = "spec.customServiceConfig" if layer is Layer.OVERRIDE else f"key {key or name}"
    return ConfigSource(Origin(ref, field), directory, name, layer, ref.kind == "Secret", content)


def override(content: bytes, name: str = "02-nova-override.conf") -> ConfigSource:
    return source(COMPUTE, name, content, Layer.OVERRIDE)


def service(*sources: ConfigSource, **rest: Any) -> ServicePlan:
    return ServicePlan("nova_compute", conf_d=FOLDER, sources=sources, **rest)


GENERATED = source(CELL, "01-nova.conf", b"[DEFAULT]\ndebug = False\n")
BLANK = source(CELL, "nova.conf", b"[DEFAULT]\ndebug = maybe\n", directory="/etc/nova", key="nova-blank.conf")
KEYRING = source(EXTRA, "ceph.client.keyring", b"\x00\xff", Layer.DEPLOYER, directory="/etc/ceph")


def paths(made: Bundle) -> list[str]:
    return [file.path for file in made.files]


def test_the_main_file_comes_first_then_conf_d_in_reading_order_then_files_with_a_place_of_their_own() -> None:
    made = bundle(service(KEYRING, override(b"[DEFAULT]\ndebug = True\n"), BLANK, GENERATED))
    assert paths(made) == [
        "/etc/nova/nova.conf",
        f"{FOLDER}/01-nova.conf",
        f"{FOLDER}/02-nova-override.conf",
        "/etc/ceph/ceph.client.keyring",
    ]
    assert [file.name for file in made.conf_d_files] == ["01-nova.conf", "02-nova-override.conf"]
    assert made.main_file is not None
    assert made.main_file.name == "nova.conf"


def test_every_byte_and_its_origin_are_kept_and_every_file_is_for_its_owner_alone() -> None:
    content = "\ufeff# ü {{ 1 + 1 }}\r\n[DEFAULT]\r\n\tx".encode()
    made = bundle(service(GENERATED, override(content)))
    assert made.conf_d_files[-1].content == content
    assert made.conf_d_files[-1].origin == "NovaExternalCompute openstack/edpm-compute-0, spec.customServiceConfig"
    assert {file.mode for file in made.files} == {MODE} == {0o600}
    assert [file.secret for file in made.files] == [True, False]


def test_a_service_without_conf_d_has_its_other_files() -> None:
    made = bundle(ServicePlan("libvirt", sources=(KEYRING,)))
    assert paths(made) == [
        "/etc/ceph/ceph.client.keyring",
        "/etc/libvirt/hooks/qemu",
        "/etc/libvirt/libvirtd.conf",
        "/etc/ssh/ssh_config.d/20-edpm-migration.conf",
    ]
    assert made.conf_d_files == ()
    assert made.main_file is None
    assert explanation(made).options == ()


def test_no_content_shows_when_a_bundle_is_printed() -> None:
    assert "debug" not in repr(bundle(service(GENERATED, KEYRING)))


def test_the_main_file_is_read_before_conf_d() -> None:
    option = explanation(bundle(service(GENERATED, BLANK))).find("debug")
    assert option is not None
    assert [place.value for place in option.places] == ["maybe", "False"]


def test_a_snippet_that_has_to_take_a_later_name_is_told() -> None:
    late = source(CELL, "99-late.conf", b"[DEFAULT]\n")
    made = bundle(service(late, override(b"[DEFAULT]\ndebug = True\n")))
    assert [file.name for file in made.conf_d_files] == ["99-late.conf", "99-late.conf-02-nova-override.conf"]
    assert made.notes == (
        "NovaExternalCompute openstack/edpm-compute-0, spec.customServiceConfig: its file is named "
        "99-late.conf-02-nova-override.conf instead of 02-nova-override.conf, to win over 99-late.conf "
        "(Secret openstack/nova-cell1-compute-config, key 99-late.conf).",
    )


@pytest.mark.parametrize(
    ("sources", "sentence"),
    [
        (
            [GENERATED, source(EXTRA, "01-nova.conf", b"", Layer.DEPLOYER)],
            "01-nova.conf comes from ConfigMap openstack/nova-extra-config, key 01-nova.conf and from Secret "
            "openstack/nova-cell1-compute-config, key 01-nova.conf; rename one of them, each file has one source.",
        ),
        (
            [KEYRING, source(CELL, "ceph.client.keyring", b"other", directory="/etc/ceph")],
            "/etc/ceph/ceph.client.keyring comes from ConfigMap openstack/nova-extra-config, key ceph.client.keyring "
            "and from Secret openstack/nova-cell1-compute-config, key ceph.client.keyring; keep it in one of them, "
            "each file has one source.",
        ),
        (
            [GENERATED, override(b"[DEFAULT]\ndebug\n")],
            "NovaExternalCompute openstack/edpm-compute-0, spec.customServiceConfig, line 2: no = or : on this line; "
            "write it as name = value or remove it.",
        ),
        (
            [dataclasses.replace(BLANK, content=b"debug = True\n")],
            "Secret openstack/nova-cell1-compute-config, key nova-blank.conf, line 1: an option before any [group]; "
            "put [DEFAULT] or its group above it.",
        ),
        (
            [override(b"[DEFAULT]\na = $b\nb = $a\n")],
            "NovaExternalCompute openstack/edpm-compute-0, spec.customServiceConfig, line 2: the references of a lead "
            "in a circle; write its value out.",
        ),
        (
            [source(EXTRA, "03-\x1b[31m.conf", b"", Layer.DEPLOYER)],
            "ConfigMap openstack/nova-extra-config, key 03-\\x1b[31m.conf: the file name '03-\\x1b[31m.conf' holds "
            "characters that cannot be printed; rename it.",
        ),
    ],
)
def test_a_fault_of_the_files_is_one_sentence_and_blocks_that_service_alone(
    sources: Sequence[ConfigSource], sentence: str
) -> None:
    broken, sound = service(*sources), service(GENERATED)
    assert bundle(broken).errors[:1] == (sentence,)

    def node(name: str, one: ServicePlan) -> NodePlan:
        return NodePlan(
            name, "openstack", name, Reference("OpenStackDataPlaneNode", "openstack", name), services=(one,)
        )

    judged = judge(Plan(nodes=(node("a", broken), node("b", sound))))
    assert sentence in judged.nodes[0].sentences
    assert judged.nodes[1].ready
    assert judge(judged) == judged


def test_what_oslo_config_passes_over_in_silence_is_a_note() -> None:
    made = bundle(service(override(b"[default]\ndebug = True\n")))
    assert made.errors == ()
    assert made.notes == (
        "NovaExternalCompute openstack/edpm-compute-0, spec.customServiceConfig, line 2: [default] is not [DEFAULT], "
        "and no service reads it; write the group in capitals.",
    )


def test_the_same_secret_by_two_ways_is_one_file() -> None:
    listed = dataclasses.replace(GENERATED, layer=Layer.DEPLOYER)
    assert conf_d(service(GENERATED, listed)).errors == ()
    assert len(bundle(service(KEYRING, KEYRING)).files) == 1


FILES = st.builds(
    File,
    directory=st.sampled_from(["/etc/a", "/etc/b"]),
    name=st.sampled_from(["1.conf", "2.conf", "3.conf"]),
    content=st.binary(max_size=8),
    object=st.just("Secret o/s"),
    field=st.just("key k"),
    layer=st.just(ConfigLayer.GENERATED),
)
IMAGES = st.one_of(st.none(), st.sampled_from(["image:1", "image:2"]))


@given(st.lists(FILES, unique_by=lambda file: file.path), IMAGES, st.randoms())
def test_the_digest_does_not_depend_on_order_or_origin(files: list[File], image: str | None, random: Any) -> None:
    other = [dataclasses.replace(file, object="ConfigMap o/c", secret=True) for file in files]
    random.shuffle(other)
    assert digest("s", image, files) == digest("s", image, other)


@given(st.lists(FILES, unique_by=lambda file: file.path, min_size=1), IMAGES)
def test_the_digest_changes_with_every_name_byte_mode_and_image(files: list[File], image: str | None) -> None:
    first, *rest = files
    known = {digest("s", image, files)}
    for change in (
        {"content": first.content + b"\n"},
        {"mode": 0o640},
        {"name": "other.conf"},
        {"directory": "/etc/c"},
    ):
        known.add(digest("s", image, [dataclasses.replace(first, **change), *rest]))
    known.add(digest("s", "image:3", files))
    known.add(digest("t", image, files))
    known.add(digest("s", image, rest))
    known.add(digest("s", image, files, {"edpm_s.container": "[Container]"}))
    known.add(digest("s", image, files, {"edpm_s.container": "[Container]\n"}))
    known.add(digest("s", image, files, {"kolla.json": "[Container]\n"}))
    assert len(known) == 11


def test_the_digest_is_the_same_in_every_release_until_its_encoding_changes() -> None:
    files = bundle(service(GENERATED, image=Image("image:1", "somewhere"))).files
    made = digest("nova_compute", "image:1", files, {"kolla.json": "{}", "edpm_nova_compute.container": "[Unit]"})
    assert made == "1502a7ed0a9315e8b0b9e587d385323f9c0e1189528eca217eac75828402e6b4"
    assert short(made) == made[:7]
