# SPDX-License-Identifier: GPL-3.0-or-later
"""A service from the plain options of a task, without a cluster.

The options take the way that Secrets, service resources and profiles take: the same contents give the same bytes and
the same digest, whichever of the two they come from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Any

from .._dataplane.built_in import BUILT_IN
from .._dataplane.definitions import ServiceDefinition
from .._dataplane.identity import ADDRESS_VARIABLE, host_specific, identity
from .._dataplane.images import image_of
from .._dataplane.model import Metadata, Node, NodeSection, ServiceProfile, ServiceResource, Store
from .._dataplane.planned import (
    ConfigSource,
    Connection,
    ExtraMount,
    Identity,
    Image,
    Layer,
    Origin,
    Registry,
    ServicePlan,
)
from .._dataplane.secrets import Use
from .._dataplane.sources import Files, Library, snippets
from .._dataplane.wording import told
from .given import Given, Option

_FILE: dict[str, Any] = {
    "name": {"type": "str", "required": True},
    "content": {"type": "str"},
    "content_b64": {"type": "str"},
    "src": {"type": "str"},
    "secret": {"type": "bool", "default": True},
}
_LAYERS = (Layer.GENERATED, Layer.DEPLOYER)
#: The options that describe a service where no plan does, as an argument specification.
PLAIN_SPEC: dict[str, dict[str, Any]] = {
    "definition": {"type": "raw"},
    "image": {"type": "str", "default": ""},
    "cell": {"type": "str", "default": ""},
    "host": {"type": "str", "default": ""},
    "my_ip": {"type": "str", "default": ""},
    "custom_service_config": {"type": "str", "default": ""},
    "custom_service_config_file": {"type": "str", "default": ""},
    "profile": {"type": "str", "default": ""},
    "files": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            **_FILE,
            "directory": {"type": "str", "default": ""},
            "layer": {"type": "str", "default": "generated", "choices": [one.value for one in _LAYERS]},
        },
    },
    "config_folder": {"type": "str", "default": ""},
    "extra_mounts": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "target": {"type": "str", "required": True},
            "source": {"type": "str", "default": ""},
            "files": {"type": "list", "elements": "dict", "default": [], "options": _FILE},
            "options": {"type": "list", "elements": "str", "default": []},
        },
    },
    "registry": {
        "type": "dict",
        "options": {name: {"type": "str"} for name in ("auth_file", "ca_file", "cert_file", "key_file")}
        | {"registries_file": {"type": "str"}},
    },
    "kolla_config_file": {"type": "str", "default": ""},
    "options": {"type": "dict", "default": {}},
}

_INSTANCE = re.compile(r"([a-z0-9]([-a-z0-9]*[a-z0-9])?)?")
_CERTIFICATES = {"ca_file": "ca.crt", "cert_file": "client.cert", "key_file": "client.key"}


def plan(
    options: Mapping[str, Any], *, find: Callable[[str], str] = str, node: str = "", address: str = ""
) -> ServicePlan:
    """The service of the options `service`, `instance` and those of PLAIN_SPEC. Never raises over what they say.

    `find` tells where a path of the controller lies. `node` and `address` are how Ansible calls and reaches the node:
    the host's name and address where the options have none.
    """
    given = Given(str(options.get("service") or ""), options, find)
    instance = given.word("instance")
    definition = _definition(given)
    if definition is None:
        return ServicePlan(given.service, instance, errors=told(given.faults))
    _check_instance(given, definition, instance)
    contents = _contents(given)
    user_kolla = _kolla(given, definition, contents)
    files = _placed(given, definition, contents)
    who = _identity(given, definition, instance, node, address)
    made = ServicePlan(
        service=given.service,
        instance=instance,
        cell=_cell(given, definition),
        image=_image(given, definition),
        identity=who,
        conf_d=definition.conf_d,
        sources=(*files.sources, *_snippets(given, definition), *_host_specific(given, definition, who)),
        left_out=files.left_out,
        definition=definition.partner.says if definition.partner else None,
        registry=_registry(given),
        extra_mounts=tuple(_extra_mount(given, *numbered) for numbered in enumerate(given.entries("extra_mounts"))),
        user_kolla=user_kolla,
        options=given.mapping("options"),
    )
    return replace(made, errors=told((*given.faults, *files.errors)))


@dataclass(frozen=True)
class Contents:
    """The files that the options give: by name, and those that say where they go."""

    listed: Mapping[tuple[Layer, bool], dict[str, bytes]]
    folder: dict[str, bytes]
    direct: tuple[ConfigSource, ...]

    @property
    def by_name(self) -> tuple[dict[str, bytes], ...]:
        """All whose names tell their places."""
        return (self.folder, *self.listed.values())

    def take(self, name: str) -> bytes | None:
        """The file of this name, which is then no longer among them."""
        taken = [data.pop(name) for data in self.by_name if name in data]
        return taken[0] if taken else None


def _definition(given: Given) -> ServiceDefinition | None:
    """The partner's that is given, else the collection's own."""
    document = given.options.get("definition")
    if not document:
        known = BUILT_IN.get(given.service)
        if known is None:
            who, listed = given.service or "the service", ", ".join(BUILT_IN)
            given.fault("definition", f"is needed, since {who} is none of {listed}.")
        return known
    origin = str(given.option("definition"))
    if isinstance(document, str):
        origin = f"{origin} ({document})"
        document = given.read("definition", document)
    elif not isinstance(document, Mapping):
        given.fault("definition", "is neither a path nor a mapping; correct it.")
        document = None
    if document is None:
        return None
    # Most services are defined here, and do without all that reads a partner's definition.
    from .._dataplane.partners import definition_of  # noqa: PLC0415  (see above)

    made = definition_of(document, origin, given.service)
    given.faults += made.partner.faults if made.partner else ()
    return made


def _check_instance(given: Given, definition: ServiceDefinition, instance: str) -> None:
    if _INSTANCE.fullmatch(instance) is None:
        given.fault("instance", f'"{instance}" is no instance; use lower case letters, digits and dashes.')
    elif instance and not definition.takes_instances:
        given.fault("instance", f"{given.service} runs only once on a node; leave it empty.")


def _image(given: Given, definition: ServiceDefinition) -> Image | None:
    name = given.word("image")
    if name:
        return Image(name, str(given.option("image")))
    if definition.image:
        return image_of(definition, None, {})
    if given.mapping("options").get("edpm_libvirt_mode") != "host":
        given.fault("image", f"is empty; name the image that {given.service} runs from.")
    return None


def _cell(given: Given, definition: ServiceDefinition) -> str | None:
    cell = given.word("cell")
    if cell == "cell0":
        given.fault("cell", "cell0 has no computes; name another cell.")
    return (cell or None) if definition.needs_cell or definition.asked_by_cell else None


def _identity(given: Given, definition: ServiceDefinition, instance: str, node: str, address: str) -> Identity | None:
    if definition.host_specific_file is None or definition.state_path is None:
        return None
    host, my_ip = given.word("host") or node, given.word("my_ip")
    if my_ip and not _is_address(my_ip):
        given.fault("my_ip", f'"{my_ip}" is not an address; write one, or nothing for that of the connection.')
        my_ip = ""
    known = Node(host, Metadata(given.option("host")), role="", host_name=host)
    connection = Connection(ansible_host=address, variables={ADDRESS_VARIABLE: my_ip} if my_ip else {})
    who, faults = identity(known, NodeSection(), connection, definition.state_path, instance)
    if faults:
        given.fault("host", f'"{host}" is no host name; correct it.')
    return who


def _host_specific(given: Given, definition: ServiceDefinition, who: Identity | None) -> tuple[ConfigSource, ...]:
    if who is None or definition.conf_d is None or definition.host_specific_file is None:
        return ()
    origin = Origin(given.option("host"), "with my_ip")
    name = definition.host_specific_file
    return (ConfigSource(origin, definition.conf_d, name, Layer.HOST, False, host_specific(who)),)


def _snippets(given: Given, definition: ServiceDefinition) -> tuple[ConfigSource, ...]:
    name, text = _snippet(given)
    profile = given.text("profile")
    if definition.conf_d is None or not definition.takes_snippet:
        for option, content in ((name, text), ("profile", profile)):
            if content.strip():
                given.fault(option, f"{given.service} reads no such text; give it its files by the option files.")
        return ()
    resource = ServiceResource(Metadata(given.option(name)), "", "", custom_service_config=text)
    shared = ServiceProfile(Metadata(given.option("profile")), given.service, profile)
    made = snippets(definition, resource, shared, None)
    return tuple(replace(one, origin=Origin(one.origin.ref, "its text")) for one in made)


def _snippet(given: Given) -> tuple[str, str]:
    """The option that the human's snippet comes from, and the snippet."""
    text, path = given.text("custom_service_config"), given.word("custom_service_config_file")
    if not path:
        return "custom_service_config", text
    name = "custom_service_config_file"
    if text.strip():
        given.fault(name, "is given together with custom_service_config; keep one of them.")
    return name, given.read_text(name, path)


