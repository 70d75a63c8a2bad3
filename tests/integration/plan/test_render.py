# SPDX-License-Identifier: GPL-3.0-or-later
"""`edpm.services.render` as a user runs it."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import yaml
from ansible_collections.edpm.services.plugins.modules import rendered_files

from .conftest import TUTORIAL, Run, User, shown, told
from .test_plan import IMAGES, PASSWORD

NODES = ("edpm-compute-0", "edpm-compute-1")
OF_NOVA = [
    "etc/containers/systemd/edpm_nova_compute.container",
    "etc/tmpfiles.d/edpm_nova_compute.conf",
    "var/lib/openstack/nova_compute/current",
    "var/lib/openstack/nova_compute/generations/DIGEST/bundle.json",
    "var/lib/openstack/nova_compute/generations/DIGEST/conf.d/01-nova.conf",
    "var/lib/openstack/nova_compute/generations/DIGEST/conf.d/02-nova-compute-profile.conf",
    "var/lib/openstack/nova_compute/generations/DIGEST/conf.d/02-nova-host-specific.conf",
    "var/lib/openstack/nova_compute/generations/DIGEST/conf.d/02-nova-override.conf",
    "var/lib/openstack/nova_compute/generations/DIGEST/kolla.json",
    "var/lib/openstack/nova_compute/generations/DIGEST/node/tmpfiles.conf",
    "var/lib/openstack/nova_compute/generations/DIGEST/units/edpm_nova_compute.container",
    "var/lib/openstack/nova_compute/mounted/LINK",
]
OF_LIBVIRT = [
    "etc/containers/systemd/edpm_libvirt-virtlogd.container",
    "etc/containers/systemd/edpm_libvirt.container",
    "etc/tmpfiles.d/edpm_libvirt.conf",
    "var/lib/openstack/libvirt/current",
    "var/lib/openstack/libvirt/generations/DIGEST/bundle.json",
    "var/lib/openstack/libvirt/generations/DIGEST/files/etc/libvirt/hooks/qemu",
    "var/lib/openstack/libvirt/generations/DIGEST/files/etc/libvirt/libvirtd.conf",
    "var/lib/openstack/libvirt/generations/DIGEST/files/etc/ssh/ssh_config.d/20-edpm-migration.conf",
    "var/lib/openstack/libvirt/generations/DIGEST/kolla.json",
    "var/lib/openstack/libvirt/generations/DIGEST/node/tmpfiles.conf",
    "var/lib/openstack/libvirt/generations/DIGEST/units/edpm_libvirt-virtlogd.container",
    "var/lib/openstack/libvirt/generations/DIGEST/units/edpm_libvirt.container",
    "var/lib/openstack/libvirt/mounted/LINK",
]


def render(user: User, *flags: str, images: bool = True, **variables: str) -> Run:
    words = [word for key, value in variables.items() for word in ("-e", f"{key}={value}")]
    known = IMAGES if images else {}
    return user.run("ansible-playbook", "edpm.services.render", "-i", user.inventory, *words, *flags, **known)


def listing(folder: Path) -> list[str]:
    paths = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    named = (re.sub("[0-9a-f]{64}", "DIGEST", str(path.relative_to(folder))) for path in paths)
    return sorted(re.sub("mounted/[0-9a-f]{16}$", "mounted/LINK", name) for name in named)


def text(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.rglob("*") if path.is_file())


def snippet(user: User) -> None:
    """The tutorial's manifests with another snippet for its first compute."""
    manifests = user.folder / "manifests"
    manifests.mkdir()
    for file in TUTORIAL.glob("*.yaml"):
        changed = file.read_text().replace("cpu_allocation_ratio = 3.0", "cpu_allocation_ratio = 5.0")
        (manifests / file.name).write_text(changed)
    user.reads("manifests")


