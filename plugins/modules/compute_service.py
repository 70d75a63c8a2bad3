#!/usr/bin/python
# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: compute_service
short_description: What OpenStack must be told about computes
version_added: 1.0.0
author:
  - The edpm.services authors (@edpm-services)
description:
  - Maps new computes to their cells, takes computes out of service, drains them, and removes them from Nova and
    Placement.
  - Computes that are in the state already are left alone.
requirements:
  - openstacksdk >= 4
extends_documentation_fragment:
  - edpm.services.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
  platform:
    support: full
    platforms: all
    details:
      - OpenStack is asked by Ansible's own Python on the controller. Only O(discover_command) runs on the host of the
        task.
options:
  hosts:
    description:
      - Names of the computes as Nova knows them, which is the option C(host) of their configuration.
    type: list
    elements: str
    required: true
  state:
    description:
      - With V(discovered), the computes are mapped to their cells and Placement lists those that are new, so that
        servers can be scheduled to them.
      - With V(disabled), no new servers are scheduled to the computes, with V(enabled) they are again.
      - With V(drained), the computes are disabled and have no servers.
      - With V(absent), Nova has no record of the computes and Placement has no resource provider for them. Stop
        nova-compute on the node first, else it reports itself again. A compute that still has servers is refused.
    type: str
    required: true
    choices:
      - discovered
      - enabled
      - disabled
      - drained
      - absent
  cloud:
    description:
      - Name of a cloud in a C(clouds.yaml), found as openstacksdk finds it.
      - Without it, the credentials are the ConfigMap C(openstack-config) and the Secret C(openstack-config-secret) of
        the data plane that the inventory plugin P(edpm.services.dataplane#inventory) has read in this run.
    type: str
    default: ""
  namespace:
    description:
      - Namespace of that pair. By default it is that of the cells, or of the nodes where there is no cell.
    type: str
    default: ""
  reason:
    description: Why a compute is disabled, as Nova shows it.
    type: str
    default: 'edpm.services: taken out of service'
  on_servers:
    description:
      - What O(state=drained) does about servers. V(refuse) fails and leaves the compute as it is, V(migrate) moves
        servers that run to other computes by live migration.
    type: str
    default: refuse
    choices:
      - refuse
      - migrate
  discover_command:
    description:
      - Command that maps new hosts to cells, for O(state=discovered), as a list of words without a shell. It runs on
        the host of the task, for all computes, after they have reported to Nova, and again while one is not mapped.
      - For a control plane in pods, delegate the task to V(localhost) and execute C(nova-manage) in a conductor's pod.
      - Without it, the scheduler is waited for, which discovers hosts by itself where
        C([scheduler]discover_hosts_in_cells_interval) is set.
    type: list
    elements: str
    default: []
  timeout:
    description: Seconds to wait for computes to report, to be mapped, or to be empty.
    type: int
    default: 120
seealso:
  - module: edpm.services.service
"""

EXAMPLES = r"""
- name: Map new computes to their cells
  edpm.services.compute_service:
    hosts:
      - edpm-compute-0
    state: discovered
    discover_command:
      - kubectl
      - exec
      - --namespace=openstack
      - nova-cell0-conductor-0
      - --
      - nova-manage
      - cell_v2
      - discover_hosts
  delegate_to: localhost
  run_once: true

- name: Let no new servers onto a compute
  edpm.services.compute_service:
    cloud: default
    hosts:
      - edpm-compute-0
    state: disabled
    reason: new disks

- name: Move its servers away
  edpm.services.compute_service:
    cloud: default
    hosts:
      - edpm-compute-0
    state: drained
    on_servers: migrate
    timeout: 900

- name: Remove it, after nova-compute was stopped on the node
  edpm.services.compute_service:
    cloud: default
    hosts:
      - edpm-compute-0
    state: absent
"""

RETURN = r"""
changed_hosts:
  description: The computes that were not in the state before.
  returned: success
  type: list
  elements: str
  sample:
    - edpm-compute-0
"""
