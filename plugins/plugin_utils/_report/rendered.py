# SPDX-License-Identifier: GPL-3.0-or-later
"""What deploy would put on every node, in a folder of the controller: for review, and for machines that run nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...module_utils._node.record import (
    FILE,
    GENERATIONS,
    MOUNTED,
    PLACED_MODE,
    Places,
    contents,
    kept_image,
    link_of,
    recorded,
)
from .._bundle.bundle import Bundle
from .._bundle.digest import short
from .._bundle.kolla import place
from .._bundle.parcel import parcel
from .._config.masking import masked_file
from .._config.sources import Layer, Source
from .._dataplane.planned import Plan
from .answer import Answer
from .lines import Line, Tone, columns
from .overview import PlannedService, Question, overview
from .tree import Change, Entry, Output, Tree

_FOLDER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
#: Folders of a generation that hold what came out of the cluster.
_CARRIED = re.compile(r"/generations/[0-9a-f]+/(conf\.d|files)/")


def rendered(
    plan: Plan, question: Question, folder: str, *, show_secrets: bool = False, check: bool = False, diff: bool = False
) -> Answer:
    """Write the trees; NotThereError where what is asked for is not there, NotWrittenError where it cannot be written.

    What is displayed and returned never holds a secret, whatever is written.
    """
    seen = overview(plan, question)
    tree: dict[str, dict[str, Mapping[str, Entry]]] = {}
    made: list[PlannedService] = []
    left_out: list[tuple[PlannedService, str]] = []
    for service in seen.services:
        reason = _against(service)
        if reason:
            left_out.append((service, reason))
        else:
            made.append(service)
            tree.setdefault(service.node.name, {})[service.plan.name] = entries(service, show_secrets=show_secrets)
    output = Output(folder)
    changes = output.changes(tree, question.node, question.service)
    recording = False if check else output.write(changes, tree, question.node, question.service)
    said = _said(folder, changes, tree, left_out, check=check)
    states = _states(tree, changes, check=check)
    result: dict[str, Any] = {
        "changed": bool(changes) or recording,
        "msg": said,
        "rendered": [_data(folder, one) for one in made],
        "left_out": [{"node": one.node.name, "service": one.plan.name, "reason": why} for one, why in left_out],
        **({"diff": [_diff(folder, one) for one in changes]} if diff else {}),
    }
    return Answer((*_table(made, left_out, states), Line(said)), result)


def entries(service: PlannedService, *, show_secrets: bool) -> dict[str, Entry]:
    """Every path that the service would have below its node's root."""
    parcelled, places = parcel(service.plan, service.bundle), Places()
    if parcelled is None:
        return {}
    home = places.root / service.bundle.name
    generation = home / GENERATIONS / parcelled.digest
    kept = kept_image(parcelled)
    link = link_of(parcelled, kept)
    files = contents(parcelled, home, kept, link)
    record = recorded(parcelled, files, places, kept, link)
    masked = _masked(service.bundle)
    made = {str(generation / FILE): Entry(record.text(), record.text())}
    for file in files:
        shown = masked.get(file.path, file.content)
        made[str(generation / file.path)] = Entry(file.content if show_secrets else shown, shown, file.mode)
    for live in parcelled.live:
        shown = masked.get(live.path, live.content)
        made[live.path] = Entry(live.content if show_secrets else shown, shown, live.mode)
    for one in record.placed:
        source = made[str(generation / one.source)]
        made[one.path] = Entry(source.content, source.shown, PLACED_MODE)
    target = f"{GENERATIONS}/{parcelled.digest}"
    made[str(home / "current")] = Entry(shown=target.encode(), target=target)
    if link:
        made[str(home / MOUNTED / link)] = Entry(shown=f"../{target}".encode(), target=f"../{target}")
    return {path.lstrip("/"): entry for path, entry in sorted(made.items())}


