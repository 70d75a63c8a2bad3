# SPDX-License-Identifier: GPL-3.0-or-later
"""One call converges a service on a real node: real systemd, real podman, real kills.

The tests build on each other: each leaves the probe live and healthy.
"""

from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import Bundle, Validation
from ansible_collections.edpm.services.plugins.module_utils._node.travel import written
from edpm_lab import images
from edpm_lab.labs import Lab
from edpm_lab.nodes import Nodes, default_names

from .probe import Caller, bundle

FIRST = {"01.conf": b"[DEFAULT]\nvalue = one\n", "05-secret.conf": b"password = marked-5ecret-value\n"}
SECOND = {**FIRST, "01.conf": b"[DEFAULT]\nvalue = two\n"}
HOME = "/var/lib/openstack/probe"


@pytest.fixture(scope="module")
def image() -> str:
    return images.image("base")


@pytest.fixture(scope="module")
def caller(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Caller:
    nodes = Nodes(lab)
    name = default_names(1)[0]
    nodes.up([name])
    return Caller(nodes, name, tmp_path_factory.mktemp("calls"))


@pytest.fixture
def live(caller: Caller, image: str) -> Bundle:
    """The probe with its first files, live and healthy."""
    made = bundle(image, FIRST)
    if not caller.runs(made.digest):
        answer = caller.deploy(made)
        assert not answer["failed"], answer["shown"]
    return made


def test_a_first_deployment_is_announced_then_made_and_the_second_touches_nothing(caller: Caller, image: str) -> None:
    made = bundle(image, FIRST)
    before = caller.tree()
    announced = caller.deploy(made, "--check", "--diff")
    assert (announced["changed"], announced["restarted"]) == (True, True), announced["shown"]
    assert announced["files"]["added"] == ["conf.d/01.conf", "conf.d/05-secret.conf", "conf.d/program", "kolla.json"]
    assert "value = one" in announced["shown"]
    assert "marked-5ecret-value" not in announced["shown"]
    assert caller.tree() == before

    first = caller.deploy(made, "-vvv")
    assert (first["changed"], first["restarted"]) == (True, True), first["shown"]
    assert "marked-5ecret-value" not in first["shown"]
    assert caller.sh(f"stat -c '%a %U' {HOME} {HOME}/current/ {HOME}/current/conf.d/01.conf").split() == [
        *("700", "root", "700", "root", "600", "root"),
    ]
    assert caller.sh("id -nG probe; stat -c '%U %G %a' /var/lib/probe /run/probe").split() == [
        *("probe", "probers", "probe", "probe", "750", "probe", "probe", "710"),
    ]
    assert "value = one" in caller.sh("podman exec edpm_probe cat /etc/probe/01.conf")

    tree, invocation = caller.tree(), caller.invocation()
    second = caller.deploy(made)
    assert (second["changed"], second["restarted"]) == (False, False), second["shown"]
    assert (caller.tree(), caller.invocation()) == (tree, invocation)
    found = caller.facts()
    assert (found["digest"], found["drift"], found["healthy"], found["unfinished"]) == (made.digest, [], True, False)
    assert found["identity"] == {"cell": "nova-cell1", "host": "edpm-compute-0"}


def test_both_ways_to_a_node_do_the_same_and_its_log_tells_of_each_call(caller: Caller, live: Bundle) -> None:
    """Where the usual Python is missing, Ansible searches for one and calls the module in its own way."""
    told = "journalctl -t ansible-edpm.services.service -o cat | grep -c 'Invoked with bundle=NOT_LOGGING_PARAMETER'"
    before = int(caller.sh(told))
    caller.sh("mv /usr/bin/python3 /usr/bin/hidden")
    try:
        searched = caller.deploy(live, "-e", "ansible_python_interpreter=auto", "--diff")
    finally:
        caller.sh("mv /usr/bin/hidden /usr/bin/python3")
    usual = caller.deploy(live, "-e", "ansible_python_interpreter=auto", "--diff")
    assert (searched["failed"], searched["changed"], usual["changed"]) == (False, False, False), searched["shown"]
    ours = {key: one for key, one in searched.items() if key not in ("ansible_facts", "invocation", "shown")}
    assert ours == {key: one for key, one in usual.items() if key != "shown"}
    assert int(caller.sh(told)) == before + 2


def test_a_generation_that_dies_is_taken_back_with_its_reason(caller: Caller, image: str, live: Bundle) -> None:
    broken = bundle(image, {**FIRST, "09.conf": b"die of password = marked-5ecret-value\n"})
    answer = caller.deploy(broken)
    assert answer["failed"], answer["shown"]
    assert answer["rolled_back"]
    assert f"generation {live.digest[:7]} runs again as before" in answer["msg"]
    assert "probe started" in answer["log"]
    assert "marked-5ecret-value" not in answer["shown"]
    assert caller.runs(live.digest)
    assert broken.digest not in caller.sh(f"ls {HOME}/generations")


def test_what_the_images_validator_or_quadlet_refuses_never_touches_the_service(
    caller: Caller, image: str, live: Bundle
) -> None:
    tree, invocation = caller.tree(), caller.invocation()
    text = live.units["edpm_probe.container"].replace("Pull=never", "Nonsense=yes")
    refused = {
        "/etc/probe/09.conf:nonsense": bundle(image, {**FIRST, "09.conf": b"nonsense\n"}),
        "unsupported key 'Nonsense'": dataclasses.replace(live, digest="0" * 64, units={"edpm_probe.container": text}),
        "cannot be pulled": bundle("localhost/not/there:1", FIRST),
    }
    runs = {says: caller.begin("service", {"bundle": written(made)}) for says, made in refused.items()}
    for says, run in runs.items():
        answer = run()
        assert answer["failed"], answer["shown"]
        assert says in answer["msg"], answer["shown"]
    assert caller.invocation() == invocation
    assert [line for line in caller.tree().splitlines() if "/generations " not in line] == [
        line for line in tree.splitlines() if "/generations " not in line
    ]


def test_what_was_edited_by_hand_is_seen_and_set_right(caller: Caller, live: Bundle) -> None:
    caller.sh(f"echo edited >> {HOME}/current/conf.d/01.conf; touch {HOME}/current/conf.d/99.conf")
    caller.sh("echo '# edited' >> /etc/containers/systemd/edpm_probe.container")
    names = ["conf.d/01.conf", "conf.d/99.conf", "/etc/containers/systemd/edpm_probe.container"]
    assert [one["name"] for one in caller.facts()["drift"]] == names
    starts = caller.starts()
    assert [one["name"] for one in caller.deploy(live)["drift"]] == names
    assert caller.starts() == starts + 1
    assert caller.runs(live.digest)
    assert "edited" not in caller.sh(f"cat {HOME}/current/conf.d/* /etc/containers/systemd/edpm_probe.container")


def test_a_run_killed_while_it_validates_or_waits_is_finished_by_the_next(
    caller: Caller, image: str, live: Bundle
) -> None:
    slow = Validation(("sh", "-c", "sleep 10"), {"conf.d": "/etc/probe"})
    made = bundle(image, SECOND, validation=slow)
    starts = caller.starts()
    validating = caller.begin("service", {"bundle": written(made)})
    caller.until("podman container exists edpm_probe-validate")
    caller.kill_the_run()
    assert (caller.starts(), caller.runs(live.digest)) == (starts, True)

    waiting = bundle(image, SECOND, settle=20)
    settling = caller.begin("service", {"bundle": written(waiting)})
    caller.until(f"test -e {HOME}/intent.json && podman exec edpm_probe grep -q two /etc/probe/01.conf 2>/dev/null")
    caller.kill_the_run()
    answer = caller.deploy(bundle(image, SECOND))
    assert (answer["changed"], answer["unfinished"], answer["restarted"]) == (True, True, True), answer["shown"]
    found = caller.facts()
    assert (found["unfinished"], found["healthy"], found["drift"]) == (False, True, [])
    assert all("Killed" in run()["shown"] for run in (validating, settling))


def test_of_two_runs_at_once_one_waits_or_is_refused(caller: Caller, image: str) -> None:
    slow = bundle(image, FIRST, settle=15)
    run = caller.begin("service", {"bundle": written(slow)})
    caller.until(f"test -e {HOME}/intent.json")
    waits = caller.begin("service", {"bundle": written(slow)})
    refused = caller.deploy(slow, lock_timeout=0)
    assert "Another run works on this node: process" in refused["msg"], refused["shown"]
    assert [run()["changed"], waits()["changed"]] == [True, False]


def test_a_changed_file_restarts_the_service_exactly_once(caller: Caller, image: str, live: Bundle) -> None:
    starts = caller.starts()
    answer = caller.deploy(bundle(image, SECOND), "--diff")
    assert answer["files"] == {"added": [], "removed": [], "changed": ["conf.d/01.conf"]}, answer["shown"]
    assert caller.starts() == starts + 1
    assert "value = two" in caller.sh("podman exec edpm_probe cat /etc/probe/01.conf")
    assert caller.sh(f"readlink {HOME}/previous") == f"generations/{live.digest}"


def test_a_change_of_files_alone_asks_nothing_of_systemd_but_a_restart(
    caller: Caller, image: str, live: Bundle
) -> None:
    """Where no labels are asked for, the unit mounts a link."""
    plain = {name: text.replace(":ro,z", ":ro") for name, text in live.units.items()}
    first, second, deadly = (
        dataclasses.replace(bundle(image, files, units=plain), digest=digit * 64)
        for digit, files in (("1", FIRST), ("2", SECOND), ("3", {**FIRST, "09.conf": b"die\n"}))
    )
    read = "systemctl show --value --property=UnitsLoadFinishTimestampMonotonic"
    seen = "podman exec edpm_probe grep -h value /etc/probe/01.conf"
    assert not caller.deploy(first)["failed"]
    before, starts = caller.sh(read), caller.starts()
    answer = caller.deploy(second)
    assert (answer["changed"], answer["units"], caller.starts()) == (True, [], starts + 1), answer["shown"]
    assert (caller.sh(read), caller.sh(seen)) == (before, "value = two")
    assert caller.deploy(deadly)["rolled_back"]
    assert (caller.sh(read), caller.sh(seen)) == (before, "value = two")
    assert not caller.go_back()["failed"]
    assert (caller.sh(read), caller.sh(seen)) == (before, "value = one")
    caller.sh("podman kill edpm_probe")
    caller.until(f"test $({seen.replace(' -h', ' -c')} 2>/dev/null || echo 0) = 1")
    found = caller.facts()
    assert (found["digest"], found["drift"], caller.sh(read)) == (first.digest, [], before)


def test_a_first_deployment_that_fails_leaves_nothing_running(caller: Caller, image: str) -> None:
    answer = caller.deploy(bundle(image, {"01.conf": b"die\n"}, instance="two"))
    assert "nothing of this first deployment was left running" in answer["msg"], answer["shown"]
    assert caller.sh("ls /etc/containers/systemd/*.container").split() == [
        "/etc/containers/systemd/edpm_probe.container"
    ]
    assert caller.sh("ls /var/lib/openstack/probe@two").split() == ["identity.json"]
    assert caller.sh("podman ps --all --format '{{.Names}}'").split() == ["edpm_probe"]
    works = caller.deploy(bundle(image, FIRST, instance="two"))
    assert works["changed"], works["shown"]
    assert caller.sh("systemctl is-active edpm_probe@two.service") == "active"


def test_no_secret_is_in_the_journal_or_left_in_a_temporary_folder(caller: Caller) -> None:
    """What the probe itself prints is its own; the search leaves its unit out."""
    found = caller.sh(
        "journalctl --no-pager -o json | grep -v edpm_probe | grep -c marked-5ecret-value; "
        "grep -rl marked-5ecret-value /tmp /root /run 2>/dev/null",
        check=False,
    )
    assert found == "0"
