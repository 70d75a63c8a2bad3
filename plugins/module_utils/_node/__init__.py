# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What happens on a node: a bundle becomes a generation, a generation becomes a running unit.

Nothing here imports more than the standard library of Python 3.9, nor anything else of this collection. Commands, the
disk and the clock come in from outside, so that every step can be stopped, refused and repeated in a test.
"""

from __future__ import annotations
