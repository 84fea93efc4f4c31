"""FileEditPlugin: tools that read, write, edit, list and search the files of the workspace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from shared.errors import ToolError
from shared.plugin import PermissionDisplayInfo
from shared.plugins._base import WORKSPACE_SCHEMA, WorkspacePlugin
from shared.plugins._text import decode_file
from shared.plugins._tree import IGNORED, walk
from shared.plugins._visible import visible, visible_line
from shared.plugins.file_edit.changes import Change, Journal, file_locks, fingerprint
from shared.plugins.file_edit.diff import change_display
from shared.plugins.file_edit.glob import Glob
from shared.plugins.file_edit.grep import Query, search
from shared.plugins.file_edit.page import Page, read_page
from shared.plugins.file_edit.replacement import replace_text
from shared.toolbox import ToolOutput
from shared.tools import ToolContext, tool
from shared.types import Attachment
from shared.workspace import FileMissing, Location, Workspace

_COUNT = {"type": "integer", "minimum": 1}
Line = Annotated[int, {"minimum": 1}]


class FileEditPlugin(WorkspacePlugin):
    """Files of the workspace; nothing outside it can be reached."""

    name = "file_edit"
    config_keys: ClassVar[Mapping[str, Any]] = {
        "workspace": None,
        "read_chars": 40_000,
        "max_file_bytes": 10_000_000,
        "max_image_bytes": 3_500_000,
        "max_results": 200,
        "max_listed": 1_000,
        "ignore": [],
        "search_timeout_seconds": 20,
    }
    harmless_settings: ClassVar[frozenset[str]] = frozenset({"read_chars", "max_results", "max_listed", "ignore"})
    config_schema: ClassVar[Mapping[str, Any]] = {
        "workspace": WORKSPACE_SCHEMA,
        "read_chars": {"type": "integer", "minimum": 200},
        "max_file_bytes": _COUNT,
        "max_image_bytes": _COUNT,
        "max_results": _COUNT,
        "max_listed": _COUNT,
        "ignore": {"type": "array", "items": {"type": "string"}},
        "search_timeout_seconds": {"type": "number", "exclusiveMinimum": 0},
    }
    instructions = (
        "File tools take paths relative to the workspace and cannot leave it. Read a file before you edit it: "
        "`edit_file` needs the exact text, without the line numbers that `read_file` shows. `undo_edit` takes back "
        "your latest change."
    )

    def __init__(self) -> None:
        super().__init__()
        self._journal = Journal()

    def shutdown(self) -> None:
        """Forget what could be undone."""
        self._journal = Journal()

    @tool(auto_approved=True)
    def read_file(
        self,
        context: ToolContext,
        path: Annotated[str, "File to read, relative to the workspace"],
        start_line: Annotated[int, "First line, from 1", {"minimum": 1}] = 1,
        end_line: Annotated[int | None, "Last line, included; default: as far as fits", {"minimum": 1}] = None,
    ) -> str | ToolOutput:
        """Read a text file, or lines of it, with line numbers; an image is shown as an image."""
        if end_line is not None and end_line < start_line:
            raise ToolError(f"end_line {end_line} is before start_line {start_line}")
        workspace = self.workspace(context)
        location = workspace.locate(path)
        page = read_page(
            workspace,
            location,
            first=start_line,
            last=end_line,
            chars=self.config["read_chars"],
            image_bytes=self.config["max_image_bytes"],
            cancel=context.cancel,
        )
        if isinstance(page, Attachment):
            return ToolOutput(f"{location.shown}: {page.mime_type}, {len(page.data):,} bytes", (page,))
        return _numbered(page)

    @tool
    def write_file(
        self,
        context: ToolContext,
        path: Annotated[str, "File to write, relative to the workspace"],
        content: Annotated[str, "The whole new content"],
    ) -> str:
        """Create a file, or replace all of its content; missing folders are made."""
        workspace = self.workspace(context)
        location = workspace.locate(path)
        with file_locks.hold(location):
            before, after = self._planned(workspace, location, "write_file", {"content": content})
            if before == after:
                return f"{location.shown} has this content already; nothing was changed."
            self._apply(workspace, location, before, after, context)
        lines = content.count("\n") + (not content.endswith("\n") and bool(content))
        return f"{'Created' if before is None else 'Replaced'} {location.shown} ({lines} lines)."

    @tool
    def edit_file(
        self,
        context: ToolContext,
        path: Annotated[str, "File to edit, relative to the workspace"],
        old_text: Annotated[str, "The exact text to replace; it must occur only once, or set replace_all"],
        new_text: Annotated[str, "The text to put in its place"],
        replace_all: Annotated[bool, "Replace every occurrence"] = False,
    ) -> str:
        """Replace an exact piece of text in a file; encoding and line ends are kept."""
        workspace = self.workspace(context)
        location = workspace.locate(path)
        edit = {"old_text": old_text, "new_text": new_text, "replace_all": replace_all}
        with file_locks.hold(location):
            before, after = self._planned(workspace, location, "edit_file", edit)
            self._apply(workspace, location, before, after, context)
        return f"Edited {location.shown}."

    @tool
    def undo_edit(
        self,
        context: ToolContext,
        path: Annotated[str | None, "Undo the latest change to this file; default: your latest change"] = None,
    ) -> str:
        """Take back your latest write_file or edit_file; refused if the file was changed since."""
        workspace = self.workspace(context)
        change = self._latest(workspace, context.agent_id, path)
        with file_locks.hold(change.location):
            self._require_current(workspace, change)
            if change.before is None:
                workspace.remove(change.location)
            else:
                workspace.replace(change.location, change.before, mode=change.mode)
            self._journal.forget(change)
        return f"{'Removed' if change.before is None else 'Restored'} {change.location.shown}."

    @tool(auto_approved=True)
    def list_files(
        self,
        context: ToolContext,
        pattern: Annotated[str, "Names to list, such as '*.py' (at any depth) or 'src/**/*.ts'"] = "**",
        path: Annotated[str, "Folder to list, relative to the workspace"] = ".",
    ) -> str:
        """List files below a folder; version control, packages and caches are left out."""
        workspace, wanted, most = self.workspace(context), Glob(pattern), self.config["max_listed"]
        top = workspace.locate(path)
        found: list[str] = []
        for place in walk(workspace, top, ignore=self._ignored, check=context.cancel.raise_if_cancelled):
            if wanted.matches("/".join(place.parts[len(top.parts) :])):
                if len(found) == most:
                    found.append(f"[only the first {most} files are listed: narrow the pattern or the path]")
                    break
                found.append(visible_line(place.shown))
        return "\n".join(found) or f"No file below {top.shown} matches '{pattern}'."

    @tool(auto_approved=True)
    def search_files(
        self,
        context: ToolContext,
        pattern: Annotated[str, "Regular expression, searched for in each line", {"minLength": 1, "maxLength": 1000}],
        path: Annotated[str, "File or folder to search, relative to the workspace"] = ".",
        glob: Annotated[str | None, "Only files with such names, for example '*.py'"] = None,
        ignore_case: Annotated[bool, "Treat upper and lower case as the same"] = False,
        max_results: Annotated[int | None, "Show at most so many lines", {"minimum": 1}] = None,
    ) -> str:
        """Search the text files of the workspace for a regular expression."""
        most = min(max_results or self.config["max_results"], self.config["max_results"])
        query = Query(
            root=self.workspace(context).root,
            path=path,
            pattern=pattern,
            glob=glob,
            ignore_case=ignore_case,
            ignore=self._ignored,
            max_results=most,
            max_file_bytes=self.config["max_file_bytes"],
        )
        found = search(query, context.cancel, self.config["search_timeout_seconds"])
        lines = [*found.lines, *([f"[{found.cut}]"] if found.cut else [])]
        return "\n".join(lines) or "No line matches."

    def format_permission_request(
        self, tool_name: str, arguments: Mapping[str, Any], channel_type: str, *, context: ToolContext | None = None
    ) -> PermissionDisplayInfo | None:
        """The diff of what a call will do to a file, or why it will fail."""
        if tool_name not in ("write_file", "edit_file", "undo_edit"):
            return None
        workspace = self.workspace(context)
        try:
            if tool_name == "undo_edit":
                return self._undo_display(workspace, context, arguments.get("path"))
            location = workspace.locate(str(arguments.get("path", "")))
            return change_display(location.shown, *self._planned(workspace, location, tool_name, arguments))
        except ToolError as error:
            return PermissionDisplayInfo(f"{tool_name} will fail", visible(str(error)))

    def _undo_display(
        self, workspace: Workspace, context: ToolContext | None, path: str | None
    ) -> PermissionDisplayInfo:
        agents = {context.agent_id} if context else self._journal.agents() or {"main"}
        if len(agents) > 1:  # a diff of another agent's change would be worse than none
            return PermissionDisplayInfo("Undo the calling agent's latest change", path or "any file")
        change = self._latest(workspace, agents.pop(), path)
        return change_display(change.location.shown, self._content(workspace, change.location), change.before)

    @property
    def _ignored(self) -> tuple[str, ...]:
        return (*IGNORED, *self.config["ignore"])

    def _planned(
        self, workspace: Workspace, location: Location, tool_name: str, arguments: Mapping[str, Any]
    ) -> tuple[bytes | None, bytes]:
        """A file before and after a call: the same for the permission prompt and for the call itself."""
        before = self._content(workspace, location)
        if tool_name == "write_file":
            return before, _encoded(str(arguments.get("content", "")))
        if before is None:
            raise FileMissing(f"'{location.shown}' does not exist: create it with write_file")
        text, encoding = decode_file(before, location.shown)
        old, new = str(arguments.get("old_text", "")), str(arguments.get("new_text", ""))
        every = bool(arguments.get("replace_all", False))
        done = replace_text(text, old, new, replace_all=every, shown=location.shown)
        return before, encoding.encode(done.text)

    def _content(self, workspace: Workspace, location: Location) -> bytes | None:
        try:
            return workspace.read(location, limit=self.config["max_file_bytes"])
        except FileMissing:
            return None

    def _apply(
        self, workspace: Workspace, location: Location, before: bytes | None, after: bytes, context: ToolContext
    ) -> None:
        context.cancel.raise_if_cancelled()
        mode = workspace.mode(location)
        workspace.replace(location, after)
        self._journal.add(Change(context.agent_id, location, before, mode, fingerprint(after)))

    def _latest(self, workspace: Workspace, agent_id: str, path: str | None) -> Change:
        location = workspace.locate(path) if path else None
        change = self._journal.last(agent_id, location)
        if change is None:
            what = f"no change of yours to '{location.shown}'" if location else "no change of yours"
            raise ToolError(f"there is {what} that could be undone")
        return change

    def _require_current(self, workspace: Workspace, change: Change) -> None:
        if not change.is_current(self._content(workspace, change.location)):
            raise ToolError(
                f"'{change.location.shown}' was changed since your edit, so undoing it would lose that change; "
                "edit the file instead"
            )


def _encoded(content: str) -> bytes:
    try:
        return content.encode()
    except UnicodeEncodeError as error:
        raise ToolError(f"the content has a character that is no valid Unicode: {content[error.start]!r}") from None


def _numbered(page: Page) -> str:
    if not page.lines:
        return "[the file is empty]"
    lines = [f"{number:>6}\t{line}" for number, line in enumerate(page.lines, page.first)]
    if page.next_line is not None:
        lines.append(f"[more follows: go on with start_line={page.next_line}]")
    elif page.at_end:
        lines.append(f"[end of file, {page.first + len(page.lines) - 1} lines]")
    return "\n".join(lines)