def _contents(given: Given) -> Contents:
    listed: dict[tuple[Layer, bool], dict[str, bytes]] = {}
    direct: list[ConfigSource] = []
    seen: set[tuple[str, str]] = set()
    for entry in given.entries("files"):
        layer, secret = Layer(entry.get("layer") or "generated"), bool(entry.get("secret", True))
        directory = str(entry.get("directory") or "").rstrip("/")
        for origin, content in given.file("files", entry):
            if (directory, origin.field) in seen:
                given.fault("files", f"{origin.field} is listed twice; keep it once.")
            elif directory and not directory.startswith("/"):
                given.fault("files", f'directory "{directory}" of {origin.field} is no absolute path; correct it.')
            elif directory:
                direct.append(ConfigSource(origin, directory, origin.field, layer, secret, content))
            else:
                listed.setdefault((layer, secret), {})[origin.field] = content
            seen.add((directory, origin.field))
    return Contents(listed, given.folder("config_folder"), tuple(direct))


def _placed(given: Given, definition: ServiceDefinition, contents: Contents) -> Files:
    """The files where keys of a Secret of these names would lie. One that is listed must have a place."""
    for key in definition.needed_keys:
        if not any(key in data for data in contents.by_name):
            given.fault("files", f"{given.service} needs the file {key}; list it, or put it into config_folder.")
    found = Files(contents.direct)
    for (layer, secret), data in contents.listed.items():
        one = _stored(given.option("files", secret=secret), data, definition, layer)
        found += Files(one.sources, errors=(*one.errors, *(_no_place(left.origin) for left in one.left_out)))
    return found + _stored(given.option("config_folder", secret=True), contents.folder, definition, Layer.GENERATED)


