"""Names: which stored conversation the name that a client chose stands for."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from pathlib import Path

LONGEST = 128  # characters of a name
_ROUNDS = 200_000  # so that nobody who reads a store finds out a token by trying


@dataclass(frozen=True)
class Name:
    """A name, and the id of the conversation in the store; the id gives away neither the name nor the token."""

    text: str
    stored_id: str


class Names:
    """The names of one workspace and one token: under another token a name is another conversation."""

    def __init__(self, workspace: Path, *, token: str | None = None) -> None:
        place = f"jaato mcp {workspace}".encode("utf-8", "surrogateescape")
        secret = token.encode("utf-8", "surrogateescape") if token is not None else None
        self._key = place if secret is None else hashlib.pbkdf2_hmac("sha256", secret, place, _ROUNDS)

    def find(self, text: str) -> Name:
        """What a name stands for."""
        digest = hmac.new(self._key, text.encode("utf-8", "surrogateescape"), hashlib.sha256)
        return Name(text, f"mcp_{digest.hexdigest()[:32]}")
