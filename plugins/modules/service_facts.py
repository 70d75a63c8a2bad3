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
    has edited it, and whether its unit runs and answers. One call tells of all services.
  - What it finds is returned and not put among the host's facts. Register it where it is needed.
  - It must run as root.
attributes:
  check_mode:
    description: Can run in check mode and return what would change without changing it.
    support: full
    details:
      - It never changes anything.
  diff_mode:
    description: Returns what has changed, or what would change in check mode.
    support: N/A
  idempotent:
    description: Running it a second time changes nothing.
    support: full
  platform:
    description: Where it runs.
    support: full
    platforms: posix
    details:
      - Linux with systemd. Python 3.9 or newer, and nothing beyond its standard library.
options:
  root:
    description:
      - The folder that holds a folder for every service.
    type: path
    default: /var/lib/openstack
  unit_root:
    description:
      - The folder in which Quadlet looks for its files.
    type: path
    default: /etc/containers/systemd
  health_checks:
    description:
      - Whether the health check of each service that is up is run. Without it, a unit that is up counts as healthy.
    type: bool
    default: true
seealso:
  - module: edpm.services.service
"""

EXAMPLES = r"""
- name: Look at all services of a node
  edpm.services.service_facts:
  register: found

- name: Name those that are not as they should be
  ansible.builtin.debug:
    msg: "{{ item.key }}: {{ item.value.fault or item.value.drift }}"
  loop: "{{ found.services | dict2items }}"
  when: item.value.drift or not item.value.healthy
"""

RETURN = r"""
services:
  description: Each service by its name, with its instance where it has one.
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
      description: The live files and units that are not as they were written, each with its RV(services.drift[].what).
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
          description: One of V(changed), V(missing), V(added), V(replaced) and V(mode or owner).
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
      description: Whether a run was cut off that the next one will finish.
      returned: success
      type: bool
    restart_pending:
      description: Whether the running service has not read its new files yet.
      returned: success
      type: bool
    identity:
      description: The C(cell) and the C(host) that the node remembers of the service.
      returned: success
      type: dict
msg:
  description: What is wrong and what to do.
  returned: failure
  type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.edpm.services.plugins.module_utils._node import calls


def main() -> None:
    spec = {
        "root": {"type": "path", "default": "/var/lib/openstack"},
        "unit_root": {"type": "path", "default": "/etc/containers/systemd"},
        "health_checks": {"type": "bool", "default": True},
    }
    calls.service_facts(AnsibleModule(argument_spec=spec, supports_check_mode=True))


if __name__ == "__main__":
    main()
