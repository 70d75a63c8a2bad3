# SPDX-License-Identifier: GPL-3.0-or-later
"""From Secrets, ConfigMaps and snippets to the files of a service: verbatim bytes, a folder and a name.

The order of the layers and collisions between file names are judged elsewhere, over what is delivered here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .cells import OlderNova
from .definitions import DEFINITION_KEY, ServiceDefinition
from .model import Reference, ServiceProfile, ServiceResource, Store
from .planned import ConfigSource, Layer, LeftOut, Origin
from .secrets import Use

SNIPPET_FIELD = "spec.customServiceConfig"
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True)
class Files:
    """Files, keys that became none, and what stands against them."""

    sources: tuple[ConfigSource, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    errors: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()

    def __add__(self, other: Files) -> Files:
        if other is NO_FILES or self is NO_FILES:
            return self if other is NO_FILES else other
        return Files(
            self.sources + other.sources,
            self.left_out + other.left_out,
            self.errors + other.errors,
            self.blocked + other.blocked,
        )


NO_FILES = Files()


class Library:
    """The files of every Secret and ConfigMap for every service, made once and shared by all nodes."""

    def __init__(self, stores: Mapping[Reference, Store]):
        self.stores = stores
        self._whole: dict[tuple[int, str], tuple[tuple[Use, ...], Files]] = {}
        self._made: dict[tuple[Reference, str, str, bool, str, tuple[str, ...]], Files] = {}

    def files(self, uses: tuple[Use, ...], definition: ServiceDefinition) -> Files:
        """The files of all that a service uses, and the gate of its Secrets: there, and with the keys it needs."""
        # Nodes that use the same have the very same tuple; it is kept here, so that its id stays its own.
        kept = self._whole.get((id(uses), definition.name))
        if kept is None:
            kept = self._whole[id(uses), definition.name] = (uses, self._files(uses, definition))
        return kept[1]

    def _files(self, uses: tuple[Use, ...], definition: ServiceDefinition) -> Files:
        found = Files()
        for use in uses:
            ref = next((ref for ref in use.refs if ref in self.stores), None)
            if ref is not None:
                found += self._of(ref, definition, use) + _required(self.stores[ref], use)
            elif not use.optional:
                found += Files(blocked=(use.missing,))
        return found

    def _of(self, ref: Reference, definition: ServiceDefinition, use: Use) -> Files:
        namespace = definition.partner.namespace if definition.partner is not None else ""
        key = (ref, definition.name, namespace, use.derived, use.prefix, use.only)
        if key not in self._made:
            self._made[key] = _store_files(self.stores[ref], definition, use)
        return self._made[key]


def snippets(
    definition: ServiceDefinition,
    resource: ServiceResource | None,
    profile: ServiceProfile | None,
    older: OlderNova | None,
) -> tuple[ConfigSource, ...]:
    """The group's snippet and the human's. An older section's counts only while the service CR has none."""
    if definition.conf_d is None or not definition.takes_snippet:
        return ()
    found: list[ConfigSource] = []
    if profile is not None and not is_blank(profile.custom_service_config):
        origin = Origin(profile.meta.ref, SNIPPET_FIELD)
        found.append(_snippet(definition, origin, profile.custom_service_config, Layer.PROFILE))
    if resource is not None and not is_blank(resource.custom_service_config):
        origin = Origin(resource.meta.ref, SNIPPET_FIELD)
        found.append(_snippet(definition, origin, resource.custom_service_config, Layer.OVERRIDE))
    elif older is not None and definition.asked_by_cell and not is_blank(older.snippet):
        found.append(_snippet(definition, Origin(*older.snippet_of), older.snippet, Layer.OVERRIDE))
    return tuple(found)


def own_files(definition: ServiceDefinition, resource: ServiceResource | None) -> Files:
    """The further files of a service CR: what has a fixed place and name of its own, such as policy.yaml."""
    found = NO_FILES
    if resource is None or not definition.takes_snippet:
        return found
    for name, text in sorted(resource.files.items()):
        origin = Origin(resource.meta.ref, f"spec.defaultConfigOverwrite[{name}]")
        place = definition.place_of(name)
        directory = place.directory if place is not None else definition.config_directory
        if _FILE_NAME.fullmatch(name) is None:
            found += Files(errors=(f"{origin}: is no name for a file; use letters, digits, dashes and dots.",))
        elif directory is None:
            found += Files(left_out=(_no_place(origin, definition),))
        else:
            found += Files((ConfigSource(origin, directory, name, Layer.DEPLOYER, False, text.encode()),))
    return found


