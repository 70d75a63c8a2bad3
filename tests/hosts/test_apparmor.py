# SPDX-License-Identifier: GPL-3.0-or-later
"""A node whose kernel has AppArmor: containers run in podman's profile, and what must mount does not.

The tests build on each other: each leaves the probe live and healthy.
"""

from __future__ import annotations

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.built_in import OVN_METADATA_AGENT
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.nova_compute import NOVA_COMPUTE
from edpm_lab import images

from .site import IMAGE, Site, definition, like

SECURITY = "apparmor"
PROFILE = "containers-default-"


@pytest.fixture(autouse=True)
def _with_apparmor(site: Site) -> None:
    assert "apparmor" in site.sh("cat /sys/kernel/security/lsm").split(",")


def test_a_service_runs_in_podmans_profile_and_a_second_run_changes_nothing(site: Site) -> None:
    probe = definition("probe")
    assert [site.converge(probe), site.converge(probe)] == [1, 0]
    profile = site.confinement("probe")
    assert profile.startswith(PROFILE)
    assert profile.endswith("(enforce)")
    assert site.sh("cat /var/lib/probe/read-by-probe") == "[DEFAULT]\ninterval = 5"


def test_it_is_restarted_renewed_and_taken_back_without_a_refusal(site: Site) -> None:
    probe = definition("probe")
    first = site.invocation("probe")
    assert site.converge(probe, certificate="second") == 1
    assert site.holds("probe", "grep -qx second /etc/probe/tls/ca.crt")
    assert site.invocation("probe") == first
    assert site.converge(probe, interval=7, certificate="second") == 1
    assert site.converge(probe, service_state="previous") == 1
    assert site.sh("cat /var/lib/probe/read-by-probe") == "[DEFAULT]\ninterval = 5"
    assert site.confinement("probe").startswith(PROFILE)
    assert site.denied() == []


def test_a_service_with_guests_is_not_confined(site: Site) -> None:
    assert site.converge(like(NOVA_COMPUTE, "/var/lib/nova")) == 1
    assert "unconfined" in site.confinement("like-nova-compute")


def test_what_makes_network_namespaces_may_mount_and_what_is_in_the_profile_may_not(site: Site) -> None:
    assert site.converge(like(OVN_METADATA_AGENT, "/var/lib/neutron")) == 1
    assert site.holds("like-ovn-metadata-agent", "mount -t tmpfs none /mnt && umount /mnt")
    assert site.denied() == []
    run = "podman run --rm --network=host --cap-add=SYS_ADMIN"
    script = f"{images.reference(IMAGE)} sh -c 'cat /proc/self/attr/current; mount -t tmpfs none /mnt && echo mounted'"
    said = site.sh(f"{run} {script}", check=False)
    assert said.startswith(PROFILE)
    assert "mounted" not in said, "the profile says so, and the kernel does not log what it denies"
    assert "mounted" in site.sh(f"{run} --security-opt=apparmor=unconfined {script}")
