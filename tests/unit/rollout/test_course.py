# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole run without nodes: who is asked, who has work, when it ends, and what is told about it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible_collections.edpm.services.plugins.module_utils._node.travel import read
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.bundle import bundle
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.parcel import parcel
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import NodePlan, ServicePlan
from ansible_collections.edpm.services.plugins.plugin_utils._kube.errors import KubernetesError
from ansible_collections.edpm.services.plugins.plugin_utils._report.lines import Line
from ansible_collections.edpm.services.plugins.plugin_utils._report.near import NotThereError
from ansible_collections.edpm.services.plugins.plugin_utils._report.overview import Question
from ansible_collections.edpm.services.plugins.plugin_utils._report.table import NOTHING
from ansible_collections.edpm.services.plugins.plugin_utils._rollout import course as courses
from ansible_collections.edpm.services.plugins.plugin_utils._rollout import steps
from ansible_collections.edpm.services.plugins.plugin_utils._rollout.course import NOBODY
from ansible_collections.edpm.services.plugins.plugin_utils._rollout.looking import Look
from ansible_collections.edpm.services.plugins.plugin_utils._rollout.turns import turn

from .nodes import AGENT, answer, compute, node, other, service, taken

DEFAULTS = {name: one.get("default") for name, one in steps.SPEC.items()}
NO_QUESTION = Question()
KNOWN = "/var/lib/nova/.ssh/known_hosts"
ALL = b"".join(f"address-of-{name},{name} ssh-ed25519 key-of-{name}\n".encode() for name in ("new", "old"))


@dataclass
class Run:
    """Does with hosts what the playbook does, each with an answer of its own."""

    folder: Path
    variables: dict[str, Any] = field(default_factory=dict)
    hosts: dict[str, dict[str, Any]] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    #: By node: what its module answers, or what it raises.
    answers: dict[str, Any] = field(default_factory=dict)

    def turn(self, term: str, mode: str = "deploy", question: Question = NO_QUESTION) -> list[Any]:
        known = {**self.variables, "hostvars": self.hosts, "groups": {"all": list(self.hosts)}}
        return turn(term, mode, question, known)

    def take(self, step: str, host: str, **given: Any) -> dict[str, Any]:
        def call(module: str, options: dict[str, Any]) -> dict[str, Any]:
            assert module == "service"
            self.calls.append((host, options))
            found = self.answers.get(host, {"changed": True, "restarted": True, "msg": "is live: 1 restart."})
            if isinstance(found, Exception):
                raise found
            return dict(found)

        def tell(line: Line) -> None:
            self.told.append(line.text)

        known = {**self.variables, **self.hosts[host], "inventory_hostname": host, "hostvars": self.hosts}
        known |= {"ansible_play_batch": given.pop("batch", [host]), "ansible_play_hosts_all": list(self.hosts)}
        return steps.take({**DEFAULTS, "step": step, **given}, known, call, tell)

    def deploy(self, mode: str = "deploy", question: Question = NO_QUESTION, **given: Any) -> dict[str, Any]:
        """The plays, one after the other."""
        for host in self.turn("looking", mode, question):
            if host in self.hosts and "edpm_rollout_found" not in self.hosts[host]:
                self.hosts[host]["edpm_rollout_found"] = Look.at(host).judged({"services": {}, "missing_images": []})
        for host in self.turn("lacking"):
            if host in self.hosts:
                self.hosts[host]["edpm_rollout_pulled"] = self.take("prefetch", host)
        order, sizes = self.turn("working"), self.turn("batches")
        while order and order != NOBODY:
            batch, order = order[: sizes[0]], order[sizes[0] :]
            sizes = sizes[1:] or sizes
            gate = self.take("batch", batch[0], batch=batch)
            for host in batch:
                self.hosts[host]["edpm_rollout_batch"] = gate
            if gate["stop"]:
                break
            for host in batch:
                self.hosts[host]["edpm_rollout_done"] = self.take("node", host)
        end = self.take("summary", next(iter(self.hosts)), retry_file=str(self.folder / "retry"), **given)
        for one in self.hosts.values():
            one["edpm_rollout_summary"] = end
        return end


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    yield Run(tmp_path)
    courses._course = None


