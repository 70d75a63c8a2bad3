# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    # What the attributes of every module mean; whether it has them is the module's to say.
    DOCUMENTATION = r"""
attributes:
  check_mode:
    description: Can run in check mode and return what would change without changing it.
  diff_mode:
    description: Returns what has changed, or what would change in check mode.
  idempotent:
    description: Running it a second time changes nothing.
  platform:
    description: Where it runs.
"""

    # Of modules that never leave the controller.
    CONTROLLER = r"""
attributes:
  platform:
    support: full
    platforms: all
    details:
      - The whole work is done by Ansible's own Python on the controller. The host of the task is not connected to.
"""
