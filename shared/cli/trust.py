"""`jaato trust`: let a workspace run code and grant rights, after a look at what that means."""

from __future__ import annotations

from pathlib import Path

import click

from shared.definitions.source import one_line
from shared.trust import Inventory, TrustStore, survey

EXIT_UNTRUSTED = 1


_ENDS = "Trust ends when a file that it is about is changed, added, removed or replaced by a link."
_EXAMPLES = """\b
Examples:
  jaato trust --show
  jaato trust ~/code/my-project"""


@click.command(epilog=f"{_ENDS}\n\n{_EXAMPLES}")
@click.argument("path", default=".", type=click.Path(path_type=Path))
@click.option("--show", is_flag=True, help="Only show what would be trusted, and whether it is. Exit code 1 if not.")
@click.option("--revoke", is_flag=True, help="Trust the workspace no longer.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
def trust(path: Path, show: bool, revoke: bool, yes: bool) -> None:
    """Trust a workspace: its plugins, profiles, skills, hooks, servers and permissions."""
    store = TrustStore()
    if revoke:
        known = store.revoke(path)
        click.echo(f"{path.resolve()} is {'no longer' if known else 'not'} trusted.")
        return
    verdict = store.is_trusted(path)
    inventory = survey(path)
    click.echo(_described(inventory))
    if show or verdict:
        click.echo("It is trusted." if verdict else one_line(f"It is not trusted: {verdict.reason}."))
        raise click.exceptions.Exit(0 if verdict else EXIT_UNTRUSTED)
    if not (yes or click.confirm("Trust all of this, as it is now?")):
        click.echo("Nothing has changed: it is not trusted.")
        raise click.exceptions.Exit(EXIT_UNTRUSTED)
    store.trust(inventory)  # exactly what was shown: a file that changed meanwhile is not trusted
    click.echo(f"Trusted. Take it back with: jaato trust --revoke {path}")


def _described(inventory: Inventory) -> str:
    lines = [one_line(f"Workspace {inventory.workspace}")]
    for place, allows, files in inventory.grouped():
        lines.append(f"  {place}: may {allows}")
        lines += [one_line(f"    {path}  {inventory.files[path][:12]}") for path in files]
    if len(lines) == 1:
        lines.append("  has no files that run code or grant rights; any that is added ends the trust")
    return "\n".join(lines)
