# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator: it hears that something changed, reads all of it, and starts the step that follows."""
