# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of the lab's cloud as text: what each service of the control plane reads, and what computes are told.

Everything here follows from a `Site`, which is the control plane's address and the passwords of one lab, so the same
text comes out for whoever asks later.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

import yaml

from .prerequisites import architecture

CELLS = ("cell1", "cell2")
REGION = "RegionOne"
CLOUD = "default"

#: Users of the services in Keystone; each has the roles admin and service in the project service.
USERS = ("nova", "placement", "glance", "neutron", "cinder")

#: What Keystone lists: name, type and where it answers.
CATALOG = (
    ("nova", "compute", ":8774/v2.1"),
    ("placement", "placement", ":8778"),
    ("glance", "image", ":9292"),
    ("neutron", "network", ":9696"),
    ("cinderv3", "volumev3", ":8776/v3"),
)
DATABASES = (
    "keystone",
    "placement",
    "glance",
    "neutron",
    "cinder",
    "nova_api",
    "nova_cell0",
    "nova_cell1",
    "nova_cell2",
)
METADATA_PORT = 8775
CELL_METADATA_PORTS = {"cell1": 8785, "cell2": 8786}
SOUTHBOUND_PORT = 6642

Ini = Mapping[str, Mapping[str, object]]


@dataclass(frozen=True)
class Passwords:
    """All that is secret in one cloud; `bus` has a password for the users of each vhost."""

    admin: str
    services: str
    database: str
    metadata: str
    fernet: tuple[str, ...]
    bus: Mapping[str, str] = field(repr=False)

    @classmethod
    def new(cls) -> Passwords:
        """Passwords that no other lab has."""
        word = secrets.token_hex
        keys = tuple(base64.urlsafe_b64encode(secrets.token_bytes(32)).decode() for _ in range(4))
        return cls(word(12), word(12), word(12), word(12), keys, {name: word(12) for name in ("api", *CELLS)})

    @classmethod
    def read(cls, text: str) -> Passwords:
        """Those that were written before."""
        known = json.loads(text)
        return cls(**{**known, "fernet": tuple(known["fernet"])})

    def written(self) -> str:
        """As text, for a file of the lab."""
        return json.dumps(asdict(self), indent=2)


@dataclass(frozen=True)
class Site:
    """One cloud: where its control plane is, and its passwords."""

    address: str
    passwords: Passwords = field(repr=False)

    @property
    def identity(self) -> str:
        """Where Keystone answers."""
        return f"http://{self.address}:5000/v3"

    @property
    def southbound(self) -> str:
        """OVN's southbound database, as OVN writes it."""
        return f"tcp:{self.address}:{SOUTHBOUND_PORT}"

    def transport_url(self, bus: str = "api") -> str:
        """The message bus of a cell, or of the services that belong to none."""
        vhost = "" if bus == "api" else bus
        return f"rabbit://{bus_user(bus)}:{self.passwords.bus[bus]}@{self.address}:5672/{vhost}"

    def database(self, name: str) -> str:
        """The address of a database with its user and password."""
        return f"mysql+pymysql://{_owner(name)}:{self.passwords.database}@{self.address}/{name}?charset=utf8"

    def credentials(self, user: str) -> dict[str, object]:
        """How a service logs in at Keystone."""
        return {
            "auth_type": "password",
            "auth_url": self.identity,
            "username": user,
            "password": self.passwords.services,
            "user_domain_name": "Default",
            "project_name": "service",
            "project_domain_name": "Default",
        }

    def client(self, user: str) -> dict[str, object]:
        """The same for groups of options that tell a region as well; not all do."""
        return {**self.credentials(user), "region_name": REGION}

    def clouds(self) -> str:
        """A clouds.yaml for the administrator, without the password."""
        auth = {
            "auth_url": self.identity,
            "username": "admin",
            "project_name": "admin",
            "user_domain_name": "Default",
            "project_domain_name": "Default",
        }
        return _yaml({"clouds": {CLOUD: {"auth": auth, "region_name": REGION, "identity_api_version": 3}}})

    def secure(self) -> str:
        """The secure.yaml that belongs to it."""
        return _yaml({"clouds": {CLOUD: {"auth": {"password": self.passwords.admin}}}})

    def sql(self) -> str:
        """Statements that give the databases their users and tell Nova where its cells are; they can be run again."""
        owners = sorted({_owner(name) for name in DATABASES})
        lines = [f"CREATE OR REPLACE USER '{user}'@'%' IDENTIFIED BY '{self.passwords.database}';" for user in owners]
        lines += [f"GRANT ALL ON {name}.* TO '{_owner(name)}'@'%';" for name in DATABASES]
        lines.append(
            f"UPDATE nova_api.cell_mappings SET transport_url = 'none:///', "
            f"database_connection = '{self.database('nova_cell0')}' WHERE name = 'cell0';"
        )
        lines += [
            f"UPDATE nova_api.cell_mappings SET transport_url = '{self.transport_url(cell)}', "
            f"database_connection = '{self.database(f'nova_{cell}')}' WHERE name = '{cell}';"
            for cell in CELLS
        ]
        return "\n".join(lines) + "\n"


