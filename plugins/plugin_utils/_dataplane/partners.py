# SPDX-License-Identifier: GPL-3.0-or-later
"""Partners' services: the key `edpm-service.yaml` of a ConfigMap that an OpenStackDataPlaneService lists, or a file.

A definition that is wrong is a definition all the same, with its faults: those who ask for the service learn them, and
nobody else is touched. `_bundle.partner` makes of what it says how the service runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import yaml

from .built_in import BUILT_IN
from .definitions import (
    DEFINITION_KEY,
    IMAGE_FIELD,
    OVERRIDE_FILE,
    PHASE_0,
    PROFILE_FILE,
    Partner,
    Place,
    ServiceDefinition,
    image_variable,
)
from .fields import TextLoader, plain
from .index import dataplane_names
from .model import CELL_ANNOTATION, DataPlaneService, Reference, Resources, Store
from .parse import OUR_KINDS
from .partner_schema import NAME, OSLO_CONFIG, SCHEMA
from .shapes import Wrong, faults
from .values import Value

_OURS = "edpm.openstack.org/"


def definition_of(document: str | bytes | Mapping[str, Any], origin: str, name: str = "") -> ServiceDefinition:
    """A definition out of a text in YAML or what was read from one. Never raises over what it says.

    `origin` is what sentences call it. `name` is the service that it must be about; without it, the document's own.
    """
    says, wrong = _read(document)
    wrong += faults(SCHEMA, says) if not wrong else ()
    broken = {one.first for one in wrong}
    sound = {field: value for field, value in says.items() if field not in broken and value is not None}
    name = name or str(sound.get("name") or "")
    wrong += [] if broken and not says else list(_contradictions(sound, name, broken))
    sound = {**sound, "name": name}
    told = tuple(f"{origin}{f', field {one.path}' if one.path else ''}: {one.problem}" for one in wrong)
    return _definition(sound, name, Partner("", origin, sound, told))


def definition_sources(
    resources: Resources, definitions: Mapping[str, ServiceDefinition] = BUILT_IN
) -> frozenset[Reference]:
    """The ConfigMaps that may hold definitions: those of the services that nobody here knows."""
    return frozenset(
        source.source
        for service in _unknown(resources, definitions)
        for source in service.sources
        if source.source.kind == "ConfigMap"
    )


def partners(
    resources: Resources, stores: Mapping[Reference, Store], definitions: Mapping[str, ServiceDefinition] = BUILT_IN
) -> tuple[ServiceDefinition, ...]:
    """The definitions that the ConfigMaps of unknown services hold, by namespace and name."""
    found: dict[tuple[str, str], dict[Reference, ServiceDefinition]] = {}
    for service in _unknown(resources, definitions):
        namespace = service.meta.ref.namespace
        for source in service.sources:
            store = stores.get(source.source)
            if store is not None and not store.secret and DEFINITION_KEY in store.data:
                of_name = found.setdefault((namespace, service.type), {})
                if source.source not in of_name:
                    origin = f"{store.ref}, key {DEFINITION_KEY}"
                    made = definition_of(store.data[DEFINITION_KEY], origin, service.type)
                    of_name[source.source] = _in_namespace(made, namespace)
    return tuple(_only(list(same.values())) for _name, same in sorted(found.items()))


def _unknown(resources: Resources, definitions: Mapping[str, ServiceDefinition]) -> Iterator[DataPlaneService]:
    known = {*definitions, *dataplane_names(definitions), *PHASE_0}
    return (service for service in resources.services if service.type not in known)


def _only(same: Sequence[ServiceDefinition]) -> ServiceDefinition:
    """The one definition of a name; of two the first, with a fault that names both."""
    first = same[0]
    if len(same) == 1 or first.partner is None:
        return first
    places = " and ".join(one.partner.origin for one in same if one.partner is not None)
    sentence = f"{first.name} is defined by {places}; keep one of them."
    return replace(first, partner=replace(first.partner, faults=(*first.partner.faults, sentence)))


def _in_namespace(made: ServiceDefinition, namespace: str) -> ServiceDefinition:
    partner = made.partner
    return made if partner is None else replace(made, partner=replace(partner, namespace=namespace))


def _read(document: str | bytes | Mapping[str, Any]) -> tuple[Mapping[str, Value], list[Wrong]]:
    """The fields of a document, or why it has none."""
    read: Any = document
    if isinstance(document, str | bytes):
        try:
            read = yaml.load(document, Loader=TextLoader)  # noqa: S506  a safe loader with fewer types
        except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
            fault = " ".join(str(getattr(error, "problem", None) or "it cannot be read").split())
            mark = getattr(error, "problem_mark", None)
            line = f" in line {mark.line + 1}" if mark is not None else ""
            return {}, [Wrong("", f"is not YAML{line} ({fault}); correct it.")]
    if not isinstance(read, Mapping):
        return {}, [Wrong("", "holds no fields; write `version: 1` and what the service needs.")]
    try:
        return {str(name): plain(value) for name, value in read.items()}, []
    except RecursionError:
        return {}, [Wrong("", "holds a YAML anchor that contains itself; write the values out.")]


def _contradictions(says: Mapping[str, Value], name: str, broken: set[str]) -> Iterator[Wrong]:
    """What no field says alone."""
    yield from _wrong_name(says, name)
    if "command" in says and "kolla_config" in says:
        yield Wrong("kolla_config", "stands beside command, and says itself what is started; keep one of the two.")
    if not {"command", "kolla_config"} & {*says, *broken}:
        yield Wrong("command", "is missing; say what is started, or name a config.json of kolla in kolla_config.")
    if says.get("validation") == OSLO_CONFIG and "conf_d" not in {*says, *broken}:
        yield Wrong("validation", "is oslo.config, but there is no conf_d to validate; add conf_d, or write none.")
    health = says.get("health")
    if isinstance(health, Mapping) and ("command" in health) == ("connected" in health):
        yield Wrong("health", "must have either command or connected, and one of them only; correct it.")
    if isinstance(cr := says.get("service_cr"), Mapping):
        group, kind = str(cr.get("api_version")).rpartition("/")[0], str(cr.get("kind"))
        if (group, kind) in OUR_KINDS:
            yield Wrong("service_cr.kind", f"{kind} of {group} has a meaning here already; name a kind of your own.")
    taken = {CELL_ANNOTATION, *(one for ours in BUILT_IN.values() for one in ours.asked_by)}
    for annotation in _texts(says.get("asked_by")):
        if annotation in taken or annotation.startswith(_OURS):
            yield Wrong("asked_by", f"{annotation} has a meaning here already; choose one of your own domain.")


def _wrong_name(says: Mapping[str, Value], name: str) -> Iterator[Wrong]:
    said = says.get("name", name)
    if not name:
        yield Wrong("name", "is missing; add it.")
    elif said != name:
        yield Wrong("name", f'is "{said}", but the service is called {name}; write {name}, or leave the field out.')
    elif name in BUILT_IN:
        yield Wrong("name", f"{name} is defined by this collection, and no file may define it anew; choose another.")
    else:
        yield from (Wrong("name", one.problem) for one in faults(NAME, name))


def _definition(says: Mapping[str, Value], name: str, partner: Partner) -> ServiceDefinition:
    cr = says.get("service_cr")
    cr = cr if isinstance(cr, Mapping) else {}
    keys = says.get("keys")
    entries = [one for one in keys if isinstance(one, Mapping)] if isinstance(keys, Sequence) else []
    conf_d = _text(says.get("conf_d")).rstrip("/")
    return ServiceDefinition(
        name=name,
        image_variable=image_variable(name),
        image=_text(says.get("image")),
        asked_by=_texts(says.get("asked_by")),
        dataplane_names=(name,),
        api_version=_text(cr.get("api_version")),
        kind=_text(cr.get("kind")),
        image_field=_text(cr.get("image_field")) or IMAGE_FIELD,
        config_directory=_text(says.get("config_directory")).rstrip("/") or None,
        conf_d=conf_d or None,
        profile_file=_text(says.get("profile_file")) or PROFILE_FILE,
        override_file=_text(says.get("override_file")) or OVERRIDE_FILE,
        places=tuple(_place(one) for one in entries),
        needs_cell=says.get("needs_cell") is True,
        takes_instances=says.get("instances") is True,
        needed_keys=_texts(says.get("required_keys")),
        kolla_config=_text(says.get("kolla_config")),
        partner=partner,
    )


def _place(entry: Mapping[str, Value]) -> Place:
    directory = _text(entry.get("directory")).rstrip("/")
    return Place(_text(entry.get("key")), directory, _text(entry.get("name")), live=entry.get("live") is True)


def _text(value: Value) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: Value) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return ()
    return tuple(one for one in value if isinstance(one, str))
