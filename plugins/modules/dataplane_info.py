#!/usr/bin/python
# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: dataplane_info
short_description: What every node of a data plane should run, and why
version_added: 1.0.0
author:
  - The edpm.services authors (@edpm-services)
description:
  - Shows the plan of a data plane. That is, for every node, its cell, its services, their images, one digest over all
    that a service is made of, and the sentences that say what keeps a node waiting.
  - Explains the configuration of a service. That is, for every option, its value, the line that sets it, and the lines
    that are overridden.
  - It speaks of the data plane that the inventory plugin P(edpm.services.dataplane#inventory) has read in this run,
    unless O(manifests), O(namespaces) or an option of the connection names another source.
  - The playbooks C(edpm.services.plan) and C(edpm.services.explain) are this module and nothing else.
extends_documentation_fragment:
  - edpm.services.attributes
  - edpm.services.attributes.controller
  - edpm.services.kubernetes.source
  - edpm.services.kubernetes
attributes:
  check_mode:
    support: full
    details:
      - All that may change is O(output_file), which is not written in check mode.
  diff_mode:
    support: none
  idempotent:
    support: full
options:
  node:
    description: Name of a node, to see only this one.
    type: str
    default: ""
  service:
    description:
      - Name of a service, to see only this one, for example V(nova_compute).
      - Where a service has several instances, its name means all of them, V(<service>@<instance>) one, and
        V(<service>@) the one without an instance.
    type: str
    default: ""
  option:
    description:
      - Name of an option as V(group.name), to explain only this one. A name without a group is one of V(DEFAULT).
      - It implies O(explain=true).
    type: str
    default: ""
  explain:
    description: Whether the options of the services are explained, instead of the plan being shown.
    type: bool
    default: false
  output:
    description:
      - V(text) is for a terminal, V(json) for a program.
      - V(html) is one page for a browser, with all files of every node, that needs no other file and no network. It
        needs O(output_file).
    type: str
    default: text
    choices:
      - text
      - json
      - html
  output_file:
    description:
      - File on the controller to write, instead of showing it. It is replaced as a whole, and its mode is V(0600).
      - A relative path begins at the folder that Ansible was started in.
    type: path
    default: ""
notes:
  - Secrets are masked in everything that is shown, written and returned. Contents of files are never returned.
seealso:
  - plugin: edpm.services.dataplane
    plugin_type: inventory
  - plugin: edpm.services.service_config
    plugin_type: lookup
"""

EXAMPLES = r"""
- name: Show the plan of the inventory's data plane
  edpm.services.dataplane_info:

- name: Ask who has set an option, and who was overridden
  edpm.services.dataplane_info:
    node: edpm-compute-0
    service: nova_compute
    option: DEFAULT.debug

- name: Write a page for a browser
  edpm.services.dataplane_info:
    output: html
    output_file: plan.html

- name: Use the plan of manifests in a play of one's own
  edpm.services.dataplane_info:
    manifests:
      - manifests/openstack
  register: dataplane

- name: Stop when a node of cell1 waits for something
  ansible.builtin.assert:
    that: item.ready
    fail_msg: "{{ item.name }}: {{ item.blocked | join(' ') }}"
  loop: "{{ dataplane.plan.nodes | selectattr('cell', 'equalto', 'nova-cell1') }}"
  loop_control:
    label: "{{ item.name }}"
"""

RETURN = r"""
plan:
  description: What every node should run.
  returned: when options are not explained
  type: dict
  contains:
    nodes:
      description: The nodes, in the order of their namespaces and names.
      returned: success
      type: list
      elements: dict
      contains:
        name:
          description: Name of the node, which is that of its host.
          returned: success
          type: str
          sample: edpm-compute-0
        namespace:
          description: Namespace of the node.
          returned: success
          type: str
          sample: openstack
        role:
          description: Its role, null where it has none.
          returned: success
          type: str
          sample: edpm-compute
        cell:
          description: Its NovaCell, null where it has none.
          returned: success
          type: str
          sample: nova-cell1
        dataplane:
          description: Its data plane, null where none is named.
          returned: success
          type: str
          sample: openstack-edpm
        ready:
          description: Whether nothing keeps the node or one of its services waiting.
          returned: success
          type: bool
        blocked:
          description: What does, a sentence each.
          returned: success
          type: list
          elements: str
          sample:
            - Secret openstack/nova-cell1-compute-config does not exist; NovaCell nova-cell1 makes it once it is Ready.
        notes:
          description: What else a person should know of the node.
          returned: success
          type: list
          elements: str
        services:
          description:
            - The services in the order in which they are deployed. Each has C(name), C(service), C(instance), C(cell),
              C(image), C(image_source), C(state), C(digest), C(hold), C(blocked), C(notes), C(left_out) and C(files).
            - C(state) is V(ready), V(held) or V(blocked). C(files) are C(path), C(mode), C(source) and C(secret) of
              each file, without its content.
          returned: success
          type: list
          elements: dict
    left_alone:
      description: Nodes that run nothing of this collection, with the C(reason).
      returned: success
      type: list
      elements: dict
    left_to_operator:
      description: Services of roles that nothing here describes, with the C(reason).
      returned: success
      type: list
      elements: dict
    leaving:
      description: Service objects whose nodes no longer ask for the service.
      returned: success
      type: list
      elements: dict
    warnings:
      description: What works today and should be changed.
      returned: success
      type: list
      elements: str
    errors:
      description: Objects that could not be read.
      returned: success
      type: list
      elements: str
    summary:
      description: How many nodes and services are in which state.
      returned: success
      type: str
      sample: "2 nodes: 1 ready, 1 blocked · 4 services: 3 ready, 1 blocked"
explanations:
  description: The options of each service on each node.
  returned: when options are explained
  type: list
  elements: dict
  contains:
    node:
      description: Name of the node.
      returned: success
      type: str
      sample: edpm-compute-0
    service:
      description: Name of the service.
      returned: success
      type: str
      sample: nova_compute
    options:
      description:
        - The options, those of C(DEFAULT) first. Each has C(group), C(name), C(value), C(values), C(accumulates),
          C(unresolved) and C(places).
        - C(places) are C(file), C(line), C(value), C(object) and C(field) of every line that sets the option, the
          winner last.
      returned: success
      type: list
      elements: dict
    blocked:
      description: What keeps the service waiting. Its configuration may be incomplete then.
      returned: success
      type: list
      elements: str
    notes:
      description: What oslo.config does without a word, and hardly anybody means.
      returned: success
      type: list
      elements: str
msg:
  description: How many nodes and services are in which state, or what is wrong and what to do.
  returned: always
  type: str
  sample: "2 nodes: 2 ready · 4 services: 4 ready"
"""
