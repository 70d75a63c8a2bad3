# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that run in the services' images, on files and processes made for them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.in_image import (
    ceph_secret,
    guests,
    program,
    validate,
)
from oslo_config import cfg


@pytest.mark.parametrize("name", ["ceph_secret", "guests", "validate"])
def test_a_program_is_words_for_any_python(name: str) -> None:
    python, flag, text, *words = program(name, "a", "b")
    assert (python, flag, words) == ("python3", "-c", ["a", "b"])
    compile(text, name, "exec")


@pytest.fixture
def image(monkeypatch: pytest.MonkeyPatch) -> None:
    """An image that knows a few options, one of them by an old name, and a package that cannot list its own."""

    def options() -> list[Any]:
        old = cfg.DeprecatedOpt("verbose", group="logging")
        return [
            (None, [cfg.BoolOpt("debug", deprecated_opts=[old]), cfg.StrOpt("my-ip")]),
            ("libvirt", [cfg.StrOpt("virt_type", deprecated_name="libvirt_type")]),
            (cfg.OptGroup("placement"), [cfg.StrOpt("region_name")]),
            ("keystone_authtoken", [cfg.StrOpt("auth_type", deprecated_name="auth_plugin")]),
        ]

    def broken() -> list[Any]:
        raise ImportError("no such driver")

    found = [
        SimpleNamespace(name="nova", load=lambda: options),
        SimpleNamespace(name="odd", load=lambda: broken),
    ]
    monkeypatch.setattr(validate, "entry_points", lambda: SimpleNamespace(select=lambda group: found if group else []))


def judged(tmp_path: Path, generated: str, snippet: str) -> int:
    files = [tmp_path / "01.conf", tmp_path / "02.conf"]
    for file, text in zip(files, (generated, snippet), strict=True):
        file.write_text(text)
    return validate.main([str(files[0]), "--strict", str(files[1])])


KNOWN = (
    "[DEFAULT]\ndebug = True\nmy_ip = ::1\n[libvirt]\nlibvirt_type = qemu\n[placement]\nregion_name = x\n"
    "[logging]\nverbose = True\n"
)


#: As the nova-operator writes it; only `auth_type` is in the list of the package that reads the group.
LOGIN = "[keystone_authtoken]\nauth_type = password\nauth_url = u\nusername = nova\nuser-name = x\nproject_name = p\n"


@pytest.mark.usefixtures("image")
@pytest.mark.parametrize(
    ("texts", "code", "sentence"),
    [
        ((KNOWN, KNOWN), 0, ""),
        (("[DEFAULT]\nmy_ip = x, my-backend\n", "[my-backend]\nanything = 1\n"), 0, ""),
        ((KNOWN, "[libvrt]\nvirt_type = qemu\n"), 0, "02.conf: nothing in the image reads the group libvrt"),
        ((KNOWN, "[DEFAULT]\ndebgu = True\n"), 1, "02.conf: debgu in the group DEFAULT is an option that nothing"),
        (("[DEFAULT]\ndebgu = True\n", KNOWN), 0, "01.conf: debgu in the group DEFAULT is an option that nothing"),
        ((KNOWN, "[my-backend]\nanything = 1\n"), 0, "02.conf: nothing in the image reads the group my-backend"),
        (("[DEFAULT\n", KNOWN), 3, "01.conf: "),
        ((KNOWN, "debug\n"), 3, "02.conf: "),
        ((KNOWN, LOGIN), 0, ""),
        ((LOGIN, "[keystone_authtoken]\npassword = new\n"), 0, ""),
        ((LOGIN, "[keystone_authtoken]\npasswrod = x\n"), 1, "02.conf: passwrod in the group keystone_authtoken is an"),
        (
            (KNOWN, LOGIN.replace("= password", "= v3token")),
            1,
            "02.conf: username in the group keystone_authtoken is an option that nothing",
        ),
        ((KNOWN, LOGIN.replace("= password", "= nobody's")), 1, "02.conf: auth_url in the group keystone_authtoken is"),
        # What chooses a way to log in where nobody reads that is not known the better for it.
        ((KNOWN, LOGIN.replace("keystone_authtoken", "placement")), 1, "02.conf: auth_type in the group placement is"),
        (
            (KNOWN, LOGIN.replace("keystone_authtoken", "keystone")),
            0,
            "02.conf: nothing in the image reads the group k",
        ),
        (("[DEFAULT]\nnonsense\n", "[DEFAULT]\ndebgu = 1\n"), 3, "01.conf: "),
    ],
)
def test_a_human_is_told_of_an_option_that_nobody_knows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], texts: tuple[str, str], code: int, sentence: str
) -> None:
    assert judged(tmp_path, *texts) == code
    said = capsys.readouterr().out
    assert ("the options of odd cannot be listed: no such driver" in said) == bool(sentence)
    assert sentence in said if sentence else not said


