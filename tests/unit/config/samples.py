"""Sources as a cluster gives them, in few words."""

from __future__ import annotations

from ansible_collections.edpm.services.plugins.plugin_utils._config.layers import ConfD, layer
from ansible_collections.edpm.services.plugins.plugin_utils._config.sources import Layer, Source

SNIPPET = "NovaExternalCompute openstack/edpm-compute-0, spec.customServiceConfig"
CELL_SECRET = "Secret openstack/nova-cell1-compute-config"


def generated(name: str, content: bytes | str = b"[DEFAULT]\n") -> Source:
    return Source(name, encoded(content), CELL_SECRET, f"key {name}", Layer.GENERATED, secret=True)


def host(
    name: str = "02-nova-host-specific.conf", content: bytes | str = b"[DEFAULT]\nhost = edpm-compute-0\n"
) -> Source:
    return Source(name, encoded(content), "OpenStackDataPlaneNode openstack/edpm-compute-0", "spec.node", Layer.HOST)


def deployers(name: str, content: bytes | str = b"[DEFAULT]\n") -> Source:
    return Source(name, encoded(content), "ConfigMap openstack/nova-extra-config", f"key {name}", Layer.DEPLOYER)


def profile(content: bytes | str = b"[DEFAULT]\n", name: str = "02-nova-compute-profile.conf") -> Source:
    return Source(name, encoded(content), "ServiceProfile openstack/edge", "spec.customServiceConfig", Layer.PROFILE)


def snippet(content: bytes | str = b"[DEFAULT]\n", name: str = "02-nova-override.conf") -> Source:
    return Source(
        name,
        encoded(content),
        "NovaExternalCompute openstack/edpm-compute-0",
        "spec.customServiceConfig",
        Layer.OVERRIDE,
    )


def folder(*sources: Source) -> ConfD:
    conf_d = layer(sources)
    assert not conf_d.errors
    return conf_d


def encoded(content: bytes | str) -> bytes:
    return content.encode() if isinstance(content, str) else content
