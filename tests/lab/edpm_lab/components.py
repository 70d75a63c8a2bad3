# SPDX-License-Identifier: GPL-3.0-or-later
"""The components of the whole cluster: who each is to the others, how it is started, and what it reads."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from . import pki
from .control_plane import ControlPlane

#: The name of the cluster's one node.
NAME = "kube"
PODS = "10.244.0.0/16"

#: Inside the cluster's container: what must not lie on an overlay, and where containerd answers.
STATE = Path("/var/lib/kube")
SOCKET = "/run/containerd-lab/containerd.sock"


def create_identities(plane: ControlPlane) -> None:
    """What the components show to each other, besides what every control plane has."""
    authority = plane.authority
    authority.client("kubelet-client", "kube-apiserver-kubelet-client")
    authority.server("kubelet", [NAME, plane.address], user=f"system:node:{NAME}")
    for name, user, groups in (
        ("node", f"system:node:{NAME}", ["system:nodes"]),
        ("controller-manager", "system:kube-controller-manager", []),
        ("scheduler", "system:kube-scheduler", []),
        ("proxy", "system:kube-proxy", []),
    ):
        identity = authority.client(name, user, groups)
        pki.write_kubeconfig(plane.folder / f"{name}.kubeconfig", plane.url, authority, identity)


def commands(plane: ControlPlane, programs: dict[str, Path]) -> dict[str, list[str]]:
    """The command line of each component."""
    folder, trusted = plane.folder, plane.authority.folder

    def component(name: str, identity: str, *options: str) -> list[str]:
        return [str(programs[name]), f"--kubeconfig={folder / identity}.kubeconfig", *options]

    return {
        "etcd": plane.etcd_command(programs["etcd"], STATE / "etcd"),
        "kube-apiserver": plane.server_command(
            programs["kube-apiserver"],
            [
                "--enable-admission-plugins=NodeRestriction",
                "--allow-privileged=true",
                f"--kubelet-client-certificate={trusted / 'kubelet-client.crt'}",
                f"--kubelet-client-key={trusted / 'kubelet-client.key'}",
                f"--kubelet-certificate-authority={trusted / 'ca.crt'}",
                "--kubelet-preferred-address-types=InternalIP",
            ],
        ),
        "containerd": [str(programs["containerd"]), "--config", str(folder / "containerd.toml")],
        "kubelet": component(
            "kubelet",
            "node",
            f"--config={folder / 'kubelet.yaml'}",
            f"--root-dir={STATE / 'kubelet'}",
            f"--hostname-override={NAME}",
            f"--node-ip={plane.address}",
        ),
        "kube-controller-manager": component(
            "kube-controller-manager",
            "controller-manager",
            f"--service-account-private-key-file={trusted / 'service-accounts.key'}",
            f"--root-ca-file={trusted / 'ca.crt'}",
            f"--cluster-signing-cert-file={trusted / 'ca.crt'}",
            f"--cluster-signing-key-file={trusted / 'ca.key'}",
            "--use-service-account-credentials",
            "--leader-elect=false",
            "--secure-port=0",
        ),
        "kube-scheduler": component("kube-scheduler", "scheduler", "--leader-elect=false", "--secure-port=0"),
        "kube-proxy": component(
            "kube-proxy",
            "proxy",
            "--proxy-mode=nftables",
            f"--hostname-override={NAME}",
            f"--cluster-cidr={PODS}",
            # The host's settings are not the lab's to change.
            "--conntrack-max-per-core=0",
            "--conntrack-tcp-timeout-established=0",
            "--conntrack-tcp-timeout-close-wait=0",
        ),
    }


def write_settings(plane: ControlPlane, programs: dict[str, Path], sandbox: str) -> None:
    """The files that the kubelet, containerd and its network plugin read."""
    (plane.folder / "kubelet.yaml").write_text(yaml.safe_dump(_kubelet_settings(plane)))
    (plane.folder / "containerd.toml").write_text(
        _containerd_settings(plane.folder, programs["cni/bridge"].parent, sandbox)
    )
    (plane.folder / "cni").mkdir()
    (plane.folder / "cni" / "lab.conflist").write_text(json.dumps(_network_settings()))


def _kubelet_settings(plane: ControlPlane) -> dict[str, object]:
    trusted = plane.authority.folder
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": "0.0.0.0",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(trusted / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(trusted / "kubelet.crt"),
        "tlsPrivateKeyFile": str(trusted / "kubelet.key"),
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "resolvConf": "/etc/resolv.conf",
        # The host's cgroups are shared, perhaps of the old kind, and not the kubelet's to divide.
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        "localStorageCapacityIsolation": False,
        # A full disk is told by who fills it; evictions would fail tests that have nothing to do with it.
        "evictionHard": {"memory.available": "100Mi"},
        "imageGCHighThresholdPercent": 100,
    }


def _containerd_settings(folder: Path, plugins: Path, sandbox: str) -> str:
    """Written for a host that has neither AppArmor's tools nor the right to lower OOM scores."""
    runtime = "plugins.'io.containerd.cri.v1.runtime'"
    return f"""version = 3
root = "{STATE}/containerd"
state = "{Path(SOCKET).parent}"
[grpc]
  address = "{SOCKET}"
[{runtime}]
  disable_apparmor = true
  restrict_oom_score_adj = true
  [{runtime}.cni]
    bin_dirs = ["{plugins}"]
    conf_dir = "{folder / "cni"}"
  [{runtime}.containerd]
    default_runtime_name = "runc"
    [{runtime}.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [{runtime}.containerd.runtimes.runc.options]
        SystemdCgroup = false
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = "{sandbox}"
"""


def _network_settings() -> dict[str, object]:
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "ipMasq": True,
        "ipMasqBackend": "nftables",
        "ipam": {"type": "host-local", "ranges": [[{"subnet": PODS}]], "routes": [{"dst": "0.0.0.0/0"}]},
    }
    return {"cniVersion": "1.0.0", "name": "lab", "plugins": [bridge, {"type": "portmap", "backend": "nftables"}]}
