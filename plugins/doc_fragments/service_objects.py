# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    # Of modules that write service objects or their status.
    DOCUMENTATION = r"""
options:
  namespaces:
    description:
      - Namespaces to read and write. The default is those that the inventory plugin
        P(edpm.services.dataplane#inventory) has read in this run, else all of them.
    type: list
    elements: str
  nodes:
    description: Names of nodes, to deal with these alone.
    type: list
    elements: str
    default: []
  services:
    description:
      - Names of services, for example V(nova_compute), to deal with these alone.
      - A name means all instances of the service, V(<service>@<instance>) one, and V(<service>@) the one without an
        instance.
    type: list
    elements: str
    default: []
  required:
    description:
      - Whether it is a failure that this cannot be written. With V(false) it is a warning that says why, for example
        which right the account lacks. A run that has done its work has not failed because nobody may note it down.
    type: bool
    default: true
notes:
  - The account needs the ClusterRoles C(edpm-services-reader) and C(edpm-services-writer) in each namespace.
"""