def with_agents(run: Run, count: int, *agents: ServicePlan) -> list[NodePlan]:
    nodes = [node(f"n{index}", *(agents or (service(),))) for index in range(count)]
    run.hosts = {one.name: {} for one in nodes}
    return nodes


def counts(end: dict[str, Any]) -> dict[str, int]:
    return {fate: count for fate, count in end["report"]["counts"].items() if count}


@pytest.mark.parametrize("named", ["libvirt", ["libvirt"], " libvirt , cinder_volume"])
def test_a_node_is_asked_about_no_more_than_the_task_names(run: Run, named: str | list[str]) -> None:
    with taken(*with_agents(run, 1, service(), service("libvirt"))):
        every, one = Look.at("n0"), Look.at("n0", {"services": named})
        nothing = Look.at("n0", {"services": ["cinder_volume"]})
    assert [each.plan.name for each in every.services or ()] == [AGENT, "libvirt"]
    assert [each.plan.name for each in one.services or ()] == ["libvirt"]
    assert nothing.services == ()
    images = [each.bundle.image for each in one.services or ()]
    assert one.options({"services": named}) == {"services": named, "images": images}
    assert [each["name"] for each in one.judged({"services": {}})["planned"]] == ["libvirt"]


def test_nodes_that_are_up_to_date_have_no_turn(run: Run) -> None:
    nodes = with_agents(run, 3)
    with taken(*nodes):
        for name in ("n0", "n2"):
            found = {"services": {AGENT: answer(service())}, "missing_images": []}
            run.hosts[name]["edpm_rollout_found"] = Look.at(name).judged(found)
        end = run.deploy()
        assert run.turn("failing") == NOBODY
    assert [host for host, _options in run.calls] == ["n1"]
    assert counts(end) == {"changed": 1, "unchanged": 2}
    assert end["msg"].startswith("1 node changed, 2 unchanged, 0 blocked, 0 failed · 1 restart · 00:0")
    assert not (run.folder / "retry").exists()


def test_the_cluster_is_told_by_all_nodes_where_there_is_something_to_tell(run: Run) -> None:
    with taken(*with_agents(run, 2)):
        end = run.deploy()
        assert (end["told"], run.turn("telling")) == ({}, NOBODY)
        run.hosts["n1"]["edpm_rollout_summary"] = {**end, "told": {"run": "deploy"}}
        run.hosts["n0"].pop("edpm_rollout_summary", None)
        assert run.turn("telling") == ["n0", "n1"]


def test_what_a_node_is_asked_is_its_bundle_in_one_opaque_text(run: Run) -> None:
    with taken(*with_agents(run, 1)):
        run.deploy()
    [(_host, options)] = run.calls
    assert set(options) == {"bundle"}
    assert read(options["bundle"]).service == AGENT


def test_services_come_in_order_and_one_that_fails_stops_the_later_ones_of_its_node(run: Run) -> None:
    run.answers["n0"] = {"failed": True, "msg": "libvirt does not run."}
    with taken(*with_agents(run, 2, service(), service("libvirt"))):
        end = run.deploy()
        assert run.turn("failing") == ["n0"]
        verdict = run.take("verdict", "n0")
    asked = [(host, read(options["bundle"]).service) for host, options in run.calls]
    assert asked == [("n0", "libvirt"), ("n1", "libvirt"), ("n1", AGENT)]
    states = {one["name"]: one["state"] for one in end["report"]["nodes"][0]["services"]}
    assert states == {"libvirt": "failed", AGENT: "not_begun"}
    assert (verdict["failed"], verdict["msg"]) == (True, "libvirt does not run.")
    assert counts(end) == {"changed": 1, "failed": 1}


