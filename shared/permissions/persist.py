"""Writing an "always" answer into the policy file that its owner may write."""

from __future__ import annotations

import json
import logging
import os
import tempfile
import threading
from pathlib import Path
from typing import Any

from shared.errors import ConfigError, PolicyError
from shared.file_tree import TreeFile, TreeRefused, read_one
from shared.permissions.call import Call
from shared.permissions.policy import Policy
from shared.permissions.policy_file import parse_policy, read_policy_data
from shared.permissions.request import Decision
from shared.permissions.rules import Rules, glob_escape
from shared.trust import TrustStore

log = logging.getLogger(__name__)
_lock = threading.Lock()


def remember_for_good(policy: Policy, call: Call, decision: Decision) -> bool:
    """Add the decision to the policy's file; False (and a log line) if it holds for this session only."""
    rule = _rule(call, decision)
    if policy.source is None or rule is None:
        log.info("permissions: 'always' holds for this session only: %s", "no policy file" if rule else "no exact rule")
        return False
    path = Path(os.path.realpath(policy.source))
    try:
        with _lock:
            _add(path, "whitelist" if decision.allow else "blacklist", *rule)
    except (OSError, PolicyError) as error:
        log.warning("permissions: 'always' holds for this session only: %s: %s", path, error)
        return False
    return True


def _rule(call: Call, decision: Decision) -> tuple[str, str] | None:
    """The narrowest rule that says the same; None if no pattern can say it exactly."""
    if decision.breadth == "tool":
        return "tools", glob_escape(call.tool)
    if decision.breadth != "call":
        return None
    pattern = glob_escape(call.signature)
    rules = Rules(patterns=(pattern,))
    fits = rules.allows(call) if decision.allow else rules.denies(call)
    return ("patterns", pattern) if fits else None


def _add(path: Path, group: str, kind: str, rule: str) -> None:
    found = path.stat()
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        raise PolicyError("the file belongs to someone else")
    if not os.access(path, os.W_OK):
        raise PolicyError("the file is not writable")
    former = _former(path)
    data = read_policy_data(path)
    known = former is not None and _says(former, data)
    rules = data.setdefault(group, {}).setdefault(kind, [])
    if rule not in rules:
        rules.append(rule)
        parse_policy(data, where=str(path))
        written = _replace(path, data, found.st_mode & 0o777)
        if former is not None and known:
            _go_on_trusting(path, former, TreeFile(written, former.executable))


def _former(path: Path) -> TreeFile | None:
    """The file as it is before the change, if it is one that a workspace can be trusted with."""
    try:
        return read_one(path.parent, path.name)
    except TreeRefused:
        return None


def _says(former: TreeFile, data: dict[str, Any]) -> bool:
    """Whether what was read is what the fingerprint is of: nobody changed the file in between."""
    try:
        return bool(json.loads(former.data.decode("utf-8-sig")) == data)
    except (ValueError, RecursionError):
        return False


def _go_on_trusting(path: Path, former: TreeFile, now: TreeFile) -> None:
    """The person who answered knows of this change: it must not end the trust in the workspace."""
    try:
        TrustStore().renew(path, former=former.digest, now=now.digest)
    except (ConfigError, OSError) as error:
        log.warning("permissions: the workspace has to be trusted again: %s", error)


def _replace(path: Path, data: dict[str, Any], mode: int) -> bytes:
    """Swap the file in one step, so that a reader never sees half a policy; returns what is in it now."""
    written = (json.dumps(data, indent=2, ensure_ascii=False) + "\n").encode()
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(written)
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:  # nothing half-written stays behind, whatever stopped us
        os.unlink(name)
        raise
    return written
