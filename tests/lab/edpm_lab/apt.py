# SPDX-License-Identifier: GPL-3.0-or-later
"""The host's way to the Debian archive, read from its apt configuration and turned to another suite.

Images are built from where the host itself gets its packages, mirror, proxy and certificates included;
none of that is known to the lab beforehand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from .command import run
from .errors import LabError

#: Debian's keys, under the name that they have on the host and in the image alike.
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")

#: Settings that say how to reach an archive; all others of the host are its own affair.
_OF_THE_WAY = re.compile(r"^Acquire::(http|https|ftp|Check-Valid-Until|Check-Date|ForceIPv4|ForceIPv6)\b")
_ONE_LINE = re.compile(r"^deb\s+(?:\[(?P<options>[^]]*)\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)\s+(?P<components>.+)$")


@dataclass(frozen=True)
class Entry:
    """One archive and one suite of it."""

    uri: str
    suite: str
    components: tuple[str, ...]
    signed_by: str


def sources(suite: str, etc: Path = Path("/etc")) -> str:
    """The host's Debian archive as one-line sources of another suite, with its updates and security."""
    host_suite = _host_suite(etc)
    lines: list[str] = []
    for entry in _entries(etc / "apt"):
        if turned := _turned(entry, host_suite, suite):
            line = f"deb [signed-by={KEYRING}] {_without_mirror_list(entry.uri)} {turned} main"
            if line not in lines:
                lines.append(line)
    if not any(line.endswith(f" {suite} main") for line in lines):
        raise LabError(
            f"no Debian archive of {host_suite} is in {etc}/apt; images are built from the host's own sources"
        )
    return "\n".join(lines) + "\n"


def host_settings(certificates: str | None = None) -> str:
    """The host's apt settings on proxies and the like; `certificates` is where its CA file will be found."""
    dump = run(["apt-config", "dump"]).stdout.splitlines()
    # A program that finds a proxy is on the host alone.
    kept = [
        line for line in dump if _OF_THE_WAY.match(line) and "Auto-Detect" not in line and not line.endswith(' "";')
    ]
    if certificates and CERTIFICATES.exists():
        kept = [line for line in kept if "::CAInfo" not in line]
        kept.append(f'Acquire::https::CAInfo "{certificates}";')
    return "".join(f"{line}\n" for line in kept)


def _host_suite(etc: Path) -> str:
    try:
        text = (etc / "os-release").read_text()
    except FileNotFoundError:
        text = ""
    found = re.search(r'^VERSION_CODENAME="?([a-z]+)"?$', text, re.MULTILINE)
    if not found:
        raise LabError(f"{etc}/os-release names no Debian suite; images are built on Debian hosts")
    return found[1]


def _entries(apt: Path) -> Iterator[Entry]:
    for file in [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))]:
        if not file.is_file():
            continue
        if file.suffix == ".list":
            yield from _one_line(file.read_text())
        elif file.suffix == ".sources":
            yield from _deb822(file.read_text())


def _one_line(text: str) -> Iterator[Entry]:
    for line in text.splitlines():
        if found := _ONE_LINE.match(line.partition("#")[0].strip()):
            options = dict(word.partition("=")[::2] for word in (found["options"] or "").split())
            components = tuple(found["components"].split())
            yield Entry(found["uri"], found["suite"], components, options.get("signed-by", ""))


def _deb822(text: str) -> Iterator[Entry]:
    for stanza in re.split(r"\n\s*\n", text):
        fields = _fields(stanza.splitlines())
        if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes").lower() in ("no", "false"):
            continue
        for uri in fields.get("uris", "").split():
            for suite in fields.get("suites", "").split():
                yield Entry(uri, suite, tuple(fields.get("components", "").split()), fields.get("signed-by", ""))


def _fields(lines: Iterable[str]) -> dict[str, str]:
    fields: dict[str, str] = {}
    name = ""
    for line in lines:
        if line.startswith("#") or not line.strip():
            continue
        if line[0] in " \t":
            fields[name] = f"{fields.get(name, '')}\n{line.strip()}"
        else:
            name, _, value = line.partition(":")
            name = name.strip().lower()
            fields[name] = value.strip()
    return fields


def _turned(entry: Entry, host_suite: str, suite: str) -> str | None:
    """The suite that stands for an entry's own, or None where the entry is not of the Debian archive."""
    place = urlsplit(entry.uri.rstrip("/")).path.rsplit("/", 1)[-1].removesuffix(".list")
    signed_by_debian = not entry.signed_by or "debian-archive" in entry.signed_by or "BEGIN PGP" in entry.signed_by
    if place not in ("debian", "debian-security") or "main" not in entry.components or not signed_by_debian:
        return None
    for name in (host_suite, "stable"):
        for kind in ("", "-updates", "-security"):
            if entry.suite == name + kind:
                return suite + kind
    return None


def _without_mirror_list(uri: str) -> str:
    """The first mirror of a list on the host's disk, which the image would not find."""
    if not uri.startswith("mirror+file:"):
        return uri
    file = Path("/" + uri.removeprefix("mirror+file:").lstrip("/"))
    lines = [line.partition("#")[0].split() for line in file.read_text().splitlines()]
    return next(words[0] for words in lines if words)
