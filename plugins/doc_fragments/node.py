# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    # Of modules that run on a node.
    DOCUMENTATION = r"""
attributes:
  platform:
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
"""
