#!/usr/bin/python
# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ee_job
short_description: Run a playbook in the cluster, over many nodes at once
version_added: 1.0.0
author:
  - The edpm.services authors (@edpm-services)
description:
  - Runs a playbook in pods of an execution environment. The nodes are dealt out to shards, and each shard is a pod
    of an
    Indexed Job. In the pod, ansible-runner plays the playbook, and its events tell what became of each node.
  - A pod that is killed or evicted is started again. A shard that fails stops no other. What became of every node is
    stored in ConfigMaps, so that it does not depend on logs, and is returned.
  - The same run while it is running is not started again. It is waited for.
  - Where the operator of OpenStackAnsibleEE is installed, a run can be made of its resources instead. See O(engine).
extends_documentation_fragment:
  - edpm.services.attributes
  - edpm.services.attributes.controller
  - edpm.services.kubernetes
attributes:
  check_mode:
    support: full
    details:
      - The API server judges the Job in a dry run, and RV(objects) shows it. To run the playbook itself in check mode,
        give C(--check) in O(arguments).
  diff_mode:
    support: none
  idempotent:
    support: partial
    details:
      - A run that is running is waited for. One that has finished is run again unless O(rerun) is V(false), and whether
        that changes anything is the playbook's to say.
options:
  namespace:
    description: Namespace of the data plane, in which the pods run.
    type: str
    default: openstack
  playbook:
    description:
      - A playbook in the image, by its name in a collection or by its path. One of this and O(play) is needed.
    type: str
    default: ""
  play:
    description:
      - A playbook of one's own, as a list of plays or as YAML text. The pods get it in a ConfigMap.
      - Templates in a list of plays are rendered before the run. Text from a file, as
        P(ansible.builtin.file#lookup) reads it, reaches the pods as it is.
    type: raw
  name:
    description: What the names of the run's objects begin with. The default is made from O(playbook).
    type: str
    default: ""
  run:
    description: A text that tells this run from others with the same options, such as a digest of what it deploys.
    type: str
    default: ""
  rerun:
    description:
      - Whether a run that has finished and is still there is run again. With V(false), its results are returned.
    type: bool
    default: true
  nodes:
    description:
      - The nodes to run over, which are dealt out to pods. No more than one of this and O(limit) can be given.
      - The default are the nodes of the inventory. With O(inventory=dataplane) these are the nodes in O(namespace)
        of the
        run's own inventory of P(edpm.services.dataplane#inventory), with O(inventory=config_maps) the hosts of
        O(inventory_config_maps).
      - Where there are none, the playbook runs in one pod.
    type: list
    elements: str
  limit:
    description:
      - A pattern of hosts. Where the nodes are known it chooses among them, else the pod gets it as C(--limit).
    type: str
    default: ""
  tags:
    description: Tags of the tasks to run.
    type: list
    elements: str
    default: []
  skip_tags:
    description: Tags of the tasks to leave out.
    type: list
    elements: str
    default: []
  extra_vars:
    description: Variables of the playbook. They lie in a ConfigMap. For secret ones see O(extra_vars_secrets).
    type: dict
    default: {}
  extra_vars_secrets:
    description: Secrets whose keys C(*.yml) and C(*.yaml) are files of variables. O(extra_vars) win over them.
    type: list
    elements: str
    default: []
  arguments:
    description: More arguments for C(ansible-playbook), such as C(--check) or C(-v).
    type: list
    elements: str
    default: []
  environment:
    description: Environment variables of the pods, such as C(ANSIBLE_TIMEOUT).
    type: dict
    default: {}
  image:
    description:
      - The execution environment. It has this collection, ansible-core, ansible-runner, the collection's Python
        requirements and an OpenSSH client.
      - The default is C(spec.ansibleEEContainerImage) of the nodes' service resources, then the environment variable
        E(RELATED_IMAGE_NOVA_ANSIBLE_EE_IMAGE_URL_DEFAULT) of the controller.
    type: str
    default: ""
  image_pull_policy:
    description: When the image is pulled.
    type: str
    default: IfNotPresent
    choices:
      - Always
      - IfNotPresent
      - Never
  image_pull_secrets:
    description: Secrets with the credentials of the image's registry.
    type: list
    elements: str
    default: []
  service_account:
    description:
      - Account of the pods. It needs the ClusterRoles C(edpm-services-runner), to store results, and
        C(edpm-services-reader), with O(inventory=dataplane), by RoleBindings in O(namespace).
    type: str
    default: edpm-services-runner
  inventory:
    description:
      - Where the pods find the nodes.
      - V(dataplane) reads the data plane by the pods' own account, as P(edpm.services.dataplane#inventory) does, and
        with it the Secrets of the nodes' SSH keys.
      - V(config_maps) mounts inventories that others wrote. The account then needs no right to read.
    type: str
    default: dataplane
    choices:
      - dataplane
      - config_maps
  inventory_config_maps:
    description:
      - ConfigMaps with an inventory under the key C(inventory), 50 at most. The default are those that the service
        resources of the nodes name.
    type: list
    elements: str
    default: []
  ssh_key_secret:
    description:
      - A Secret whose key C(ssh-privatekey) opens all nodes. It is mounted.
      - The default with O(inventory=config_maps) is the Secret that the service resources of the nodes name. With
        O(inventory=dataplane), each node's own is used unless this is set.
    type: str
    default: ""
  known_hosts:
    description:
      - A ConfigMap whose key C(known_hosts) has the nodes' host keys, which are insisted on. Without it, a pod takes
        the
        first key that a node shows.
    type: str
    default: ""
  ca_secret:
    description:
      - A Secret whose key C(tls-ca-bundle.pem) has the certificates that OpenStack's interfaces are verified with.
        It is
        mounted where it exists.
    type: str
    default: combined-ca-bundle
  mounts:
    description: More files for the pods.
    type: list
    elements: dict
    default: []
    suboptions:
      secret:
        description: A Secret whose keys are the files.
        type: str
      config_map:
        description: A ConfigMap whose keys are the files.
        type: str
      path:
        description: The folder in the pods.
        type: str
        required: true
      optional:
        description: Whether the pods also start where it does not exist.
        type: bool
        default: false
  network_attachments:
    description:
      - Names of NetworkAttachmentDefinitions that the pods are attached to. The default are those of all nodes of the
        run.
    type: list
    elements: str
  dns_config:
    description:
      - How the pods look names up, as a pod's C(dnsConfig) says it. The default is C(spec.dnsConfig) of the nodes'
        service resources, and V({}) leaves it to the cluster.
      - With C(nameservers), these are asked in place of the cluster's own.
    type: dict
    suboptions:
      nameservers:
        description: Addresses of DNS servers, three at most.
        type: list
        elements: str
        default: []
      searches:
        description: Domains that short names are looked up in.
        type: list
        elements: str
        default: []
      options:
        description: Options of the resolver.
        type: list
        elements: dict
        default: []
        suboptions:
          name:
            description: Name of the option, such as C(ndots).
            type: str
            required: true
          value:
            description: Its value, where it has one.
            type: str
  shard_size:
    description:
      - How many nodes a pod takes at most, 2000 being the limit. With V(0), the playbook runs once, in one pod, as
        C(edpm.services.plan) should.
    type: int
    default: 50
  parallel:
    description: How many pods run at once.
    type: int
    default: 10
  forks:
    description: How many nodes a pod works on at once.
    type: int
    default: 10
  backoff_limit:
    description:
      - How often a shard is tried again whose pod was killed. Evictions are not counted. A shard whose nodes failed is
        not tried again.
    type: int
    default: 2
  ttl:
    description: How many seconds the Job and its results are kept after its end.
    type: int
    default: 3600
  deadline:
    description: After how many seconds the cluster ends a Job that is still running. By itself it does not.
    type: int
  run_as_user:
    description: UID of the pods. The default is the image's, or the one that the cluster chooses.
    type: int
  resources:
    description:
      - Resource requests and limits of a pod, as a container has them. The default requests 100m of CPU and 256Mi of
        memory and limits the memory to 1Gi.
    type: dict
    default: {}
  engine:
    description:
      - V(job) makes one Indexed Job.
      - V(openstackansibleee) makes an OpenStackAnsibleEE for each shard, O(parallel) at once. Its operator decides the
        pods' security context, and O(ttl), O(deadline), O(resources), O(image_pull_policy) and O(image_pull_secrets) do
        not count.
      - V(auto) is V(openstackansibleee) where its CustomResourceDefinition is installed, else V(job).
    type: str
    default: job
    choices:
      - job
      - openstackansibleee
      - auto
  wait:
    description: Whether to wait for the end of the run.
    type: bool
    default: true
  wait_timeout:
    description: How many seconds to wait. The run goes on when they are over.
    type: int
    default: 3600
notes:
  - Who starts runs needs the ClusterRole C(edpm-services-jobs) in O(namespace).
  - Pods pass the Pod Security Standard C(restricted). They run as any user but root, without capabilities, with a
    read-only root and the runtime's default seccomp profile.
seealso:
  - module: edpm.services.dataplane_info
"""

EXAMPLES = r"""
- name: Deploy all nodes of the data plane in pods, 50 nodes in each
  edpm.services.ee_job:
    playbook: edpm.services.deploy
    image: registry.example.com/edpm/ee:1.0.0

- name: Deploy two nodes, and insist on their host keys
  edpm.services.ee_job:
    playbook: edpm.services.deploy
    nodes:
      - edpm-compute-0
      - edpm-compute-1
    known_hosts: edpm-known-hosts

- name: Show the plan as the pods see it
  edpm.services.ee_job:
    playbook: edpm.services.plan
    shard_size: 0

- name: Run a play of one's own with an inventory that the data plane operator wrote
  edpm.services.ee_job:
    play:
      - hosts: all
        gather_facts: false
        tasks:
          - name: Say hello
            ansible.builtin.ping:
    inventory: config_maps
    inventory_config_maps:
      - dataplanerole-edpm-compute
    ssh_key_secret: dataplane-ansible-ssh-private-key-secret
"""

RETURN = r"""
run:
  description: Name of the run, which is the Job's.
  returned: always
  type: str
  sample: edpm-services-deploy-3f9c21e0aa
namespace:
  description: Namespace of the run.
  returned: always
  type: str
  sample: openstack
engine:
  description: What the run was made of, V(Job) or V(OpenStackAnsibleEE).
  returned: always
  type: str
  sample: Job
started:
  description: Whether this task started the run. If not, it was running, or finished, already.
  returned: always
  type: bool
nodes:
  description: What became of each node, by name.
  returned: when the run was waited for
  type: dict
  contains:
    state:
      description:
        - V(ok) and V(changed) are good ends. V(failed) and V(unreachable) are Ansible's words. V(not_run) is a node
          that
          the playbook did not come to. V(unknown) is one whose pod ended before it told.
      returned: always
      type: str
      sample: changed
    changed:
      description: How many tasks changed something.
      returned: always
      type: int
    task:
      description: The task that failed.
      returned: always
      type: str
    msg:
      description: What the task said.
      returned: always
      type: str
    shard:
      description: Index of the shard.
      returned: always
      type: int
failed_nodes:
  description: Names of the nodes that something is left to do for.
  returned: always
  type: list
  elements: str
summary:
  description: How many nodes are in which state.
  returned: always
  type: dict
  sample:
    ok: 12
    changed: 3
    not_run: 0
    unknown: 0
    unreachable: 0
    failed: 1
shards:
  description: How each shard ended.
  returned: when the run was waited for
  type: list
  elements: dict
  contains:
    index:
      description: Index of the shard.
      returned: always
      type: int
    code:
      description: What C(ansible-playbook) returned; -1 where no result was stored.
      returned: always
      type: int
    seconds:
      description: How long the playbook ran.
      returned: always
      type: float
    reason:
      description: Why nothing could be played.
      returned: always
      type: str
objects:
  description: The objects that would be created.
  returned: in check mode
  type: list
  elements: dict
msg:
  description: What happened, in one sentence, with the nodes that failed.
  returned: always
  type: str
  sample: "Job openstack/edpm-services-deploy-3f9c21e0aa: 12 ok, 3 changed."
"""
