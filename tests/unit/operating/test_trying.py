# SPDX-License-Identifier: GPL-3.0-or-later
"""How often a node is tried, what is news, what the settings say, and the figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._operator.deciding import (
    Need,
)
from ansible_collections.edpm.services.plugins.plugin_utils._operator.metrics import Metrics
from ansible_collections.edpm.services.plugins.plugin_utils._operator.settings import (
    BadSettingsFileError,
    OperatorSettings,
)
from ansible_collections.edpm.services.plugins.plugin_utils._operator.trying import Attempts
from ansible_collections.edpm.services.plugins.plugin_utils._watch.news import Memory

from tests.unit.control.decisions import NAMESPACE, WHOLE, plain
from tests.unit.control.worlds import Body, compute, thing


class TestAttempts:
    need = Need("deploy", NAMESPACE, "node-0", WHOLE, "key")

    def test_a_pause_doubles_up_to_its_longest_and_something_new_is_tried_at_once(self) -> None:
        tries = Attempts(10, 60)
        assert tries.due(self.need) == 0
        pauses = []
        for _number in range(5):
            tries.began(self.need, 100.0)
            pauses.append(tries.due(self.need) - 100.0)
        assert pauses == [10, 20, 40, 60, 60]
        assert tries.due(replace(self.need, key="other")) == 0
        assert tries.due(replace(self.need, node="node-1")) == 0

    def test_the_pause_begins_when_the_run_ends(self) -> None:
        tries = Attempts(10, 60)
        tries.began(self.need, 100.0)
        tries.busy("deploy", NAMESPACE, ["node-0", "node-1"], 500.0)
        assert tries.due(self.need) == 510.0

    def test_what_is_not_wanted_any_more_is_forgotten(self) -> None:
        tries = Attempts(10, 60)
        tries.began(self.need, 100.0)
        tries.settled([])
        assert tries.due(self.need) == 0

    @pytest.mark.parametrize(("generation", "waits"), [(1, True), (2, False)])
    def test_a_failure_that_an_earlier_operator_saw_is_waited_for_too(self, generation: int, waits: bool) -> None:
        last = {"result": "Failed", "completionTime": "1970-01-01T00:01:40Z"}
        stands = plain(compute(status={"lastRun": last, "observedGeneration": generation})).service_objects()[0]
        due = Attempts(10, 60).due(replace(self.need, objects=(stands,)))
        assert due == (110.0 if waits else 0)


class TestNews:
    def body(self, **more: Any) -> Body:
        return {**thing("v1", "Thing", "one", {"a": "b"}), **more}

    def test_the_same_twice_is_news_once(self) -> None:
        memory = Memory()
        first = memory.change(None, self.body())
        assert first is not None
        assert (first.what, first.kind, first.namespace, first.name) == ("listed", "Thing", NAMESPACE, "one")
        assert memory.change("MODIFIED", self.body()) is None
        fresh = memory.change("ADDED", thing("v1", "Thing", "two"))
        assert fresh is not None
        assert fresh.what == "added"
        changed = memory.change("MODIFIED", thing("v1", "Thing", "one", {"a": "c"}))
        assert changed is not None
        assert changed.what == "modified"
        gone = memory.change("DELETED", self.body())
        assert gone is not None
        assert gone.what == "deleted"

    def test_a_status_of_ours_and_a_summary_are_no_news_and_that_of_others_is(self) -> None:
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        for body, news in ((self.body(), True), (self.body(spec={"dataplaneNodeName": "one"}), False)):
            memory = Memory()
            memory.change("ADDED", body)
            assert (memory.change("MODIFIED", {**body, "status": ready}) is not None) is news
        memory = Memory()
        memory.change("ADDED", self.body())
        summary = {"a": "b", "edpm.openstack.org/services-message": "1 of 1"}
        assert memory.change("MODIFIED", thing("v1", "Thing", "one", summary)) is None

    def test_no_content_is_told(self) -> None:
        change = Memory().change("ADDED", self.body(data={"password": "c2VjcmV0"}))
        assert change is not None
        assert "c2VjcmV0" not in str(change.data())


class TestSettings:
    def test_a_file_with_all_of_it(self, tmp_path: Path) -> None:
        file = tmp_path / "settings.yaml"
        file.write_text(
            "namespaces: [openstack]\nkinds: [OVNMetadataAgent]\nresync: 60\nrun: {image: 'ee:1', ttl: 60}\n"
        )
        found = OperatorSettings.read(file)
        assert (found.namespaces, found.kinds, found.resync) == (("openstack",), ("OVNMetadataAgent",), 60.0)
        assert (found.options()["ttl"], found.options()["shard_size"], found.options()["deadline"]) == (60, 50, 7200)

    def test_options_of_a_run_are_taken_as_ee_job_takes_them(self) -> None:
        run = {"shard_size": "50", "deadline": None, "image_pull_secrets": "one"}
        found = OperatorSettings(namespaces=("openstack",), run=run)
        assert found.run == {"shard_size": 50, "deadline": None, "image_pull_secrets": ["one"]}
        assert (found.options()["shard_size"], found.options()["deadline"]) == (50, None)

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("kinds: [A]", "No namespace is named"),
            ("namespaces: openstack", "namespaces is 'openstack', and a list of names is wanted"),
            ("namespaces: [a]\nresnyc: 3", "names resnyc; it may name"),
            ("namespaces: [a]\nport: true", "port is True, and a whole number is wanted"),
            ("namespaces: [a]\nrun: {playbook: x}", "run names playbook, which the operator decides by itself"),
            ("namespaces: [a]\nrun: {extra_vars: }", "run has no value for extra_vars; write one, or leave it out."),
            ("namespaces: [a]\nrun: {shard_size: many}", "run cannot be used (argument 'shard_size' is of type"),
            ("namespaces: [a]\nrun: {mounts: [{secret: a}]}", "missing required arguments: path found in mounts"),
            ("namespaces: [a]\nresync: 0", "resync is 0.0; choose more than 0."),
            ("namespaces: [a]\nresync: .nan", "resync is nan; choose more than 0."),
            ("namespaces: [a]\nsettle: -1", "settle is -1.0; choose 0 or more."),
            ("namespaces: [a]\nlease_duration: 0", "lease_duration is 0; choose more than 0."),
            ("namespaces: [a]\nfirst_pause: -3", "first_pause is -3.0; choose more than 0."),
            ("namespaces: [a]\nlongest_pause: 0", "longest_pause is 0.0; choose more than 0."),
            ("namespaces: [a]\nremovals_at_once: 0", "removals_at_once is 0; choose more than 0."),
            ("namespaces: [a]\nport: 0", "port is 0; choose more than 0."),
            ("namespaces: [a]\nport: 70000", "port is 70000; choose 1 to 65535."),
            (
                "namespaces: [a]\nextra_vars: {since: [2026-01-01]}",
                "since has a date or something else that is no text",
            ),
            (f"namespaces: [a]\nlease: {'x' * 64}", "lease has 64 characters; choose 63 or fewer."),
            ("namespaces: [a", "is not YAML"),
            ("- a", "is no mapping"),
        ],
    )
    def test_a_fault_is_a_sentence(self, tmp_path: Path, text: str, said: str) -> None:
        file = tmp_path / "settings.yaml"
        file.write_text(text)
        with pytest.raises(BadSettingsFileError) as caught:
            OperatorSettings.read(file)
        assert said in str(caught.value)

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(BadSettingsFileError, match="cannot be read"):
            OperatorSettings.read(tmp_path / "none.yaml")


def test_figures_are_written_as_prometheus_reads_them() -> None:
    figures = Metrics()
    figures.add("edpm_operator_runs_total", task="deploy")
    figures.add("edpm_operator_runs_total", 2, task="deploy")
    figures.set_all("edpm_operator_service_objects", "reason", {'odd "one"': 3})
    lines = figures.text().splitlines()
    assert 'edpm_operator_runs_total{task="deploy"} 3' in lines
    assert 'edpm_operator_service_objects{reason="odd \\"one\\""} 3' in lines
    assert lines.count("# TYPE edpm_operator_runs_total counter") == 1
