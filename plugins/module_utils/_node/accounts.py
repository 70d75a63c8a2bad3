# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Users and groups of the node."""

from __future__ import annotations

import grp
import pwd
from collections.abc import Callable

from .bundle import Group, User
from .commands import Run
from .errors import NodeRefused


class Accounts:
    """What the node knows of them, and how they are made; an account that is there is never given another number."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def uid(self, name: str) -> int | None:
        """A user's number."""
        try:
            return pwd.getpwnam(name).pw_uid
        except KeyError:
            return None

    def gid(self, name: str) -> int | None:
        """A group's number."""
        try:
            return grp.getgrnam(name).gr_gid
        except KeyError:
            return None

    def numbers(self, what: str, owner: str, group: str) -> tuple[int, int]:
        """The numbers of an owner and a group, -1 for one that is not named; `what` belongs to them."""
        return self._number(what, owner, self.uid), self._number(what, group, self.gid)

    def members(self, group: str) -> tuple[str, ...]:
        """Who is in a group besides those whose own group it is."""
        try:
            return tuple(grp.getgrnam(group).gr_mem)
        except KeyError:
            return ()

    def shell(self, name: str) -> str:
        """What a user gets who logs in; empty for one that is not there."""
        try:
            return pwd.getpwnam(name).pw_shell
        except KeyError:
            return ""

    def lacks_group(self, group: Group) -> bool:
        """Whether the group must be made; one with another number is refused."""
        return _lacks("group", group.name, group.gid, self.gid(group.name))

    def lacks_user(self, user: User) -> bool:
        """Whether the user must be made, put into a group, or let in."""
        lacks = _lacks("user", user.name, user.uid, self.uid(user.name))
        return lacks or bool(self._missing(user)) or self._shut_out(user)

    def have_group(self, group: Group) -> None:
        """Make the group if it is not there."""
        if self.lacks_group(group):
            number = [] if group.gid is None else [f"--gid={group.gid}"]
            self._do("group", group.name, ["groupadd", *number, group.name])

    def have_user(self, user: User) -> None:
        """Make the user if it is not there, put it into its groups, and let it in where that is asked for."""
        if _lacks("user", user.name, user.uid, self.uid(user.name)):
            number = [] if user.uid is None else [f"--uid={user.uid}"]
            own = user.group or (user.name if self.gid(user.name) is not None else "")
            words = [*number, f"--gid={own}" if own else "--user-group", f"--home-dir={user.home}"]
            self._do("user", user.name, ["useradd", *words, "--no-create-home", f"--shell={user.shell}", user.name])
        missing = self._missing(user)
        if missing:
            self._do("user", user.name, ["usermod", "--append", f"--groups={','.join(missing)}", user.name])
        if self._shut_out(user):
            self._do("user", user.name, ["usermod", f"--shell={user.shell}", user.name])

    @staticmethod
    def _number(what: str, name: str, find: Callable[[str], int | None]) -> int:
        found = find(name) if name else -1
        if found is None:
            raise NodeRefused(
                f"{what} belongs to {name}, whom the node does not know; name it among the definition's users and "
                "groups."
            )
        return found

    def _shut_out(self, user: User) -> bool:
        """Whether a user that must be able to log in cannot; services share users, so it is never taken away."""
        return not _is_closed(user.shell) and _is_closed(self.shell(user.name) or user.shell)

    def _missing(self, user: User) -> list[str]:
        return [group for group in user.groups if user.name not in self.members(group)]

    def _do(self, kind: str, name: str, argv: list[str]) -> None:
        answer = self._run(argv, {})
        if not answer.ok:
            raise NodeRefused(
                f"The {kind} {name} cannot be made on the node: {answer.said}; make it there by hand, or free its "
                "number and name. The service was not touched."
            )


def _is_closed(shell: str) -> bool:
    return shell.rpartition("/")[2] in ("nologin", "false")


def _lacks(kind: str, name: str, wanted: int | None, found: int | None) -> bool:
    if found is not None and wanted is not None and found != wanted:
        raise NodeRefused(
            f"The {kind} {name} has the number {found} on the node, and the service needs {wanted}, which its image "
            f"uses; change the {kind} and its files on the node, or the service's definition. Nothing was touched."
        )
    return found is None
