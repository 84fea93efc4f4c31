"""Whether servers of a project's `.mcp.json` may be started: they are programs that the project chose."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shared.trust import TrustStore

_HOW = "look at it and run `jaato trust`, or set `trust_project`"


@dataclass(frozen=True)
class ProjectTrust:
    """Why the project's servers are not started, empty if they are; `digest` is what its file must still have."""

    reason: str = ""
    digest: str | None = None

    def with_content(self, digest: str) -> ProjectTrust:
        """The same for a file of this content: another one than was trusted is not."""
        if self.reason or self.digest in (None, digest):
            return self
        return ProjectTrust(f"it comes from the project, whose file has changed since it was trusted: {_HOW}")


def project_trust(workspace: Path, file: str, *, setting: bool | None, vouched: bool | None) -> ProjectTrust:
    """What the setting says, else what host code says of the workspace, else the record of `jaato trust`."""
    if setting is False:
        return ProjectTrust("it comes from the project, and `trust_project` is off")
    if setting or vouched:
        return ProjectTrust()
    if vouched is False:
        return ProjectTrust(f"it comes from the project, which is not trusted: {_HOW}")
    verdict = TrustStore().is_trusted(workspace)
    if not verdict:
        return ProjectTrust(f"it comes from the project, which is not trusted ({verdict.reason}): {_HOW}")
    return ProjectTrust(digest=verdict.files.get(file, ""))
