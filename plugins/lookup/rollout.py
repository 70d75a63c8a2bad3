# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: rollout
short_description: Which nodes come next in a run over a data plane
version_added: 1.0.0
author:
  - The edpm.services authors (@edpm-services)
description:
  - Tells the plays of the playbooks C(deploy), C(status), C(rollback) and C(remove) of this collection which hosts they
    have, and in which batches. It is made for the keywords C(hosts) and C(serial) of a play, which Ansible evaluates in
    the process that all tasks come from.
  - It speaks of the data plane that the inventory plugin P(edpm.services.dataplane#inventory) has read in this run, and
    fails where none was read.
options:
  _terms:
    description:
      - What to tell. V(looking) begins a run and gives the nodes to look at. V(nodes) are all nodes of the run.
        V(lacking) are those that lack an image which they will need. V(working) are those with something to do, in the
        order in which they come, and V(batches) the sizes of their batches. V(telling) are all nodes where the cluster
        is to know what became of them. V(failing) are those that make the run a failed one.
      - V(arrived) are the nodes with a new compute that Nova has to discover. V(leaving) are those whose computes
        leave, and V(left) those whose computes are gone, where there are credentials for OpenStack. V(computes) are the
        names that Nova has for the computes of the task's own host.
    required: true
    type: list
    elements: str
  mode:
    description: The kind of run that V(looking) begins.
    type: str
    default: deploy
    choices:
      - deploy
      - status
      - rollback
      - remove
  node:
    description: Name of the only node of the run.
    type: str
    default: ''
  service:
    description:
      - Names of the services of the run, with commas between them.
      - A name means all instances of the service, V(<service>@<instance>) one, and V(<service>@) the one without an
        instance.
    type: str
    default: ''
seealso:
  - module: edpm.services.rollout
"""

EXAMPLES = r"""
- name: Look at all nodes that a deployment may touch
  hosts: "{{ query('edpm.services.rollout', 'looking', mode='deploy') }}"
  gather_facts: false
  become: true
  tasks:
    - name: Look at the services
      edpm.services.service_facts:
      register: edpm_rollout_found
"""

RETURN = r"""
_raw:
  description: Names of hosts, a pattern that matches no host where there are none, or the sizes of batches.
  type: list
  elements: raw
"""

from typing import Any

from ansible import context
from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase
from ansible_collections.edpm.services.plugins.plugin_utils._report.overview import Question
from ansible_collections.edpm.services.plugins.plugin_utils._report.refusals import REFUSALS
from ansible_collections.edpm.services.plugins.plugin_utils._rollout.course import NOBODY
from ansible_collections.edpm.services.plugins.plugin_utils._rollout.turns import turn

#: Ways to call ansible-playbook that run nothing.
ONLY_SHOWN = ("listhosts", "listtasks", "listtags", "syntax")


class LookupModule(LookupBase):
    def run(self, terms: list[str], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[Any]:
        self.set_options(var_options=variables, direct=kwargs)
        question = Question(self.get_option("node"), self.get_option("service"))
        try:
            return [one for term in terms for one in turn(term, self.get_option("mode"), question, variables or {})]
        except REFUSALS as error:
            if any(context.CLIARGS.get(name) for name in ONLY_SHOWN):
                return list(NOBODY)
            raise AnsibleLookupError(str(error)) from None
