# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: dataplane
short_description: The nodes of an OpenStack data plane, and what each of them should run
version_added: 1.0.0
author:
  - The edpm.services authors (@edpm-services)
description:
  - Reads data plane nodes, roles, node sets, Nova cells and service resources, from a Kubernetes cluster or from plain
    manifests, and resolves them to a plan. Every node that should run a service becomes a host.
  - A host is named like its OpenStackDataPlaneNode, in an OpenStackDataPlaneNodeSet like the node's key. A node that
    nothing asks a service of is left out.
  - What is read here is the snapshot that the whole run works with. Playbooks, lookups and actions of this collection
    read nothing themselves. A run has one snapshot.
  - The inventory file is named C(dataplane.yml) or ends in C(.dataplane.yml); C(.yaml) does as well, and C(.json) where
    this plugin is listed in C(enable_plugins).
extends_documentation_fragment:
  - edpm.services.kubernetes.plugin
  - ansible.builtin.constructed
options:
  plugin:
    description: Names this plugin, which makes the file one of its own.
    required: true
    choices:
      - edpm.services.dataplane
  manifests:
    description:
      - Files with Kubernetes objects, folders of them, or V(-) for standard input. Where this is set, no cluster is
        asked, and the options of the connection do not count.
      - A file is YAML or JSON and may hold several documents or Lists. Of a folder, all files with the suffixes
        C(.yaml), C(.yml) and C(.json) are read, those of its subfolders too.
      - A relative path begins at the inventory file's folder. Variables of the environment and C(~) are replaced.
    type: list
    elements: str
  namespaces:
    description:
      - Namespaces to read. Without this, all of them are, which in a cluster needs rights in all of them.
      - In manifests, objects that name no namespace are in the only one that is listed here, else in V(default).
    type: list
    elements: str
  ssh_keys:
    description:
      - Which keys open the nodes.
      - V(secrets) takes the key C(ssh-privatekey) of the Secret that each node names. The keys are kept by an ssh-agent
        of the run's own, which ends with the run. None of them is a variable or a file.
      - V(own) leaves the Secrets' keys alone.
      - V(auto) is V(own) where C(SSH_AUTH_SOCK) names an agent that holds a key, or where C(--private-key) or the
        setting C(private_key_file) names one. Else it is V(secrets).
      - Whatever is chosen, a variable C(ansible_ssh_private_key_file) of yours wins over the Secret's key.
    type: str
    default: auto
    choices:
      - auto
      - secrets
      - own
notes:
  - Every host has the variables C(ansible_host), C(ansible_user) and C(ansible_port) where the data plane sets them,
    the merged C(ansibleVars) of Role and Node, C(edpm_node), C(edpm_role), C(edpm_cell), the list C(edpm_services), and
    the list C(edpm_blocked), whose sentences say what keeps the node waiting; it is empty when the node is ready.
  - The groups are C(role_<role>), C(cell_<NovaCell>), C(service_<service>), C(dataplane_<name>), C(ready) and
    C(blocked). Characters that Ansible does not want in the name of a group become underscores.
  - Only the values of C(ansibleVars) may hold Jinja templates. No content of a Secret becomes a variable.
  - It reads anew each time. There is no inventory cache, since a plan must not be older than the run.
  - Ansible goes on without hosts when an inventory fails. The playbooks of this collection stop then, with the reason.
  - In a cluster, the ClusterRole C(edpm-services-reader) of the playbook C(edpm.services.install_cluster) has all the
    rights that are needed. It cannot list Secrets.
"""

EXAMPLES = r"""
# openstack.dataplane.yml: the cluster of the current context, one namespace
plugin: edpm.services.dataplane
namespaces:
  - openstack

---
# staging.dataplane.yml: a cluster chosen by context
plugin: edpm.services.dataplane
kubeconfig: ~/.kube/staging
context: staging-admin
namespaces:
  - openstack

---
# git.dataplane.yml: manifests from a repository, no cluster needed
plugin: edpm.services.dataplane
manifests:
  - manifests/openstack
  - manifests/secrets.yaml

