#!/usr/bin/python
# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: external_compute
short_description: Service objects in a cluster, from the Nodes and Roles that ask for services
version_added: 1.0.0
author:
  - The edpm.services authors (@edpm-services)
description:
  - Makes, for every node and service that a Node or Role asks for, the service object that stands for it, for example a
    NovaExternalCompute, and keeps it in step with Node and Role. It reads the cluster once, in pages, and writes only
    what is missing or differs.
  - It writes C(dataplaneNodeName), C(instance), C(cellName), C(sshKeySecretName), C(inventoryConfigMapName),
    C(networkAttachments) and C(deploy) by server-side apply with the field manager C(edpm.services). The object belongs
    to its Node and has the finalizer C(edpm.openstack.org/services).
  - Images come from the environment variables C(RELATED_IMAGE_…_URL_DEFAULT), when the object is made and never again.
    C(customServiceConfig) is never written. A C(deploy) that a person has changed on the object stays until the person
    sets it back to what Node and Role say.
  - An object that was made by hand is taken over when a Node or Role asks for the service as well, and left alone when
    none does.
  - Where nobody has made the ConfigMap with the node's inventory, it is written, so that the node can still be reached
    when its Node is gone.
  - Where a node is gone or does not ask for a service any more, the service object gets the annotation
    C(edpm.openstack.org/removal=requested). It is deleted once M(edpm.services.service_status) has told that its
    services are off the node, or when a person lets it go with the annotation C(edpm.openstack.org/abandon=true).
  - Nodes, and Roles and NodeSets whose word counts for a deployed compute, are marked with the annotation
    C(edpm.openstack.org/deployed-cell). By it the admission policies that P(edpm.services.cluster#role) installs refuse
    to move a compute to another cell.
extends_documentation_fragment:
  - edpm.services.attributes
  - edpm.services.attributes.controller
  - edpm.services.kubernetes
  - edpm.services.service_objects
attributes:
  check_mode:
    support: full
    details:
      - The API server itself judges every object in a dry run.
  diff_mode:
    support: full
    details:
      - Of very many objects the first ones are shown.
  idempotent:
    support: full
options:
  leaving_only:
    description:
      - Whether only the objects of services that leave are dealt with, and none is made or kept in step.
    type: bool
    default: false
notes:
  - A run that was cut short is finished by the next one, and several may run at once.
seealso:
  - module: edpm.services.service_status
  - module: edpm.services.dataplane_info
"""

EXAMPLES = r"""
- name: Bring the service objects of a namespace up to date
  edpm.services.external_compute:
    namespaces:
      - openstack
  register: reconciled

- name: Name the nodes that services have to leave
  ansible.builtin.debug:
    msg: "{{ reconciled.leaving | rejectattr('removed') | map(attribute='node') | unique }}"
"""

RETURN = r"""
objects:
  description: Every object that was written or that something stands against. Unchanged ones are only counted.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description: Kind of the object.
      returned: success
      type: str
      sample: NovaExternalCompute
    name:
      description: Name of the object.
      returned: success
      type: str
      sample: edpm-compute-0
    namespace:
      description: Namespace of the object.
      returned: success
      type: str
      sample: openstack
    node:
      description: Node that it is written for, empty for a Role or NodeSet.
      returned: success
      type: str
      sample: edpm-compute-0
    result:
      description:
        - V(created), V(updated), V(leaving), V(returned) and V(removed) tell of service objects, V(written) and V(kept)
          of inventory ConfigMaps, V(marked) of Nodes, Roles and NodeSets.
        - V(kept) also tells of a service object that is left to the person who made it.
        - V(refused) tells of a node that breaks a rule. Its objects stay as they are.
        - V(failed) tells of an object that the cluster did not take. The other nodes went on.
      returned: success
      type: str
      sample: created
    reason:
      description: Why that is so.
      returned: success
      type: str
      sample: its node asks for it
unchanged:
  description: How many service objects were as they should be. No request was made for them.
  returned: success
  type: int
  sample: 4998
leaving:
  description: The service objects whose services are to leave their node.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description: Kind of the object.
      returned: success
      type: str
    name:
      description: Name of the object.
      returned: success
      type: str
    namespace:
      description: Namespace of the object.
      returned: success
      type: str
    node:
      description: Name of the node, which may have no Node object any more.
      returned: success
      type: str
    services:
      description: The services to remove, in the order in which to remove them.
      returned: success
      type: list
      elements: str
      sample:
        - nova_compute
        - libvirt
    cell:
      description: NovaCell that the object names, null where it names none.
      returned: success
      type: str
    inventory_config_map:
      description: ConfigMap whose key C(inventory) tells how the node is reached.
      returned: success
      type: str
    ssh_key_secret:
      description: Secret with the SSH key of the node.
      returned: success
      type: str
    removed:
      description: Whether M(edpm.services.service_status) has told that the services are off the node.
      returned: success
      type: bool
    abandoned:
      description: Whether a person lets it go whatever is left on the node.
      returned: success
      type: bool
    reason:
      description: Why it is to go.
      returned: success
      type: str
msg:
  description: How many objects had which result, or what is wrong and what to do.
  returned: always
  type: str
  sample: "Service objects: 2 created, 4998 unchanged."
"""
