# SPDX-License-Identifier: GPL-3.0-or-later
"""What nova-compute and libvirt share, since both work on the same guests."""

from __future__ import annotations

from .running import Account, Mount

NOVA = Account("nova", 42436, "/var/lib/nova")
RUN_LIBVIRT = Mount("/run/libvirt", options=("shared",))
VAR_LIB_LIBVIRT = Mount("/var/lib/libvirt")
DEV = Mount("/dev")
LIBVIRT_AT_BOOT = "d /run/libvirt 0755 root root -"
# Guests are processes of the node: who starts and watches them sees its processes and control groups.
WITH_GUESTS = ("--pid=host", "--cgroupns=host", "--cgroups=no-conmon")