---
# racks.dataplane.yml: groups and variables of one's own
plugin: edpm.services.dataplane
manifests: manifests
compose:
  serial_console: "'console-' ~ edpm_node"
groups:
  waiting_for_cell1: edpm_cell == 'nova-cell1' and edpm_blocked
keyed_groups:
  - key: rack | default('none')
    prefix: rack
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from ansible import constants, context
from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin, Constructable
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.judged import judge
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.model import Snapshot
from ansible_collections.edpm.services.plugins.plugin_utils._inventory import hosts, ssh_access
from ansible_collections.edpm.services.plugins.plugin_utils._inventory.ssh_agent import AgentError
from ansible_collections.edpm.services.plugins.plugin_utils._kube import snapshot
from ansible_collections.edpm.services.plugins.plugin_utils._kube.errors import KubernetesError

NAMES = tuple(f"dataplane.{suffix}" for suffix in ("yml", "yaml", "json"))


class InventoryModule(BaseInventoryPlugin, Constructable):
    NAME = "edpm.services.dataplane"

    def verify_file(self, path: str) -> bool:
        name = Path(path).name
        return bool(super().verify_file(path)) and (name in NAMES or name.endswith(tuple(f".{one}" for one in NAMES)))

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:
        with snapshot.attempt(path):
            super().parse(inventory, loader, path, cache)
            self._read_config_data(path)
            try:
                taken = snapshot.take(snapshot.Source.from_options(self.get_options(), Path(path).parent))
                access = self._open(taken)
                access = replace(access, plan=judge(access.plan))
            except (KubernetesError, AgentError) as error:
                raise AnsibleParserError(str(error)) from None  # Ansible would say the cause once more
            snapshot.amend(access.plan)
            self._warn(access)
            self._fill(access)

    def _open(self, taken: Snapshot) -> ssh_access.Access:
        plan, arguments = snapshot.plan(), context.CLIARGS
        key_file = arguments.get("private_key_file") or constants.DEFAULT_PRIVATE_KEY_FILE
        if ssh_access.own_keys_are_brought(self.get_option("ssh_keys"), key_file):
            return ssh_access.Access(plan)
        only_shows = any(arguments.get(name) for name in ("listhosts", "listtasks", "listtags", "syntax"))
        return ssh_access.open_nodes(plan, taken.stores, connecting="connection" in arguments and not only_shows)

    def _warn(self, access: ssh_access.Access) -> None:
        nothing = () if access.plan.nodes or access.plan.left_alone else ("No node of a data plane was found.",)
        for sentence in (*nothing, *access.plan.errors, *access.plan.warnings, *access.warnings):
            self.display.warning(sentence)

    def _fill(self, access: ssh_access.Access) -> None:
        plan = list(hosts.hosts(access.plan))
        # Asked for by name, Ansible would take a node for a group that is called the same: so the objects themselves.
        names = dict.fromkeys(name for host in plan for name in host.groups)
        groups = {name: self.inventory.groups[self.inventory.add_group(name)] for name in names}
        constructs = any(self.get_option(name) for name in ("compose", "groups", "keyed_groups"))
        for host in plan:
            entry = self.inventory.hosts[self.inventory.add_host(host.name)]
            for group in host.groups:
                groups[group].add_host(entry)
            for name, value in {**access.of_hosts.get(host.name, {}), **host.variables}.items():
                entry.set_variable(name, value)
            if constructs:
                self._construct(host.name)
        for group, variables in access.of_groups.items():
            for name, value in variables.items():
                groups[group].set_variable(name, value)

    def _construct(self, host: str) -> None:
        strict, variables = self.get_option("strict"), self.inventory.get_host(host).get_vars()
        self._set_composite_vars(self.get_option("compose"), variables, host, strict=strict)
        variables = self.inventory.get_host(host).get_vars()
        self._add_host_to_composed_groups(self.get_option("groups"), variables, host, strict=strict)
        self._add_host_to_keyed_groups(self.get_option("keyed_groups"), variables, host, strict=strict)
