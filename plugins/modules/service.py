#!/usr/bin/python
# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: service
short_description: Have one service of the data plane on a node, go back with it, or take it off
version_added: 1.0.0
author:
  - The edpm.services authors (@edpm-services)
description:
  - Makes a node run one bundle. That is one service with all its files, its Quadlet units, its image and all that it
    asks of the node.
  - A bundle becomes a generation, a folder below O(root) that is named by the bundle's digest. The link C(current)
    points at the live one. Units mount it by a link in C(mounted) that stays the same for as long as they do, so a
    change of files alone does not make systemd read its units again. Units that ask podman for SELinux labels name the
    folder itself.
  - The image is pulled, the files are staged, Quadlet and the image's own validator judge them, and only then the
    service is touched. It is restarted once. A service that does not become healthy goes back to the generation before.
  - Where the same digest is live, no file has been edited and the unit is healthy, nothing is touched.
  - A run that was cut off, even by a power failure, leaves the old or the new generation. The next run finishes it.
  - A node remembers the cell and the host name of a service and refuses others.
  - Files that a running service can take up without a restart, such as certificates, lie outside the generations. Where
    only those change, they are put in place and the service reads them again.
  - With O(state=previous) the service goes back to the generation before, with the same care and without asking anybody
    else. With O(state=absent) it is taken off the node.
  - Where the image is a tag which is always pulled (C(edpm_image_pull)), each generation keeps the image that it was
    made with, under the name C(localhost/edpm_generation) and its digest, and going back starts from that one. That the
    tag has moved is not noticed while nothing else changes, which is warned of.
  - Needs podman 4.4 or newer with Quadlet, and systemd. It must run as root.
extends_documentation_fragment:
  - edpm.services.attributes
  - edpm.services.node
attributes:
  check_mode:
    support: full
    details:
      - Nothing is pulled, staged or validated, so a configuration that the image refuses is not found in check mode.
      - With O(state=absent) the service is asked whether it is in use, so a refusal is found.
  diff_mode:
    support: full
    details:
      - Files that the bundle marks as secret are named, and their contents are masked.
  idempotent:
    support: partial
    details:
      - With O(state=previous) a second call goes back to where the first one came from. With an image that is always
        pulled, O(state=pulled) pulls each time.
