#!/usr/bin/python
# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rollout
short_description: One step of a run over the nodes of a data plane
version_added: 1.0.0
author:
  - The edpm.services authors (@edpm-services)
description:
  - The playbooks C(deploy), C(status), C(rollback) and C(remove) of this collection are made of these steps. The
    lookup P(edpm.services.rollout#lookup) begins a run and says which hosts each of their plays has.
  - Use the playbooks. To have one service on a node in a playbook of your own, there is M(edpm.services.service).
extends_documentation_fragment:
  - edpm.services.attributes
attributes:
  action:
    description: Runs on the controller and calls M(edpm.services.service) on the node where a step needs that.
    support: full
  check_mode:
    support: full
  diff_mode:
    support: full
    details:
      - As M(edpm.services.service) does, with secrets masked.
  idempotent:
    support: full
  platform:
    support: full
    platforms: posix
options:
  step:
    description:
      - V(prefetch) pulls the images that the node will need and lacks.
      - V(batch) says whether another batch may begin.
      - V(node) works on the services of the node, one after the other. One that fails keeps the later ones of that node
        from being touched.
      - V(summary) tells what became of every node, and writes the names of those that are worth a second run to
        O(retry_file).
      - V(status) tells what runs where.
      - V(verdict) fails on a node for which the run has failed.
    type: str
    required: true
    choices:
      - prefetch
      - batch
      - node
      - summary
      - status
      - verdict
  output:
    description: How V(summary) and V(status) tell it.
    type: str
    default: text
    choices:
      - text
      - json
  output_file:
    description: A file on the controller to write that to. Without it, it is displayed.
    type: path
    default: ''
  retry_file:
    description:
      - A file on the controller for the names of the nodes that failed, could not be reached or whose turn did not
        come. It is written when there are any, and made for C(--limit @<file>).
      - Without it, the file is named after the playbook and lies in the current folder, for example
        C(edpm-deploy.retry).
    type: path
    default: ''
  strict:
    description: Whether a run fails, too, on a node that is blocked.
    type: bool
    default: false
  force:
    description: Whether services are removed although something that they run has not ended, such as instances.
    type: bool
    default: false
  purge_data:
    description: Whether the data of removed services is removed, too.
    type: bool
    default: false
  lock_timeout:
    description: How many seconds to wait while another run works on the same node.
    type: int
seealso:
  - plugin: edpm.services.rollout
    plugin_type: lookup
  - module: edpm.services.service
  - module: edpm.services.service_facts
"""

EXAMPLES = r"""
- name: Tell what became of every node, for a program
  edpm.services.rollout:
    step: summary
    output: json
    output_file: deployed.json
  run_once: true
"""

RETURN = r"""
msg:
  description: What the step did, or what is wrong and what to do.
  returned: always
  type: str
services:
  description: What M(edpm.services.service) returned for each service that was worked on.
  returned: with O(step=node) and O(step=prefetch)
  type: dict
not_begun:
  description: The services of the node that were not touched since one before them failed.
  returned: with O(step=node)
  type: list
  elements: str
restarts:
  description: How many services of the node were restarted, or would be.
  returned: with O(step=node)
  type: int
stop:
  description: Whether no further batch begins.
  returned: with O(step=batch)
  type: bool
why:
  description: The reason for RV(stop), empty where there is none.
  returned: with O(step=batch)
  type: str
report:
  description: The nodes with their services, and how many have which outcome.
  returned: with O(step=summary)
  type: dict
retry_file:
  description: The file with the names of the nodes that are worth a second run, null where there are none.
  returned: with O(step=summary)
  type: str
told:
  description:
    - What M(edpm.services.service_status) is to be told of the services, empty where the data plane was not read from a
      cluster.
  returned: with O(step=summary)
  type: dict
nodes:
  description: The nodes with their services.
  returned: with O(step=status)
  type: list
  elements: dict
failing:
  description: The nodes for which the run has failed, each with a C(msg), and whether it is C(unreachable).
  returned: with O(step=summary) and O(step=status)
  type: dict
"""
