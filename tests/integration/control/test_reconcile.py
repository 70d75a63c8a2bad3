# SPDX-License-Identifier: GPL-3.0-or-later
"""From Nodes, Roles and annotations to service objects in a real API server, with the rights that are granted."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from subprocess import CompletedProcess

import pytest
import yaml
from ansible_collections.edpm.services.plugins.plugin_utils._control.conditions import Run
from ansible_collections.edpm.services.plugins.plugin_utils._control.look import WatchfulClient, look
from ansible_collections.edpm.services.plugins.plugin_utils._control.names import MANAGER
from ansible_collections.edpm.services.plugins.plugin_utils._control.reconcile import Pass, one_pass, reconcile
from ansible_collections.edpm.services.plugins.plugin_utils._control.status import report_status
from ansible_collections.edpm.services.plugins.plugin_utils._control.wanted import Chosen
from ansible_collections.edpm.services.plugins.plugin_utils._kube.client import Object, Resource
from ansible_collections.edpm.services.plugins.plugin_utils._kube.connection import Connection, Settings
from ansible_collections.edpm.services.plugins.plugin_utils._kube.errors import NotAllowedError
from edpm_lab.access import Access

from .conftest import (
    CELL,
    DATAPLANE,
    MARK,
    NEUTRON,
    NOVA,
    Body,
    Site,
    data_plane,
    finalized,
    managers,
    node,
    results,
    role,
    settle,
    the,
    thing,
    until,
)

COMPUTE_IMAGE = "RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT"
LIBVIRT_IMAGE = "RELATED_IMAGE_NOVA_LIBVIRT_IMAGE_URL_DEFAULT"
EE_IMAGE = "RELATED_IMAGE_NOVA_ANSIBLE_EE_IMAGE_URL_DEFAULT"


@pytest.fixture
def images(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, image in ((COMPUTE_IMAGE, "compute:1"), (LIBVIRT_IMAGE, "libvirt:1"), (EE_IMAGE, "ee:1")):
        monkeypatch.setenv(variable, image)


class TestCreation:
    def test_a_node_with_a_cell_gets_its_service_object_once(self, site: Site) -> None:
        site.create(*data_plane())
        done = site.reconcile()
        assert results(done) == {
            "ConfigMap/dataplanenode-node-0": "written",
            "NovaExternalCompute/node-0": "created",
            "OpenStackDataPlaneNode/node-0": "marked",
            "OpenStackDataPlaneRole/edpm": "marked",
        }
        made = site.get("nec", "node-0")
        assert made["spec"] == {
            "dataplaneNodeName": "node-0",
            "cellName": "nova-cell1",
            "sshKeySecretName": "ssh-key",
            "inventoryConfigMapName": "dataplanenode-node-0",
            "deploy": True,
        }
        (owner,) = made["metadata"]["ownerReferences"]
        assert owner["kind"] == "OpenStackDataPlaneNode"
        assert owner["uid"] == site.get("osdpnode", "node-0")["metadata"]["uid"]
        assert finalized(made)
        kept = site.version()
        again = site.reconcile()
        assert (again.outcomes, again.unchanged) == ((), 1)
        assert site.version() == kept

    @pytest.mark.usefixtures("images")
    def test_images_come_from_the_environment_at_creation_only(
        self, site: Site, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        site.create(*data_plane())
        site.reconcile()
        made = site.get("nec", "node-0")
        expected = {
            "novaComputeContainerImage": "compute:1",
            "novaLibvirtContainerImage": "libvirt:1",
            "ansibleEEContainerImage": "ee:1",
        }
        assert expected.items() <= made["spec"].items()
        assert {managers(made, name) for name in expected} == {("edpm.services.images",)}
        monkeypatch.setenv(COMPUTE_IMAGE, "compute:2")
        assert site.reconcile().outcomes == ()
        assert site.get("nec", "node-0")["spec"]["novaComputeContainerImage"] == "compute:1"

    def test_every_service_gets_an_object_of_its_own_kind_and_a_node_without_annotation_none(self, site: Site) -> None:
        asked = {
            "neutron.openstack.org/ovn-metadata-agent": "true",
            "neutron.openstack.org/sriov-agent": "true",
            "cinder.openstack.org/volume": "true",
        }
        quiet = {**node(1), "spec": {**node(1)["spec"], "role": "quiet"}}
        site.create(*data_plane(), role("quiet", None), quiet)
        site.annotate("osdpnode", "node-0", *(f"{name}={value}" for name, value in asked.items()))
        done = site.reconcile()
        assert {one.ref.kind for one in done.outcomes if one.result == "created"} == {
            "NovaExternalCompute",
            "OVNMetadataAgent",
            "NeutronSriovAgent",
            "CinderExternalVolume",
        }
        assert site.get("ovnmetadataagent", "node-0")["spec"]["cellName"] == "nova-cell1"
        assert "cellName" not in site.get("neutronsriovagent", "node-0")["spec"]
        assert site.there("nec") == ["node-0"]
        assert site.reconcile().outcomes == ()

    def test_an_instance_has_an_object_with_its_name(self, site: Site) -> None:
        site.create(*data_plane())
        site.annotate("osdpnode", "node-0", "edpm.openstack.org/instances-nova_compute=second")
        site.reconcile()
        assert site.there("nec") == ["node-0", "node-0-second"]
        assert site.get("nec", "node-0-second")["spec"]["instance"] == "second"
        assert site.reconcile().outcomes == ()

    def test_a_node_set_owns_the_objects_of_its_nodes(self, site: Site) -> None:
        nodes = {"one": {"hostName": "one", "ansible": {"ansibleHost": "10.0.0.1"}}, "two": {"hostName": "two"}}
        spec = {"nodes": nodes, "nodeTemplate": {"ansibleSSHPrivateKeySecret": "ssh-key"}}
        site.create(
            *data_plane(0), thing(DATAPLANE, "OpenStackDataPlaneNodeSet", "set", {CELL: "nova-cell1"}, spec=spec)
        )
        done = site.reconcile()
        assert results(done)["OpenStackDataPlaneNodeSet/set"] == "marked"
        owners = {name: one["metadata"]["ownerReferences"][0]["kind"] for name, one in site.all("nec").items()}
        assert owners == dict.fromkeys(("one", "two"), "OpenStackDataPlaneNodeSet")
        assert site.reconcile().outcomes == ()

    def test_check_mode_tells_the_truth_and_writes_nothing(self, site: Site) -> None:
        site.create(*data_plane(2))
        before = site.version()
        announced = site.reconcile(check=True)
        assert site.version() == before
        assert results(announced) == results(site.reconcile())
        assert site.reconcile(check=True).outcomes == ()

    def test_one_node_may_be_chosen(self, site: Site) -> None:
        site.create(*data_plane(3))
        site.reconcile(nodes=("node-1",))
        assert site.there("nec") == ["node-1"]
        site.reconcile(services=("ovn_metadata_agent",))
        assert site.there("nec") == ["node-1"]


class TestPropagation:
    def test_what_changes_on_role_and_node_changes_on_the_object_and_nowhere_else(self, site: Site) -> None:
        site.create(*data_plane(2), thing("v1", "Secret", "other-key", stringData={"ssh-privatekey": "no key"}))
        site.reconcile()
        untouched = site.get("nec", "node-1")["metadata"]["resourceVersion"]
        section = {"ansibleSSHPrivateKeySecret": "other-key"}
        spec = {"node": section, "networkAttachments": ["ctlplane"], "deployStrategy": {"deploy": False}}
        site.patch("osdpnode", "node-0", {"spec": spec})
        done = site.reconcile()
        assert results(done) == {"NovaExternalCompute/node-0": "updated"}
        changed = site.get("nec", "node-0")["spec"]
        assert changed["sshKeySecretName"] == "other-key"
        assert changed["networkAttachments"] == ["ctlplane"]
        assert changed["deploy"] is False
        assert site.get("nec", "node-1")["metadata"]["resourceVersion"] == untouched
        site.patch("osdpnode", "node-0", {"spec": {"networkAttachments": None, "deployStrategy": None}})
        site.reconcile()
        back = site.get("nec", "node-0")["spec"]
        assert "networkAttachments" not in back
        assert back["deploy"] is True
        site.patch("osdprole", "edpm", {"spec": {"deployStrategy": {"deploy": False}}})
        site.reconcile()
        assert [one["spec"]["deploy"] for one in site.all("nec").values()] == [False, False]
        assert site.reconcile().outcomes == ()

    def test_a_persons_snippet_image_and_deploy_stay(self, site: Site) -> None:
        site.create(*data_plane())
        site.reconcile()
        theirs = {"customServiceConfig": "[DEFAULT]\ndebug = True\n", "novaComputeContainerImage": "mine:7"}
        site.patch("nec", "node-0", {"spec": {**theirs, "deploy": False}})
        assert site.reconcile().outcomes == ()
        site.patch("osdprole", "edpm", {"spec": {"networkAttachments": ["ctlplane"]}})
        told = the(site.reconcile(), "updated")
        assert "spec.deploy stays False, set by kubectl" in told.sentence
        kept = site.get("nec", "node-0")["spec"]
        assert {**theirs, "deploy": False, "networkAttachments": ["ctlplane"]}.items() <= kept.items()

    def test_a_deploy_that_is_set_back_follows_node_and_role_again(self, site: Site) -> None:
        site.create(*data_plane())
        site.reconcile()
        site.patch("nec", "node-0", {"spec": {"deploy": False}})
        site.reconcile()
        site.patch("nec", "node-0", {"spec": {"deploy": True}})
        site.reconcile()
        site.patch("osdprole", "edpm", {"spec": {"deployStrategy": {"deploy": False}}})
        site.reconcile()
        assert site.get("nec", "node-0")["spec"]["deploy"] is False
        assert site.reconcile().outcomes == ()

    def test_a_field_that_follows_the_node_is_set_right_again(self, site: Site) -> None:
        site.create(*data_plane())
        site.reconcile()
        site.patch("nec", "node-0", {"spec": {"sshKeySecretName": "by-hand"}})
        assert results(site.reconcile()) == {"NovaExternalCompute/node-0": "updated"}
        assert site.get("nec", "node-0")["spec"]["sshKeySecretName"] == "ssh-key"
        assert site.reconcile().outcomes == ()

    @pytest.mark.usefixtures("images")
    def test_an_object_made_by_hand_is_taken_over_when_the_node_asks_and_keeps_what_its_maker_set(
        self, site: Site
    ) -> None:
        own = {"dataplaneNodeName": "node-0", "cellName": "nova-cell1", "customServiceConfig": "[DEFAULT]\n"}
        site.create(*data_plane(), thing(NOVA, "NovaExternalCompute", "node-0", spec=own))
        assert results(site.reconcile())["NovaExternalCompute/node-0"] == "updated"
        taken = site.get("nec", "node-0")
        assert taken["spec"]["customServiceConfig"] == "[DEFAULT]\n"
        assert "novaComputeContainerImage" not in taken["spec"], "images are given at creation only"
        assert finalized(taken)
        assert site.reconcile().outcomes == ()

    def test_an_object_made_by_hand_that_no_node_asks_for_is_left_alone(self, site: Site) -> None:
        own = {"dataplaneNodeName": "node-0"}
        site.create(*data_plane(), thing(NEUTRON, "NeutronSriovAgent", "node-0", spec=own))
        lonely = {"dataplaneNodeName": "elsewhere", "cellName": "nova-cell1"}
        site.create(thing(NOVA, "NovaExternalCompute", "elsewhere", spec=lonely))
        done = site.reconcile()
        assert results(done)["NeutronSriovAgent/node-0"] == "kept"
        assert "NovaExternalCompute/elsewhere" not in results(done)
        assert not finalized(site.get("neutronsriovagent", "node-0"))
        assert site.get("nec", "elsewhere")["spec"] == {**lonely, "deploy": True}

    def test_what_was_applied_under_our_name_stays(self, site: Site) -> None:
        """edpm.services.cluster_definitions applies manifests with the same field manager."""
        own = {"dataplaneNodeName": "node-0", "cellName": "nova-cell1", "customServiceConfig": "[DEFAULT]\n"}
        ours = ("--server-side", "--field-manager=edpm.services")
        for body in [*data_plane(), thing(NOVA, "NovaExternalCompute", "node-0", spec=own)]:
            site.send("apply", body, *ours)
        before = {name: site.get(*name)["spec"] for name in (("osdpnode", "node-0"), ("osdprole", "edpm"))}
        site.reconcile()
        assert {name: site.get(*name)["spec"] for name in before} == before
        assert own.items() <= site.get("nec", "node-0")["spec"].items()
        assert site.reconcile().outcomes == ()


class TestInventory:
    def test_the_nodes_inventory_is_written_and_followed(self, site: Site) -> None:
        site.create(*data_plane())
        site.reconcile()
        written = site.get("configmap", "dataplanenode-node-0")
        hosts = yaml.safe_load(written["data"]["inventory"])["all"]["hosts"]
        assert hosts == {"node-0": {"ansible_host": "host-0.example.com", "ansible_user": "root"}}
        owner = site.get("nec", "node-0")["metadata"]["uid"]
        assert [one["uid"] for one in written["metadata"]["ownerReferences"]] == [owner]
        site.patch("osdpnode", "node-0", {"spec": {"ansibleHost": "10.0.0.9"}})
        assert results(site.reconcile()) == {
            "ConfigMap/dataplanenode-node-0": "written",
            "NovaExternalCompute/node-0": "updated",
        }
        assert "10.0.0.9" in site.get("configmap", "dataplanenode-node-0")["data"]["inventory"]

    def test_the_data_plane_operators_own_is_kept(self, site: Site) -> None:
        theirs = thing("v1", "ConfigMap", "dataplanenode-node-0", data={"inventory": "all: {hosts: {node-0: {}}}\n"})
        site.create(*data_plane(), theirs)
        assert results(site.reconcile())["ConfigMap/dataplanenode-node-0"] == "kept"
        found = site.get("configmap", "dataplanenode-node-0")
        assert found["data"] == theirs["data"]
        assert "ownerReferences" not in found["metadata"]
        site.patch("osdpnode", "node-0", {"spec": {"ansibleHost": "10.0.0.9"}})
        assert site.reconcile().outcomes == (), "there is nothing of ours to follow"

    def test_the_data_plane_operators_own_does_not_go_with_its_node(self, site: Site) -> None:
        """The garbage collector takes what has no owner left."""
        site.create(*data_plane())
        uid = site.get("osdpnode", "node-0")["metadata"]["uid"]
        owner = {"apiVersion": DATAPLANE, "kind": "OpenStackDataPlaneNode", "name": "node-0", "uid": uid}
        owner |= {"controller": True, "blockOwnerDeletion": True}
        text = "all: {hosts: {node-0: {ansible_host: 10.0.0.7}}}\n"
        theirs = thing("v1", "ConfigMap", "dataplanenode-node-0", data={"inventory": text})
        theirs["metadata"]["ownerReferences"] = [owner]
        site.create(theirs)
        assert results(site.reconcile())["ConfigMap/dataplanenode-node-0"] == "kept"
        found = site.get("configmap", "dataplanenode-node-0")
        ours = {"apiVersion": NOVA, "kind": "NovaExternalCompute", "name": "node-0"}
        ours["uid"] = site.get("nec", "node-0")["metadata"]["uid"]
        assert found["metadata"]["ownerReferences"] == [owner, ours]
        assert found["data"] == theirs["data"]
        assert site.reconcile().outcomes == ()
        site.kubectl("delete", "osdpnode", "node-0")
        with Connection(site.settings) as connection:
            (left,) = look(WatchfulClient(connection), [site.namespace]).plan.nodes
        assert left.connection.ansible_host == "10.0.0.7"

    def test_a_node_whose_node_object_is_gone_is_reached_the_same_way(self, site: Site) -> None:
        site.create(*data_plane())
        variables = {"ansibleVars": {"edpm_x": "24", "edpm_y": [1, "a"]}, "ansiblePort": 2222}
        site.patch("osdpnode", "node-0", {"spec": {"node": variables}})
        site.reconcile()
        with Connection(site.settings) as connection:
            (before,) = look(WatchfulClient(connection), [site.namespace]).plan.nodes
            site.kubectl("delete", "osdpnode", "node-0")
            (after,) = look(WatchfulClient(connection), [site.namespace]).plan.nodes
        assert after.connection == before.connection


class TestLeaving:
    @pytest.fixture
    def deployed(self, site: Site) -> Site:
        site.create(*data_plane(2))
        site.reconcile()
        return site

    def removed(self, site: Site, name: str) -> None:
        """What service_status writes; here by hand."""
        condition = {
            "type": "Removed",
            "status": "True",
            "reason": "ServicesRemoved",
            "message": "",
            "lastTransitionTime": "2026-11-01T08:00:00Z",
        }
        site.patch("nec", name, {"status": {"conditions": [condition]}}, "--subresource=status")

    def test_an_inventory_that_was_deleted_is_written_anew_while_the_node_is_known(self, deployed: Site) -> None:
        site = deployed
        before = site.get("configmap", "dataplanenode-node-0")
        site.kubectl("delete", "configmap", "dataplanenode-node-0", "dataplanenode-node-1")
        assert site.reconcile().outcomes == (), "of a node that stays nobody looks"
        assert results(site.reconcile(nodes=("node-1",))) == {"ConfigMap/dataplanenode-node-1": "written"}
        site.annotate("osdpnode", "node-0", f"{CELL}=")
        assert results(site.reconcile()) == {
            "ConfigMap/dataplanenode-node-0": "written",
            "NovaExternalCompute/node-0": "leaving",
        }
        after = site.get("configmap", "dataplanenode-node-0")
        assert after["data"] == before["data"]
        assert after["metadata"]["ownerReferences"] == before["metadata"]["ownerReferences"]
        assert site.reconcile().outcomes == ()

    def test_an_inventory_that_nobody_can_write_any_more_is_told_on_its_object_and_holds_up_no_other(
        self, deployed: Site
    ) -> None:
        site = deployed
        site.kubectl("delete", "configmap", "dataplanenode-node-0")
        site.kubectl("delete", "osdpnode", "node-0")
        site.kubectl("delete", "nec", "node-0", "--wait=false")  # as the garbage collector does
        site.annotate("osdpnode", "node-1", f"{CELL}=")
        done = site.reconcile()
        assert {name: result for name, result in results(done).items() if name.startswith("Nova")} == {
            "NovaExternalCompute/node-0": "leaving",
            "NovaExternalCompute/node-1": "leaving",
        }
        [warning] = done.warnings
        run = Run("reconcile", "2026-11-01T08:00:00Z", "2026-11-01T08:00:30Z")
        report_status(site.settings, [site.namespace], [], run, chosen=Chosen(), check=False)

        def ready(name: str) -> Body:
            conditions: list[Body] = site.get("nec", name)["status"]["conditions"]
            return next(one for one in conditions if one["type"] == "Ready")

        assert (ready("node-0")["reason"], ready("node-0")["message"]) == ("Waiting", warning)
        assert "dataplanenode-node-0, which tells how to reach it, exists; create the ConfigMap" in warning
        assert ready("node-1")["message"] != warning
        by_hand = {"inventory": "all: {hosts: {node-0: {ansible_host: 10.0.0.9}}}\n"}
        site.create(thing("v1", "ConfigMap", "dataplanenode-node-0", data=by_hand))
        assert site.reconcile().warnings == ()
        assert site.get("configmap", "dataplanenode-node-0")["data"] == by_hand

    @pytest.mark.parametrize("way", ["opted out", "deleted", "role opted out", "role changed to none"])
    def test_an_object_leaves_only_after_its_services(self, deployed: Site, way: str) -> None:
        site = deployed
        if way == "opted out":
            site.annotate("osdpnode", "node-0", f"{CELL}=")
        elif way == "deleted":
            site.kubectl("delete", "osdpnode", "node-0")
        else:
            site.create(role("other", "" if way == "role opted out" else None))
            site.annotate("osdpnode", "node-0", f"{CELL}=")
            site.patch("osdpnode", "node-0", {"spec": {"role": "other"}})
        done = site.reconcile()
        assert results(done) == {"NovaExternalCompute/node-0": "leaving"}
        (going,) = done.going
        assert going.services == ("nova_compute", "libvirt")
        leaving = site.get("nec", "node-0")
        assert leaving["metadata"]["annotations"]["edpm.openstack.org/removal"] == "requested"
        assert site.reconcile().outcomes == (), "it is asked for once"
        self.removed(site, "node-0")
        gone = site.reconcile()
        assert results(gone)["NovaExternalCompute/node-0"] == "removed"
        assert site.there("nec") == ["node-1"]
        assert site.reconcile().outcomes == ()
        if way != "deleted":
            assert site.get("osdpnode", "node-0")["metadata"]["annotations"][MARK] == ""

    def test_who_only_wants_those_gone_that_leave_makes_none_and_changes_none(self, deployed: Site) -> None:
        """As `remove` does at its end, when a compute of a node that still asks for one was taken off."""
        site = deployed
        site.create(node(2))
        site.patch("osdprole", "edpm", {"spec": {"networkAttachments": ["other"]}})
        site.annotate("osdpnode", "node-0", f"{CELL}=")
        before = site.get("nec", "node-1")["metadata"]["resourceVersion"]

        def only() -> Pass:
            return reconcile(site.settings, [site.namespace], Chosen(), check=False, leaving_only=True)

        assert results(only()) == {"NovaExternalCompute/node-0": "leaving"}
        self.removed(site, "node-0")
        assert results(only())["NovaExternalCompute/node-0"] == "removed"
        assert site.there("nec") == ["node-1"]
        assert site.get("nec", "node-1")["metadata"]["resourceVersion"] == before
        assert "annotations" not in site.get("osdpnode", "node-2")["metadata"]

    def test_a_node_that_comes_back_in_time_keeps_its_object(self, deployed: Site) -> None:
        deployed.patch("nec", "node-0", {"spec": {"customServiceConfig": "[DEFAULT]\n"}})
        deployed.annotate("osdpnode", "node-0", f"{CELL}=")
        deployed.reconcile()
        deployed.annotate("osdpnode", "node-0", f"{CELL}=nova-cell1")
        assert results(deployed.reconcile())["NovaExternalCompute/node-0"] == "returned"
        back = deployed.get("nec", "node-0")
        assert "edpm.openstack.org/removal" not in back["metadata"]["annotations"]
        assert back["spec"]["customServiceConfig"] == "[DEFAULT]\n"
        assert deployed.reconcile().outcomes == ()

    def test_a_deleted_object_waits_for_its_services_and_is_made_anew(self, deployed: Site) -> None:
        uid = deployed.get("nec", "node-0")["metadata"]["uid"]
        deployed.kubectl("delete", "nec", "node-0", "--wait=false")
        assert results(deployed.reconcile()) == {"NovaExternalCompute/node-0": "leaving"}
        self.removed(deployed, "node-0")
        assert results(deployed.reconcile())["NovaExternalCompute/node-0"] == "removed"
        deployed.reconcile()
        assert deployed.get("nec", "node-0")["metadata"]["uid"] != uid

    def test_an_abandoned_object_goes_at_once(self, deployed: Site) -> None:
        deployed.kubectl("delete", "osdpnode", "node-0")
        deployed.annotate("nec", "node-0", "edpm.openstack.org/abandon=true")
        done = deployed.reconcile()
        assert the(done, "removed").sentence == "a person has abandoned it"
        assert deployed.there("nec") == ["node-1"]

    def test_an_abandoned_object_of_a_node_that_asks_for_it_stays(self, deployed: Site) -> None:
        deployed.annotate("nec", "node-0", "edpm.openstack.org/abandon=true")
        assert deployed.reconcile().outcomes == ()

    def test_the_finalizers_of_others_stay(self, deployed: Site) -> None:
        deployed.patch("nec", "node-0", {"metadata": {"finalizers": ["edpm.openstack.org/services", "example.com/a"]}})
        deployed.annotate("osdpnode", "node-0", f"{CELL}=")
        self.removed(deployed, "node-0")
        deployed.reconcile()
        assert deployed.get("nec", "node-0")["metadata"]["finalizers"] == ["example.com/a"]
        assert deployed.reconcile().outcomes == ()
        deployed.patch("nec", "node-0", {"metadata": {"finalizers": None}})

    def test_a_missing_role_takes_nothing_away(self, deployed: Site) -> None:
        deployed.kubectl("delete", "osdprole", "edpm")
        done = deployed.reconcile()
        assert set(results(done).values()) == {"refused"}
        assert "OpenStackDataPlaneRole" in done.outcomes[0].sentence
        assert "edpm.openstack.org/removal" not in deployed.get("nec", "node-0")["metadata"]["annotations"]


class TestWhatCanGoWrong:
    def test_a_move_that_no_policy_stopped_is_refused_and_the_other_nodes_go_on(self, site: Site) -> None:
        moved = {"dataplaneNodeName": "node-0", "cellName": "nova-cell2"}
        site.create(*data_plane(2), thing(NOVA, "NovaExternalCompute", "node-0", spec=moved))
        done = site.reconcile()
        told = the(done, "refused")
        assert told.ref.name == "node-0"
        assert "Nova does not move computes between cells" in told.sentence
        assert site.there("nec") == ["node-0", "node-1"]
        assert not finalized(site.get("nec", "node-0"))

    def test_two_nodes_with_one_address_are_refused_by_name(self, site: Site) -> None:
        site.create(*data_plane(1), node(1, ansibleHost="host-0.example.com"))
        done = site.reconcile()
        assert [one.result for one in done.outcomes] == ["refused", "refused"]
        assert "has the same address host-0.example.com" in done.outcomes[0].sentence

    @pytest.mark.parametrize(
        ("verb", "resource"),
        [
            ("patch", "novaexternalcomputes.nova.openstack.org"),
            ("create", "novaexternalcomputes.nova.openstack.org"),
            ("patch", "openstackdataplanenodes.dataplane.openstack.org"),
            ("patch", "configmaps"),
        ],
    )
    def test_a_missing_right_is_told_with_verb_and_resource(self, site: Site, verb: str, resource: str) -> None:
        site.create(*data_plane())
        user = f"half-{site.namespace}"
        full = json.loads(site.kubectl("get", "clusterrole", "edpm-services-writer", "-o", "json").stdout)["rules"]
        rules = [{**rule, "verbs": verbs} for rule in full if (verbs := _without(rule, verb, resource))]
        body: Body = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "half"},
            "rules": rules,
        }
        site.create(body)
        site.kubectl("create", "rolebinding", "half", "--role=half", f"--user={user}")
        site.kubectl("create", "rolebinding", "half-reads", "--clusterrole=edpm-services-reader", f"--user={user}")
        account = site.kube.client_certificate(user)
        with pytest.raises(NotAllowedError) as caught:
            reconcile(Settings(kubeconfig=str(account)), [site.namespace], Chosen(), check=False)
        assert f"{user} may not {verb} {resource}" in str(caught.value)
        assert f"RoleBinding to the ClusterRole edpm-services-writer in namespace {site.namespace}" in str(caught.value)

    def test_the_right_to_mark_is_asked_for_by_its_name(self, guarded: Site) -> None:
        guarded.create(*data_plane())
        user = f"unmarked-{guarded.namespace}"
        full = json.loads(guarded.kubectl("get", "clusterrole", "edpm-services-writer", "-o", "json").stdout)["rules"]
        rules = [{**rule, "verbs": [verb for verb in rule["verbs"] if verb != "mark-cell"]} for rule in full]
        body: Body = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "unmarked"}}
        guarded.create({**body, "rules": rules})
        guarded.kubectl("create", "rolebinding", "unmarked", "--role=unmarked", f"--user={user}")
        guarded.kubectl("create", "rolebinding", "reads", "--clusterrole=edpm-services-reader", f"--user={user}")
        settings = Settings(kubeconfig=str(guarded.kube.client_certificate(user)))
        done = reconcile(settings, [guarded.namespace], Chosen(), check=False)
        failed = [one for one in done.outcomes if one.result == "failed"]
        assert [one.ref.kind for one in failed] == ["OpenStackDataPlaneNode", "OpenStackDataPlaneRole"]
        assert "needs the verb mark-cell on openstackdataplanenodes" in failed[0].sentence

    def test_two_reconcilers_at_once_end_in_the_same_objects(self, site: Site) -> None:
        site.create(*data_plane(30))
        with ThreadPoolExecutor(3) as threads:
            passes = [one.result() for one in [threads.submit(site.reconcile) for _ in range(3)]]
        assert [one for done in passes for one in done.outcomes if one.result == "failed"] == []
        assert len(site.there("nec")) == 30
        assert site.reconcile().outcomes == ()

    def test_a_node_that_is_deleted_meanwhile_is_not_made_anew(self, site: Site) -> None:
        site.create(*data_plane(1))
        with Connection(site.settings) as connection:
            client = _LateClient(connection, lambda: site.kubectl("delete", "osdpnode", "node-0"))
            done = one_pass(client, [site.namespace], Chosen())
        assert the(done, "failed").ref.kind == "OpenStackDataPlaneNode"
        assert site.there("osdpnode") == []

    def test_a_chosen_node_that_nobody_knows_is_told(self, site: Site) -> None:
        site.create(*data_plane(1))
        done = site.reconcile(nodes=("nod-0",))
        assert done.outcomes == ()
        assert done.warnings[-1].startswith("No Node, NodeSet or service object is called or names nod-0;")

    def test_a_crd_of_another_version_is_told_of_and_the_other_kinds_go_on(
        self, fresh_api: Access, playbook: Callable[..., CompletedProcess[str]]
    ) -> None:
        done = playbook("install_cluster", env={"KUBECONFIG": str(fresh_api.kubeconfig)})
        assert done.returncode == 0, done.stdout
        fresh_api.kubectl("create", "namespace", "openstack")
        site = settle(fresh_api, "openstack")
        site.create(*data_plane(1))
        site.annotate("osdpnode", "node-0", "neutron.openstack.org/sriov-agent=true")
        site.create(node(1))
        crd = "novaexternalcomputes.nova.openstack.org"
        where = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/sshKeySecretName"
        lacking = json.dumps([{"op": "remove", "path": where}])
        site.kubectl("patch", "crd", crd, "--type=json", "-p", lacking)
        until(lambda: "failed" in results(site.reconcile(check=True)).values(), "the server knows the changed CRD")
        told = [one for one in site.reconcile().outcomes if one.result == "failed"]
        assert {one.ref.kind for one in told} == {"NovaExternalCompute"}
        assert "sshKeySecretName" in told[0].sentence
        assert "The CRD of NovaExternalCompute in this cluster is of another version" in told[0].sentence
        site.kubectl("delete", "crd", crd, "--wait=false")
        site.kubectl("patch", "nec", "--all", "--type=merge", "-p", '{"metadata": {"finalizers": null}}', check=False)
        until(lambda: site.kubectl("get", "crd", crd, check=False).returncode != 0, "the CRD is gone")
        told = [one for one in site.reconcile().outcomes if one.result == "failed"]
        assert {one.ref.name for one in told} == {"node-0", "node-1"}
        assert f"does not serve NovaExternalCompute ({NOVA}); install its CRD" in told[0].sentence


def _without(rule: Body, verb: str, resource: str) -> list[str]:
    name, _dot, group = resource.partition(".")
    hit = name in rule["resources"] and group in rule["apiGroups"]
    return [one for one in rule["verbs"] if not (hit and one == verb)]


class _LateClient(WatchfulClient):
    """Lets something happen between the read and the first write of a mark."""

    def __init__(self, connection: Connection, meanwhile: Callable[[], object]) -> None:
        super().__init__(connection)
        self._meanwhile: Callable[[], object] | None = meanwhile

    def apply(
        self, resource: Resource, body: Object, *, force: bool, manager: str = MANAGER, subresource: str = ""
    ) -> Object:
        if resource.kind == "OpenStackDataPlaneNode" and self._meanwhile is not None:
            happen, self._meanwhile = self._meanwhile, None
            happen()
        return super().apply(resource, body, force=force, manager=manager, subresource=subresource)
