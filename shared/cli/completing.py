"""What a shell may complete: names of profiles, plugins, skills and providers, as far as they are known here."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

from shared.cli.plain_text import plain_line
from shared.errors import JaatoError

Names = Iterable[tuple[str, str]]  # each with what it is
Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def completer(names: Callable[[], Names]) -> Completer:
    """For `shell_complete`: those that begin as typed; a folder that cannot be read is no reason to disturb."""

    def complete(ctx: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
        logging.getLogger("shared").addHandler(logging.NullHandler())  # a warning would land in the command line
        try:
            found = list(names())
        except (JaatoError, OSError):
            return []
        return [CompletionItem(name, help=plain_line(text)) for name, text in found if name.startswith(typed)]

    return complete


def _profiles() -> Names:
    from shared.definitions.catalogue import ProfileCatalogue

    return ((profile.name, profile.description) for profile in ProfileCatalogue().list())


def _plugins() -> Names:
    from shared.registry import PluginRegistry

    registry = PluginRegistry()
    registry.discover()
    return ((name, "") for name in registry.list_available())


def _skills() -> Names:
    from shared.skills import SkillConfig, SkillManager

    return ((info.name, info.description) for info in SkillManager(SkillConfig()).list())


def _providers() -> Names:
    from shared.providers import known_providers

    return ((name, "") for name in known_providers())


complete_profile = completer(_profiles)
complete_plugin = completer(_plugins)
complete_skill = completer(_skills)
complete_provider = completer(_providers)