def files(site: Site) -> dict[str, str]:
    """The control plane's settings by their path below /etc; a folder's name is that of the group that reads them."""
    found = {
        "rabbitmq/rabbitmq.conf": "listeners.tcp.default = 5672\nload_definitions = /etc/rabbitmq/definitions.json\n",
        "rabbitmq/definitions.json": _definitions(site),
        # On a busy machine a service may need longer than systemd waits for one.
        "systemd/system.conf.d/lab.conf": "[Manager]\nDefaultTimeoutStartSec=600\n",
        "openstack/clouds.yaml": site.clouds(),
        "openstack/secure.yaml": site.secure(),
        "keystone/keystone.conf": ini(_keystone(site)),
        "placement/placement.conf": ini(_placement(site)),
        "glance/glance-api.conf": ini(_glance(site)),
        "nova/nova.conf": ini(_nova(site, "api")),
        "neutron/neutron.conf": ini(_neutron(site)),
        "neutron/plugins/ml2/ml2_conf.ini": ini(_ml2(site)),
        "cinder/cinder.conf": ini(_cinder_control(site)),
    }
    for cell in CELLS:
        settings = _nova(site, cell)
        found[f"nova/nova-{cell}.conf"] = ini(settings)
        alone = {**settings, "api": {**settings["api"], "local_metadata_per_cell": True}}
        found[f"nova/nova-metadata-{cell}.conf"] = ini(alone)
        found[f"nova/metadata-{cell}.env"] = f"PORT={CELL_METADATA_PORTS[cell]}\n"
    fernet = site.passwords.fernet
    for folder, keys in (("fernet-keys", fernet[:2]), ("credential-keys", fernet[2:])):
        found |= {f"keystone/{folder}/{number}": key for number, key in enumerate(keys)}
    return found


def compute(site: Site, cell: str) -> str:
    """01-nova.conf of a cell's computes; guests are emulated, so that every host gives the same result."""
    libvirt: dict[str, object] = {"virt_type": "qemu"}
    if architecture() == "arm64":
        # What QEMU takes by default is a 32-bit processor, on which no firmware runs.
        libvirt |= {"cpu_mode": "custom", "cpu_models": "cortex-a57"}
    return ini(
        {
            "DEFAULT": {
                "transport_url": site.transport_url(cell),
                "compute_driver": "libvirt.LibvirtDriver",
                "state_path": "/var/lib/nova",
                "reserved_host_memory_mb": 0,
            },
            "service_user": {"send_service_user_token": True, **site.credentials("nova")},
            "placement": site.client("placement"),
            "neutron": site.client("neutron"),
            "cinder": {"os_region_name": REGION, **site.credentials("cinder")},
            "glance": {"service_type": "image", "region_name": REGION},
            "libvirt": libvirt,
            "oslo_concurrency": {"lock_path": "/var/lib/nova/tmp"},
            "vnc": {"enabled": False},
            "spice": {"enabled": False},
        }
    )


def nova_metadata(site: Site, cell: str | None = None) -> str:
    """05-nova-metadata.conf: where the metadata agent finds Nova's own service, the global one or a cell's."""
    return ini(
        {
            "DEFAULT": {
                "nova_metadata_host": site.address,
                "nova_metadata_port": METADATA_PORT if cell is None else CELL_METADATA_PORTS[cell],
                "nova_metadata_protocol": "http",
                "metadata_proxy_shared_secret": site.passwords.metadata,
            }
        }
    )


