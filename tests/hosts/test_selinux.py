# SPDX-License-Identifier: GPL-3.0-or-later
"""A node whose kernel enforces SELinux: what a service needs is labelled for it, and what is the node's stays so.

The tests build on each other: each leaves the probe live and healthy.
"""

from __future__ import annotations

import re

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.built_in import OVN_METADATA_AGENT
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.nova_compute import NOVA_COMPUTE
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.running import Running
from edpm_lab import images

from .site import IMAGE, Site, definition, like

SECURITY = "selinux"
GENERATION = "/var/lib/openstack/probe/current/"
#: Of whom nothing may be refused: containers, and podman that runs them.
OURS = re.compile(r"scontext=\w+:\w+:(container_t|spc_t|podman_t|podman_conmon_t)[: ]")
#: Debian's policy keeps from a login what a command says in a confined container; that it succeeds is still seen.
UNHEARD = re.compile(r"denied +\{ write \} .* tcontext=\w+:\w+:unconfined_t:\S+ tclass=fifo_file ")


@pytest.fixture(autouse=True)
def _enforcing(site: Site) -> None:
    assert site.sh("getenforce") == "Enforcing"


def kinds(site: Site, *paths: str) -> set[str]:
    """The types of all that lies at and below paths."""
    labels = site.sh(f"find {' '.join(paths)} -printf '%Z\\n'").splitlines()
    return {label.split(":")[2] for label in labels}


def refused(site: Site) -> list[str]:
    return [line for line in site.denied() if OURS.search(line) and not UNHEARD.search(line)]


def test_a_confined_service_reads_its_files_and_writes_to_its_folder(site: Site) -> None:
    probe = definition("probe")
    assert [site.converge(probe), site.converge(probe)] == [1, 0]
    assert re.match(r"system_u:system_r:container_t:s0:c\d+,c\d+$", site.confinement("probe"))
    assert kinds(site, GENERATION, "/var/lib/probe") == {"container_file_t"}
    assert site.sh("cat /var/lib/probe/read-by-probe") == "[DEFAULT]\ninterval = 5"
    assert site.sh("matchpathcon -V /etc/containers/systemd/edpm_probe.container").endswith("verified.")
    assert refused(site) == []


def test_a_renewed_certificate_is_read_without_a_restart(site: Site) -> None:
    first = site.invocation("probe")
    assert site.converge(definition("probe"), certificate="second") == 1
    assert site.holds("probe", "grep -qx second /etc/probe/tls/ca.crt")
    assert site.invocation("probe") == first
    assert kinds(site, "/var/lib/openstack/probe/live/etc/probe/tls") == {"container_file_t"}


def test_two_services_share_a_folder(site: Site) -> None:
    assert site.converge(definition("peer")) == 1
    assert site.holds("peer", "grep -qx 'interval = 5' /var/lib/probe/read-by-probe")
    assert kinds(site, "/var/lib/probe") == {"container_file_t"}
    assert refused(site) == []


def test_labels_stay_right_through_a_change_and_the_way_back(site: Site) -> None:
    probe = definition("probe")
    assert site.converge(probe, interval=7, certificate="second") == 1
    assert site.sh("cat /var/lib/probe/read-by-probe") == "[DEFAULT]\ninterval = 7"
    assert site.converge(probe, service_state="previous") == 1
    assert site.sh("cat /var/lib/probe/read-by-probe") == "[DEFAULT]\ninterval = 5"
    assert kinds(site, GENERATION, "/var/lib/probe") == {"container_file_t"}
    assert refused(site) == []


@pytest.mark.parametrize(
    ("running", "folder"),
    [
        pytest.param(NOVA_COMPUTE, "/var/lib/nova", id="nova_compute"),
        pytest.param(OVN_METADATA_AGENT, "/var/lib/neutron", id="ovn_metadata_agent"),
    ],
)
def test_a_service_that_works_with_the_nodes_own_paths_leaves_their_labels(
    site: Site, running: Running, folder: str
) -> None:
    made = like(running, folder)
    assert site.converge(made) == 1
    assert site.confinement(str(made["name"])).startswith("system_u:system_r:spc_t:")
    assert "container_file_t" not in kinds(site, folder)
    assert site.sh(f"matchpathcon -V {folder}").endswith("verified.")
    assert refused(site) == []


def test_a_container_does_not_get_at_what_is_not_labelled_for_it(site: Site) -> None:
    site.sh("mkdir -p /var/lib/elsewhere; echo secret > /var/lib/elsewhere/file")
    run = f"podman run --rm --network=host --volume /var/lib/elsewhere:/elsewhere {images.reference(IMAGE)}"
    assert site.sh(f"{run} cat /elsewhere/file", check=False) == ""
    assert any("container_t" in line and "var_lib_t" in line for line in refused(site))
