#!/usr/bin/python
# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: service_status
short_description: Conditions and digests of service objects, from the plan and from the results of a run
version_added: 1.0.0
author:
  - The edpm.services authors (@edpm-services)
description:
  - Writes the status of service objects such as a NovaExternalCompute, by server-side apply to their status with the
    field manager C(edpm.services.status). Nothing is written where nothing changed.
  - The condition C(ConfigReady) tells whether all that the services are made of is there, C(DeploymentReady) whether
    exactly that is what runs on the node, C(Ready) whether both hold. Each has a reason for programs and a message for
    people, the generation that it was made of, and the time at which its status last became another.
  - C(Removed) is there once a run has tried to take the services off the node. Where it holds,
    M(edpm.services.external_compute) lets the service object go.
  - Beside them are the digest of what is live, per service, the images, and the last run.
  - A Node or NodeSet gets the annotations C(edpm.openstack.org/services-ready) and
    C(edpm.openstack.org/services-message), which sum up its service objects. Its own conditions are left to the data
    plane operator.
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
    details:
      - Results that say O(results[].changed=true) or O(results[].failed=true) tell of a new run, which is recorded each
        time.
options:
  results:
    description:
      - What a run did, per node and service. Without any, the status follows the plan and what was told before.
    type: list
    elements: dict
    default: []
    suboptions:
      node:
        description: Name of the node.
        type: str
        required: true
      service:
        description: Name of the service, V(<service>@<instance>) for an instance.
        type: str
        required: true
      namespace:
        description: Namespace of the node, where nodes of one name live in several.
        type: str
        default: ""
      state:
        description: Whether the run brought the service to the node or took it off.
        type: str
        default: present
        choices:
          - present
          - absent
      digest:
        description: Digest of what is live on the node after the run.
        type: str
        default: ""
      settings:
        description:
          - Digest of what O(results[].digest) leaves out, since it changes without a restart, such as certificates,
            keys, ports and checks. Without one it is not compared with what is wanted.
        type: str
        default: ""
      image:
        description: Image that runs on the node.
        type: str
        default: ""
      changed:
        description: Whether the run changed something.
        type: bool
        default: false
      failed:
        description: Whether the run failed.
        type: bool
        default: false
      restarted:
        description: Whether the service was restarted.
        type: bool
        default: false
      msg:
        description: Why it failed.
        type: str
        default: ""
  run:
    description: Name of the run, for example that of a Job.
    type: str
    default: by hand
  started:
    description: When the run began, as V(2026-11-01T08:00:00Z). The default is now.
    type: str
    default: ""
  ended:
    description: When the run ended. The default is now.
    type: str
    default: ""
seealso:
  - module: edpm.services.external_compute
  - module: edpm.services.service
"""

EXAMPLES = r"""
- name: Let the status follow the plan
  edpm.services.service_status:
    namespaces:
      - openstack

- name: Tell what a run did
  edpm.services.service_status:
    namespaces:
      - openstack
    run: deploy-7
    results:
      - node: edpm-compute-0
        service: nova_compute
        digest: 3f9c21e0c4b1
        image: nova-compute:30
        changed: true
        restarted: true

- name: Tell that a service is off its node
  edpm.services.service_status:
    namespaces:
      - openstack
    results:
      - node: edpm-compute-1
        service: nova_compute
        state: absent
        changed: true
"""

RETURN = r"""
objects:
  description: Every object that was written or that failed. Unchanged ones are only counted.
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
      description: Node that it stands for.
      returned: success
      type: str
      sample: edpm-compute-0
    result:
      description: V(updated) for a status, V(marked) for the summary on a Node or NodeSet, V(failed) for either.
      returned: success
      type: str
      sample: updated
    reason:
      description: What the status says.
      returned: success
      type: str
      sample: "Ready: Deployed: libvirt 1b2c3d4, nova_compute 3f9c21e."
unchanged:
  description: How many service objects had this status already.
  returned: success
  type: int
  sample: 12
msg:
  description: How many objects were written, or what is wrong and what to do.
  returned: always
  type: str
  sample: "Status of service objects: 1 updated, 12 unchanged."
"""