def test_the_trees_of_the_tutorials_nodes(user: User) -> None:
    user.reads(TUTORIAL)
    first = render(user)
    rows = [line.split() for line in shown(first).splitlines()]
    assert [row[:2] for row in rows[1:5]] == [[node, name] for node in NODES for name in ("libvirt", "nova_compute")]
    out = user.folder / "rendered"
    assert listing(out / NODES[0]) == sorted([*OF_LIBVIRT, *OF_NOVA])
    assert "changed=1" in first.stdout
    unit = (out / NODES[0] / "etc/containers/systemd/edpm_nova_compute.container").read_text()
    assert f"Image={IMAGES['RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT']}\n" in unit
    (link,) = (out / NODES[0] / "var/lib/openstack/nova_compute/mounted").iterdir()
    assert f"Volume=/var/lib/openstack/nova_compute/mounted/{link.name}:/var/lib/openstack/config:ro\n" in unit
    assert link.resolve() == (out / NODES[0] / "var/lib/openstack/nova_compute/current").resolve()
    before = text(out)
    again = render(user)
    assert "changed=0" in again.stdout
    assert "up to date." in shown(again)
    assert text(out) == before


def test_check_and_diff_tell_what_a_run_then_does(user: User) -> None:
    user.reads(TUTORIAL)
    out = user.folder / "rendered"
    assert "changed=1" in render(user, "--check").stdout
    assert not out.exists()
    render(user)
    snippet(user)
    before = listing(out)
    would = render(user, "--check", "--diff")
    assert "+cpu_allocation_ratio = 5.0" in would.stdout
    assert "would be written" in would.stdout
    assert listing(out) == before
    did = render(user, "--diff")
    assert "+cpu_allocation_ratio = 5.0" in did.stdout
    assert listing(out) == before, "the generation before is gone"
    assert "changed=0" in render(user, "--diff").stdout


def test_passwords_are_masked_in_the_files_unless_they_are_asked_for_and_always_in_what_is_shown(user: User) -> None:
    user.reads(TUTORIAL)
    out = user.folder / "rendered"
    run = render(user, "--diff", "-vvv")
    assert PASSWORD not in run.stdout + run.stderr + text(out)
    run = render(user, "--diff", "-vvv", edpm_render_secrets="true")
    assert "changed=1" in run.stdout
    assert PASSWORD not in run.stdout + run.stderr
    assert PASSWORD in text(out)
    modes = {
        stat.S_IMODE(path.stat().st_mode)
        for path in (out, *out.rglob("*"))
        if "generations" in path.parts and not path.is_symlink()
    }
    assert modes == {0o600, 0o700}


def test_one_service_of_one_node_and_nothing_left_of_what_is_not_planned(user: User) -> None:
    user.reads(TUTORIAL)
    out = user.folder / "mine"
    render(user, output_dir=str(out), node=NODES[0], service="nova_compute")
    assert listing(out) == [".edpm-rendered.json", *(f"{NODES[0]}/{path}" for path in OF_NOVA)]
    render(user, output_dir=str(out))
    assert (out / NODES[1]).is_dir()
    without = render(user, images=False, output_dir=str(out))
    assert "left out: " in without.stdout
    assert listing(out) == [".edpm-rendered.json"]


def test_a_folder_of_the_users_is_refused(user: User) -> None:
    user.reads(TUTORIAL)
    assert told(render(user, output_dir=str(user.folder))).startswith(f"{user.folder} is not empty and nothing was")


def test_a_node_that_is_not_there_is_told(user: User) -> None:
    user.reads(TUTORIAL)
    run = render(user, node="edpm-compute-9")
    assert told(run).startswith("The data plane has no node edpm-compute-9; did you mean")
    assert not (user.folder / "rendered").exists()


def test_the_examples_of_the_documentation(user: User) -> None:
    user.reads(TUTORIAL)
    tasks = yaml.safe_load(rendered_files.EXAMPLES.replace("manifests/openstack", str(TUTORIAL)))
    run = user.play(*tasks, hosts="localhost")
    assert "failed=0" in run.stdout, run.stdout
    assert f"ok={len(tasks)}" in run.stdout
