"""What a secret looks like: the shapes that vendors give their tokens, and values behind telling names."""

from __future__ import annotations

import re
from collections.abc import Mapping

#: The whole match is the secret, or the group `secret` of it.
SHAPES: Mapping[str, str] = {
    "private key": r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----[\s\S]*?(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY-----|\Z)",
    "AWS key": r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    "GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})",
    "GitLab token": r"\bglpat-[A-Za-z0-9_-]{20,}",
    "Slack token": r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    "Stripe key": r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}",
    "Google key": r"\bAIza[A-Za-z0-9_-]{35}",
    "API key": r"\bsk-(?:[a-z]+-)*[A-Za-z0-9_-]{20,}",
    "JSON web token": r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+",
    "bearer token": (
        r"(?i:\bauthorization\b[\"']?\s*[:=]\s*[\"']?(?:bearer|basic|token)\s+)(?P<secret>[A-Za-z0-9._~+/=-]{8,})"
    ),
    "password in an address": r"\b[a-z][a-z0-9+.-]{0,20}://[^\s/:@\"']*:(?P<secret>[^\s/@\"']{3,})@",
    "secret value": (
        r"(?i:(?<![A-Z0-9_.-])[\"']?[A-Z0-9_.-]{0,60}"
        r"(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIALS?)"
        r"(?:_[A-Z0-9]+)?[\"']?[ \t]*[=:][ \t]*)"
        r"(?P<secret>\"[^\"\n]{6,}\"|'[^'\n]{6,}'|[^\s\"',;{}()\[\]<>$]{6,})"
    ),
}
#: Names of files that hold credentials and little else; a name with a slash is the end of a path.
FILES = (
    *(".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".pgpass", ".git-credentials", ".htpasswd"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "*.pem", "*.key", "*.p12", "*.pfx", "*.keystore", "*.jks"),
    *(".aws/credentials", ".docker/config.json", ".kube/config", ".ssh/*", ".gnupg/*", "gcloud/*credentials*"),
    *("credentials.json", "service-account*.json", "secrets.json", "secrets.y*ml", ".npmrc", ".pypirc"),
    *("/proc/*/environ",),
)
#: What looks like one of those and holds no secret.
HARMLESS = (".env.example", ".env.sample", ".env.template", ".env.dist", "*.pub", ".ssh/known_hosts", ".ssh/config")


def compiled(own: Mapping[str, str]) -> dict[str, re.Pattern[str]]:
    """All shapes, the user's own first; raises ValueError that names a pattern which is none."""
    found: dict[str, re.Pattern[str]] = {}
    for kind, pattern in {**own, **SHAPES}.items():
        try:
            found[kind] = re.compile(pattern)
        except re.error as error:
            raise ValueError(f"patterns: '{kind}' is not a regular expression: {error}") from None
        if found[kind].match(""):
            raise ValueError(f"patterns: '{kind}' fits every text: make it match at least one character")
    return found
