# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets' names that follow from a cell, and which Secrets and ConfigMaps a service on a node uses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .cells import cell_template, nova_of
from .definitions import Derived, ServiceDefinition
from .index import Index
from .model import DataPlaneService, Nova, Reference

COMPUTE_CONFIG = "-compute-config"
METADATA_CONFIGS = ("-metadata-compute-config", "-metadata-neutron-config")


@dataclass(frozen=True, slots=True)
class Use:
    """A Secret or ConfigMap that a service uses. Of `refs` the first that exists counts.

    `missing` is what to tell a person when none of them exists. The definition knows the keys with `prefix` before
    them; with `only`, other keys are not looked at.
    """

    refs: tuple[Reference, ...]
    missing: str
    optional: bool = False
    required_keys: tuple[str, ...] = ()
    derived: bool = False
    prefix: str = ""
    only: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Uses:
    """All that a service uses, and what is wrong with that."""

    uses: tuple[Use, ...] = ()
    errors: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def compute_config(cell: str) -> str:
    """The Secret that the control plane makes for the computes of a NovaCell."""
    return f"{cell}{COMPUTE_CONFIG}"


def metadata_configs(base: str) -> tuple[str, ...]:
    """The Secrets that may hold the metadata agent's part: the specification's name, then the one in the field."""
    return tuple(f"{base}{suffix}" for suffix in METADATA_CONFIGS)


def uses_of(
    index: Index,
    namespace: str,
    cell: str | None,
    definition: ServiceDefinition,
    services: Iterable[DataPlaneService],
    *,
    listed: bool,
) -> Uses:
    """The derived Secrets, then those that the data plane's services list; what is both counts once."""
    services = tuple(services)
    named = {source.source for service in services for source in service.sources}
    derived = _derived(index, namespace, cell, definition, named)
    known = {ref for use in derived.uses for ref in use.refs}
    uses, errors, notes = list(derived.uses), list(derived.errors), []
    for service in services:
        errors.extend(fault.sentence for fault in service.meta.faults)
        for source in service.sources:
            other = _other_cell(index, namespace, cell, definition, source.source)
            if other is not None and listed:
                errors.append(
                    f"{service.meta.ref}, field {source.field}: {source.source} belongs to NovaCell {other}, but the "
                    f"node belongs to NovaCell {cell}; list a service of {cell} instead, or remove the Secret."
                )
            elif other is not None:
                notes.append(
                    f"{source.source} of {service.meta.ref} is left out: it belongs to NovaCell {other}, not {cell}."
                )
            elif source.source not in known:
                known.add(source.source)
                uses.append(
                    Use(
                        (source.source,),
                        f"{source.source}, which {service.meta.ref} lists in {source.field}, does not exist; "
                        "create it, or mark it optional.",
                        optional=source.optional,
                    )
                )
    return Uses(tuple(uses), tuple(errors), derived.blocked, tuple(notes))


def _other_cell(
    index: Index, namespace: str, cell: str | None, definition: ServiceDefinition, ref: Reference
) -> str | None:
    """The cell whose compute Secret this is, when it is not the node's own."""
    if ref.kind != "Secret" or cell is None or Derived.COMPUTE not in definition.derived:
        return None
    other = ref.name.removesuffix(COMPUTE_CONFIG)
    known = (namespace, other) in index.cells or (namespace, other) in index.templates
    return other if other not in (ref.name, cell) and known else None


def _derived(
    index: Index, namespace: str, cell: str | None, definition: ServiceDefinition, named: set[Reference]
) -> Uses:
    uses: list[Use] = []
    errors: list[str] = []
    blocked: list[str] = []
    for kind in definition.derived:
        keys = definition.required_keys.get(kind, ())
        if kind is Derived.COMPUTE and cell is not None:
            ref = Reference("Secret", namespace, compute_config(cell))
            missing = f"{ref} does not exist; NovaCell {cell} makes it once it is Ready."
            uses.append(Use((ref,), missing, required_keys=keys, derived=True))
        if kind is Derived.METADATA:
            found = _metadata(index, namespace, cell, named)
            if isinstance(found, Metadata):
                uses.append(Use(found.refs, found.missing, required_keys=keys, derived=True))
            elif found is not None:
                (errors if found.error else blocked).append(found.sentence)
    return Uses(tuple(uses), tuple(errors), tuple(blocked))


@dataclass(frozen=True, slots=True)
class Metadata:
    """Where the metadata agent's part of Nova lies."""

    refs: tuple[Reference, ...]
    missing: str


@dataclass(frozen=True, slots=True)
class NoMetadata:
    """Why there is none: an error where the resources contradict each other, else something to wait for."""

    sentence: str
    error: bool = False


def _metadata(index: Index, namespace: str, cell: str | None, named: set[Reference]) -> Metadata | NoMetadata | None:
    """The Secret of the one metadata service that is enabled, for the whole Nova or for the cell."""
    nova = nova_of(index, namespace, cell) if cell is not None else _only_nova(index, namespace)
    listed = [ref for ref in sorted(named) if ref.kind == "Secret" and ref.name.endswith(METADATA_CONFIGS)]
    if isinstance(nova, str):
        # Nothing tells a mode, but a Secret that is listed tells enough.
        return None if listed else NoMetadata(nova)
    if nova.meta.faults:
        return NoMetadata(nova.meta.faults[0].sentence, error=True)
    top = nova.metadata_enabled
    local = cell is not None and _cell_metadata(index, namespace, cell, nova)
    fields = f"spec.metadataServiceTemplate.enabled and spec.cellTemplates[{cell}].metadataServiceTemplate.enabled"
    if top and local:
        return NoMetadata(f"{nova.meta.ref}: both {fields} are true; disable one of the two.", error=True)
    if not top and not local:
        where = "the whole Nova" if cell is None else f"the whole Nova or for NovaCell {cell}"
        return NoMetadata(f"{nova.meta.ref}: no metadata service is enabled for {where}; enable one of them.")
    base = nova.meta.ref.name if top else str(cell)
    refs = tuple(Reference("Secret", namespace, name) for name in metadata_configs(base))
    # Of the two names the one that is listed counts, so that the same Secret is not taken twice.
    chosen = tuple(ref for ref in refs if ref in named) or refs
    maker = nova.meta.ref if top else f"NovaCell {namespace}/{cell}"
    return Metadata(chosen, f"{chosen[0]} does not exist; {maker} makes it once its metadata service is Ready.")


def _cell_metadata(index: Index, namespace: str, cell: str, nova: Nova) -> bool:
    short = cell_template(index, namespace, cell, nova)
    if short is not None:
        return nova.cells[short].metadata_enabled
    found = index.cells.get((namespace, cell))
    return found is not None and found.metadata_enabled


def _only_nova(index: Index, namespace: str) -> Nova | str:
    """The Nova of nodes without a cell: the only one there is."""
    found = index.novas_in.get(namespace, ())
    if len(found) == 1:
        return found[0]
    if not found:
        return f"There is no Nova in namespace {namespace} whose metadata service the agent could use; create one."
    names = " and ".join(nova.meta.ref.name for nova in found)
    return (
        f"The node has no cell, and namespace {namespace} has the Novas {names}; list the Secret of one of them in the "
        "agent's OpenStackDataPlaneService."
    )
