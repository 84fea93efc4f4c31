"""The JSON Schema of profiles, as shipped for editors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PROFILE_SCHEMA_PATH = Path(__file__).parent / "schemas" / "profile.schema.json"


def profile_schema() -> dict[str, Any]:
    """The schema; editors complete and check profile files with it."""
    schema: dict[str, Any] = json.loads(PROFILE_SCHEMA_PATH.read_text(encoding="utf-8"))
    return schema
