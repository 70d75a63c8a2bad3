# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the table of variables into each role's README from its argument specification, or check that it is there.

Ansible reads defaults from one file and documents them in another; this also holds the two together.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import yaml

TREE = Path(__file__).resolve().parents[2]
BEGIN = "<!-- generated from meta/argument_specs.yml by `make docs` -->"
END = "<!-- end of what is generated -->"
MARKUP = re.compile(r"[A-Z]\(([^()]*)\)")


def main() -> int:
    """With --check say what is out of date, else write it."""
    check = "--check" in sys.argv
    faults = []
    for role in sorted((TREE / "roles").iterdir()):
        specified = yaml.safe_load((role / "meta/argument_specs.yml").read_text())["argument_specs"]["main"]["options"]
        faults += _disagreements(role, specified)
        readme = role / "README.md"
        wanted = _with_table(readme.read_text(), _table(specified))
        if readme.read_text() != wanted:
            if check:
                faults.append(f"{readme.relative_to(TREE)} is out of date; run `make docs`")
            else:
                readme.write_text(wanted)
    print("\n".join(faults) or "the roles' READMEs and defaults say what their argument specifications say")
    return 1 if faults else 0


def _disagreements(role: Path, specified: dict[str, Any]) -> list[str]:
    defaults = yaml.safe_load((role / "defaults/main.yml").read_text()) or {}
    documented = {name: option["default"] for name, option in specified.items() if "default" in option}
    faults = [
        f"{role.name}: {name} does not begin with {role.name}_" for name in specified if not _prefixed(role, name)
    ]
    for name in sorted(defaults.keys() | documented.keys()):
        if name not in defaults or name not in documented or defaults[name] != documented[name]:
            faults.append(
                f"{role.name}: the default of {name} differs between defaults/main.yml and argument_specs.yml"
            )
    return faults


def _prefixed(role: Path, name: str) -> bool:
    return name.startswith(f"{role.name}_")


def _table(specified: dict[str, Any]) -> str:
    lines = ["| variable | type | default | what it does |", "|---|---|---|---|"]
    for name, option in specified.items():
        told = option["description"] if isinstance(option["description"], list) else [option["description"]]
        sentence = MARKUP.sub(r"`\1`", " ".join(told)).replace("|", "\\|")
        default = (
            f"`{json.dumps(option['default'])}`" if "default" in option else "required" * option.get("required", False)
        )
        lines.append(f"| `{name}` | {option.get('type', 'str')} | {default} | {sentence} |")
    return "\n".join(lines)


def _with_table(readme: str, table: str) -> str:
    before, found, rest = readme.partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not (found and closed):
        before, after = readme.rstrip() + "\n\n## Variables\n\n", "\n"
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"


if __name__ == "__main__":
    sys.exit(main())