def _stored(ref: Option, data: Mapping[str, bytes], definition: ServiceDefinition, layer: Layer) -> Files:
    use = Use((ref,), missing="", derived=layer is Layer.GENERATED)
    return Library({ref: Store(ref, dict(sorted(data.items())))}).files((use,), definition)


def _no_place(origin: Origin) -> str:
    return f"{origin}: nothing tells where this file goes; name its directory."


def _kolla(given: Given, definition: ServiceDefinition, contents: Contents) -> bytes | None:
    """A user's own config.json of kolla: a file of its own, or the one that the definition asks for by name."""
    path, wanted = given.word("kolla_config_file"), definition.kolla_config
    asked_for = contents.take(wanted) if wanted else None
    if path:
        return given.read("kolla_config_file", path)
    if wanted and asked_for is None:
        given.fault("kolla_config_file", f"is empty, but {given.service} starts by {wanted}; name the file.")
    return asked_for


def _registry(given: Given) -> Registry | None:
    paths = given.mapping("registry")
    texts = {name: given.read_text(f"registry.{name}", str(path)) for name, path in paths.items()}
    pull = str(given.mapping("options").get("edpm_image_pull", "missing"))
    if not texts and pull == "missing":
        return None
    certificates = {_CERTIFICATES[name]: text for name, text in texts.items() if name in _CERTIFICATES}
    return Registry(texts.get("auth_file", ""), certificates, texts.get("registries_file", ""), pull)


def _extra_mount(given: Given, number: int, entry: Mapping[str, Any]) -> ExtraMount:
    name = f"extra_mounts[{number}]"
    target, source = str(entry.get("target") or ""), str(entry.get("source") or "")
    listed = entry.get("files") or ()
    if not target.startswith("/"):
        given.fault(name, f'target "{target}" is not an absolute path; correct it.')
    if bool(source) == bool(listed) or (source and not source.startswith("/")):
        given.fault(name, "has either a source, which is an absolute path of the node, or files; correct it.")
    files = tuple(
        ConfigSource(origin, target, origin.field, Layer.DEPLOYER, bool(one.get("secret", True)), content)
        for one in listed
        for origin, content in given.file(name, one)
    )
    return ExtraMount(target, source, files, tuple(entry.get("options") or ()), str(given.option(name)))


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