def metadata_agent(site: Site) -> str:
    """10-neutron-metadata.conf: how the metadata agent reaches OVN, and Open vSwitch on its node."""
    return ini(
        {
            "DEFAULT": {"state_path": "/var/lib/neutron", "metadata_workers": 1},
            "agent": {"root_helper": "sudo neutron-rootwrap /etc/neutron/rootwrap.conf"},
            "ovs": {"ovsdb_connection": "tcp:127.0.0.1:6640"},
            "ovn": {"ovn_sb_connection": site.southbound},
            "oslo_concurrency": {"lock_path": "/var/lib/neutron/lock"},
        }
    )


def sriov_agent(site: Site) -> str:
    """10-neutron-sriov.conf: the agent's bus; which NICs it looks after is the deployer's to say."""
    return ini(
        {
            "DEFAULT": {"transport_url": site.transport_url(), "state_path": "/var/lib/neutron"},
            "agent": {"root_helper": "sudo neutron-rootwrap /etc/neutron/rootwrap.conf"},
            "securitygroup": {"firewall_driver": "noop"},
            "sriov_nic": {"physical_device_mappings": ""},
            "oslo_concurrency": {"lock_path": "/var/lib/neutron/lock"},
        }
    )


def cinder_volume(site: Site) -> str:
    """10-cinder.conf of cinder-volume: bus, database and the services that it calls; backends are the deployer's."""
    return ini(_cinder(site))


def ini(settings: Ini) -> str:
    """Text that oslo.config reads."""
    sections = []
    for name, options in settings.items():
        lines = [f"{option} = {_value(value)}".rstrip() for option, value in options.items()]
        sections.append("\n".join([f"[{name}]", *lines]))
    return "\n\n".join(sections) + "\n"


def bus_user(bus: str) -> str:
    """Who may use a message bus: each has a user of its own."""
    return "openstack" if bus == "api" else f"nova-{bus}"


def hashed(password: str, salt: bytes) -> str:
    """A password as RabbitMQ keeps it: the salt, and the digest of salt and password."""
    return base64.b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode()


def _definitions(site: Site) -> str:
    """What RabbitMQ loads when it starts: a vhost and a user for each bus."""
    users, vhosts, permissions = [], [], []
    for bus, password in site.passwords.bus.items():
        vhost = "/" if bus == "api" else bus
        salt = hashlib.sha256(bus.encode()).digest()[:4]
        digest = {"password_hash": hashed(password, salt), "hashing_algorithm": "rabbit_password_hashing_sha256"}
        users.append({"name": bus_user(bus), **digest, "tags": []})
        vhosts.append({"name": vhost})
        everything = dict.fromkeys(("configure", "write", "read"), ".*")
        permissions.append({"user": bus_user(bus), "vhost": vhost, **everything})
    return json.dumps({"users": users, "vhosts": vhosts, "permissions": permissions}, indent=2)


def _keystone(site: Site) -> Ini:
    """Passwords that end with their lab need no slow hashes, and one process can remember what it read."""
    return {
        "DEFAULT": {"log_dir": "/var/log/keystone"},
        "cache": {"enabled": True, "backend": "dogpile.cache.memory"},
        "database": {"connection": site.database("keystone")},
        "identity": {"password_hash_rounds": 4},
        "token": {"provider": "fernet"},
    }


def _placement(site: Site) -> Ini:
    return {
        "DEFAULT": {"log_dir": "/var/log/placement"},
        "api": {"auth_strategy": "keystone"},
        "placement_database": {"connection": site.database("placement")},
        "keystone_authtoken": _token_check(site, "placement"),
    }


def _glance(site: Site) -> Ini:
    return {
        "DEFAULT": {"log_dir": "/var/log/glance", "enabled_backends": "file:file"},
        "glance_store": {"default_backend": "file"},
        "file": {"filesystem_store_datadir": "/var/lib/glance/images"},
        "database": {"connection": site.database("glance")},
        "paste_deploy": {"flavor": "keystone"},
        "oslo_concurrency": {"lock_path": "/var/lock/glance"},
        "keystone_authtoken": _token_check(site, "glance"),
    }


