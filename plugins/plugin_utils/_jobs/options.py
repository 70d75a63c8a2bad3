# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of ee_job as an argument spec; their documentation is the module's."""

from __future__ import annotations

from typing import Any


def _list(**rest: Any) -> dict[str, Any]:
    return {"type": "list", "elements": "str", **rest}


SPEC: dict[str, dict[str, Any]] = {
    "namespace": {"type": "str", "default": "openstack"},
    "playbook": {"type": "str", "default": ""},
    "play": {"type": "raw"},
    "name": {"type": "str", "default": ""},
    "run": {"type": "str", "default": ""},
    "rerun": {"type": "bool", "default": True},
    "nodes": _list(),
    "limit": {"type": "str", "default": ""},
    "tags": _list(default=[]),
    "skip_tags": _list(default=[]),
    "extra_vars": {"type": "dict", "default": {}},
    "extra_vars_secrets": _list(default=[], no_log=False),
    "arguments": _list(default=[]),
    "environment": {"type": "dict", "default": {}},
    "image": {"type": "str", "default": ""},
    "image_pull_policy": {"type": "str", "default": "IfNotPresent", "choices": ["Always", "IfNotPresent", "Never"]},
    "image_pull_secrets": _list(default=[], no_log=False),
    "service_account": {"type": "str", "default": "edpm-services-runner"},
    "inventory": {"type": "str", "default": "dataplane", "choices": ["dataplane", "config_maps"]},
    "inventory_config_maps": _list(default=[]),
    "ssh_key_secret": {"type": "str", "default": "", "no_log": False},
    "known_hosts": {"type": "str", "default": ""},
    "ca_secret": {"type": "str", "default": "combined-ca-bundle", "no_log": False},
    "mounts": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "secret": {"type": "str", "no_log": False},
            "config_map": {"type": "str"},
            "path": {"type": "str", "required": True},
            "optional": {"type": "bool", "default": False},
        },
    },
    "network_attachments": _list(),
    "dns_config": {
        "type": "dict",
        "options": {
            "nameservers": _list(default=[]),
            "searches": _list(default=[]),
            "options": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {"name": {"type": "str", "required": True}, "value": {"type": "str"}},
            },
        },
    },
    "shard_size": {"type": "int", "default": 50},
    "parallel": {"type": "int", "default": 10},
    "forks": {"type": "int", "default": 10},
    "backoff_limit": {"type": "int", "default": 2},
    "ttl": {"type": "int", "default": 3600},
    "deadline": {"type": "int"},
    "run_as_user": {"type": "int"},
    "resources": {"type": "dict", "default": {}},
    "engine": {"type": "str", "default": "job", "choices": ["job", "openstackansibleee", "auto"]},
    "wait": {"type": "bool", "default": True},
    "wait_timeout": {"type": "int", "default": 3600},
}
