"""Where the folders that are discovered live: beside `shared/` in a checkout, inside it in a wheel."""

from __future__ import annotations

from pathlib import Path


def bundled_folder(name: str) -> Path:
    """The folder `plugins` or `profiles` that comes with this package."""
    package = Path(__file__).resolve().parent
    inside = package / "_bundled" / name
    return inside if inside.is_dir() else package.parent / name
