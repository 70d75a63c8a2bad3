# SPDX-License-Identifier: GPL-3.0-or-later
"""The only code that talks to OpenStack itself: credentials, the calls, and what each state of a compute means."""
