#!/usr/bin/python
# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_definitions
short_description: Install CRDs, admission policies and RBAC rules into a Kubernetes cluster
version_added: 1.0.0
author:
  - The edpm.services authors (@edpm-services)
description:
  - Applies definitions from files to a cluster, CustomResourceDefinitions first. It waits until the cluster serves
    those, then applies the others.
  - Every object gets the label C(app.kubernetes.io/managed-by=edpm.services) and is written by server-side apply with
    the field manager C(edpm.services). Nothing is written where nothing changed.
  - An object of the same name without that label came from somebody else, for example from an operator that brings its
    own CustomResourceDefinition. It is kept as it is and reported.
extends_documentation_fragment:
  - edpm.services.attributes
  - edpm.services.attributes.controller
  - edpm.services.kubernetes
attributes:
  check_mode:
    support: full
    details:
      - The API server itself judges every object in a dry run, so that a definition that it would refuse fails in check
        mode too.
  diff_mode:
    support: full
    details:
      - Fields that only the API server writes are left out, and the values in Secrets are hidden.
  idempotent:
    support: full
options:
  definitions:
    description:
      - Files with Kubernetes objects, or folders of them.
      - A file is YAML or JSON and may hold several documents or Lists. Of a folder, all files with the suffixes
        C(.yaml), C(.yml) and C(.json) are read, those of its subfolders too.
      - A relative path is looked for where M(ansible.builtin.copy) would look for a file, in the role's C(files) first.
    type: list
    elements: path
    required: true
  wait_timeout:
    description:
      - How many seconds to wait until the cluster serves the CustomResourceDefinitions.
    type: int
    default: 60
seealso:
  - name: Server-Side Apply
    description: How Kubernetes tells whose fields are whose.
    link: https://kubernetes.io/docs/reference/using-api/server-side-apply/
"""

EXAMPLES = r"""
- name: Install definitions of one's own into the cluster of the current context
  edpm.services.cluster_definitions:
    definitions:
      - files/crds
      - files/policies/quota.yaml

- name: Install them into another cluster, and give it more time
  edpm.services.cluster_definitions:
    definitions:
      - files/crds
    context: staging
    wait_timeout: 180
"""

RETURN = r"""
definitions:
  description: What became of each definition, in the order in which they were applied.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description: Kind of the object.
      returned: success
      type: str
      sample: CustomResourceDefinition
    name:
      description: Name of the object.
      returned: success
      type: str
      sample: novaexternalcomputes.nova.openstack.org
    namespace:
      description: Namespace of the object, null for an object of the whole cluster.
      returned: success
      type: str
    result:
      description:
        - V(created), V(updated) and V(unchanged) tell of objects of this collection.
        - V(kept) tells of an object that came from somebody else.
      returned: success
      type: str
      sample: created
    reason:
      description: Why that is so.
      returned: success
      type: str
      sample: the cluster does not have it
msg:
  description: How many definitions had which result, or what is wrong and what to do.
  returned: always
  type: str
  sample: "20 definitions: 20 created."
"""
