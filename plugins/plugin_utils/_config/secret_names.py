# SPDX-License-Identifier: GPL-3.0-or-later

"""Which options hold a secret, told by their names, as no service's option definitions are at hand.

The first row that fits decides:

| the option's name | examples | its value is |
|---|---|---|
| is an address of OVN or Open vSwitch, which have no passwords | ovn_sb_connection, ovsdb_connection | shown |
| is an address with credentials in it | transport_url, connection, slave_connection | shown but for its passwords |
| begins like a switch | send_service_user_token, enable_instance_password, inject_key | shown but for passwords in it |
| ends like a description | rbd_secret_uuid, password_file, token_cache_time, auth_url | shown but for passwords in it |
| speaks of a password, secret, token, … | password, metadata_proxy_shared_secret, approle_secret_id | masked |
| speaks of a key | fixed_key, backup_swift_key, hmac_keys, ovn_sb_private_key | masked, unless it is a path |
| any other | debug, live_migration_uri, replication_device | shown but for passwords in it |

What is masked without need costs a look into the cluster; what is shown without need costs a password. So words
decide wherever they stand in a name, and only endings that plainly describe something else take a name out again.
"""

from __future__ import annotations

import re
from enum import Enum, auto


class Kind(Enum):
    """What an option's name tells of its value."""

    PLAIN = auto()
    ADDRESS = auto()
    SECRET = auto()
    KEY = auto()


# The first pattern that fits the whole name decides.
_KINDS: tuple[tuple[re.Pattern[str], Kind], ...] = (
    (re.compile(r"(ovn_nb|ovn_sb|ovsdb)_connection"), Kind.PLAIN),
    (re.compile(r"(.*_)?(transport_url|connection|connection_string)"), Kind.ADDRESS),
    (re.compile(r"(allow|check|enable|enforce|inject|is|require|send|use|validate|verify)_.*"), Kind.PLAIN),
    (
        re.compile(
            r".*_(algorithms?|class|count|dir|directory|driver|enabled|endpoint|expiration|expiry|files?|interval|length|"
            r"manager|map|path|required|roles|size|time|timeout|ttl|types?|ur[il]|uuid|version)|"
            r".*public_keys?|(.*_)?keyfile"
        ),
        Kind.PLAIN,
    ),
    (
        re.compile(
            r".*(password|passwd|passphrase|secret|credential).*|"
            r"(.*_)?[a-z]*tokens?(_.*)?|(.*_)?(pass|pwd|psk|authorization|auth_string|cookie)"
        ),
        Kind.SECRET,
    ),
    (re.compile(r"(.*_)?(apikey|keys?|key_(data|id|material|value)|keyring_data)"), Kind.KEY),
)


def kind_of(option: str) -> Kind:
    """What the name tells; `group.name` and the plain name are the same."""
    # Quotes and dashes around a name come from JSON and YAML, which travel beside the configuration.
    name = option.rpartition(".")[2].strip().strip(" -\"'\ufeff").lower().replace("-", "_")
    return next((kind for pattern, kind in _KINDS if pattern.fullmatch(name)), Kind.PLAIN)
