# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.edpm.services.plugins.plugin_utils._kube.snapshot import Source, read
from ansible_collections.edpm.services.plugins.plugin_utils._openstack import credentials, nova
from ansible_collections.edpm.services.plugins.plugin_utils._openstack.errors import CredentialsError
from ansible_collections.edpm.services.plugins.plugin_utils._openstack.nova import Nova

PASSWORD = "marked-5ecret-value"
CLOUDS = {"clouds": {"default": {"auth": {"auth_url": "http://keystone.test:5000", "username": "admin"}}}}
SECURE = {"clouds": {"default": {"auth": {"password": PASSWORD}}}}


def manifests(folder: Path, *, clouds: str, secure: str | None, namespace: str = "openstack") -> Source:
    documents: list[dict[str, Any]] = [
        {"kind": "ConfigMap", "name": "openstack-config", "data": {"clouds.yaml": clouds}}
    ]
    if secure is not None:
        documents.append({"kind": "Secret", "name": "openstack-config-secret", "stringData": {"secure.yaml": secure}})
    for one in documents:
        body = {"apiVersion": "v1", "metadata": {"name": one.pop("name"), "namespace": namespace}, **one}
        (folder / f"{one['kind']}.yaml").write_text(yaml.safe_dump(body))
    meta = {"name": "nova-cell1", "namespace": namespace}
    cell = {"apiVersion": "nova.openstack.org/v1beta1", "kind": "NovaCell", "metadata": meta}
    (folder / "cell.yaml").write_text(yaml.safe_dump(cell))
    return Source(manifests=(str(folder),))


def settings(cloud: str, namespace: str, source: Source | None) -> dict[str, Any]:
    return credentials.settings(cloud, namespace, source, read(source) if source else None)


def test_a_named_cloud_is_openstacksdks_to_find() -> None:
    assert settings("mycloud", "", None) == {"cloud": "mycloud"}


def test_the_pair_of_the_run_is_put_together_and_nothing_else_is_looked_at(tmp_path: Path) -> None:
    found = settings("", "", manifests(tmp_path, clouds=yaml.safe_dump(CLOUDS), secure=yaml.safe_dump(SECURE)))
    assert found.pop("load_yaml_config") is False
    assert found.pop("load_envvars") is False
    auth = {"auth_url": "http://keystone.test:5000", "username": "admin", "password": PASSWORD}
    assert found == {"auth": auth}


def test_the_pair_may_lie_in_another_namespace(tmp_path: Path) -> None:
    source = manifests(tmp_path, clouds=yaml.safe_dump(CLOUDS), secure=yaml.safe_dump(SECURE), namespace="cloud-1")
    assert settings("", "", source)["auth"]["password"] == PASSWORD
    assert settings("", "cloud-1", source)["auth"]["password"] == PASSWORD
    with pytest.raises(CredentialsError, match="ConfigMap openstack/openstack-config does not exist"):
        settings("", "openstack", source)


def test_without_any_credentials_both_ways_are_named() -> None:
    with pytest.raises(CredentialsError, match=r"name a cloud of your clouds.yaml with cloud, or use an inventory"):
        settings("", "", None)


def test_a_data_plane_in_no_namespace_must_be_told_one(tmp_path: Path) -> None:
    source = manifests(tmp_path, clouds=yaml.safe_dump(CLOUDS), secure=yaml.safe_dump(SECURE))
    (tmp_path / "cell.yaml").unlink()
    with pytest.raises(CredentialsError, match=r"not in one namespace \(none\), .*; set namespace"):
        settings("", "", source)


def test_half_a_pair_is_told_by_name(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match="Secret openstack/openstack-config-secret does not exist"):
        settings("", "", manifests(tmp_path, clouds=yaml.safe_dump(CLOUDS), secure=None))


@pytest.mark.parametrize("broken", [f"{PASSWORD}: [", PASSWORD, f"clouds: {PASSWORD}", "other: {}"])
def test_a_broken_secret_is_told_without_its_text(tmp_path: Path, broken: str) -> None:
    with pytest.raises(CredentialsError, match=r"openstack-config-secret.* secure\.yaml") as fault:
        settings("", "", manifests(tmp_path, clouds=yaml.safe_dump(CLOUDS), secure=broken))
    assert PASSWORD not in str(fault.value)


def test_two_clouds_of_which_none_is_the_default_are_refused(tmp_path: Path) -> None:
    two: dict[str, Any] = {"clouds": {"a": {}, "b": {}}}
    with pytest.raises(CredentialsError, match="has no cloud default, and not exactly one other"):
        settings("", "", manifests(tmp_path, clouds=yaml.safe_dump(two), secure=yaml.safe_dump({"clouds": {}})))


def test_a_controller_without_openstacksdk_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(nova, "import_module", missing)
    with pytest.raises(CredentialsError, match=r"openstacksdk is not there .*; install it where Ansible runs"):
        Nova.connected({})


def test_a_cloud_that_cannot_be_reached_is_one_sentence() -> None:
    auth = {"auth_url": "http://127.0.0.1:9/v3", "username": "u", "password": PASSWORD, "project_name": "p"}
    domains = {"user_domain_name": "Default", "project_domain_name": "Default"}
    with pytest.raises(CredentialsError, match="OpenStack does not let us in: ") as fault:
        Nova.connected({"auth": {**auth, **domains}, "load_yaml_config": False, "load_envvars": False})
    assert PASSWORD not in str(fault.value)
    assert "\n" not in str(fault.value)
