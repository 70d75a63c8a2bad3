# SPDX-License-Identifier: GPL-3.0-or-later
"""The fields of a partner's definition, `edpm-service.yaml`, version 1. The how-to page tells what each is for."""

from __future__ import annotations

from types import MappingProxyType

from .shapes import Either, Listed, Named, Shape, Text, Truth, Whole

VERSION = 1
OSLO_CONFIG = "oslo.config"
NONE = "none"

_LAST_ID = 65533

NAME = Text(r"[a-z0-9][a-z0-9_.-]{0,62}", "a name of at most 63 lower case letters, digits, dashes, dots, underscores")
_LINE = Text(r"[^\0\n]+", "a text of one line")
_TEXT = Text(r"[^\0]*", "a text")
_FILE = Text(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", "a file's name: letters, digits, dashes, dots")
_CONF = Text(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\.conf", "a file's name that ends in .conf")
_STEPS = r"(/(?!\.\.?(/|$))[^\0\n/:\s]+)"
_PATH = Text(rf"{_STEPS}+/?", "a whole path such as /etc/probe, without spaces, colons and ..")
_DEEP = Text(rf"{_STEPS}{{2,}}/?", "a whole path at least two folders deep, such as /var/lib/probe")
_MODE = Text(r"0?[0-7]{3,4}", 'permissions as text in quotes, such as "0640"')
_USER = Text(r"[a-z_][a-z0-9_-]{0,31}", "a user's name")
_UNIT = Text(
    r"[A-Za-z0-9][A-Za-z0-9_.@:\\-]*\.(service|socket|target|timer|path|mount)", "a unit's name such as ovs.service"
)
_WORDS = Listed(_TEXT)
_KEY = Text(r"[A-Za-z0-9_.*?\[\]-]+", "a key of a Secret or ConfigMap, in which * and ? stand for any letters")

SCHEMA = Shape(
    MappingProxyType(
        {
            "version": Whole(VERSION, VERSION),
            "name": NAME,
            "title": _LINE,
            "image": Text(r"[A-Za-z0-9][A-Za-z0-9_./:@-]*", "an image's name"),
            "service_cr": Shape(
                {
                    "api_version": Text(r"[a-z0-9][a-z0-9.-]*/v[0-9][a-z0-9]*", "a group and version such as a.com/v1"),
                    "kind": Text(r"[A-Z][A-Za-z0-9]*", "a kind such as TelemetryProbe"),
                    "image_field": Text(
                        r"([a-z][A-Za-z0-9]*C|c)ontainerImage", "a field of the spec whose name ends in containerImage"
                    ),
                },
                needed=("api_version", "kind"),
            ),
            "asked_by": Listed(
                Text(r"[a-z0-9][a-z0-9.-]*/[A-Za-z0-9][A-Za-z0-9._-]*", "an annotation such as a.com/probe")
            ),
            "needs_cell": Truth(),
            "instances": Truth(),
            "config_directory": _PATH,
            "conf_d": _PATH,
            "profile_file": _CONF,
            "override_file": _CONF,
            "keys": Listed(
                Shape({"key": _KEY, "directory": _PATH, "name": _FILE, "live": Truth()}, needed=("key", "directory"))
            ),
            "required_keys": Listed(Text(r"[A-Za-z0-9_.-]+", "a key of a Secret or ConfigMap")),
            "files": Listed(Shape({"path": _PATH, "content": _TEXT, "mode": _MODE}, needed=("path", "content"))),
            "command": _LINE,
            "kolla_config": Text(r"[A-Za-z0-9_.-]+", "a key of a Secret or ConfigMap"),
            "user": _USER,
            "accounts": Listed(
                Shape({"name": _USER, "number": Whole(1, _LAST_ID), "home": _PATH}, needed=("name", "number"))
            ),
            "privileges": Shape(
                {
                    "privileged": Truth(),
                    "confined": Truth(),
                    "capabilities": Listed(Text(r"[A-Z][A-Z0-9_]+", "a capability such as NET_ADMIN")),
                    "devices": Listed(Text(r"/dev(/[^\0\n/\s]+)+", "a device such as /dev/net/tun")),
                    "podman_options": Listed(
                        Text(
                            r"(?!--(privileged|name|pull|rm|replace|cap-add|device|volume|env|user)\b)"
                            r"--[a-z][a-z0-9-]*(=[^\0\n]+)?",
                            "an option of podman run such as --pid=host, and none that has a field of its own here",
                        )
                    ),
                }
            ),
            "mounts": Listed(
                Shape(
                    {
                        "source": _PATH,
                        "target": _PATH,
                        "options": Listed(Text(r"[a-z][a-z0-9=]*", "an option of a mount such as ro")),
                        "own": Truth(),
                    },
                    needed=("source",),
                )
            ),
            "log_folder": _PATH,
            "folders": Listed(Shape({"path": _PATH, "owner": _USER, "mode": _MODE}, needed=("path",))),
            "data": Listed(_DEEP),
            "tmpfiles": Listed(_LINE),
            "sysctls": Named(
                Text(r"[a-zA-Z0-9_]([a-zA-Z0-9_./-]*[a-zA-Z0-9_])?", "a kernel setting's name"),
                Text(r"[^\0\n]+", 'a value as text in quotes, such as "1"'),
            ),
            "kernel_modules": Listed(Text(r"[A-Za-z0-9_-]+", "a kernel module's name")),
            "ports": Listed(
                Text(r"(tcp|udp|sctp) [1-9][0-9]{0,4}(-[1-9][0-9]{0,4})?", "a port such as tcp 9100 or udp 500-510")
            ),
            "environment": Named(
                Text(r"[A-Za-z_][A-Za-z0-9_]*", "a variable's name"),
                Text(r"[^\0\n]*", 'a value as text of one line, numbers in quotes: "1"'),
            ),
            "order": Shape({"wants": Listed(_UNIT), "after": Listed(_UNIT)}),
            "stop_seconds": Whole(1, 3600),
            "health": Shape(
                {
                    "command": _WORDS,
                    "connected": Text(r"[A-Za-z0-9_.-]+", "a program's name"),
                    "settle": Whole(0, 600),
                    "timeout": Whole(1, 3600),
                }
            ),
            "validation": Either((NONE, OSLO_CONFIG), Shape({"command": _WORDS}, needed=("command",))),
            "reload": _WORDS,
            "busy": _WORDS,
        }
    ),
    needed=("version", "user"),
)