def _masked(made: Bundle) -> dict[str, bytes]:
    """What may be shown of each file, by its place in the generation or its path on the node."""
    shown = {place(file, made.conf_d): masked_file(file.source) for file in made.files}
    shown.update({file.path: masked_file(file.source) for file in made.files})
    return {**shown, **{one.path: masked_file(one.file.source) for one in made.live}}


def _against(service: PlannedService) -> str:
    """Why it is not rendered, empty when it is. A service on hold is rendered: only its node is not touched."""
    if service.reasons:
        return " ".join(service.reasons)
    if service.bundle.running is None:
        return "nothing here says how to run it."
    if service.bundle.image is None and not service.bundle.running.on_node:
        return "no image is named for it."
    if not _FOLDER_NAME.fullmatch(service.node.name):
        return "the node's name cannot be the name of a folder."
    return ""


def _states(tree: Tree, changes: list[Change], *, check: bool) -> dict[tuple[str, str], str]:
    """What becomes of every service, by node and name."""
    changed = {one.path for one in changes}
    fates = {True: "would be written" if check else "written", False: "up to date"}
    return {
        (node, name): fates[any(f"{node}/{path}" in changed for path in paths)]
        for node, made in tree.items()
        for name, paths in made.items()
    }


def _table(
    made: list[PlannedService], left_out: list[tuple[PlannedService, str]], states: Mapping[tuple[str, str], str]
) -> list[Line]:
    rows = [("NODE", "SERVICE", "DIGEST", "STATE")]
    for one in made:
        name = one.plan.name
        rows.append((one.node.name, name, short(one.bundle.digest), states[one.node.name, name]))
    rows += [(one.node.name, one.plan.name, "", f"left out: {reason}") for one, reason in left_out]
    tones = [Tone.HEADING, *[Tone.GOOD] * len(made), *[Tone.BAD] * len(left_out)]
    lines = [Line(text, tone) for text, tone in zip(columns(rows), tones, strict=True)]
    return lines if len(rows) > 1 else []


def _said(
    folder: str,
    changes: list[Change],
    tree: Tree,
    left_out: list[tuple[PlannedService, str]],
    *,
    check: bool,
) -> str:
    services = sum(map(len, tree.values()))
    written, gone = sum(1 for one in changes if one.after), sum(1 for one in changes if not one.after)
    fate = "would be written" if check else "written"
    parts = [f"{written} {'path' if written == 1 else 'paths'} {fate}"] if written else []
    parts += [f"{gone} {'would be removed' if check else 'removed'}"] if gone else []
    parts = parts or ["up to date"]
    parts += [f"{len(left_out)} left out"] if left_out else []
    whole = f"{services} service{'' if services == 1 else 's'} on {len(tree)} node{'' if len(tree) == 1 else 's'}"
    return f"{folder}: {whole}, {', '.join(parts)}."


def _data(folder: str, service: PlannedService) -> dict[str, str]:
    node, made = service.node.name, service.bundle
    path = Path(folder) / node / "var/lib/openstack" / made.name / GENERATIONS / made.digest
    return {"node": node, "service": made.name, "digest": made.digest, "path": str(path)}


def _diff(folder: str, change: Change) -> dict[str, str]:
    after = "" if change.after is None else change.after.shown.decode("utf-8", "backslashreplace")
    before = "" if change.before is None else _hidden(change.path, change.before)
    if before == after and change.before is not None and change.after is not None:
        before, after = "(masked values or the mode were others)\n", "(masked values or the mode are these)\n"
    return {
        "before_header": f"{folder}/{change.path}" if change.before is not None else "(not there)",
        "after_header": f"{folder}/{change.path}" if change.after is not None else "(removed)",
        "before": before,
        "after": after,
    }


def _hidden(path: str, content: bytes) -> str:
    """What lies in the folder as it may be shown; of what came out of the cluster nobody knows any more whence."""
    if not _CARRIED.search(path):
        return content.decode("utf-8", "backslashreplace")
    name = path.rpartition("/")[2]
    return masked_file(Source(name, content, "", "", Layer.GENERATED, True)).decode("utf-8", "backslashreplace")
