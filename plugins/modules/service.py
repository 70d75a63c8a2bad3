#!/usr/bin/python
# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: service
short_description: Have one service of the data plane live and healthy on a node
version_added: 1.0.0
author:
  - The edpm.services authors (@edpm-services)
description:
  - Makes a node run one bundle. That is one service with all its files, its Quadlet units, its image and all that it
    asks of the node.
  - A bundle becomes a generation, a folder below O(root) that is named by the bundle's digest. The link C(current)
    points at the live one.
  - The image is pulled, the files are staged, Quadlet and the image's own validator judge them, and only then the
    service is touched. It is restarted once. A service that does not become healthy goes back to the generation before.
  - Where the same digest is live, no file has been edited and the unit is healthy, nothing is touched.
  - A run that was cut off, even by a power failure, leaves the old or the new generation. The next run finishes it.
  - A node remembers the cell and the host name of a service and refuses others.
  - Needs podman 4.4 or newer with Quadlet, and systemd. It must run as root.
attributes:
  check_mode:
    description: Can run in check mode and return what would change without changing it.
    support: full
    details:
      - Nothing is pulled, staged or validated, so a configuration that the image refuses is not found in check mode.
  diff_mode:
    description: Returns what has changed, or what would change in check mode.
    support: full
    details:
      - Files that the bundle marks as secret are named, and their contents are masked.
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
  bundle:
    description:
      - The bundle as one opaque text, made by the collection on the controller.
      - It is JSON, compressed with zlib or plain, in base64. Its fields are described in the module utility
        C(_node/bundle.py).
    type: str
    required: true
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
  lock_timeout:
    description:
      - How many seconds to wait while another run works on the same node. With V(0) it is refused at once.
    type: int
    default: 300
seealso:
  - module: edpm.services.service_facts
  - name: Quadlet
    description: How podman and systemd run a container together.
    link: https://docs.podman.io/en/latest/markdown/podman-systemd.unit.5.html
"""

EXAMPLES = r"""
- name: Have a bundle live on the node
  edpm.services.service:
    bundle: "{{ lookup('ansible.builtin.file', 'nova_compute.bundle') }}"

- name: Refuse at once while another run works on the node
  edpm.services.service:
    bundle: "{{ lookup('ansible.builtin.file', 'nova_compute.bundle') }}"
    lock_timeout: 0
"""

RETURN = r"""
service:
  description: The service, with its instance where it has one.
  returned: success
  type: str
  sample: nova_compute
digest:
  description: The digest of the generation that is live, or would be.
  returned: success
  type: str
digest_before:
  description: The digest of the generation that was live before, null when there was none.
  returned: success
  type: str
files:
  description: The files of the service that change, by name.
  returned: success
  type: dict
  contains:
    added:
      description: Those that are new.
      returned: success
      type: list
      elements: str
      sample: [conf.d/02-nova-override.conf]
    removed:
      description: Those that are taken away.
      returned: success
      type: list
      elements: str
    changed:
      description: Those with other contents or another mode, by the bundle or by hand.
      returned: success
      type: list
      elements: str
units:
  description: The Quadlet units and other settings for systemd that change, by path.
  returned: success
  type: list
  elements: str
  sample: [/etc/containers/systemd/edpm_nova_compute.container]
node:
  description: What else the node lacked, such as users, folders, kernel modules and kernel settings.
  returned: success
  type: list
  elements: str
  sample: [folder /var/lib/nova]
image:
  description: The image before and after, null when it stays.
  returned: success
  type: dict
pulled:
  description: Whether the image was pulled, or would be.
  returned: success
  type: bool
drift:
  description: The live files and units that somebody has changed by hand since they were written.
  returned: success
  type: list
  elements: dict
  sample:
    - name: conf.d/01-nova.conf
      what: changed
unfinished:
  description: Whether an earlier run was cut off, or a restart was due.
  returned: success
  type: bool
unhealthy:
  description: What was wrong with the unit although its files were right, null when nothing was.
  returned: success
  type: str
restarted:
  description: Whether the service was started anew, or would be.
  returned: success
  type: bool
restart_pending:
  description: Whether the running service has not read its new files yet, since its bundle forbids restarts.
  returned: success
  type: bool
pruned:
  description: The digests of old generations that were removed.
  returned: success
  type: list
  elements: str
log:
  description: The last lines that the service logged, when it did not become healthy.
  returned: failure
  type: list
  elements: str
rolled_back:
  description: Whether the node was put back to what it was before.
  returned: failure
  type: bool
msg:
  description: What was done or would be, or what is wrong and what to do.
  returned: always
  type: str
  sample: "nova_compute 3f9c21e is live: 1 file changed, 1 restart."
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.edpm.services.plugins.module_utils._node import calls


def main() -> None:
    spec = {
        "bundle": {"type": "str", "required": True, "no_log": True},
        "root": {"type": "path", "default": "/var/lib/openstack"},
        "unit_root": {"type": "path", "default": "/etc/containers/systemd"},
        "lock_timeout": {"type": "int", "default": 300},
    }
    calls.service(AnsibleModule(argument_spec=spec, supports_check_mode=True))


if __name__ == "__main__":
    main()
