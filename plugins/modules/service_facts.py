#!/usr/bin/python
# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: service_facts
short_description: Which generations of the data plane's services are live on a node
version_added: 1.0.0
author:
  - The edpm.services authors (@edpm-services)
description:
  - Tells of every service that M(edpm.services.service) has put on a node which generation is live, whether somebody
    has edited it, and whether its unit runs and answers. One call tells of all services, and of what else a rollout
    needs to know of the node.
  - What it finds is returned and not put among the host's facts. Register it where it is needed.
  - In a run that has read a data plane with the inventory plugin P(edpm.services.dataplane#inventory), it says of every
    service how it stands against the plan, and which of the images that the node will need are missing.
  - It must run as root.
extends_documentation_fragment:
  - edpm.services.attributes
  - edpm.services.node
attributes:
  check_mode:
    support: full
    details:
      - It never changes anything.
  diff_mode:
    support: N/A
  idempotent:
    support: full
options:
  services:
    description:
      - The services to look at, all where none is named. The others of the node are not told of, nor are their health
        checks run.
      - A name means all instances of the service, V(<service>@<instance>) one, and V(<service>@) the one without an
        instance.
    type: list
    elements: str
    default: []
  health_checks:
    description:
      - Whether the health check of each service that is up is run. Without it, a unit that is up counts as healthy.
    type: bool
    default: true
  images:
    description:
      - Images to look for on the node. Those that are not there are named in RV(missing_images).
      - One that a service of this collection runs from is taken to be there.
    type: list
    elements: str
    default: []
  read:
    description:
      - Files that everybody on the node may read, such as a C(known_hosts), to be returned in RV(contents). One that is
        not there is left out, and one that not everybody may read is refused.
    type: list
    elements: path
    default: []
seealso:
  - module: edpm.services.service
"""

EXAMPLES = r"""
- name: Look at all services of a node
  edpm.services.service_facts:
  register: found

- name: Look at nova-compute alone
  edpm.services.service_facts:
    services: [nova_compute]

- name: Name those that are not as they should be
  ansible.builtin.debug:
    msg: "{{ item.key }}: {{ item.value.fault or item.value.drift }}"
  loop: "{{ found.services | dict2items }}"
  when: item.value.drift or not item.value.healthy
"""

RETURN = r"""
services:
  description:
    - Each service by its name, with its instance where it has one.
    - One whose first deployment failed has no RV(services.generations), and may have an RV(services.identity).
  returned: success
  type: dict
  contains:
    service:
      description: The service.
      returned: success
      type: str
      sample: nova_compute
    instance:
      description: The instance, empty for the only one.
      returned: success
      type: str
    digest:
      description: The digest of the live generation, null when there is none.
      returned: success
      type: str
    settings:
      description:
        - The digest of what the generation's own one leaves out because no change of it needs a restart, such as ports,
          folders and the health check; null where nothing is live.
      returned: success
      type: str
    previous:
      description: The digest of the generation before, null when there is none.
      returned: success
      type: str
    generations:
      description: The digests of all generations on the node, the newest first.
      returned: success
      type: list
      elements: str
    image:
      description: The image of the live generation.
      returned: success
      type: str
    drift:
      description:
        - The live files and units that are not as they were written, and the ports, units, accounts, folders and
          kernel settings of the node that are not as the service needs them, each with its
          RV(services.drift[].what).
      returned: success
      type: list
      elements: dict
      contains:
        name:
          description: The file, below its generation or with its whole path.
          returned: success
          type: str
          sample: conf.d/01-nova.conf
        what:
          description:
            - One of V(changed), V(missing), V(added), V(replaced) and V(mode or owner), for a unit of the node one of
              V(disabled), V(down) and V(not masked), for a kernel module V(unloaded), and V(left masked),
              V(left enabled) or V(older than its files) where a run was cut off.
          returned: success
          type: str
          sample: changed
    unit:
      description: The unit as systemd sees it, with C(name), C(active), C(sub), C(invocation) and C(restarts).
      returned: success
      type: dict
    healthy:
      description: Whether the unit is up and its health check succeeds.
      returned: success
      type: bool
    fault:
      description: What is wrong with it, null when nothing is.
      returned: success
      type: str
    unfinished:
      description: Whether a run was cut off that the next one will finish, or the service has files to read again.
      returned: success
      type: bool
    restart_pending:
      description: Whether the running service has not read its new files yet.
      returned: success
      type: bool
    live:
      description: The SHA-256 of each file outside the generation as it was written, by path.
      returned: success
      type: dict
      sample:
        /var/lib/nova/.ssh/known_hosts: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
    seeds:
      description: What was made once for the service and never changes, such as Nova's C(compute_id), by path.
      returned: success
      type: dict
    identity:
      description: The C(cell) and the C(host) that the node remembers of the service.
      returned: success
      type: dict
planned:
  description:
    - Where the run has a plan of the data plane that knows the host, every service that it should run, in the order in
      which they are deployed, then those on the node that the plan does not know.
  returned: success, with a plan that knows the host
  type: list
  elements: dict
  contains:
    name:
      description: The service, with its instance where it has one.
      returned: success
      type: str
      sample: nova_compute
    state:
      description:
        - One of V(up_to_date), V(new), V(will_change), V(held), V(blocked), V(undeployable), which it is without an
          image, and V(leaving), which is on the node and not in the plan.
      returned: success
      type: str
      sample: will_change
    what:
      description: What will change, or the reasons.
      returned: success
      type: list
      elements: str
      sample: [conf.d/01-nova.conf was changed by hand]
    image:
      description: The image that is wanted.
      returned: success
      type: str
    digest:
      description: The digest of the generation that is wanted.
      returned: success
      type: str
    live:
      description: The digest of the generation that is live, null when there is none.
      returned: success
      type: str
known_hosts:
  description: Short fingerprints of the lines of each known_hosts that services of the node have, by path.
  returned: success, with a plan in which a service of the host has one
  type: dict
missing_images:
  description: Those of O(images) that are not on the node.
  returned: success
  type: list
  elements: str
ssh_host_keys:
  description: The public keys by which the node's sshd is known, by their types.
  returned: success
  type: dict
  sample:
    ssh-ed25519: AAAAC3NzaC1lZDI1NTE5AAAAIKe4yTrPhOrPfk3m2ZsCIBJnAuDt1yP2nyTGYPyWuP7C
contents:
  description: The texts of the files in O(read), by path.
  returned: success
  type: dict
msg:
  description: What is wrong and what to do.
  returned: failure
  type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.edpm.services.plugins.module_utils._node import call, options, telling


def main() -> None:
    module = AnsibleModule(argument_spec=options.SERVICE_FACTS, supports_check_mode=True)
    call.answer(module, telling.service_facts)


if __name__ == "__main__":
    main()