@pytest.mark.parametrize("failed", [False, True])
def test_what_a_node_warns_of_is_passed_on(run: Run, failed: bool) -> None:
    run.answers["n0"] = {"changed": True, "failed": failed, "msg": "It is told.", "warnings": ["debgu is unknown"]}
    with taken(*with_agents(run, 1)):
        run.deploy()
    assert run.hosts["n0"]["edpm_rollout_done"]["warnings"] == ["debgu is unknown"]


def test_a_node_that_goes_away_in_the_middle_is_unreachable_and_worth_a_second_run(run: Run) -> None:
    run.answers["n0"] = AnsibleConnectionFailure("no route")
    with taken(*with_agents(run, 2)):
        end = run.deploy()
        verdict = run.take("verdict", "n0")
    assert counts(end) == {"changed": 1, "unreachable": 1}
    assert verdict["unreachable"] is True
    assert (run.folder / "retry").read_text() == "n0\n"


def test_a_node_that_could_not_be_asked_is_unreachable_and_has_no_turn(run: Run) -> None:
    nodes = with_agents(run, 2)
    run.hosts["n0"]["edpm_rollout_found"] = {"unreachable": True, "msg": "no route"}
    with taken(*nodes):
        end = run.deploy()
    assert counts(end) == {"changed": 1, "unreachable": 1}
    assert end["failing"] == {"n0": {"msg": "no route", "unreachable": True}}
    assert end["msg"].endswith(f"what failed can be run again with: --limit @{run.folder}/retry")


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"edpm_deploy_batch": 2, "edpm_deploy_failure_budget": 1}, {"changed": 2, "failed": 2, "not_started": 4}),
        ({"edpm_deploy_batch": 2, "edpm_deploy_failure_budget": "25%"}, {"changed": 6, "failed": 2}),
        ({"edpm_deploy_batch": 1, "edpm_deploy_failure_budget": 0}, {"changed": 1, "failed": 1, "not_started": 6}),
        ({"edpm_deploy_batch": 8, "edpm_deploy_failure_budget": 0}, {"changed": 6, "failed": 2}),
        ({"edpm_deploy_canary": 2, "edpm_deploy_failure_budget": 8}, {"changed": 1, "failed": 1, "not_started": 6}),
    ],
)
def test_no_further_batch_begins_once_too_many_have_failed(
    run: Run, variables: dict[str, Any], expected: dict[str, int]
) -> None:
    run.variables = {"edpm_deploy_canary": 0, **variables}
    run.answers = {name: {"failed": True, "msg": "no."} for name in ("n1", "n2")}
    with taken(*with_agents(run, 8)):
        end = run.deploy()
    assert counts(end) == expected
    assert len((run.folder / "retry").read_text().split()) == 8 - expected["changed"]
    assert bool(end["report"]["stopped"]) is ("not_started" in expected)


def test_a_canary_goes_first_and_the_batches_are_counted(run: Run) -> None:
    with taken(*with_agents(run, 7)):
        run.deploy()
    told = [line for line in run.told if line.startswith("batch")]
    assert told == ["batch 1 of 3 (canary): n0", "batch 2 of 3: n1, n2, n3, n4, n5", "batch 3 of 3: n6"]
    assert any(line.startswith(f"[3/3] n6 · {AGENT} · is live: 1 restart. (") for line in run.told)


def test_the_pace_may_come_from_the_inventory_and_the_command_line_wins(run: Run) -> None:
    nodes = with_agents(run, 4)
    run.hosts["n0"]["edpm_deploy_batch"] = 1
    with taken(*nodes):
        run.deploy()
        assert run.turn("batches") == [1, 1, 1, 1]
    run.variables["edpm_deploy_batch"] = 3
    with taken(*nodes):
        run.turn("looking")
        run.turn("lacking")
        assert run.turn("batches") == [3, 1]