def test_the_programs_run_as_they_are_sent(tmp_path: Path) -> None:
    file = tmp_path / "01.conf"
    file.write_text("[DEFAULT]\n")
    words = [sys.executable, *program("validate", str(file))[1:]]
    assert subprocess.run(words, capture_output=True, check=False).returncode == 0
    assert subprocess.run([sys.executable, *program("guests")[1:]], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["qemu", "-name", "guest=instance-00000001,debug-threads=on", "-uuid", "u"], "guest instance-00000001 (u)\n"),
        (["qemu", "-name", "debug-threads=on,guest=a,,b"], "guest a,b ()\n"),
        (["qemu", "-name"], ""),
        (["sh", "-c", "guest=x"], ""),
    ],
)
def test_guests_are_told_by_their_processes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    process(tmp_path, 7, *words)
    (tmp_path / "8").mkdir()
    assert guests.main([], tmp_path) == 0
    assert capsys.readouterr().out == told


def process(proc: Path, number: int, *words: str) -> None:
    (proc / str(number)).mkdir(parents=True)
    (proc / str(number) / "cmdline").write_bytes("\0".join(words).encode() + b"\0")


@pytest.mark.parametrize(
    ("disk", "folder", "told_to"),
    [
        ('{{"driver":"file","filename":"{state}/instances/u/disk"}}', "", "plain"),
        ('{{"driver":"file","filename":"{state}-fast/instances/u/disk"}}', "", "fast"),
        ("file={state}-fast/mnt/8a7d/volume-1,if=none", "", "fast"),
        ("file={state}-other/instances/u/disk", "", ""),
        ("file={state}-fast-too/instances/u/disk", "", ""),
        # Disks in Ceph: the folder of its console is what there is.
        ("rbd:vms/u_disk", "{state}/instances/u", "plain"),
        ("rbd:vms/u_disk", "{state}-fast/instances/u", "plain fast"),
        # Where the two disagree both keep it.
        ("file={state}/instances/u/disk", "{state}-fast/instances/u", "plain fast"),
        ("file={state}-fast/instances/u/disk", "{state}/instances/u", "plain fast"),
        # Of nobody that can be told.
        ("file=/srv/disk", "", "plain"),
        ("file=/srv{state}-fast/disk", "", "plain"),
    ],
)
def test_a_guest_is_told_to_the_instance_that_has_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], disk: str, folder: str, told_to: str
) -> None:
    state = str(tmp_path / "nova")
    for path in ("{state}/instances", "{state}-fast/instances", folder):
        if path:
            Path(path.format(state=state)).mkdir(parents=True)
    process(tmp_path / "proc", 7, "qemu", "-name", "guest=a", "-uuid", "u", "-blockdev", disk.format(state=state))
    for who, words in (("plain", [state]), ("fast", [state, "fast"])):
        assert guests.main(words, tmp_path / "proc") == 0
        assert capsys.readouterr().out == ("guest a (u)\n" if who in told_to else ""), who


