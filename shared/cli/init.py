"""`jaato init`: seed a folder with profiles, settings and a permission policy; never overwrites anything."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from shared import config
from shared.bundled import bundled_folder
from shared.definitions.source import one_line
from shared.errors import ConfigError, unknown_name

SEEDS = Path(__file__).parent / "seeds"
_PACKAGE = Path(__file__).resolve().parent.parent
_SCHEMAS = {
    "profile.schema.json": _PACKAGE / "definitions" / "schemas" / "profile.schema.json",
    "config.schema.json": _PACKAGE / "settings" / "config.schema.json",
}
_SCHEMA_IN_PACKAGE = "$schema=../shared/definitions/schemas/"
_SCHEMA_BESIDE = "$schema=../schemas/"


@dataclass(frozen=True)
class Seed:
    """One file to write, below the `.jaato` folder."""

    path: str
    text: str


@click.command(epilog="Example: jaato init && jaato profiles")
@click.argument("folder", default=".", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--user", is_flag=True, help="Seed your own folder (~/.jaato) instead: it counts in every project.")
@click.option("--profile", "-p", "names", multiple=True, help="Only this ready-made profile; repeatable.")
@click.option("--dry-run", is_flag=True, help="Only say what would be written.")
def init(folder: Path, user: bool, names: tuple[str, ...], dry_run: bool) -> None:
    """Seed FOLDER/.jaato with ready-made profiles, settings and a permission policy.

    Files that exist are kept as they are, whatever is in them.
    """
    root = config.jaato_home() if user else folder.resolve() / ".jaato"
    for seed in [*_profiles(names), *_settings(), *_schemas()]:
        click.echo(one_line(f"{_sow(root, seed, dry_run=dry_run):<8} {root / seed.path}"))
    if not dry_run:
        click.echo(_next_steps(user=user))


def ready_made() -> dict[str, Path]:
    """The profiles that come with the package, by name."""
    return {path.stem: path for path in sorted(bundled_folder("profiles").glob("*.yaml"))}


def _profiles(names: Sequence[str]) -> Iterator[Seed]:
    known = ready_made()
    for name in names or known:
        if name not in known:
            raise ConfigError(unknown_name("profile", name, known))
        text = known[name].read_text(encoding="utf-8").replace(_SCHEMA_IN_PACKAGE, _SCHEMA_BESIDE)
        yield Seed(f"profiles/{name}.yaml", text)


def _settings() -> Iterator[Seed]:
    for name in ("config.yaml", "permissions.json"):
        yield Seed(name, (SEEDS / name).read_text(encoding="utf-8"))


def _schemas() -> Iterator[Seed]:
    """Beside the files that name them, so that editors complete and check those."""
    for name, path in _SCHEMAS.items():
        yield Seed(f"schemas/{name}", path.read_text(encoding="utf-8"))


def _sow(root: Path, seed: Seed, *, dry_run: bool) -> str:
    """Write a file where there is none, and say what happened; nothing is written through a link."""
    path = root / seed.path
    for folder in (root, path.parent):
        if folder.is_symlink():
            raise ConfigError(f"{folder} is a link, and nothing is written through it: make it a folder")
    if os.path.lexists(path):
        return "kept"
    if dry_run:
        return "would"
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(seed.text)
    except FileExistsError:  # somebody else was quicker
        return "kept"
    return "wrote"


def _next_steps(*, user: bool) -> str:
    lines = ["", "Next:", "  jaato profiles        see what can be delegated to"]
    if not user:
        lines.append("  jaato trust           let this folder's policy and profiles grant rights, after a look")
    lines += ["  jaato doctor          check keys, providers and files", "  jaato chat            talk to a model here"]
    return "\n".join(lines)