def test_blocked_and_held_nodes_are_told_from_the_plan_and_never_asked(run: Run) -> None:
    nodes = [
        node("blocked", service(), blocked=("Not Ready.",)),
        node("held", service(hold="held by its Role.")),
        node("both", service("libvirt"), service(hold="held by its Role.")),
    ]
    run.hosts = {one.name: {} for one in nodes}
    with taken(*nodes):
        assert run.turn("looking") == ["both"]
        end = run.deploy()
    assert [host for host, _options in run.calls] == ["both"]
    assert counts(end) == {"blocked": 1, "held": 1, "changed": 1}
    assert end["failing"] == {}
    assert any("blocked: Not Ready." in line for line in run.told)


def test_strict_makes_a_blocked_node_a_failure(run: Run) -> None:
    run.hosts = {"n": {}}
    with taken(node("n", service(), blocked=("Not Ready.",))):
        end = run.deploy(strict=True)
    assert set(end["failing"]) == {"n"}


def test_strict_looks_at_every_service_of_a_node_that_changed(run: Run) -> None:
    run.hosts = {"n": {}}
    with taken(node("n", service("libvirt"), service(blocked=("The Secret is missing.",)))):
        end = run.deploy(strict=True)
    assert counts(end) == {"changed": 1}
    assert "The Secret is missing." in end["failing"]["n"]["msg"]


def test_a_service_without_an_image_is_refused_and_its_neighbours_go_on(run: Run) -> None:
    nodes = with_agents(run, 1, service(image=None), service("libvirt"))
    with taken(*nodes):
        end = run.deploy()
    assert [read(options["bundle"]).service for _host, options in run.calls] == ["libvirt"]
    assert counts(end) == {"failed": 1}
    assert "No image is named" in end["failing"]["n0"]["msg"]


def test_images_are_pulled_first_and_who_cannot_have_them_has_no_turn(run: Run) -> None:
    nodes = with_agents(run, 3)
    run.answers["n1"] = {"failed": True, "msg": "The image cannot be pulled."}
    with taken(*nodes):
        for name in ("n0", "n1"):
            found = {"services": {}, "missing_images": [f"registry/{AGENT}:1"]}
            run.hosts[name]["edpm_rollout_found"] = Look.at(name).judged(found)
        end = run.deploy()
    asked = [(host, options.get("state", "present")) for host, options in run.calls]
    assert asked == [("n0", "pulled"), ("n1", "pulled"), ("n0", "present"), ("n2", "present")]
    assert counts(end) == {"changed": 2, "failed": 1}


def test_who_cannot_have_its_image_counts_as_failed_for_the_budget(run: Run) -> None:
    nodes = with_agents(run, 6)
    bad = ("n0", "n2", "n5")
    run.answers.update({name: {"failed": True, "msg": "The image cannot be pulled."} for name in bad})
    with taken(*nodes):
        for name in bad:
            found = {"services": {}, "missing_images": [f"registry/{AGENT}:1"]}
            run.hosts[name]["edpm_rollout_found"] = Look.at(name).judged(found)
        end = run.deploy()
    assert {options.get("state", "present") for _host, options in run.calls} == {"pulled"}
    assert counts(end) == {"failed": 3, "not_started": 3}
    assert any("No further batch begins: 3 nodes failed and the failure budget is 2" in line for line in run.told)


@pytest.mark.parametrize("variables", [{"edpm_deploy_prefetch": "false"}, {"ansible_check_mode": True}])
def test_nothing_is_pulled_beforehand_where_nobody_wants_it(run: Run, variables: dict[str, Any]) -> None:
    run.variables = variables
    nodes = with_agents(run, 1)
    with taken(*nodes):
        found = {"services": {}, "missing_images": [f"registry/{AGENT}:1"]}
        run.hosts["n0"]["edpm_rollout_found"] = Look.at("n0").judged(found)
        run.turn("looking")
        assert run.turn("lacking") == NOBODY