def is_blank(snippet: str | None) -> bool:
    """Whether a snippet makes no file."""
    return snippet is None or not snippet.strip()


def _snippet(definition: ServiceDefinition, origin: Origin, text: str | None, layer: Layer) -> ConfigSource:
    name = definition.profile_file if layer is Layer.PROFILE else definition.override_file
    return ConfigSource(origin, definition.conf_d or "", name, layer, False, (text or "").encode())


def needed(stores: Mapping[Reference, Store], uses: Iterable[Use], definition: ServiceDefinition) -> tuple[str, ...]:
    """A sentence for each key that the definition needs and none of the Secrets and ConfigMaps has."""
    if not definition.needed_keys:
        return ()
    keys = {key for use in uses for ref in use.refs if ref in stores for key in stores[ref].data}
    return tuple(
        f"{definition.name} needs the key {key}, which no Secret or ConfigMap that it uses has; add it to one that its "
        "OpenStackDataPlaneService lists."
        for key in definition.needed_keys
        if key not in keys
    )


def unheard(definition: ServiceDefinition, resource: ServiceResource | None) -> tuple[LeftOut, ...]:
    """The snippet of a service CR whose service has no folder for it."""
    if resource is None or definition.partner is None or definition.conf_d is not None:
        return ()
    origin = Origin(resource.meta.ref, SNIPPET_FIELD)
    sentence = f"{origin}: is left out, since the definition of {definition.name} has no conf_d."
    return () if is_blank(resource.custom_service_config) else (LeftOut(origin, sentence),)


def _required(store: Store, use: Use) -> Files:
    missing = [key for key in use.required_keys if key not in store.data]
    return Files(blocked=tuple(f"{store.ref} has no key {key}; add it, or wait for its operator." for key in missing))


def _store_files(store: Store, definition: ServiceDefinition, use: Use) -> Files:
    layer = Layer.GENERATED if use.derived else Layer.DEPLOYER
    found = Files(errors=tuple(fault.sentence for fault in store.faults))
    found += _redefined(store, definition)
    for key in store.data:
        if not use.only or key in use.only:
            found += _key_file(store, key, definition, layer, use.prefix)
    return found


def _redefined(store: Store, definition: ServiceDefinition) -> Files:
    """Refuse a definition in the ConfigMap of a service that is defined here."""
    if definition.partner is not None or DEFINITION_KEY not in store.data:
        return Files()
    told = (
        f"{store.ref}, key {DEFINITION_KEY}: {definition.name} is defined by this collection, and no file may define "
        "it anew; remove the key, or give the OpenStackDataPlaneService another name and edpmServiceType."
    )
    return Files(errors=(told,))


def _key_file(store: Store, key: str, definition: ServiceDefinition, layer: Layer, prefix: str) -> Files:
    origin, content = Origin(store.ref, f"key {key}"), store.data[key]
    place = definition.place_of(prefix + key)
    if place is not None:
        name = place.file_name or prefix + key
        return Files((ConfigSource(origin, place.directory, name, layer, store.secret, content, place.live),))
    if key == DEFINITION_KEY:
        return Files()
    if not key.endswith(".conf") or definition.conf_d is None:
        return Files(left_out=(_no_place(origin, definition),))
    if key.startswith("."):
        return Files(left_out=(LeftOut(origin, f"{origin}: is left out, since oslo.config reads no hidden files."),))
    if not _is_text(content):
        return Files(errors=(f"{origin}: is not UTF-8, which oslo.config needs; write the text anew.",))
    return Files((ConfigSource(origin, definition.conf_d, key, layer, store.secret, content),))


def _no_place(origin: Origin, definition: ServiceDefinition) -> LeftOut:
    return LeftOut(origin, f"{origin}: is left out, since {definition.name} has no place for such a file.")


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