def _nova(site: Site, bus: str) -> dict[str, Mapping[str, object]]:
    """Nova's settings on one bus; hosts are never discovered by themselves, so that a test sees who did it."""
    return {
        "DEFAULT": {
            "my_ip": site.address,
            "log_dir": "/var/log/nova",
            "state_path": "/var/lib/nova",
            "transport_url": site.transport_url(bus),
        },
        "api_database": {"connection": site.database("nova_api")},
        "database": {"connection": site.database("nova_cell0" if bus == "api" else f"nova_{bus}")},
        "api": {"auth_strategy": "keystone"},
        "keystone_authtoken": _token_check(site, "nova"),
        "service_user": {"send_service_user_token": True, **site.credentials("nova")},
        "placement": site.client("placement"),
        "neutron": {
            **site.client("neutron"),
            "service_metadata_proxy": True,
            "metadata_proxy_shared_secret": site.passwords.metadata,
        },
        "glance": {"service_type": "image", "region_name": REGION},
        "cinder": {"os_region_name": REGION, **site.credentials("cinder")},
        "conductor": {"workers": 1},
        "scheduler": {"workers": 1, "discover_hosts_in_cells_interval": -1},
        "oslo_concurrency": {"lock_path": "/var/lock/nova"},
        "wsgi": {"api_paste_config": "/etc/nova/api-paste.ini"},
    }


def _neutron(site: Site) -> Ini:
    return {
        "DEFAULT": {
            "auth_strategy": "keystone",
            "core_plugin": "ml2",
            "service_plugins": "ovn-router",
            "api_workers": 1,
            "rpc_workers": 1,
            "notify_nova_on_port_status_changes": True,
            "notify_nova_on_port_data_changes": True,
            "transport_url": site.transport_url(),
            "log_dir": "/var/log/neutron",
            "state_path": "/var/lib/neutron",
        },
        "database": {"connection": site.database("neutron")},
        "keystone_authtoken": _token_check(site, "neutron"),
        "nova": site.client("nova"),
        "oslo_concurrency": {"lock_path": "/var/lock/neutron"},
    }


def _ml2(site: Site) -> Ini:
    return {
        "ml2": {
            "mechanism_drivers": "ovn,sriovnicswitch",
            "type_drivers": "local,flat,vlan,geneve",
            "tenant_network_types": "geneve",
            "extension_drivers": "port_security",
            "overlay_ip_version": 4,
        },
        "ml2_type_flat": {"flat_networks": "*"},
        "ml2_type_vlan": {"network_vlan_ranges": "sriovnet:100:200"},
        "ml2_type_geneve": {"vni_ranges": "1:65536", "max_header_size": 38},
        "securitygroup": {"enable_security_group": True},
        "ovn": {
            "ovn_nb_connection": f"tcp:{site.address}:6641",
            "ovn_sb_connection": site.southbound,
            "ovn_metadata_enabled": True,
        },
    }


def _cinder(site: Site) -> dict[str, Mapping[str, object]]:
    return {
        "DEFAULT": {
            "transport_url": site.transport_url(),
            "state_path": "/var/lib/cinder",
            "glance_api_servers": f"http://{site.address}:9292",
        },
        "database": {"connection": site.database("cinder")},
        "keystone_authtoken": _token_check(site, "cinder"),
        "oslo_concurrency": {"lock_path": "/var/lib/cinder/tmp"},
    }


def _cinder_control(site: Site) -> Ini:
    shared = _cinder(site)
    own = {
        "my_ip": site.address,
        "auth_strategy": "keystone",
        "log_dir": "/var/log/cinder",
        "api_paste_config": "/etc/cinder/api-paste.ini",
    }
    return {**shared, "DEFAULT": {**shared["DEFAULT"], **own}, "oslo_concurrency": {"lock_path": "/var/lock/cinder"}}


def _token_check(site: Site, user: str) -> dict[str, object]:
    return {
        "www_authenticate_uri": site.identity,
        "service_token_roles": "service",
        "service_token_roles_required": True,
        **site.client(user),
    }


def _owner(database: str) -> str:
    return database.partition("_")[0]


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _yaml(value: object) -> str:
    text: str = yaml.safe_dump(value, sort_keys=False)
    return text