def test_check_mode_says_what_would_be_and_writes_no_retry_file(run: Run) -> None:
    run.variables["ansible_check_mode"] = True
    run.answers["n1"] = {"failed": True, "msg": "no."}
    with taken(*with_agents(run, 2)):
        end = run.deploy()
    assert end["msg"].startswith("1 node would change, 0 unchanged, 0 blocked, 1 failed · 1 restart would be due")
    assert not (run.folder / "retry").exists()


def test_a_report_for_programs_is_written_whole(run: Run) -> None:
    file = run.folder / "report.json"
    with taken(*with_agents(run, 1)):
        run.deploy(output="json", output_file=str(file))
    report = json.loads(file.read_text())
    assert report["playbook"] == "deploy"
    assert report["nodes"][0]["services"][0]["restarted"] is True
    assert any(line.startswith("NODE") for line in run.told)


def test_only_what_is_asked_for_is_touched(run: Run) -> None:
    nodes = with_agents(run, 2, service(), service("libvirt"))
    with taken(*nodes):
        run.deploy(question=Question("n1", "libvirt"))
    assert [(host, read(options["bundle"]).service) for host, options in run.calls] == [("n1", "libvirt")]


@pytest.mark.parametrize(
    ("question", "said"), [(Question("nobody"), "has no node nobody"), (Question("", "lib"), "No node runs lib")]
)
def test_what_is_not_there_is_refused_before_anyone_is_asked(run: Run, question: Question, said: str) -> None:
    with taken(*with_agents(run, 1)), pytest.raises(NotThereError, match=said):
        run.turn("looking", question=question)


def test_a_run_without_a_data_plane_is_refused(run: Run) -> None:
    with pytest.raises(KubernetesError, match="No data plane was read"):
        run.turn("looking")


def test_a_step_without_a_run_is_refused(run: Run) -> None:
    run.hosts = {"n": {}}
    with pytest.raises(NotThereError, match="No run was begun"):
        run.take("node", "n")


def test_a_second_run_of_one_process_does_not_take_the_first_ones_results_for_its_own(run: Run) -> None:
    nodes = with_agents(run, 1)
    with taken(*nodes):
        run.deploy()
        time.sleep(0.01)
        found = {"services": {AGENT: answer(service())}, "missing_images": []}
        run.hosts["n0"]["edpm_rollout_found"] = Look.at("n0").judged(found)
        assert counts(run.deploy()) == {"unchanged": 1}


def test_rollback_asks_for_the_generation_before_where_there_is_one(run: Run) -> None:
    nodes = with_agents(run, 2)
    live = {AGENT: answer(service(), previous="0" * 64)}
    run.hosts["n0"]["edpm_rollout_found"] = {"services": live, "planned": []}
    run.hosts["n1"]["edpm_rollout_found"] = {"services": {AGENT: answer(service())}, "planned": []}
    with taken(*nodes):
        end = run.deploy("rollback")
    assert run.calls == [("n0", {"state": "previous", "service": AGENT, "instance": ""})]
    assert counts(end) == {"changed": 1, "unchanged": 1}


def test_remove_takes_nova_compute_before_libvirt_and_needs_no_plan(run: Run) -> None:
    run.hosts = {"gone": {}}
    services = {name: answer(service(name)) for name in ("libvirt", "nova_compute")}
    run.hosts["gone"]["edpm_rollout_found"] = {"services": services}
    run.deploy("remove", Question("gone"))
    assert [options["service"] for _host, options in run.calls] == ["nova_compute", "libvirt"]
    assert all(options["state"] == "absent" for _host, options in run.calls)


#: What a first deployment that failed leaves, as the node tells it.
REST: dict[str, Any] = {
    **{"digest": None, "image": None, "generations": [], "healthy": False, "fault": "it has no live generation"},
    "identity": {"cell": "nova-cell1", "host": "n0"},
}


def test_remove_takes_the_rest_of_a_first_deployment_that_failed(run: Run) -> None:
    run.hosts = {"n0": {"edpm_rollout_found": {"services": {"nova_compute": answer(compute("n0"), **REST)}}}}
    run.deploy("remove", Question("n0"))
    assert [options["state"] for _host, options in run.calls] == ["absent"]


