"""ReferencesPlugin: tools that list, select and read reference documents, some of them given from the start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from shared.errors import ConfigError, ToolError, unknown_name
from shared.plugins._base import WORKSPACE_SCHEMA, WorkspacePlugin
from shared.plugins.references.catalogue import Catalogue, load_catalogue
from shared.plugins.references.excerpt import excerpt
from shared.plugins.references.source import Source, source_from
from shared.tools import Tool, ToolContext, tool
from shared.workspace import Workspace

if TYPE_CHECKING:
    from shared.runtime import JaatoRuntime

_NAMES = {"type": "array", "items": {"type": "string", "minLength": 1}}
SELECTED_CHARS = 40_000
LISTED_IN_PROMPT = 50


class ReferencesPlugin(WorkspacePlugin):
    """Documents that an agent should know of: named in its prompt, read on demand, or given from the start."""

    name = "references"
    config_keys: ClassVar[Mapping[str, Any]] = {
        "sources": None,
        "preselected": [],
        "exclude_tools": [],
        "workspace": None,
        "preselected_chars": 20_000,
        "read_chars": 20_000,
    }
    harmless_settings: ClassVar[frozenset[str]] = frozenset(
        {"preselected", "exclude_tools", "preselected_chars", "read_chars"}
    )
    config_schema: ClassVar[Mapping[str, Any]] = {
        "sources": {"type": ["array", "null"], "items": {"type": ["string", "object"]}},
        "preselected": _NAMES,
        "exclude_tools": _NAMES,
        "workspace": WORKSPACE_SCHEMA,
        "preselected_chars": {"type": "integer", "minimum": 0},
        "read_chars": {"type": "integer", "minimum": 100, "maximum": 50_000},
    }

    def initialize(self, config: dict[str, Any] | None = None) -> None:
        """Take settings; every id in them must be known once the workspace is."""
        given = config or {}
        names = [offered.name for offered in super().tools()]
        before = self.config
        super().initialize(config)
        try:
            for excluded in self.config["exclude_tools"]:
                if excluded not in names:
                    problem = unknown_name("tool", excluded, names)
                    raise ConfigError(f"plugin 'references', setting 'exclude_tools': {problem}")
            for entry in given.get("sources") or ():
                if not isinstance(entry, str):
                    source_from(entry, trusted=True)
            if self.config["workspace"] or self._fallback:
                self._given(self.workspace())
        except ConfigError:
            self.config = before
            raise

    def attach(self, runtime: JaatoRuntime) -> None:
        """Learn the workspace, and check that it has what the settings ask for."""
        super().attach(runtime)
        self._given(self.workspace())

    def tools(self) -> list[Tool]:
        """The tools that the settings do not hide."""
        return [offered for offered in super().tools() if offered.name not in self.config["exclude_tools"]]

    @tool(name="selectReferences", auto_approved=True)
    def select_references(
        self,
        context: ToolContext,
        ids: Annotated[list[str] | None, "Ids of the references to read"] = None,
        filter_tags: Annotated[list[str] | None, "Take all references with one of these tags"] = None,
    ) -> dict[str, Any]:
        """Get the content of reference documents, by id or by tag."""
        workspace = self.workspace(context)
        catalogue = self._catalogue(workspace)
        if not ids and not filter_tags:
            raise ToolError(f"name ids or filter_tags. Known ids: {', '.join(catalogue.sources) or 'none'}.")
        chosen = catalogue.pick(ids or ())
        if filter_tags:
            chosen += [source for source in catalogue.tagged(filter_tags) if source not in chosen]
        room = min(self.config["read_chars"], SELECTED_CHARS // max(1, len(chosen)))
        selected = [{**source.summary(), **_readable(source, workspace, room)} for source in chosen]
        return {"selected": selected, "count": len(selected)}

    @tool(name="listReferences", auto_approved=True)
    def list_references(
        self,
        context: ToolContext,
        filter_tags: Annotated[list[str] | None, "Only references with one of these tags"] = None,
    ) -> dict[str, Any]:
        """List the reference documents that can be read."""
        catalogue = self._catalogue(self.workspace(context))
        found = [source.summary() for source in catalogue.tagged(filter_tags)]
        answer: dict[str, Any] = {"references": found, "count": len(found)}
        return {**answer, "problems": list(catalogue.problems)} if catalogue.problems else answer

    @tool(name="readReference", auto_approved=True)
    def read_reference(
        self,
        context: ToolContext,
        id: Annotated[str, "Id of the reference"],  # noqa: A002 - the model's name for it
        path: Annotated[str, "A file of a folder reference, relative to that folder"] = "",
        offset: Annotated[int, "Character to start at, for the rest of a long text", {"minimum": 0}] = 0,
    ) -> dict[str, Any]:
        """Read a reference document, or a file of a folder; a long one in pieces."""
        workspace = self.workspace(context)
        [source] = self._catalogue(workspace).pick([id])
        chars = self.config["read_chars"]
        return {"id": id, **excerpt(source, workspace, path=path, offset=offset, chars=chars).as_dict()}

    def get_system_instructions(self) -> str | None:
        """The references that can be read, and the content of those given from the start."""
        workspace = self.workspace()
        catalogue = self._catalogue(workspace)
        given = self._given(workspace)
        blocks = [self._offered([source for source in catalogue.sources.values() if source not in given])]
        room = self.config["preselected_chars"]
        for source in given:
            block, used = self._block(source, workspace, room)
            blocks.append(block)
            room -= used
        return "\n\n".join(filter(None, blocks)) or None

    def _catalogue(self, workspace: Workspace) -> Catalogue:
        return load_catalogue(workspace, self.config["sources"])

    def _given(self, workspace: Workspace) -> list[Source]:
        """The sources that are in the prompt from the start."""
        catalogue = self._catalogue(workspace)
        try:
            chosen = catalogue.pick(self.config["preselected"])
        except ToolError as error:
            raise ConfigError(f"plugin 'references', setting 'preselected': {error}") from None
        return chosen + [s for s in catalogue.sources.values() if s.mode == "auto" and s not in chosen]

    def _offered(self, sources: list[Source]) -> str:
        how = next((f" Read them with `{offered.name}`." for offered in self.tools() if "list" not in offered.name), "")
        if not sources or not how:
            return ""
        lines = [
            f"- {source.id}: {source.name}" + (f" - {source.description}" if source.description else "")
            for source in sources[:LISTED_IN_PROMPT]
        ]
        if len(sources) > LISTED_IN_PROMPT:
            lines.append(f"- and {len(sources) - LISTED_IN_PROMPT} more")
        return "\n".join([f"Reference documents that you can read:{how}", *lines])

    def _block(self, source: Source, workspace: Workspace, room: int) -> tuple[str, int]:
        head = f'Reference "{source.name}" ({source.id}):'
        try:
            part = excerpt(source, workspace, chars=max(0, room))
        except ToolError as error:
            return f"{head}\n[it cannot be read: {error}]", 0
        rest = ""
        if part.next_offset is not None:
            more = f": readReference(id='{source.id}', offset={part.next_offset})" if self._can_read else ""
            rest = f"\n[{part.total - part.next_offset:,} more characters{more}]"
        return f"{head}\n{part.text}{rest}", len(part.text)

    @property
    def _can_read(self) -> bool:
        return "readReference" not in self.config["exclude_tools"]


def _readable(source: Source, workspace: Workspace, chars: int) -> dict[str, Any]:
    """A source's content, or why there is none: one bad source must not cost the others."""
    try:
        return excerpt(source, workspace, chars=chars).as_dict()
    except ToolError as error:
        return {"error": str(error)}
