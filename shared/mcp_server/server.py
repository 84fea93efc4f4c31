"""The MCP server: one handler for each request, all of them thin."""

from __future__ import annotations

from functools import partial
from typing import Any

from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    EmptyResult,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequiredResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)

from shared import __version__
from shared.errors import unknown_name
from shared.mcp_server import prompts, resources, tool_list
from shared.mcp_server.dialogue import Context
from shared.mcp_server.hub import Hub, connection_of
from shared.mcp_server.on_thread import on_thread

INSTRUCTIONS = """Subagents on any provider: spawn_subagent gives a self-contained task to a child with its own model,
history and tools, and returns its result. Give a profile when one fits (list_subagent_profiles). Independent tasks go
in parallel: several calls at once, or background=true. wait_for_subagents collects background results without polling;
those that ended meanwhile are also told in the answer of your next call (announcements). A long response comes in
pages: get_subagent_result(agent_id, offset=next_offset). Cancelling a call stops the subagent it waits for. Whole
results and transcripts are resources: jaato://agents/{agent_id}/result and jaato://agents/{agent_id}/transcript."""


class SubagentServer(Server[Any]):
    """Answers from the conversation that each request belongs to."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        super().__init__(
            "jaato",
            version=__version__,
            title="jaato subagents",
            description="Subagents you can trust, on any provider",
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscribe_resource=self._subscribe,
            on_unsubscribe_resource=self._unsubscribe,
            on_subscriptions_listen=self._listen,
        )

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """As the SDK makes them, and we say when there are more resources."""
        options = notification_options or NotificationOptions(resources_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)

    async def _list_tools(self, ctx: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        dialogue = await self._hub.of(ctx)
        return ListToolsResult(tools=tool_list.listed(dialogue.conversation.tools))

    async def _call_tool(self, ctx: Context, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        dialogue = await self._hub.of(ctx)
        known = [tool.name for tool in dialogue.conversation.tools]
        if params.name not in known:
            raise MCPError(INVALID_PARAMS, unknown_name("tool", params.name, known))
        with dialogue.attending():
            return await dialogue.call(ctx, params)

    async def _list_prompts(self, ctx: Context, params: PaginatedRequestParams | None) -> ListPromptsResult:
        dialogue = await self._hub.of(ctx)
        return ListPromptsResult(prompts=prompts.list_prompts(dialogue.conversation.plugin.catalogue))

    async def _get_prompt(self, ctx: Context, params: GetPromptRequestParams) -> GetPromptResult:
        dialogue = await self._hub.of(ctx)
        return prompts.get_prompt(dialogue.conversation.plugin.catalogue, params.name, params.arguments or {})

    async def _list_resources(self, ctx: Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        dialogue = await self._hub.of(ctx)
        return resources.list_resources(dialogue.conversation, params.cursor if params is not None else None)

    async def _list_templates(self, ctx: Context, params: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=resources.TEMPLATES)

    async def _read_resource(self, ctx: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        dialogue = await self._hub.of(ctx)
        with dialogue.attending():
            return await on_thread(partial(resources.read_resource, dialogue.conversation, str(params.uri)))

    async def _subscribe(self, ctx: Context, params: SubscribeRequestParams) -> EmptyResult:
        dialogue = await self._hub.of(ctx)
        with dialogue.attending():  # raises if there is no such resource
            await on_thread(partial(resources.read_resource, dialogue.conversation, str(params.uri)))
        dialogue.notices.subscribe(connection_of(ctx), str(params.uri))
        return EmptyResult()

    async def _unsubscribe(self, ctx: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        dialogue = await self._hub.of(ctx)
        dialogue.notices.unsubscribe(connection_of(ctx), str(params.uri))
        return EmptyResult()

    async def _listen(self, ctx: Context, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        dialogue = await self._hub.of(ctx)
        with dialogue.attending():
            return await dialogue.notices.listen(ctx, params)
