# SPDX-License-Identifier: GPL-3.0-or-later
"""What happens to a data plane while it happens: the one watch of the operator and of the event source."""
