# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    # The options of every module that talks to Kubernetes. Their names and environment
    # variables are those of the kubernetes.core collection.
    DOCUMENTATION = r"""
options:
  kubeconfig:
    description:
      - Path of a kubeconfig, several paths with colons between them, or the content of one as a mapping.
      - If not set, the environment variable E(K8S_AUTH_KUBECONFIG) is used, then E(KUBECONFIG), then C(~/.kube/config)
        where it exists, then the service account of the pod that Ansible runs in.
      - None of them is read where O(host) is set and O(context) is not.
    type: raw
  context:
    description:
      - Name of a context in the kubeconfig. The default is its current context.
      - If not set, the environment variable E(K8S_AUTH_CONTEXT) is used.
    type: str
  host:
    description:
      - URL of the API server.
      - If not set, the environment variable E(K8S_AUTH_HOST) is used.
    type: str
  api_key:
    description:
      - Bearer token.
      - If not set, the environment variable E(K8S_AUTH_API_KEY) is used.
    type: str
  username:
    description:
      - Name of a user, for API servers that take HTTP basic authentication.
      - If not set, the environment variable E(K8S_AUTH_USERNAME) is used.
    type: str
  password:
    description:
      - Password that belongs to O(username).
      - If not set, the environment variable E(K8S_AUTH_PASSWORD) is used.
    type: str
  validate_certs:
    description:
      - Whether the certificate of the API server is verified. The default is what the kubeconfig says, else V(true).
      - If not set, the environment variable E(K8S_AUTH_VERIFY_SSL) is used.
    type: bool
    aliases:
      - verify_ssl
  ca_cert:
    description:
      - Path of the CA certificates that the certificate of the API server is verified with.
      - If not set, the environment variable E(K8S_AUTH_SSL_CA_CERT) is used.
    type: path
    aliases:
      - ssl_ca_cert
  client_cert:
    description:
      - Path of a client certificate.
      - If not set, the environment variable E(K8S_AUTH_CERT_FILE) is used.
    type: path
    aliases:
      - cert_file
  client_key:
    description:
      - Path of the key that belongs to O(client_cert).
      - If not set, the environment variable E(K8S_AUTH_KEY_FILE) is used.
    type: path
    aliases:
      - key_file
  proxy:
    description:
      - URL of an HTTP proxy on the way to the API server.
      - If not set, the environment variable E(K8S_AUTH_PROXY) is used.
    type: str
  no_proxy:
    description:
      - Comma-separated hosts, domains and networks that are reached without the proxy.
      - If not set, the environment variable E(K8S_AUTH_NO_PROXY) is used.
    type: str
  proxy_headers:
    description:
      - Headers for the proxy.
    type: dict
    suboptions:
      proxy_basic_auth:
        description:
          - User and password for the proxy, with a colon between them.
        type: str
      basic_auth:
        description:
          - User and password for HTTP basic authentication, with a colon between them.
        type: str
      user_agent:
        description:
          - Text of the C(User-Agent) header.
        type: str
  impersonate_user:
    description:
      - Name of a user to act as.
      - If not set, the environment variable E(K8S_AUTH_IMPERSONATE_USER) is used.
    type: str
  impersonate_groups:
    description:
      - Groups to act as a member of.
      - If not set, the environment variable E(K8S_AUTH_IMPERSONATE_GROUPS) is used, a comma-separated list.
    type: list
    elements: str
requirements:
  - kubernetes >= 35, < 38 in the Python that runs Ansible
notes:
  - Set the connection once for all tasks of a play with C(module_defaults) of the action group
    C(group/edpm.services.kubernetes), or with the environment variables.
  - A token or key never is an argument of a program, part of a result or of the log.
"""

    # The same for inventory and lookup plugins: Ansible itself reads their environment variables.
    PLUGIN = r"""
options:
  kubeconfig:
    description:
      - Path of a kubeconfig, several paths with colons between them, or the content of one as a mapping.
      - If not set, the environment variable E(KUBECONFIG) is used, then C(~/.kube/config) where it exists, then the
        service account of the pod that Ansible runs in.
      - None of them is read where O(host) is set and O(context) is not.
    type: raw
    env:
      - name: K8S_AUTH_KUBECONFIG
  context:
    description: Name of a context in the kubeconfig. The default is its current context.
    type: str
    env:
      - name: K8S_AUTH_CONTEXT
  host:
    description: URL of the API server.
    type: str
    env:
      - name: K8S_AUTH_HOST
  api_key:
    description: Bearer token.
    type: str
    env:
      - name: K8S_AUTH_API_KEY
  username:
    description: Name of a user, for API servers that take HTTP basic authentication.
    type: str
    env:
      - name: K8S_AUTH_USERNAME
  password:
    description: Password that belongs to O(username).
    type: str
    env:
      - name: K8S_AUTH_PASSWORD
  validate_certs:
    description:
      - Whether the certificate of the API server is verified. The default is what the kubeconfig says, else V(true).
    type: bool
    aliases:
      - verify_ssl
    env:
      - name: K8S_AUTH_VERIFY_SSL
  ca_cert:
    description: Path of the CA certificates that the certificate of the API server is verified with.
    type: path
    aliases:
      - ssl_ca_cert
    env:
      - name: K8S_AUTH_SSL_CA_CERT
  client_cert:
    description: Path of a client certificate.
    type: path
    aliases:
      - cert_file
    env:
      - name: K8S_AUTH_CERT_FILE
  client_key:
    description: Path of the key that belongs to O(client_cert).
    type: path
    aliases:
      - key_file
    env:
      - name: K8S_AUTH_KEY_FILE
  proxy:
    description: URL of an HTTP proxy on the way to the API server.
    type: str
    env:
      - name: K8S_AUTH_PROXY
  no_proxy:
    description: Comma-separated hosts, domains and networks that are reached without the proxy.
    type: str
    env:
      - name: K8S_AUTH_NO_PROXY
  proxy_headers:
    description: Headers for the proxy.
    type: dict
    suboptions:
      proxy_basic_auth:
        description: User and password for the proxy, with a colon between them.
        type: str
      basic_auth:
        description: User and password for HTTP basic authentication, with a colon between them.
        type: str
      user_agent:
        description: Text of the C(User-Agent) header.
        type: str
  impersonate_user:
    description: Name of a user to act as.
    type: str
    env:
      - name: K8S_AUTH_IMPERSONATE_USER
  impersonate_groups:
    description: Groups to act as a member of.
    type: list
    elements: str
    env:
      - name: K8S_AUTH_IMPERSONATE_GROUPS
requirements:
  - kubernetes >= 35, < 38 in the Python that runs Ansible
"""

    # Of modules that show or write a plan.
    SOURCE = r"""
options:
  manifests:
    description:
      - Files with Kubernetes objects, or folders of them, to read instead of what the inventory has read. No cluster is
        asked then, and the options of the connection do not count.
      - A relative path begins at the playbook's folder.
    type: list
    elements: str
  namespaces:
    description:
      - Namespaces of the cluster or the manifests to read instead of what the inventory has read.
    type: list
    elements: str
"""
