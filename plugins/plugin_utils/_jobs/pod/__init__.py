# SPDX-License-Identifier: GPL-3.0-or-later
"""What happens inside a run's pod; `main` is the program that it starts."""
