# SPDX-License-Identifier: GPL-3.0-or-later
"""Which NovaCell a node belongs to, and which Nova that cell belongs to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .index import Index
from .model import CELL_ANNOTATION, Node, Nova, NovaSection, Reference, Role, ServiceResource

DEFAULT_CELL = "cell1"
DEFAULT_NOVA = "nova"
CELL0 = "cell0"


@dataclass(frozen=True, slots=True)
class OlderNova:
    """What counts of the older nova sections, and where it is written."""

    cell: str
    snippet: str | None
    snippet_of: tuple[Reference, str]
    deploy: bool


@dataclass(frozen=True, slots=True)
class CellChoice:
    """The node's cell and who said so. `opted_out` is an empty annotation: the node is to be no compute."""

    cell: str | None = None
    said_by: str = ""
    opted_out: bool = False
    older: OlderNova | None = None
    warnings: tuple[str, ...] = ()


def choose_cell(node: Node, role: Role | None) -> CellChoice:
    """The Node's annotation, else the Role's, else the older sections."""
    for owner in (node, role):
        if owner is not None and CELL_ANNOTATION in owner.meta.annotations:
            said_by = f"{owner.meta.ref}, annotation {CELL_ANNOTATION}"
            cell = owner.meta.annotations[CELL_ANNOTATION].strip()
            warnings = tuple(_ignored_sections(node, role))
            if not cell:
                return CellChoice(opted_out=True, said_by=said_by, warnings=warnings)
            return CellChoice(cell=cell, said_by=said_by, warnings=warnings)
    return _older_choice(node, role)


def refuse_cell0(index: Index, node: Node, choice: CellChoice) -> str | None:
    """The sentence against cell0, or None."""
    if choice.cell is None:
        return None
    known = index.cells.get((node.namespace, choice.cell))
    short = known.cell_name if known is not None else None
    if CELL0 not in (choice.cell, short) and (short is not None or not choice.cell.endswith(f"-{CELL0}")):
        return None
    return (
        f"{choice.said_by}: {choice.cell} is cell0, which holds no computes; "
        "name the NovaCell of another cell, for example nova-cell1."
    )


def nova_of(index: Index, namespace: str, cell: str) -> Nova | str:
    """The Nova that a NovaCell belongs to: by owner reference, else by the Novas' cellTemplates.

    Or the sentence that says why none was found. A name is never split: both parts may hold dashes.
    """
    found = index.cells.get((namespace, cell))
    if found is not None and found.nova is not None:
        owner = index.novas.get((namespace, found.nova))
        if owner is not None:
            return owner
        return f"Nova {namespace}/{found.nova}, the owner of NovaCell {namespace}/{cell}, does not exist; create it."
    candidates = index.templates.get((namespace, cell), ())
    if found is not None and found.cell_name is not None:
        candidates = tuple(pair for pair in candidates if pair[1] == found.cell_name)
    if len(candidates) == 1:
        return candidates[0][0]
    if candidates:
        names = " and ".join(f"{nova.meta.ref} ({short})" for nova, short in candidates)
        return (
            f"NovaCell {namespace}/{cell} may belong to {names}; "
            "set its spec.cellName or its owner reference to tell which."
        )
    return f"No Nova in namespace {namespace} has NovaCell {cell} in its cellTemplates or owns it; add the cell to one."


def cell_template(index: Index, namespace: str, cell: str, nova: Nova) -> str | None:
    """The short name under which a Nova has the cell in its cellTemplates."""
    return next((short for one, short in index.templates.get((namespace, cell), ()) if one is nova), None)


def refuse_moves(choice: CellChoice, resources: Iterable[ServiceResource]) -> list[str]:
    """A sentence for every service CR that says another cell than the annotations do now."""
    return [
        f"{one.meta.ref}, field spec.cellName: is {one.cell}, but {choice.said_by} says {choice.cell}; Nova does not "
        f"move computes between cells: set it back to {one.cell}, or take the node out first with an empty "
        f"annotation {CELL_ANNOTATION}."
        for one in resources
        if one.cell is not None and choice.cell is not None and one.cell != choice.cell
    ]


def _older_choice(node: Node, role: Role | None) -> CellChoice:
    sections = list(_sections(node, role))
    if not sections:
        return CellChoice()
    # The API server fills an absent section with defaults: such a one says nothing against the Role's, which is last.
    counts, section = next((pair for pair in sections if not _defaulted(pair[1])), sections[-1])
    located, location = next((pair for pair in sections if not _default_cell(pair[1])), sections[-1])
    cell = f"{location.nova_instance or DEFAULT_NOVA}-{location.cell_name or DEFAULT_CELL}"
    return CellChoice(
        cell=cell,
        said_by=f"{located.meta.ref}, field {location.field}",
        older=OlderNova(
            cell=cell,
            snippet=section.custom_service_config,
            snippet_of=(counts.meta.ref, f"{section.field}.customServiceConfig"),
            deploy=section.deploy is not False,
        ),
        warnings=tuple(
            f"{one.meta.ref}, field {older.field}: is deprecated; set the annotation {CELL_ANNOTATION}: {cell} instead."
            for one, older in sections
        ),
    )


def _ignored_sections(node: Node, role: Role | None) -> Iterable[str]:
    for owner, section in _sections(node, role):
        yield (
            f"{owner.meta.ref}, field {section.field}: is deprecated, and not read since the annotation "
            f"{CELL_ANNOTATION} is there; remove it."
        )


def _sections(node: Node, role: Role | None) -> Iterable[tuple[Node | Role, NovaSection]]:
    if node.section.nova is not None:
        yield node, node.section.nova
    if role is not None and role.template.nova is not None:
        yield role, role.template.nova


def _default_cell(section: NovaSection) -> bool:
    return section.cell_name in (None, DEFAULT_CELL) and section.nova_instance in (None, DEFAULT_NOVA)


def _defaulted(section: NovaSection) -> bool:
    return _default_cell(section) and section.custom_service_config is None and section.deploy is not False
