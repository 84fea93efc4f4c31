"""Which store the commands look at: what was typed, else JAATO_STORE or the settings, else that of this folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from shared.errors import StoreError
from shared.settings import load_settings
from shared.store.place import place_of

Command = TypeVar("Command", bound=Callable[..., Any])

OFF = "nothing is stored here: JAATO_STORE or the settings switch it off"


def store_option(command: Command) -> Command:
    """Add --store to a command; before the name of a subcommand it counts as well."""
    text = "Look at this file instead of the store of this folder."
    return click.option("--store", type=click.Path(dir_okay=False, path_type=Path), help=text)(command)


def typed_store(store: Path | None) -> Path | None:
    """What was typed for --store, here or before the subcommand's name, as a whole path."""
    above = click.get_current_context().parent
    found = store if store is not None else above.params.get("store") if above is not None else None
    return None if found is None else Path(found).expanduser().absolute()


def known_store(store: Path | None) -> tuple[Path | None, str]:
    """The file, if there is one, else a sentence that says why not."""
    workspace = Path.cwd().resolve()
    place = place_of(typed_store(store), workspace, configured=load_settings().get("store"))
    if place is None:
        return None, OFF
    if not place.path.is_file():
        return None, f"nothing was run yet: there is no store at {place.path}"
    return place.path, ""


def required_store(store: Path | None) -> Path:
    """The file; raises where there is none, and so nothing of the name that was asked for."""
    path, why_not = known_store(store)
    if path is None:
        raise StoreError(why_not)
    return path
