# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbooks on real nodes: real services, real failures. The tests build on each other, in their order."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

import pytest
from edpm_lab.labs import Lab
from edpm_lab.nodes import Nodes, default_names

from .site import AGENT, MARK, Site

#: How often somebody asked libvirt how it is.
HEALTH_CHECKS = "podman events --stream=false --filter event=exec --filter container=edpm_libvirt | wc -l"
TYPO = "[DEFAULT]\ndebgu = True\n"
#: A mapping without a device: the agent reads it when it starts, and ends.
DEADLY = "[sriov_nic]\nphysical_device_mappings = nowhere\n"


def good() -> str:
    """A snippet that works, and that no node has had yet."""
    return f"[DEFAULT]\n# {next(_numbers)} arrives as it is: {{{{ nothing }}}} is rendered\ndebug = True\n"


_numbers = itertools.count()


@pytest.fixture(scope="module")
def site(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    names = default_names(3)
    Nodes(lab).up(names)
    made = Site(lab, names, tmp_path_factory.mktemp("site"))
    yield made
    for node in made.nodes.list():
        made.nodes.start(node.name)
    made.clear()


@pytest.fixture
def live(site: Site) -> Site:
    """The site with everything up to date, whatever the test before left. What is planned is what is live."""
    site.snippets = {name: text for name in site.names if (text := site.override(name))}
    site.annotations.clear()
    site.left_out.clear()
    (site.folder / "edpm-deploy.retry").unlink(missing_ok=True)
    answer = site.play("deploy")
    assert answer.code == 0, answer.shown
    return site


def test_check_mode_tells_all_and_touches_nothing(site: Site) -> None:
    before = [site.tree(name) for name in site.names]
    answer = site.play("deploy", "--check", "--diff")
    assert answer.code == 0, answer.shown
    assert answer.said.startswith("3 nodes would change, 0 unchanged"), answer.said
    assert "6 restarts would be due" in answer.said
    assert "01-agent.conf" in answer.shown
    assert MARK not in answer.shown
    assert [site.tree(name) for name in site.names] == before


def test_a_first_deployment_makes_every_service_run_in_order(site: Site) -> None:
    answer = site.play("deploy", "-vvv")
    assert answer.code == 0, answer.shown
    assert answer.said.startswith("3 nodes changed, 0 unchanged, 0 blocked, 0 failed · 6 restarts"), answer.said
    # One to look at the node, and one for each service.
    assert answer.shown.count("SSH: EXEC") == 3 * len(site.names)
    first = site.names[0]
    assert answer.shown.index(f"{first} · libvirt ·") < answer.shown.index(f"{first} · {AGENT} ·")
    assert "batch 1 of 1" in answer.shown
    for name in site.names:
        assert answer.recap(name)["changed"] == 1
        assert site.sh(name, f"systemctl is-active edpm_libvirt edpm_{AGENT}").split() == ["active", "active"]
        assert "libvirt" in site.sh(name, "podman exec edpm_libvirt virsh version")
    assert not (site.folder / "edpm-deploy.retry").exists()


def test_a_second_deployment_changes_nothing_in_one_round_trip_per_node(live: Site) -> None:
    before = [(live.invocations(name), live.tree(name)) for name in live.names]
    answer = live.play("deploy", "-vvv")
    assert answer.code == 0, answer.shown
    assert all(answer.recap(name)["changed"] == 0 for name in live.names)
    assert answer.said.startswith("0 nodes changed, 3 unchanged, 0 blocked, 0 failed · 0 restarts"), answer.said
    assert answer.shown.count("SSH: EXEC") == len(live.names)
    assert [(live.invocations(name), live.tree(name)) for name in live.names] == before


def test_a_changed_snippet_restarts_exactly_its_service_once(live: Site) -> None:
    first, *others = live.names
    before = {name: live.invocations(name) for name in live.names}
    live.snippets[first] = good()
    answer = live.play("deploy")
    assert answer.code == 0, answer.shown
    assert answer.said.startswith("1 node changed, 2 unchanged"), answer.said
    assert "· 1 restart ·" in answer.said
    after = {name: live.invocations(name) for name in live.names}
    assert after[first]["libvirt"] == before[first]["libvirt"]
    assert after[first][AGENT] != before[first][AGENT]
    assert {name: after[name] for name in others} == {name: before[name] for name in others}
    assert live.override(first) == live.snippets[first]
    again = live.play("deploy")
    assert again.said.startswith("0 nodes changed, 3 unchanged"), again.said


def test_a_typo_is_refused_before_the_service_is_touched_and_the_others_go_on(live: Site) -> None:
    first, second, _third = live.names
    before = (live.invocations(first), live.live(first, AGENT))
    live.snippets |= {first: TYPO, second: good()}
    answer = live.play("deploy")
    assert answer.code != 0
    assert "debgu" in answer.shown
    assert "was not touched" in answer.shown
    assert answer.said.startswith("1 node changed, 1 unchanged, 0 blocked, 1 failed"), answer.said
    assert (live.invocations(first), live.live(first, AGENT)) == before
    assert answer.recap(first)["failed"] == 1
    assert answer.recap(second)["failed"] == 0
    assert answer.said.endswith("--limit @edpm-deploy.retry")
    assert (live.folder / "edpm-deploy.retry").read_text().split() == [first]


def test_a_snippet_that_makes_the_service_die_is_rolled_back_and_the_message_shows_why(live: Site) -> None:
    first = live.names[0]
    before = live.live(first, AGENT)
    live.snippets[first] = DEADLY
    answer = live.play("deploy", "-e", f"node={first}")
    assert answer.code != 0
    assert "runs again as before" in answer.shown
    assert "Invalid mapping" in answer.shown or "Agent terminated" in answer.shown
    assert live.live(first, AGENT) == before
    assert live.sh(first, f"systemctl is-active edpm_{AGENT}") == "active"


def test_a_node_that_is_down_does_not_stop_the_others_and_is_run_again_later(live: Site) -> None:
    *others, down = live.names
    live.snippets = {name: good() for name in live.names}
    live.nodes.kill(down)
    answer = live.play("deploy", "-T", "5")
    assert answer.code != 0
    assert answer.said.startswith("2 nodes changed, 0 unchanged, 0 blocked, 0 failed, 1 unreachable"), answer.said
    assert answer.recap(down)["unreachable"] == 1
    assert (live.folder / "edpm-deploy.retry").read_text().split() == [down]
    live.nodes.start(down)
    live.sh(down, f"for _ in $(seq 60); do systemctl is-active -q edpm_{AGENT} && exit; sleep 1; done; exit 1")
    again = live.play("deploy", "--limit", "@edpm-deploy.retry")
    assert again.code == 0, again.shown
    assert again.said.startswith("1 node changed, 0 unchanged"), again.said
    assert others[0] not in again.said


def test_no_further_batch_begins_when_the_budget_is_used_up(live: Site) -> None:
    first, second, third = live.names
    live.snippets = {first: TYPO, second: good(), third: good()}
    before = [live.tree(name) for name in (second, third)]
    pace = ("-e", "edpm_deploy_batch=1", "-e", "edpm_deploy_failure_budget=0")
    answer = live.play("deploy", *pace, "-e", "edpm_retry_file=again.txt")
    assert answer.code != 0
    assert answer.said.startswith("0 nodes changed, 0 unchanged, 0 blocked, 1 failed, 2 not started"), answer.said
    assert "stopped: 1 node failed and the failure budget is 0." in answer.shown
    assert (live.folder / "again.txt").read_text().split() == [first, second, third]
    assert [live.tree(name) for name in (second, third)] == before
    tolerated = live.play("deploy", "-e", "edpm_deploy_batch=1", "-e", "edpm_deploy_failure_budget=1")
    assert tolerated.said.startswith("2 nodes changed, 0 unchanged, 0 blocked, 1 failed"), tolerated.said


def test_a_canary_that_fails_ends_the_run(live: Site) -> None:
    first, second, third = live.names
    live.snippets = {first: TYPO, second: good(), third: good()}
    answer = live.play("deploy", "-e", "edpm_deploy_canary=1", "-e", "edpm_deploy_failure_budget=100%")
    assert answer.code != 0
    assert f"batch 1 of 2 (canary): {first}" in answer.shown
    assert answer.said.startswith("0 nodes changed, 0 unchanged, 0 blocked, 1 failed, 2 not started"), answer.said
    live.snippets[first] = good()
    went = live.play("deploy", "-e", "edpm_deploy_canary=1")
    assert went.code == 0, went.shown
    assert went.said.startswith("3 nodes changed"), went.said


def test_blocked_and_held_services_are_told_and_not_touched(live: Site) -> None:
    first, second, _third = live.names
    live.annotations = {
        first: {f"edpm.openstack.org/deploy-{AGENT}": "false"},
        second: {"nova.openstack.org/cell": "x"},
    }
    live.snippets[first] = good()
    before = [live.tree(name) for name in live.names]
    answer = live.play("deploy")
    assert answer.code == 0, answer.shown
    assert "held: " in answer.shown
    assert "NovaCell" in answer.shown
    assert answer.said.startswith("0 nodes changed, 1 unchanged, 1 blocked, 0 failed, 1 held"), answer.said
    assert [live.tree(name) for name in live.names] == before
    strict = live.play("deploy", "-e", "edpm_deploy_strict=true")
    assert strict.code != 0
    assert strict.recap(second)["failed"] == 1


def test_a_service_without_an_image_is_refused_with_a_sentence(live: Site) -> None:
    answer = live.play("deploy", env={"RELATED_IMAGE_EDPM_NEUTRON_SRIOV_AGENT_IMAGE_URL_DEFAULT": ""})
    assert answer.code != 0
    assert f"No image is named for {AGENT}" in answer.shown


def test_a_run_without_a_data_plane_fails(live: Site) -> None:
    live.manifests = "nowhere"
    answer = live.play("deploy")
    live.manifests = "manifests"
    assert answer.code != 0
    assert "nowhere" in answer.shown
    assert "PLAY [" not in answer.shown


def test_status_shows_drift_and_health_in_one_round_trip_per_node(live: Site) -> None:
    first = live.names[0]
    file = f"/var/lib/openstack/{AGENT}/current/conf.d/01-agent.conf"
    live.sh(first, f"echo '# by hand' >> {file}; systemctl stop edpm_libvirt")
    shown = live.play("status", "-vvv")
    assert shown.code == 0, shown.shown
    assert shown.shown.count("SSH: EXEC") == len(live.names)
    assert "conf.d/01-agent.conf" in shown.shown
    assert "1 unhealthy, 1 drifted" in shown.shown
    written = live.play("status", "-e", "output=json", "-e", "output_file=status.json")
    assert written.code == 0, written.shown
    told = {node["name"]: node for node in json.loads((live.folder / "status.json").read_text())["nodes"]}
    of_first = {service["name"]: service for service in told[first]["services"]}
    assert of_first["libvirt"]["healthy"] is False
    assert of_first[AGENT]["drift"] == [{"name": "conf.d/01-agent.conf", "what": "changed"}]
    assert {service["state"] for service in told[live.names[1]]["services"]} == {"up_to_date"}
    repaired = live.play("deploy", "-e", "output=json", "-e", "output_file=deployed.json")
    assert repaired.code == 0, repaired.shown
    report = json.loads((live.folder / "deployed.json").read_text())
    assert report["counts"]["changed"] == 1
    assert report["restarts"] == 2


def test_rollback_goes_to_the_generation_before(live: Site) -> None:
    first, *others = live.names
    old = live.live(first, AGENT)
    live.snippets[first] = good()
    checks = live.sh(first, HEALTH_CHECKS)
    assert live.play("deploy", "-e", f"service={AGENT}").code == 0
    assert live.sh(first, HEALTH_CHECKS) == checks, "libvirt was looked at too, and nobody asked for it"
    new = live.live(first, AGENT)
    before = {name: live.live(name, AGENT) for name in others}
    answer = live.play("rollback", "-e", f"node={first}", "-e", f"service={AGENT}")
    assert answer.code == 0, answer.shown
    assert answer.said.startswith("1 node changed"), answer.said
    assert old != new
    assert live.live(first, AGENT) == old
    assert {name: live.live(name, AGENT) for name in others} == before


def test_remove_takes_everything_of_a_service_off_a_named_node(live: Site) -> None:
    first, second, _third = live.names
    refused = live.play("remove")
    assert refused.code != 0
    assert "Nothing is removed unless a node is named" in refused.shown
    one = live.play("remove", "-e", f"node={first}", "-e", f"service={AGENT}")
    assert one.code == 0, one.shown
    assert live.sh(first, "ls /var/lib/openstack") == "libvirt"
    assert live.sh(first, "ls /etc/containers/systemd | grep sriov || true") == ""
    assert live.sh(first, "systemctl is-active edpm_libvirt") == "active"
    live.left_out = {first}
    (live.folder / "others.yml").write_text(live.nodes.inventory())
    gone = live.play("remove", "-i", "others.yml", "-e", f"node={first}")
    assert gone.code == 0, gone.shown
    assert live.sh(first, "ls /var/lib/openstack 2>/dev/null || true") == ""
    assert live.sh(second, f"systemctl is-active edpm_{AGENT}") == "active"
