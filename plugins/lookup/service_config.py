# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: service_config
short_description: The configuration of a service on a node, byte for byte
version_added: 1.0.0
author:
  - The edpm.services authors (@edpm-services)
description:
  - Gives the files of a service's C(conf.d) in the order in which oslo.config reads them. They are the very files that
    a deployment puts on the node.
  - It speaks of the data plane that the inventory plugin P(edpm.services.dataplane#inventory) has read in this run,
    unless O(manifests), O(namespaces) or an option of the connection names another source.
  - Nothing in a file is ever rendered. Text that looks like a Jinja template comes out as it is.
extends_documentation_fragment:
  - edpm.services.kubernetes.plugin
options:
  _terms:
    description: Names of services, for example V(nova_compute). An instance is named V(<service>@<instance>).
    required: true
    type: list
    elements: str
  host:
    description: Name of a node. The default is the host that the expression is evaluated for.
    type: str
  file:
    description:
      - Name of one file in C(conf.d), or the whole path of any file of the service, to get only its text.
    type: str
  effective:
    description: Whether to give the options with their values and origins, instead of the files.
    type: bool
    default: false
  manifests:
    description:
      - Files with Kubernetes objects, or folders of them, to read instead of what the inventory has read. No cluster is
        asked then, and the options of the connection do not count.
      - A relative path begins at the folder of the playbook or role.
    type: list
    elements: str
  namespaces:
    description: Namespaces of the cluster or the manifests to read instead of what the inventory has read.
    type: list
    elements: str
  kubeconfig:
    description:
      - Path of a kubeconfig, several paths with colons between them, or the content of one as a mapping.
      - If not set, the environment variable E(KUBECONFIG) is used, then C(~/.kube/config) where it exists, then the
        service account of the pod that Ansible runs in.
      - None of them is read where O(api_server) is set and O(context) is not.
    type: raw
    env:
      - name: K8S_AUTH_KUBECONFIG
  api_server:
    description: URL of the API server. Elsewhere in this collection it is C(host), which is the node here.
    type: str
    env:
      - name: K8S_AUTH_HOST
notes:
  - What it gives holds secrets. A task that shows it needs C(no_log).
  - It fails, with the reason, for a service whose files are wrong or incomplete. A node that merely waits, for example
    for its cell, has its files all the same.
  - A source of its own is read in the process that evaluates the expression. In a task that is a worker, for every host
    and task anew. To read it once, name it in a keyword of the play, as the last example does. Then the whole run works
    with it as with an inventory of P(edpm.services.dataplane#inventory).
seealso:
  - plugin: edpm.services.dataplane
    plugin_type: inventory
  - module: edpm.services.dataplane_info
"""

EXAMPLES = r"""
- name: Write the configuration of nova-compute to a folder of one's own
  ansible.builtin.copy:
    content: "{{ item.content }}"
    dest: "/srv/review/nova.conf.d/{{ item.name }}"
    mode: "0600"
  loop: "{{ query('edpm.services.service_config', 'nova_compute') }}"
  loop_control:
    label: "{{ item.name }} from {{ item.source }}"
  no_log: true

- name: Show what a human has set for another node
  ansible.builtin.debug:
    msg: "{{ lookup('edpm.services.service_config', 'nova_compute', host=other, file='02-nova-override.conf') }}"
  vars:
    other: edpm-compute-0

- name: Stop where debug logging is on
  ansible.builtin.assert:
    that: debug | map(attribute='value') | first | default('False') != 'True'
  vars:
    options: "{{ query('edpm.services.service_config', 'nova_compute', effective=true) }}"
    debug: "{{ options | selectattr('group', 'equalto', 'DEFAULT') | selectattr('name', 'equalto', 'debug') }}"

- name: Read manifests once, for all tasks of a run with a static inventory
  hosts: >-
    {{ 'computes' if query('edpm.services.service_config', 'nova_compute', host='edpm-compute-0', manifests='manifests')
    else '' }}
  tasks:
    - name: Name the files of each host
      ansible.builtin.debug:
        msg: "{{ query('edpm.services.service_config', 'nova_compute') | map(attribute='name') }}"
"""

RETURN = r"""
_raw:
  description:
    - By default a mapping for every file, with its C(name), its C(content) and its C(source), which is the object and
      the field that it comes from.
    - With O(file) the text of that file.
    - With O(effective=true) a mapping for every option, with C(group), C(name), C(value), C(values), C(accumulates),
      C(unresolved) and C(places). C(places) are C(file), C(line), C(value), C(object) and C(field) of every line that
      sets the option, the winner last.
  type: list
  elements: raw
"""

from typing import Any

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase
from ansible_collections.edpm.services.plugins.plugin_utils._report.config import service_config
from ansible_collections.edpm.services.plugins.plugin_utils._report.plans import plan_of
from ansible_collections.edpm.services.plugins.plugin_utils._report.refusals import REFUSALS


class LookupModule(LookupBase):
    def run(self, terms: list[str], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[Any]:
        self.set_options(var_options=variables, direct=kwargs)
        known, options = variables or {}, self.get_options()
        host = options["host"] or known.get("inventory_hostname", "")
        # The connection's name for the API server is the node's here.
        source = {**options, "host": options["api_server"]}
        given = {name for name in kwargs if name != "host"} | ({"host"} if "api_server" in kwargs else set())
        try:
            plan = plan_of(source, given, self.get_basedir(known))
            return [
                found
                for term in terms
                for found in service_config(plan, host, term, options["file"], effective=options["effective"])
            ]
        except REFUSALS as error:
            raise AnsibleLookupError(str(error)) from None
