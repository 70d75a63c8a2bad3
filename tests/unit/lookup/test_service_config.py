# SPDX-License-Identifier: GPL-3.0-or-later
"""What the lookup gives, and of which plan. How it behaves in a play is tested with plays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.plan import resolve
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import Plan
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.stores import snapshot_of
from ansible_collections.edpm.services.plugins.plugin_utils._kube import snapshot
from ansible_collections.edpm.services.plugins.plugin_utils._kube.errors import BadManifestError, KubernetesError
from ansible_collections.edpm.services.plugins.plugin_utils._report import plans
from ansible_collections.edpm.services.plugins.plugin_utils._report.config import service_config
from ansible_collections.edpm.services.plugins.plugin_utils._report.near import NotThereError
from hypothesis import given
from hypothesis import strategies as st

DATAPLANE = "dataplane.openstack.org/v1beta1"
NOVA = "nova.openstack.org/v1beta1"
GENERATED = "[DEFAULT]\ndebug = False\ntransport_url = rabbit://u:p@h/\n"

Object = dict[str, Any]


def thing(api_version: str, kind: str, name: str, **rest: Any) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "openstack"}, **rest}


def node(name: str, number: int) -> Object:
    spec = {"role": "r", "hostName": name, "ansibleHost": f"192.0.2.{number}"}
    return thing(DATAPLANE, "OpenStackDataPlaneNode", name, spec=spec)


def objects(snippet: str = "", **status: Any) -> list[Object]:
    role = thing(DATAPLANE, "OpenStackDataPlaneRole", "r", spec={})
    role["metadata"]["annotations"] = {"nova.openstack.org/cell": "nova-cell1"}
    spec = {"dataplaneNodeName": "a", "cellName": "nova-cell1", "customServiceConfig": snippet}
    files = {"01-nova.conf": GENERATED, "ceph.conf": "[global]\n"}
    return [
        role,
        node("a", 1),
        node("b", 2),
        thing(NOVA, "NovaCell", "nova-cell1", spec={"cellName": "cell1"}, **status),
        thing("v1", "Secret", "nova-cell1-compute-config", stringData=files),
        thing(NOVA, "NovaExternalCompute", "a", spec=spec),
    ]


def plan(snippet: str = "", **status: Any) -> Plan:
    return resolve(snapshot_of(objects(snippet, **status), {}, namespace="openstack"))


def given_by(found: Plan, host: str = "a", file: str | None = None) -> list[Any]:
    return service_config(found, host, "nova_compute", file)


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    plans.forget()
    snapshot.forget()
    yield
    plans.forget()
    snapshot.forget()


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60).filter(lambda text: text.strip()))
def test_a_snippet_comes_out_byte_for_byte(text: str) -> None:
    commented = "".join(f"#{line}" for line in text.splitlines(keepends=True))
    found = plan(commented)
    assert given_by(found)[-1]["content"].encode() == commented.encode()
    assert given_by(found, file="02-nova-override.conf") == [commented]


def test_files_come_in_reading_order_with_their_sources() -> None:
    files = given_by(plan("[DEFAULT]\ndebug = True\n"))
    assert [(file["name"], file["source"]) for file in files] == [
        ("01-nova.conf", "Secret openstack/nova-cell1-compute-config, key 01-nova.conf"),
        ("02-nova-host-specific.conf", "OpenStackDataPlaneNode openstack/a, spec"),
        ("02-nova-override.conf", "NovaExternalCompute openstack/a, spec.customServiceConfig"),
    ]
    assert files[0]["content"] == GENERATED
    assert len(given_by(plan("[DEFAULT]\ndebug = True\n"), host="b")) == 2


def test_a_service_may_be_named_with_an_empty_instance() -> None:
    assert service_config(plan(), "a", "nova_compute@", None) == given_by(plan())


def test_a_file_outside_conf_d_is_named_by_its_path() -> None:
    assert given_by(plan(), file="/etc/ceph/ceph.conf") == ["[global]\n"]


def test_effective_options_have_values_and_origins_and_are_not_masked() -> None:
    found = service_config(plan("[DEFAULT]\ndebug = True\n"), "a", "nova_compute", None, effective=True)
    options = {f"{one['group']}.{one['name']}": one for one in found}
    assert options["DEFAULT.debug"]["value"] == "True"
    assert [place["file"] for place in options["DEFAULT.debug"]["places"]] == ["01-nova.conf", "02-nova-override.conf"]
    assert options["DEFAULT.transport_url"]["value"] == "rabbit://u:p@h/"


def test_a_node_that_merely_waits_has_its_files() -> None:
    waiting = plan(status={"conditions": [{"type": "Ready", "status": "False"}]})
    assert not waiting.nodes[0].ready
    assert len(given_by(waiting)) == 2


@pytest.mark.parametrize(
    ("host", "service", "file", "snippet", "sentence"),
    [
        ("c", "nova_compute", None, "", "The data plane has no node c; its nodes are a, b."),
        ("a", "nova_computer", None, "", "The node a does not run nova_computer; did you mean nova_compute?"),
        (
            "a",
            "nova_compute",
            "02-nova-overide.conf",
            "[DEFAULT]\n",
            "nova_compute on a has no file 02-nova-overide.conf; did you mean 02-nova-override.conf?",
        ),
        (
            "a",
            "nova_compute",
            None,
            "debug = True",
            "nova_compute on a has no usable configuration: NovaExternalCompute openstack/a, spec.customServiceConfig, "
            "line 1: an option before any [group]; put [DEFAULT] or its group above it.",
        ),
        ("", "nova_compute", None, "", "No node is named; name one with host, for example host='edpm-compute-0'."),
        ("a", "", None, "", "No service is named; name one, for example nova_compute."),
    ],
)
def test_what_cannot_be_given_is_one_sentence(
    host: str, service: str, file: str | None, snippet: str, sentence: str
) -> None:
    with pytest.raises(NotThereError) as told:
        service_config(plan(snippet), host, service, file)
    assert str(told.value) == sentence


def test_a_missing_secret_makes_the_files_incomplete_and_they_are_not_given() -> None:
    without = [one for one in objects() if one["kind"] != "Secret"]
    with pytest.raises(
        NotThereError, match=r"^nova_compute on a has no usable configuration: Secret .* does not exist"
    ):
        given_by(resolve(snapshot_of(without, {}, namespace="openstack")))


def test_without_a_source_the_runs_plan_counts_and_the_environment_names_none() -> None:
    known = plan()
    snapshot.amend(known)
    assert plans.plan_of({"manifests": None, "context": "of-the-environment"}, given=["node"]) is known
    assert plans.plan_of({"manifests": []}, given=["manifests"]) is known


def test_without_a_snapshot_the_remedy_is_told() -> None:
    with pytest.raises(KubernetesError, match="No data plane was read in this run; name an inventory"):
        plans.plan_of({}, given=[])


def test_a_failed_inventory_stops_everything_that_relies_on_it() -> None:
    with pytest.raises(ValueError, match="broken"), snapshot.attempt("x.dataplane.yml"):
        raise ValueError("it is broken")
    with pytest.raises(KubernetesError, match="it is broken"):
        plans.plan_of({}, given=[])


def test_the_first_source_is_read_once_and_becomes_the_runs(tmp_path: Path) -> None:
    file = tmp_path / "manifests.yaml"
    file.write_text(yaml.safe_dump_all(objects()))
    first = plans.plan_of({"manifests": ["manifests.yaml"]}, given=["manifests"], folder=str(tmp_path))
    file.unlink()
    again = plans.plan_of({"manifests": ["manifests.yaml"]}, given=["manifests"], folder=str(tmp_path))
    assert again is first is plans.plan_of({}, given=[])


def test_a_source_beside_the_inventorys_is_read_apart(tmp_path: Path) -> None:
    file = tmp_path / "manifests.yaml"
    file.write_text(yaml.safe_dump_all(objects()))
    snapshot.take(snapshot.Source(manifests=(str(file),)))
    other = tmp_path / "other.yaml"
    other.write_text(yaml.safe_dump_all(objects("[DEFAULT]\nother = 1\n")))
    theirs = plans.plan_of({"manifests": [str(other)]}, given=["manifests"])
    assert len(given_by(theirs)) == 3
    assert len(given_by(plans.plan_of({}, given=[]))) == 2


def test_a_source_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadManifestError, match=f"{tmp_path}/none"):
        plans.plan_of({"manifests": [f"{tmp_path}/none"]}, given=["manifests"])
