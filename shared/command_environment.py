"""The environment of a command: the user's own, without credentials."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

#: Words that end a part of a secret's name: `AWS_ACCESS_KEY_ID`, `PGPASSWORD`, `GITHUB_PAT`; not `GIT_AUTHOR_NAME`.
_SECRET_NAME = re.compile(
    r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|CREDS?|AUTH|COOKIE|PRIVATE|JWT|DSN"
    r"|(?<=_)PASS|(?<=_)PWD|(?<=_)PAT)S?(?:_|\d|$)",
    re.IGNORECASE,
)
#: A password inside an address, as in `postgres://user:password@host`.
_SECRET_VALUE = re.compile(r"://[^/\s:@]*:[^/\s@]+@")

#: Programs that would wait for a person, or colour their output, are told not to.
QUIET = {"PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "TERM": "dumb", "NO_COLOR": "1"}


def is_secret(name: str, value: str) -> bool:
    """Whether a variable looks like a credential, by its name or by a password in its value."""
    return bool(_SECRET_NAME.search(name) or _SECRET_VALUE.search(value))


def command_environment(
    inherited: Mapping[str, str], *, allow: Iterable[str] = (), extra: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The variables a command gets: inherited ones that are no secret or are allowed, then `extra`."""
    allowed = set(allow)
    kept = {name: value for name, value in inherited.items() if name in allowed or not is_secret(name, value)}
    return {**kept, **QUIET, **(extra or {})}
