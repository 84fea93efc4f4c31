"""The folders that come with the package are found in a checkout; CI checks the wheel."""

from __future__ import annotations

from pathlib import Path

from shared.bundled import bundled_folder

ROOT = Path(__file__).parents[1]


def test_a_checkout_finds_its_own_folders() -> None:
    for name in ("plugins", "profiles"):
        assert bundled_folder(name) == ROOT / name
        assert bundled_folder(name).is_dir()