def test_the_rest_of_a_first_deployment_that_failed_is_shown_as_nothing_that_is_live(run: Run) -> None:
    nodes = with_agents(run, 1)
    services = {"nova_compute": answer(compute("n0"), **REST), AGENT: answer(service(), **REST)}
    with taken(*nodes):
        run.hosts["n0"]["edpm_rollout_found"] = Look.at("n0").judged({"services": services, "missing_images": []})
        run.turn("looking", "status")
        run.take("status", "n0")
        told = [" ".join(line.split()) for line in run.told]
        assert told[1].endswith(f"{NOTHING} {NOTHING} {NOTHING} new {bundle(service()).digest[:7]}")
        assert told[2].endswith(
            f"{NOTHING} {NOTHING} {NOTHING} leaving: only the rest of a deployment that failed is there"
        )
        assert "0 services live" in told[-1]
        assert "unhealthy" not in told[-1]
        run.deploy()
    assert [read(options["bundle"]).name for _host, options in run.calls] == [AGENT]


class TestThePlainInstanceAlone:
    """`-e service=nova_compute@` on a node that runs nova_compute@fast, too."""

    PLAIN, FAST = service("nova_compute"), service("nova_compute", instance="fast")
    ASKED = Question("n0", "nova_compute@")

    @pytest.mark.parametrize(("mode", "state"), [("remove", "absent"), ("rollback", "previous")])
    def test_the_other_instance_is_neither_removed_nor_rolled_back(self, run: Run, mode: str, state: str) -> None:
        run.hosts = {"n0": {}}
        services = {one.name: answer(one, previous="bbb") for one in (self.PLAIN, self.FAST)}
        with taken(node("n0", self.PLAIN, self.FAST)):
            run.hosts["n0"]["edpm_rollout_found"] = {"services": services, "planned": []}
            run.deploy(mode, self.ASKED)
        assert run.calls == [("n0", {"state": state, "service": "nova_compute", "instance": ""})]

    def test_the_other_instance_is_not_deployed(self, run: Run) -> None:
        run.hosts = {"n0": {}}
        with taken(node("n0", self.PLAIN, self.FAST)):
            run.deploy(question=self.ASKED)
        assert [read(options["bundle"]).name for _host, options in run.calls] == ["nova_compute"]

    def test_both_are_meant_by_the_name_alone(self, run: Run) -> None:
        run.hosts = {"n0": {}}
        services = {one.name: answer(one) for one in (self.PLAIN, self.FAST)}
        run.hosts["n0"]["edpm_rollout_found"] = {"services": services}
        run.deploy("remove", Question("n0", "nova_compute"))
        assert sorted(options["instance"] for _host, options in run.calls) == ["", "fast"]


@pytest.mark.parametrize(
    ("question", "said"),
    [(Question(), "Nothing is removed unless a node is named"), (Question("nobody"), "has no host nobody")],
)
def test_remove_wants_a_node_of_the_inventory(run: Run, question: Question, said: str) -> None:
    run.hosts = {"n": {}}
    with pytest.raises(NotThereError, match=said):
        run.turn("looking", "remove", question)


@pytest.mark.parametrize("known", [False, True])
def test_computes_get_to_know_a_new_one_and_have_no_other_work(run: Run, known: bool) -> None:
    nodes = [node(name, compute(name)) for name in ("old", "new")]
    run.hosts = {one.name: {} for one in nodes}
    with taken(*nodes):
        for name in run.hosts:
            facts: dict[str, Any] = {"ssh_host_keys": {"ssh-ed25519": f"key-of-{name}"}, "services": {}}
            if name == "old":
                facts["services"] = {"nova_compute": answer(compute("old"), live=_live(compute("old"), known))}
            run.hosts[name]["edpm_rollout_found"] = Look.at(name).judged(facts)
        run.deploy()
    texts = {host: _known_hosts(options["bundle"]) for host, options in run.calls}
    assert set(texts) == ({"new"} if known else {"old", "new"})
    assert set(texts.values()) == {ALL}


