# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A snapshot out of manifests: what a cluster would answer, had they been applied to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from .._dataplane.model import Snapshot
from .._dataplane.parse import DEFAULT_NAMESPACE
from .._dataplane.stores import snapshot_of
from .errors import BadManifestError
from .manifests import Manifest, stream


def read_manifests(paths: Sequence[str], namespaces: Sequence[str], images: Mapping[str, str]) -> Snapshot:
    """Read files, folders and `-`. Objects of other namespaces than those asked for are passed over."""
    default = namespaces[0] if len(namespaces) == 1 else DEFAULT_NAMESPACE
    found = _once(stream(Path(path) for path in paths), default)
    wanted = (one.body for one in found if not namespaces or (one.namespace or default) in namespaces)
    return snapshot_of(wanted, images, namespace=default)


def _once(manifests: Iterable[Manifest], default: str) -> Iterator[Manifest]:
    """The same object twice may hide behind a namespace that is left out, or another version of the kind."""
    seen: dict[tuple[str, str, str, str], str] = {}
    for one in manifests:
        group = one.api_version.rpartition("/")[0]
        key = (group, one.kind, one.namespace or default, one.name)
        if key in seen:
            raise BadManifestError(f"{one} is in {seen[key]} and in {one.source}; remove one of them.")
        seen[key] = one.source
        yield one
