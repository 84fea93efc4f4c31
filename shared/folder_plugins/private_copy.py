"""PrivateCopy: the files of a trusted plugin as they were when they were checked, out of reach of the workspace."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from shared.errors import PluginError
from shared.file_tree import TreeRefused, read_tree


def private_copy(folder: Path, held_to: Mapping[str, str], store: Path) -> Path:
    """A folder below `store` with exactly the files that were trusted; raises PluginError if they differ now.

    Code and programs run from the copy: a file that is replaced after this check changes nothing.
    """
    try:
        tree = read_tree(folder.parent, folder.name)
    except TreeRefused as error:
        raise PluginError(f"{folder}: {error}") from None
    found = tree.digests()
    for path in sorted(found.keys() | held_to.keys()):
        if found.get(path) != held_to.get(path):
            raise PluginError(f"{folder}: {path} is not as it was when the workspace was trusted: `jaato trust` again")
    key = hashlib.sha256(json.dumps(sorted(found.items())).encode()).hexdigest()[:32]
    target = store / key / folder.name
    if _is_intact(target, found):
        return target
    store.mkdir(parents=True, exist_ok=True, mode=0o700)
    made = Path(tempfile.mkdtemp(prefix=".new-", dir=store))
    try:
        (made / folder.name).mkdir(mode=0o700)
        tree.write(made / folder.name)
        _put_in_place(made, target.parent)
        if not _is_intact(target, found):
            raise PluginError(f"{target} cannot be written as it should be: remove it and try again")
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return target


def _is_intact(target: Path, expected: Mapping[str, str]) -> bool:
    try:
        return target.is_dir() and read_tree(target.parent, target.name).digests() == dict(expected)
    except TreeRefused:
        return False


def _put_in_place(made: Path, target: Path) -> None:
    try:
        os.rename(made, target)
    except OSError:  # there is one already: intact if another process was faster, else damaged
        if not _is_intact(target / next(made.iterdir()).name, read_tree(made, next(made.iterdir()).name).digests()):
            shutil.rmtree(target, ignore_errors=True)
            os.rename(made, target)
