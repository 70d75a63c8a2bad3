# SPDX-License-Identifier: GPL-3.0-or-later
"""From a plan to what Ansible's inventory holds, and the keys that open the nodes."""
