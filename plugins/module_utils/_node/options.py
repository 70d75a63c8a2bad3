# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of the modules, as Ansible wants them described: the controller checks them, and so does a module."""

from __future__ import annotations

from typing import Any

Spec = dict[str, dict[str, Any]]

_PLACES: Spec = {
    "root": {"type": "path", "default": "/var/lib/openstack"},
    "unit_root": {"type": "path", "default": "/etc/containers/systemd"},
}

#: What the action `service` reads on the controller and makes a bundle of; none of it reaches a node.
CONTROLLER: Spec = {
    "source": {"type": "str", "choices": ["auto", "plan", "options"], "default": "auto"},
    "definition": {"type": "raw"},
    **{name: {"type": "str"} for name in ("image", "cell", "host", "my_ip", "custom_service_config", "profile")},
    **{name: {"type": "path"} for name in ("custom_service_config_file", "config_folder", "kolla_config_file")},
    **{name: {"type": "list", "elements": "dict"} for name in ("files", "extra_mounts")},
    **{name: {"type": "dict"} for name in ("known", "registry", "options")},
}

SERVICE: Spec = {
    "state": {"type": "str", "choices": ["present", "previous", "absent", "pulled"], "default": "present"},
    "bundle": {"type": "str", "no_log": True},
    "service": {"type": "str"},
    "instance": {"type": "str", "default": ""},
    "force": {"type": "bool", "default": False},
    "purge_data": {"type": "bool", "default": False},
    "lock_timeout": {"type": "int", "default": 300},
    **_PLACES,
    **CONTROLLER,
}
SERVICE_NEEDS = [
    ("state", "present", ["bundle"]),
    ("state", "pulled", ["bundle"]),
    ("state", "previous", ["service"]),
    ("state", "absent", ["service"]),
]

SERVICE_FACTS: Spec = {
    "services": {"type": "list", "elements": "str", "default": []},
    "health_checks": {"type": "bool", "default": True},
    "images": {"type": "list", "elements": "str", "default": []},
    "read": {"type": "list", "elements": "path", "default": []},
    **_PLACES,
}
