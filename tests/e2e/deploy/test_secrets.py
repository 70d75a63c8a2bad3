# SPDX-License-Identifier: GPL-3.0-or-later
"""A marked secret travels to a node and is found nowhere but in the service's own files, for root alone."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from edpm_lab.labs import Lab
from edpm_lab.nodes import Nodes, default_names

from .site import AGENT, MARK, Site

#: Reads the arguments and environments of all processes, and all that lies in temporary folders, until it is stopped.
SAMPLER = """
import glob, os, time
found = set()
mark = b"KRAM"[::-1]
end = time.monotonic() + 240
while time.monotonic() < end and not os.path.exists("/run/sampler.stop"):
    for path in glob.glob("/proc/[0-9]*/cmdline") + glob.glob("/proc/[0-9]*/environ"):
        try:
            text = open(path, "rb").read()
        except OSError:
            continue
        if mark in text and b"sampler" not in text:
            found.add("process " + text[:80].decode(errors="replace"))
    for place in ("/tmp", "/var/tmp", "/root", "/dev/shm"):
        for folder, _folders, files in os.walk(place):
            for name in files:
                try:
                    if mark in open(os.path.join(folder, name), "rb").read(1 << 20):
                        found.add("file " + os.path.join(folder, name))
                except OSError:
                    continue
    time.sleep(0.02)
open("/run/sampler.found", "w").write("\\n".join(sorted(found)) + "\\n")
"""


@pytest.fixture(scope="module")
def site(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    names = default_names(1)
    Nodes(lab).up(names)
    made = Site(lab, names, tmp_path_factory.mktemp("secrets"))
    made.clear()
    yield made
    made.clear()


def test_no_secret_is_anywhere_but_in_the_services_files(site: Site) -> None:
    [name] = site.names
    secrets = _secrets(site)
    site.nodes.execute(name, "tee", "/run/sampler.py", stdin=SAMPLER.replace("KRAM", MARK[::-1]))
    site.sh(name, "rm -f /run/sampler.stop /run/sampler.found; systemd-run -q --unit=sampler python3 /run/sampler.py")
    temporary = site.folder / "temporary"
    temporary.mkdir()
    env = {
        "ANSIBLE_CACHE_PLUGIN": "jsonfile",
        "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(site.folder / "facts"),
        "ANSIBLE_LOG_PATH": str(site.folder / "ansible.log"),
        "ANSIBLE_KEEP_REMOTE_FILES": "1",
        "ANSIBLE_RETRY_FILES_ENABLED": "1",
        "ANSIBLE_LOCAL_TEMP": str(temporary),
        "ANSIBLE_INJECT_FACT_VARS": "0",
    }
    shown = []
    for words in (
        ("deploy", "--check", "--diff", "-vvv"),
        ("deploy", "--diff", "-vvvv", "-e", "output=json", "-e", "output_file=report.json"),
    ):
        answer = site.play(*words, env=env)
        assert answer.code == 0, answer.shown
        shown.append(answer.shown)
    site.snippets = {name: f"[DEFAULT]\nno_such_option = 1\n[nova]\npassword = {MARK}-refused\n"}
    refused = site.play("deploy", "-vvv", "--diff", env=env)
    assert refused.code != 0
    shown.append(refused.shown)
    status = site.play("status", "-vvv", env=env)
    shown.append(status.shown)
    site.sh(
        name, "touch /run/sampler.stop; for _ in $(seq 200); do test -e /run/sampler.found && exit; sleep 0.1; done"
    )

    assert not [secret for secret in secrets for text in shown if secret in text]
    assert _holders(site.folder, secrets) == {"all.yaml"}
    assert site.sh(name, "cat /run/sampler.found") == ""
    for secret in secrets:
        journal = f"journalctl --no-pager -o json | grep -v edpm_{AGENT} | grep -c -F -e {secret} || true"
        assert site.sh(name, journal) == "0"
        places = "/etc /var /run /tmp /root /home /opt /usr/local --exclude-dir=containers --exclude-dir=journal"
        found = site.sh(name, f"grep -rlF -e {secret} {places} 2>/dev/null || true").splitlines()
        assert all(path.startswith(f"/var/lib/openstack/{AGENT}/") for path in found), found
        assert found
        modes = {site.sh(name, f"stat -c '%a %U' {path}") for path in found}
        assert modes == {"600 root"}
    assert site.sh(name, "stat -c '%a %U' /var/lib/openstack/" + AGENT) == "700 root"
    # Ansible was told to keep what it writes, so a module with its arguments would still be there.
    assert site.sh(name, "ls -A ~/.ansible/tmp 2>/dev/null || true") == ""
    assert site.sh(name, "grep -rlaF -e '\"bundle\"' /root /tmp /var/tmp 2>/dev/null || true") == ""


def _secrets(site: Site) -> list[str]:
    """Those that the agent's Secret holds: the mark, and the true password of the bus."""
    password = site.config.partition("rabbit://")[2].partition(":")[2].partition("@")[0]
    assert len(password) > 8
    return [MARK, password]


def _holders(folder: Path, secrets: list[str]) -> set[str]:
    """The names of files on the controller that hold one of them; the manifests themselves do."""
    words = [word for secret in secrets for word in ("-e", secret)]
    found = subprocess.run(["grep", "-rlF", *words, str(folder)], capture_output=True, text=True, check=False).stdout
    return {Path(line).name for line in found.splitlines()}