options:
  state:
    description:
      - V(present) has the bundle live and healthy.
      - V(previous) goes back to the generation before. If that does not get healthy, the node is put back to where it
        was. What the node remembers of the service stays as it is, and so do files outside the generations.
      - V(absent) stops the service and removes its units, containers, generations, files and firewall rules, and what
        the node remembers of it, so that the node is free afterwards. Accounts, packages and folders stay.
      - V(pulled) only has the bundle's image on the node, which makes the switch itself quick.
    type: str
    choices: [present, previous, absent, pulled]
    default: present
  bundle:
    description:
      - The bundle as one opaque text, made by the collection on the controller.
      - It is JSON, compressed with zlib or plain, in base64. Its fields are described in the module utility
        C(_node/bundle.py).
      - With it, no other option says anything about the service. Without it, the controller makes it, for
        O(state=present) and O(state=pulled), from the plan of the data plane or from the other options, see O(source).
    type: str
  service:
    description:
      - The service, for example V(nova_compute). It is needed unless O(bundle) is given.
    type: str
  instance:
    description:
      - The instance of O(service), empty for the only one.
    type: str
    default: ''
  force:
    description:
      - With O(state=absent), remove the service although it is still in use, or cannot say whether it is.
    type: bool
    default: false
  purge_data:
    description:
      - With O(state=absent), remove also the folders with the data of what the service served. One that holds a mounted
        file system is refused.
    type: bool
    default: false
  source:
    description:
      - Where the controller takes the service from when O(bundle) is not given.
      - V(plan) is the plan of the data plane that the inventory plugin P(edpm.services.dataplane#inventory) has read in
        this run. V(options) is O(image) and the options below it, which need no cluster.
      - V(auto) is the plan where it knows the host and the service, else the options.
    type: str
    choices: [auto, plan, options]
    default: auto
  known:
    description:
      - What M(edpm.services.service_facts) has returned for this node. Where that says that nothing is to be done, the
        node is not asked again.
    type: dict
  image:
    description: The image that the service runs from.
    type: str
  definition:
    description:
      - How a service runs that this collection does not bring, as a mapping or as the path of a file on the controller.
    type: raw
  cell:
    description: The NovaCell that a compute belongs to. The node remembers it and refuses another one.
    type: str
  host:
    description: The name by which the service is known. Without it, it is the host's name in the inventory.
    type: str
  my_ip:
    description: The address of the service. Without it, it is C(ansible_host) where that is an address.
    type: str
  custom_service_config:
    description:
      - Text for oslo.config that wins over every other file. It arrives byte for byte.
      - A variable that holds it is rendered as a template by Ansible, unless it is marked with C(!unsafe).
    type: str
  custom_service_config_file:
    description: Path of a file on the controller with that text. Nothing in it is rendered.
    type: path
  profile:
    description: Text for oslo.config that lies between the generated files and O(custom_service_config).
    type: str
  files:
    description:
      - Files of the service. Each has a C(name), and C(content), C(content_b64) or C(src), which is a path on the
        controller.
      - Where a C(directory) is given, the file lies there in the container, else its name tells where it belongs, as
        for a key of a Secret. C(secret) is V(true) unless it is said otherwise. C(layer) is V(generated) or
        V(deployer).
    type: list
    elements: dict
  config_folder:
    description: A folder on the controller whose files are taken as the keys of a Secret are.
    type: path
  extra_mounts:
    description:
      - Paths that the container gets besides its own. Each has a C(target), and either C(source), a path of the node,
        or C(files) like those of O(files). C(options) are those of a mount.
    type: list
    elements: dict
  registry:
    description:
      - Files on the controller that the registry wants to see, which are C(auth_file), C(ca_file), C(cert_file) and
        C(key_file), and C(registries_file) with mirrors. They are used for the pull alone.
    type: dict
  kolla_config_file:
    description: Path of a file on the controller with a config.json for kolla, in place of the one that is made.
    type: path
  options:
    description:
      - Settings of the service, by the names that they have as variables of a node, such as C(edpm_libvirt_mode).
    type: dict
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
- name: Have libvirt on the node as the data plane says
  edpm.services.service:
    service: libvirt

- name: Have nova-compute on the node, without a data plane
  edpm.services.service:
    service: nova_compute
    image: registry.example.com/nova-compute:2025.1
    cell: cell1
    config_folder: files/cell1
    custom_service_config_file: files/override.conf

- name: Have a bundle live on the node
  edpm.services.service:
    bundle: "{{ lookup('ansible.builtin.file', 'nova_compute.bundle') }}"

- name: Refuse at once while another run works on the node
  edpm.services.service:
    bundle: "{{ lookup('ansible.builtin.file', 'nova_compute.bundle') }}"
    lock_timeout: 0

- name: Have the image on the node before the first switch
  edpm.services.service:
    state: pulled
    bundle: "{{ lookup('ansible.builtin.file', 'nova_compute.bundle') }}"

- name: Go back to the generation before
  edpm.services.service:
    state: previous
    service: nova_compute

- name: Take one instance of a service off the node and leave its data there
  edpm.services.service:
    state: absent
    service: nova_compute
    instance: ironic
"""

RETURN = r"""
service:
  description: The service, with its instance where it has one.
  returned: success
  type: str
  sample: nova_compute
digest:
  description: The digest of the generation that is live, or would be. Null when the service was removed.
  returned: success
  type: str
digest_before:
  description: The digest of the generation that was live before, null when there was none.
  returned: success, unless O(state=pulled)
  type: str
files:
  description: The files of the service that change, by name.
  returned: success, with O(state=present) and O(state=previous)
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
  returned: success, with O(state=present) and O(state=previous)
  type: list
  elements: str
  sample: [/etc/containers/systemd/edpm_nova_compute.container]
live:
  description: The files outside the generation that are written or taken away, by path.
  returned: success, with O(state=present) and O(state=previous)
  type: list
  elements: str
  sample: [/var/lib/nova/.ssh/known_hosts]
reloaded:
  description: Whether the running service read those files again, or would.
  returned: success, with O(state=present) and O(state=previous)
  type: bool
node:
  description:
    - What else the node lacked, such as users, packages, folders, units of its own, open ports and kernel settings.
    - With O(state=absent), the units that are switched back and the ports that are closed.
  returned: success, unless O(state=pulled)
  type: list
  elements: str
  sample: [folder /var/lib/nova]
image:
  description: The image before and after, null when it stays.
  returned: success, with O(state=present) and O(state=previous)
  type: dict
pulled:
  description: Whether the image was pulled, or would be.
  returned: success, unless O(state=absent)
  type: bool
drift:
  description: The live files and units that somebody has changed by hand since they were written.
  returned: success, with O(state=present) and O(state=previous)
  type: list
  elements: dict
  sample:
    - name: conf.d/01-nova.conf
      what: changed
unfinished:
  description: Whether an earlier run was cut off, or a restart was due.
  returned: success, with O(state=present) and O(state=previous)
  type: bool
unhealthy:
  description: What was wrong with the unit although its files were right, null when nothing was.
  returned: success, with O(state=present) and O(state=previous)
  type: str
restarted:
  description: Whether the service was started anew, or would be.
  returned: success, with O(state=present) and O(state=previous)
  type: bool
restart_pending:
  description: Whether the running service has not read its new files yet, since its bundle forbids restarts.
  returned: success, with O(state=present) and O(state=previous)
  type: bool
pruned:
  description: The digests of old generations that were removed.
  returned: success, with O(state=present) and O(state=previous)
  type: list
  elements: str
removed:
  description: The files and folders that were removed, or would be.
  returned: success, with O(state=absent)
  type: list
  elements: str
  sample: [/etc/containers/systemd/edpm_nova_compute.container, /var/lib/openstack/nova_compute]
kept:
  description: The folders with data that stay.
  returned: success, with O(state=absent)
  type: list
  elements: str
  sample: [/var/lib/nova/instances]
busy:
  description: What the service is still used by, one to an element, when it was not removed for that.
  returned: with O(state=absent)
  type: list
  elements: str
  sample: [instance-0000001a]
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
from ansible_collections.edpm.services.plugins.module_utils._node import call, calls, options


def main() -> None:
    spec, needs = options.SERVICE, options.SERVICE_NEEDS
    call.answer(AnsibleModule(argument_spec=spec, required_if=needs, supports_check_mode=True), calls.service)


if __name__ == "__main__":
    main()
