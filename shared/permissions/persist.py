"""Writing an "always" answer into the policy file that its owner may write."""

from __future__ import annotations

import json
import logging
import os
import tempfile
import threading
from pathlib import Path
from typing import Any

from shared.errors import PolicyError
from shared.permissions.call import Call
from shared.permissions.policy import Policy
from shared.permissions.policy_file import parse_policy, read_policy_data
from shared.permissions.request import Decision
from shared.permissions.rules import Rules, glob_escape

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
    data = read_policy_data(path)
    rules = data.setdefault(group, {}).setdefault(kind, [])
    if rule not in rules:
        rules.append(rule)
        parse_policy(data, where=str(path))
        _replace(path, data, found.st_mode & 0o777)


def _replace(path: Path, data: dict[str, Any], mode: int) -> None:
    """Swap the file in one step, so that a reader never sees half a policy."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(data, file, indent=2, ensure_ascii=False)
            file.write("\n")
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:  # nothing half-written stays behind, whatever stopped us
        os.unlink(name)
        raise
