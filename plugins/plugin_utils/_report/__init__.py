# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plan looks like to a person and to a program. Nothing leaves this room with a secret in it."""
