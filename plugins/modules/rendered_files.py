#!/usr/bin/python
# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rendered_files
short_description: Write what would be deployed to every node into a folder
version_added: 1.0.0
author:
  - The edpm.services authors (@edpm-services)
description:
  - Writes, for every node and service, the files that a deployment would put on the node, below a folder of the
    controller that is named like the node. That is the generation with its configuration, C(kolla.json) and
    C(bundle.json), the link C(current), the Quadlet units, and the files for C(tmpfiles.d).
  - Secrets are masked, unless O(show_secrets=true).
  - A service that something keeps waiting is left out, and the reason is told. A service on hold is written.
  - What an earlier run wrote and is not planned any more is removed, as far as O(node) and O(service) ask for it. Files
    of anybody else are left alone.
  - It speaks of the data plane that the inventory plugin P(edpm.services.dataplane#inventory) has read in this run,
    unless O(manifests), O(namespaces) or an option of the connection names another source.
  - The playbook C(edpm.services.render) is this module and nothing else.
extends_documentation_fragment:
  - edpm.services.attributes
  - edpm.services.attributes.controller
  - edpm.services.kubernetes.source
  - edpm.services.kubernetes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details:
      - Secrets are masked in it, also with O(show_secrets=true).
  idempotent:
    support: full
options:
  output_dir:
    description:
      - Folder on the controller. It is made where it does not exist.
      - It must be empty, or be one that this module has written before.
      - A relative path begins at the folder that Ansible was started in.
    type: path
    required: true
  node:
    description: Name of a node, to write only this one.
    type: str
    default: ""
  service:
    description:
      - Name of a service, to write only this one, for example V(nova_compute).
      - Where a service has several instances, its name means all of them, V(<service>@<instance>) one, and
        V(<service>@) the one without an instance.
    type: str
    default: ""
  show_secrets:
    description:
      - Whether the files are written as they are, with passwords and keys.
      - All folders are V(0700) and all files with configuration V(0600), whether or not they hold secrets.
    type: bool
    default: false
notes:
  - Digests are those of the true files, also where the files are masked. They do not tell a secret, but a guess at a
    short one can be checked against them, so keep the folder as you keep a plan.
seealso:
  - module: edpm.services.dataplane_info
  - plugin: edpm.services.dataplane
    plugin_type: inventory
"""

EXAMPLES = r"""
- name: Write all nodes' files for review
  edpm.services.rendered_files:
    output_dir: rendered

- name: Write one service of one node as it is, passwords included
  edpm.services.rendered_files:
    output_dir: edpm-compute-0
    node: edpm-compute-0
    service: nova_compute
    show_secrets: true

- name: Write the files of manifests, without a cluster
  edpm.services.rendered_files:
    output_dir: rendered
    manifests:
      - manifests/openstack
"""

RETURN = r"""
rendered:
  description: The services that were written, or were up to date.
  returned: success
  type: list
  elements: dict
  contains:
    node:
      description: Name of the node.
      returned: success
      type: str
      sample: edpm-compute-0
    service:
      description: Name of the service, with its instance where it has one.
      returned: success
      type: str
      sample: nova_compute
    digest:
      description: The digest over all that the service is made of.
      returned: success
      type: str
    path:
      description: Folder of its generation.
      returned: success
      type: str
left_out:
  description: The services that were not written, with C(node), C(service) and C(reason).
  returned: success
  type: list
  elements: dict
msg:
  description: How much was written, or what is wrong and what to do.
  returned: always
  type: str
  sample: "rendered: 4 services on 2 nodes, up to date."
"""