def test_an_instance_that_cannot_see_its_folder_is_in_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    process(tmp_path, 7, "qemu", "-name", "guest=a", "-uuid", "u", "-drive", "file=rbd:vms/u_disk")
    process(tmp_path, 8, "qemu", "-name", "guest=b", "-uuid", "v", "-drive", f"file={tmp_path}/nova/instances/v/disk")
    assert guests.main([f"{tmp_path}/nova", "fast"], tmp_path) == 0
    assert capsys.readouterr().out == "guest a (u)\n"
    (tmp_path / "nova-fast/instances").mkdir(parents=True)
    process(tmp_path, 9, "qemu", "-name", "guest=c")
    assert guests.main([f"{tmp_path}/nova", "fast"], tmp_path) == 0
    assert capsys.readouterr().out == "guest c ()\n", "without a number nobody can say"


KEYRING = '[client.openstack]\n\tkey = c2VjcmV0\n\tcaps mon = "profile rbd"\n'
UUID = "5a1b0e9e-0a3c-4e1f-9f35-1f0d9f3b9f53"


@pytest.fixture
def generation(tmp_path: Path) -> Path:
    for folder in ("conf.d", "files/etc/ceph", "files/etc/nova"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "files/etc/nova/nova.conf").write_text("[libvirt]\nrbd_user = cinder\n")
    (tmp_path / "conf.d/03.conf").write_text(f"[libvirt]\nrbd_user = openstack\nrbd_secret_uuid = {UUID}\n")
    (tmp_path / "files/etc/ceph/ceph.client.openstack.keyring").write_text(KEYRING)
    return tmp_path


class Libvirt:
    """A libvirt that answers the second time it is asked."""

    class libvirtError(Exception):  # noqa: N801 (its name in libvirt)
        pass

    def __init__(self, *known: str) -> None:
        self.values: dict[str, bytes] = dict.fromkeys(known, b"old")
        self.defined: list[str] = []
        self.asked = 0

    def open(self, uri: str) -> Libvirt:
        self.asked += 1
        if self.asked == 1:
            raise Libvirt.libvirtError(f"{uri} does not answer")
        return self

    def listAllSecrets(self) -> list[SimpleNamespace]:  # noqa: N802 (its name in libvirt)
        return [self._secret(uuid) for uuid in self.values]

    def secretDefineXML(self, xml: str) -> SimpleNamespace:  # noqa: N802 (its name in libvirt)
        self.defined.append(xml)
        return self._secret(UUID)

    def _secret(self, uuid: str) -> SimpleNamespace:
        def keep(value: bytes) -> None:
            self.values[uuid] = value

        return SimpleNamespace(UUIDString=lambda: uuid, setValue=keep)


@pytest.mark.parametrize("known", [(), (UUID,)])
def test_the_secret_of_the_configured_ceph_user_gets_the_key_of_its_keyring(
    generation: Path, monkeypatch: pytest.MonkeyPatch, known: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    libvirt = Libvirt(*known)
    monkeypatch.setitem(sys.modules, "libvirt", libvirt)
    monkeypatch.setattr(ceph_secret, "_PAUSE", 0)
    assert ceph_secret.main(generation) == 0
    assert libvirt.values == {UUID: b"secret"}
    assert len(libvirt.defined) == 1 - len(known)
    assert all("private='yes'" in xml and "client.openstack" in xml for xml in libvirt.defined)
    assert capsys.readouterr().out == ""


def test_a_ceph_user_without_a_keyring_is_named(generation: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (generation / "files/etc/ceph/ceph.client.openstack.keyring").write_text("[client.other]\nkey = c2VjcmV0\n")
    assert ceph_secret.main(generation) == 1
    assert capsys.readouterr().out == (
        "no keyring in /etc/ceph has the key of client.openstack, which [libvirt] rbd_user names\n"
    )


def test_a_configuration_without_ceph_asks_for_no_secret(generation: Path) -> None:
    (generation / "conf.d/03.conf").write_text("[libvirt]\nvirt_type = kvm\n")
    assert ceph_secret.main(generation) == 0
