# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan as one HTML page that needs nothing else: no server, no network, no other file.

The table of nodes and services is in the markup. A node's files are data, of which the page's script makes elements
by their text alone; a file that many nodes share is there once. The page forbids itself every other script and every
request, so text out of a resource that found a way to be markup still could do nothing.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from .._bundle.bundle import explanation
from .._bundle.digest import short
from .._dataplane.wording import one_line
from .content import shown_lines
from .overview import Overview, PlannedNode, PlannedService, State
from .table import NOTHING, summary

_FOLDER = Path(__file__).parent
_UNSAFE_IN_SCRIPT = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def page(seen: Overview) -> str:
    """The page, secrets masked and all text of resources escaped."""
    style, script = _asset("page.css"), _asset("page.js")
    columns = tuple(dict.fromkeys(service.plan.name for service in seen.services))
    return Template(_asset("page.html")).substitute(
        policy=f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'; "
        "form-action 'none'",
        style=style,
        script=script,
        summary=_text(summary(seen)),
        headings="".join(f'<th scope="col">{_text(name)}</th>' for name in columns),
        rows="\n".join(_row(node, columns) for node in seen.nodes),
        remarks="\n".join(_remarks(seen)),
        data=_data(seen),
    )


def _asset(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _text(text: str) -> str:
    return escape(one_line(text))


def _row(node: PlannedNode, columns: tuple[str, ...]) -> str:
    by_name = {service.plan.name: service for service in node.services}
    cells = "".join(_cell(name, by_name.get(name)) for name in columns)
    name, cell = _text(node.plan.name), _text(node.plan.cell or NOTHING)
    # A node that could not be asked for any service has no cell in the table that would say so.
    waits = "" if node.services else ' <span class="state blocked">blocked</span>'
    return (
        f'<tr data-node="{escape(node.plan.name)}"><th scope="row"><a href="#">{name}</a>{waits}</th>'
        f'<td data-label="Cell">{cell}</td>{cells}</tr>'
    )


def _cell(name: str, service: PlannedService | None) -> str:
    label = f'data-label="{escape(name)}"'
    if service is None:
        return f'<td class="none" {label}>{NOTHING}</td>'
    state = service.state
    digest = "" if state is State.BLOCKED else f" <code>{short(service.bundle.digest)}</code>"
    return f'<td {label}><span class="state {state}">{state}</span>{digest}</td>'


def _remarks(seen: Overview) -> Iterator[str]:
    sections = {
        "Left alone": [f"{one.name}: {one.sentence}" for one in seen.left_alone],
        "Left to their operators": [one.sentence for one in seen.left_to_operator],
        "Leaving": [one.sentence for one in seen.leaving],
        "Warnings": [*seen.warnings, *seen.errors],
    }
    for title, sentences in sections.items():
        if sentences:
            items = "".join(f"<li>{_text(one)}</li>" for one in dict.fromkeys(sentences))
            yield f"<section><h2>{title}</h2><ul>{items}</ul></section>"


def _data(seen: Overview) -> str:
    files: dict[tuple[str, str, tuple[str, ...]], int] = {}
    nodes = [_node_data(node, files) for node in seen.nodes]
    pool = [{"path": path, "origin": origin, "lines": lines} for path, origin, lines in files]
    text = json.dumps({"nodes": nodes, "files": pool}, ensure_ascii=False, separators=(",", ":"))
    return "".join(_UNSAFE_IN_SCRIPT.get(letter, letter) for letter in text)


def _node_data(node: PlannedNode, files: dict[tuple[str, str, tuple[str, ...]], int]) -> dict[str, Any]:
    plan = node.plan
    return {
        "name": plan.name,
        "facts": {"Namespace": plan.namespace, "Role": plan.role, "Cell": plan.cell, "Data plane": plan.dataplane},
        "blocked": node.own_reasons,
        "notes": plan.notes,
        "services": [_service_data(service, files) for service in node.services],
    }


def _service_data(service: PlannedService, files: dict[tuple[str, str, tuple[str, ...]], int]) -> dict[str, Any]:
    made, marks, shown = service.bundle, _marks(service), []
    for file in made.files:
        key = (file.path, file.origin, shown_lines(file.source))
        shown.append([files.setdefault(key, len(files)), marks.get((file.object, file.field), {})])
    return {
        "name": service.plan.name,
        "state": service.state.value,
        "image": made.image,
        "digest": made.digest,
        "hold": service.plan.hold,
        "blocked": service.own_reasons,
        "notes": (*made.notes, *(one.sentence for one in service.plan.left_out)),
        "files": shown,
    }


def _marks(service: PlannedService) -> Mapping[tuple[str, str], dict[int, list[str]]]:
    """By source and line: `-` and who overrides it, or `+` and what it wins over."""
    marks: defaultdict[tuple[str, str], dict[int, list[str]]] = defaultdict(dict)
    for option in explanation(service.bundle).options if service.plan.conf_d else ():
        *losers, winner = option.places
        if not losers or option.accumulates:
            continue
        for place in losers:
            marks[place.object, place.field][place.line] = ["-", f"{winner.file}:{winner.line}"]
        over = ", ".join(f"{place.file}:{place.line}" for place in losers)
        marks[winner.object, winner.field][winner.line] = ["+", over]
    return marks
