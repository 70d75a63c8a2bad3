# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may log in: services share users, so a shell is given where one asks for it and never taken away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.accounts import Accounts
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import User
from ansible_collections.edpm.services.plugins.module_utils._node.commands import Result


class Known(Accounts):
    """A node that knows the user nova with some shell."""

    def __init__(self, shell: str) -> None:
        self.called: list[list[str]] = []
        super().__init__(self._called)
        self._shell = shell

    def _called(self, argv: Sequence[str], _env: Mapping[str, str]) -> Result:
        self.called.append(list(argv))
        return Result(0)

    def uid(self, name: str) -> int | None:
        return 42436 if self._shell and name == "nova" else None

    def gid(self, name: str) -> int | None:
        return 42436 if name == "nova" else None

    def shell(self, name: str) -> str:
        return self._shell if name == "nova" else ""


@pytest.mark.parametrize(
    ("has", "wants", "called"),
    [
        ("/usr/sbin/nologin", "/bin/sh", [["usermod", "--shell=/bin/sh", "nova"]]),
        ("/bin/false", "/bin/sh", [["usermod", "--shell=/bin/sh", "nova"]]),
        ("/bin/bash", "/bin/sh", []),
        ("/bin/bash", "/usr/sbin/nologin", []),
        ("/usr/sbin/nologin", "/usr/sbin/nologin", []),
    ],
)
def test_a_shell_is_given_and_never_taken_away(has: str, wants: str, called: list[list[str]]) -> None:
    known, user = Known(has), User("nova", 42436, shell=wants)
    assert known.lacks_user(user) == bool(called)
    known.have_user(user)
    assert known.called == called


def test_a_new_user_has_its_shell_from_the_start() -> None:
    known = Known("")
    known.have_user(User("nova", 42436, shell="/bin/sh"))
    (words,) = known.called
    assert (words[0], "--shell=/bin/sh" in words) == ("useradd", True)