PAIR = {"edpm_cloud": "mine"}


def test_openstack_is_told_of_a_compute_that_leaves_by_the_name_that_the_node_remembers(run: Run) -> None:
    known = answer(compute("n0"), identity={"cell": "nova-cell1", "host": "n0.example"})
    run.hosts = {"n0": {"edpm_rollout_found": {"services": {"nova_compute": known}}}}
    run.variables = PAIR
    run.answers["n0"] = {"changed": True, "removed": ["/a"], "msg": "nova_compute was removed from the node."}
    run.turn("looking", "remove", Question("n0"))
    assert run.turn("leaving") == ["n0"]
    run.variables = {**PAIR, "inventory_hostname": "n0", **run.hosts["n0"]}
    assert run.turn("computes") == ["n0.example"]
    run.variables = PAIR
    end = run.deploy("remove", Question("n0"))
    assert run.turn("left") == ["n0"]
    [told] = end["report"]["nodes"][0]["services"]
    assert (told["state"], told["digest"]) == ("removed", None)


def test_without_credentials_openstack_is_not_told_and_that_is_said(run: Run) -> None:
    run.hosts = {"n0": {"edpm_rollout_found": {"services": {"nova_compute": answer(compute("n0"))}}}}
    run.turn("looking", "remove", Question("n0"))
    assert run.turn("leaving") == NOBODY
    run.turn("working")
    run.take("summary", "n0")
    assert run.told[-1].startswith("Nova and Placement are not told that the compute leaves. There are no credentials")


def test_a_compute_whose_servers_have_not_left_is_not_touched(run: Run) -> None:
    run.hosts = {"n0": {"edpm_rollout_found": {"services": {"nova_compute": answer(compute("n0"))}}}}
    run.variables = PAIR
    run.hosts["n0"]["edpm_rollout_told"] = {"failed": True, "msg": "n0 has 2 servers."}
    end = run.deploy("remove", Question("n0"))
    assert run.calls == []
    assert end["failing"] == {"n0": {"msg": "n0 has 2 servers.", "unreachable": False}}


@pytest.mark.parametrize(
    ("variables", "arrived"),
    [({}, NOBODY), ({"edpm_discover": True}, ["n0"]), ({"edpm_discover_command": ["nova-manage"]}, ["n0"])],
)
def test_a_new_compute_is_discovered_where_somebody_says_how(
    run: Run, variables: dict[str, Any], arrived: list[str]
) -> None:
    run.variables = variables
    nodes = [node("n0", compute("n0")), node("n1", service())]
    run.hosts = {one.name: {} for one in nodes}
    with taken(*nodes):
        for name in run.hosts:
            facts = {"ssh_host_keys": {"ssh-ed25519": f"key-of-{name}"}, "services": {}}
            run.hosts[name]["edpm_rollout_found"] = Look.at(name).judged(facts)
        run.deploy()
        assert run.turn("arrived") == arrived
        run.variables = {"inventory_hostname": "n0"}
        assert run.turn("computes") == ["n0"]


def test_another_file_is_a_change(run: Run) -> None:
    nodes = with_agents(run, 1)
    with taken(*nodes):
        found = {"services": {AGENT: answer(other(service()))}, "missing_images": []}
        run.hosts["n0"]["edpm_rollout_found"] = Look.at("n0").judged(found)
        assert counts(run.deploy()) == {"changed": 1}


def _live(one: ServicePlan, known: bool) -> dict[str, str]:
    """The live files that a node has."""
    made = parcel(one, bundle(one))
    assert made
    files = {file.path: file.content for file in made.live}
    return {path: sha256(text).hexdigest() for path, text in ({**files, KNOWN: ALL} if known else files).items()}


def _known_hosts(text: str) -> bytes:
    return next(file.content for file in read(text).live if file.path.endswith("known_hosts"))
