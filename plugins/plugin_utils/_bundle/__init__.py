# SPDX-License-Identifier: GPL-3.0-or-later
"""From a service in a plan to its files on a node and one digest over them: pure, same input same bytes."""
