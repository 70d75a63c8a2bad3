# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from edpm_lab import apt, ee, images
from edpm_lab.errors import LabError

DEB822 = """\
# The archive
Types: deb deb-src
URIs: http://mirror.test/debian/
Suites: bookworm bookworm-updates bookworm-backports
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.test/debian-security
# a comment inside
Suites: bookworm-security
Components: main

Types: deb
URIs: https://other.test/stable/debian
Suites: bookworm
Components: main
Signed-By: /usr/share/keyrings/other.gpg

Enabled: no
Types: deb
URIs: http://disabled.test/debian
Suites: bookworm
Components: main
"""

ONE_LINE = """\
deb http://mirror.test/debian bookworm main non-free-firmware # the archive
deb-src http://mirror.test/debian bookworm main
# deb http://commented.test/debian bookworm main
deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://mirror.test/debian bookworm-updates main
deb http://mirror.test/debian-security bookworm-security main
deb [signed-by=/etc/apt/keyrings/docker.gpg] https://docker.test/linux/debian bookworm stable
deb https://database.test/pub/repos bookworm-pgdg main
"""

WANTED = [
    "http://mirror.test/debian trixie main",
    "http://mirror.test/debian trixie-updates main",
    "http://mirror.test/debian-security trixie-security main",
]


def host(etc: Path, files: dict[str, str], codename: str = "bookworm") -> Path:
    (etc / "apt" / "sources.list.d").mkdir(parents=True)
    (etc / "os-release").write_text(f"ID=debian\nVERSION_CODENAME={codename}\n")
    for name, text in files.items():
        (etc / "apt" / name).write_text(text)
    return etc


def places_of(sources: str) -> list[str]:
    return [line.partition("] ")[2].replace("debian/ ", "debian ") for line in sources.splitlines()]


@pytest.mark.parametrize(
    "files",
    [
        {"sources.list.d/debian.sources": DEB822},
        {"sources.list": ONE_LINE},
        {"sources.list": "# moved\n", "sources.list.d/debian.list": ONE_LINE},
    ],
    ids=["deb822", "one-line", "one-line in a folder"],
)
def test_the_hosts_archive_is_turned_to_trixie_and_no_other_comes_along(tmp_path: Path, files: dict[str, str]) -> None:
    assert places_of(apt.sources("trixie", host(tmp_path, files))) == WANTED


def test_a_host_that_is_trixie_is_taken_as_it_is(tmp_path: Path) -> None:
    etc = host(tmp_path, {"sources.list": ONE_LINE.replace("bookworm", "trixie")}, codename="trixie")
    assert places_of(apt.sources("trixie", etc)) == WANTED


def test_a_list_of_mirrors_on_the_hosts_disk_is_replaced_by_its_first_mirror(tmp_path: Path) -> None:
    mirrors = tmp_path / "mirrors" / "debian.list"
    mirrors.parent.mkdir()
    mirrors.write_text("# mirrors\nhttp://first.test/debian\tpriority:1\nhttp://second.test/debian\n")
    etc = host(tmp_path / "etc", {"sources.list": f"deb mirror+file://{mirrors} bookworm main\n"})
    assert places_of(apt.sources("trixie", etc)) == ["http://first.test/debian trixie main"]


def test_a_host_without_a_debian_archive_is_told_so(tmp_path: Path) -> None:
    etc = host(tmp_path, {"sources.list": "deb http://mirror.test/ubuntu noble main\n"}, codename="noble")
    with pytest.raises(LabError, match="no Debian archive of noble"):
        apt.sources("trixie", etc)


@pytest.fixture
def recipes(tmp_path: Path) -> Path:
    return Path(shutil.copytree(images.RECIPES, tmp_path / "recipes"))


def test_the_same_recipe_gives_the_same_digest_wherever_it_lies(recipes: Path) -> None:
    assert images.image_digest("nova-compute", recipes) == images.image_digest("nova-compute")


@pytest.mark.parametrize("changed", ["neutron.Containerfile", "neutron.packages", "kolla.packages", "base/dpkg.cfg"])
def test_a_change_of_a_recipe_or_of_one_below_it_changes_the_digest(recipes: Path, changed: str) -> None:
    before = images.image_digest("neutron", recipes)
    (recipes / changed).write_text((recipes / changed).read_text() + "added\n")
    assert images.image_digest("neutron", recipes) != before


def test_a_change_beside_an_image_leaves_its_digest(recipes: Path) -> None:
    before = images.image_digest("neutron", recipes)
    (recipes / "libvirt.packages").write_text("another\n")
    (recipes / "node" / "etc" / "hosts").write_text("another\n")
    assert images.image_digest("neutron", recipes) == before


def test_a_file_that_becomes_executable_changes_the_digest(recipes: Path) -> None:
    before = images.image_digest("base", recipes)
    (recipes / "base" / "dpkg.cfg").chmod(0o755)
    assert images.image_digest("base", recipes) != before


def test_architectures_have_digests_of_their_own() -> None:
    assert images.image_digest("base", arch="amd64") != images.image_digest("base", arch="arm64")


def test_each_architecture_gets_its_own_emulator_and_firmware() -> None:
    amd64, arm64 = (set(images.packages("libvirt", arch=arch)) for arch in ("amd64", "arm64"))
    assert amd64 - arm64 == {"qemu-system-x86", "ovmf", "seabios"}
    assert arm64 - amd64 == {"qemu-system-arm", "qemu-efi-aarch64"}
    assert "ipxe-qemu" in amd64 & arm64


@pytest.mark.parametrize("name", images.PARENTS)
def test_every_image_has_a_recipe(name: str) -> None:
    assert images.packages(name, arch="arm64") or name in ("ee", "operator")
    assert name == "base" or images.containerfile(name).exists()


def test_the_operators_image_is_the_one_that_users_build() -> None:
    assert images.containerfile("operator") == ee.TREE / "extensions/operator/Containerfile"
    assert not (images.RECIPES / "operator.Containerfile").exists()


@pytest.mark.parametrize("changed", ["Containerfile", "requirements.txt"])
def test_a_change_of_what_users_build_changes_the_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    before = images.image_digest("operator")
    mine = Path(shutil.copytree(ee.SHIPPED["operator"], tmp_path / "operator"))
    monkeypatch.setitem(ee.SHIPPED, "operator", mine)
    assert images.image_digest("operator") == before
    (mine / changed).write_text((mine / changed).read_text() + "# added\n")
    assert images.image_digest("operator") != before


def test_an_unknown_image_is_named_with_those_there_are() -> None:
    with pytest.raises(LabError, match="there is no image nowhere; there are base, node"):
        images.image_digest("nowhere")
