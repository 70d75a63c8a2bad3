# SPDX-License-Identifier: GPL-3.0-or-later
"""The names that this collection leaves in a cluster. People read them and policies judge by them: they stay."""

from __future__ import annotations

from .._kube.client import FIELD_MANAGER

#: Field managers. Each has fields of its own, so that one never takes away what another has set.
MANAGER = FIELD_MANAGER
IMAGES_MANAGER = f"{FIELD_MANAGER}.images"
MARKS_MANAGER = f"{FIELD_MANAGER}.marks"
REMOVAL_MANAGER = f"{FIELD_MANAGER}.removal"
STATUS_MANAGER = f"{FIELD_MANAGER}.status"
REQUESTS_MANAGER = f"{FIELD_MANAGER}.requests"
MANAGERS = frozenset(
    {MANAGER, IMAGES_MANAGER, MARKS_MANAGER, REMOVAL_MANAGER, STATUS_MANAGER, REQUESTS_MANAGER},
)

_PREFIX = "edpm.openstack.org/"
#: On a service object: it goes only after its services have gone from the node.
FINALIZER = f"{_PREFIX}services"
#: On a service object: the digest of the inventory that was written for its node, or KEPT where another's is there.
#: ("kept" is what objects say whose ConfigMap goes with the Node; they are dealt with again.)
INVENTORY = f"{_PREFIX}inventory"
KEPT = "theirs"
#: On a service object: its node does not want it any more.
REMOVAL = f"{_PREFIX}removal"
REQUESTED = "requested"
#: On a service object, by a person: let it go although nobody can tell that its services are off the node.
ABANDON = f"{_PREFIX}abandon"
#: On a Node, Role or NodeSet: the cell that computes are deployed in, empty when there are none any more.
DEPLOYED_CELL = f"{_PREFIX}deployed-cell"
#: On a Node or NodeSet: what has become of phase 1.
SERVICES_READY = f"{_PREFIX}services-ready"
SERVICES_MESSAGE = f"{_PREFIX}services-message"
#: On a Node, Role, NodeSet, DataPlane, service object or Namespace, by a person: the operator leaves it alone.
PAUSED = f"{_PREFIX}paused"
#: On a service object, by a person: any new value asks for a restart, or for the generation before.
RESTART = f"{_PREFIX}restart"
ROLLBACK = f"{_PREFIX}rollback"
#: On a service object: the value that was dealt with, and what the plan wanted when the object was rolled back from it.
RESTARTED = f"{_PREFIX}restarted"
ROLLED_BACK_BY = f"{_PREFIX}rolled-back-by"
ROLLED_BACK = f"{_PREFIX}rolled-back"
#: On a service object: how many of these requests were dealt with, so that a value may come back.
RESTARTS = f"{_PREFIX}restarts"
ROLLBACKS = f"{_PREFIX}rollbacks"

WRITER = "edpm-services-writer"
NODE_SET = "OpenStackDataPlaneNodeSet"
ROLE = "OpenStackDataPlaneRole"
NODE = "OpenStackDataPlaneNode"
#: Kinds that can carry a mark. What a DataPlane embeds has no annotations of its own.
MARKED_KINDS = frozenset({NODE, ROLE, NODE_SET})
OWNING_PREFIX = "OpenStackDataPlane"
