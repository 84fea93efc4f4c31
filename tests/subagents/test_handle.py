"""Delegation from asyncio: the loop goes on, cancels reach the subagents, and nothing deadlocks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support.engine import assert_at_rest, profiles, tree_of
from support.loops import PATIENCE, Pulse, beside
from support.stress import run_threads, wait_for
from support.subagents import Hold, answers_in, calling, last_answer, staged, user_texts

from shared import CancelToken
from shared.errors import SubagentNotFoundError, SubagentTimeoutError
from shared.plugins.subagent import SubagentProfile
from shared.providers.base import ModelRequest
from shared.providers.script import Step
from shared.subagents import DelegationHandle, SubagentManager, SubagentResult
from shared.subagents.result import Status

PLAIN = SubagentProfile("plain", description="Answers.")
MANY: dict[str, Any] = {"max_children": 200, "max_concurrent": 200, "max_total_spawns": 1000, **profiles(PLAIN)}


def echo(request: ModelRequest) -> Step:
    return f"said: {user_texts(request)[-1]}"


def test_delegate_waits_for_completion() -> None:
    """`result = await manager.delegate(config_name, task)`"""
    with staged(echo, config=MANY) as stage:
        result = asyncio.run(SubagentManager(stage.client).delegate("plain", "hello", context="you are in a loop"))
        assert isinstance(result, SubagentResult)
        assert "hello" in result.output
        assert "you are in a loop" in result.output


def test_delegate_task_asynchronously() -> None:
    """`handle = await manager.delegate_async(…)` returns at once; `await handle.result()` has the result later."""
    hold = Hold()

    async def main(manager: SubagentManager) -> None:
        handle = await manager.delegate_async("plain", "slow")
        assert isinstance(handle, DelegationHandle)
        assert not handle.is_complete
        assert [each.agent_id for each in manager.get_active_delegations()] == [handle.agent_id]
        assert (handle.subagent_name, handle.task) == ("plain", "slow")
        hold.release()
        result = await handle.result()
        assert result.output == "held, then answered"
        assert handle.is_complete
        assert await handle == await handle.result() == result
        assert manager.get_active_delegations() == []

    with staged(hold, config=MANY) as stage:
        asyncio.run(main(SubagentManager(stage.client)))
        assert_at_rest(stage)


def test_the_loop_goes_on_while_a_subagent_works() -> None:
    hold = Hold()

    async def main(manager: SubagentManager) -> SubagentResult:
        pulse = Pulse()

        async def let_go() -> None:
            await pulse.reaches(200)
            hold.release()

        going = asyncio.ensure_future(let_go())
        result = await beside(manager.delegate("plain", "slow"), pulse)
        await going
        return result

    with staged(hold, config=MANY) as stage:
        assert asyncio.run(main(SubagentManager(stage.client))).success


def test_ten_and_more_concurrent_delegations() -> None:
    hold = Hold()

    async def main(manager: SubagentManager) -> list[SubagentResult]:
        handles = await asyncio.gather(*(manager.delegate_async("plain", f"task {n}") for n in range(50)))
        await asyncio.get_running_loop().run_in_executor(None, hold.wait_entered, 50)
        assert len(manager.get_active_delegations()) == 50
        waiting = asyncio.gather(*(manager.delegate("plain", f"more {n}") for n in range(50)))
        hold.release()
        return [*await asyncio.gather(*(handle.result() for handle in handles)), *await waiting]

    with staged(hold, config=MANY) as stage:
        results = asyncio.run(main(SubagentManager(stage.client)))
        assert len({result.agent_id for result in results}) == 100
        assert all(result.success for result in results)
        assert_at_rest(stage)


def test_spawn_dynamic() -> None:
    async def main(manager: SubagentManager) -> list[SubagentResult]:
        config = {"name": "ad-hoc", "description": "For once.", "system_prompt": "You exist for one task."}
        return await asyncio.gather(*(manager.spawn_dynamic(config, "the same task") for _ in range(12)))

    with staged(echo, config=MANY) as stage:
        manager = SubagentManager(stage.client)
        results = asyncio.run(main(manager))
        assert {result.output for result in results} == {"said: the same task"}
        assert {result.subagent_name for result in results} == {"ad-hoc"}
        assert len({result.agent_id for result in results}) == 12
        assert all("You exist for one task." in request.system for request in stage.play.child_requests)
        assert [each.name for each in manager.list()] == ["plain"], "it leaves nothing behind"
        assert list(manager.get_usage_breakdown()) == ["ad-hoc"]


def test_a_dynamic_subagent_does_not_replace_one_of_its_name() -> None:
    async def main(manager: SubagentManager) -> SubagentResult:
        return await manager.spawn_dynamic({"name": "plain", "system_prompt": "Another one."}, "go")

    with staged(echo, config=MANY) as stage:
        manager = SubagentManager(stage.client)
        assert asyncio.run(main(manager)).subagent_name == "plain"
        assert "Another one." in stage.play.child_requests[-1].system
        manager.delegate_sync("plain", "go")
        assert "Another one." not in stage.play.child_requests[-1].system


def test_sync_code_inside_a_running_loop_does_not_deadlock() -> None:
    async def main(manager: SubagentManager) -> None:
        assert manager.delegate_sync("plain", "from a coroutine", timeout=PATIENCE).success
        handle = await manager.delegate_async("plain", "again")
        assert handle.wait(PATIENCE).success
        assert (await handle.result()).success

    with staged(echo, config=MANY) as stage:
        asyncio.run(main(SubagentManager(stage.client)))


def test_one_handle_in_many_threads_and_loops() -> None:
    hold = Hold()
    with staged(hold, config=MANY) as stage:
        handle = SubagentManager(stage.client).spawn("plain", "slow")
        seen: list[SubagentResult] = []

        async def awaited() -> SubagentResult:
            found: SubagentResult = await handle.result(PATIENCE)
            return found

        def wait(index: int) -> None:
            if index == 0:
                hold.release()
            seen.append(asyncio.run(awaited()) if index % 2 else handle.result(PATIENCE))

        run_threads(12, wait)
        assert seen == [seen[0]] * 12


def test_a_cancelled_task_cancels_what_it_delegated() -> None:
    hold = Hold()

    async def main(manager: SubagentManager) -> None:
        task = asyncio.ensure_future(manager.delegate("plain", "slow"))
        await asyncio.get_running_loop().run_in_executor(None, hold.wait_entered)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with staged(hold, config=MANY) as stage:
        asyncio.run(main(SubagentManager(stage.client)))
        agents = tree_of(stage).below("main")
        wait_for(lambda: all(agent.run.done.is_open for agent in agents))
        assert [agent.run.status for agent in agents] == [Status.CANCELLED]
        hold.release()
        assert_at_rest(stage)


def test_a_task_cancelled_while_it_starts_leaves_nothing_running() -> None:
    hold = Hold()

    async def main(manager: SubagentManager) -> None:
        for _ in range(40):
            task = asyncio.ensure_future(manager.delegate("plain", "slow"))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with staged(hold, config=MANY) as stage:
        manager = SubagentManager(stage.client)
        asyncio.run(main(manager))
        wait_for(lambda: manager.get_active_delegations() == [])
        assert {agent.run.status for agent in tree_of(stage).below("main")} <= {Status.CANCELLED}
        hold.release()
        assert_at_rest(stage)


def test_giving_up_a_handles_result_lets_the_work_go_on() -> None:
    hold = Hold()

    async def main(manager: SubagentManager) -> None:
        handle = await manager.delegate_async("plain", "slow")
        with pytest.raises(SubagentTimeoutError, match="it goes on"):
            await handle.result(0.01)
        waiting = asyncio.ensure_future(handle.awaited())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not handle.is_complete
        hold.release()
        assert (await handle.result()).success

    with staged(hold, config=MANY) as stage:
        asyncio.run(main(SubagentManager(stage.client)))


def test_delegate_with_a_time_limit_cancels() -> None:
    hold = Hold()

    async def main(manager: SubagentManager) -> None:
        with pytest.raises(SubagentTimeoutError):
            await manager.delegate("plain", "slow", timeout=0.01)

    with staged(hold, config=MANY) as stage:
        asyncio.run(main(SubagentManager(stage.client)))
        wait_for(lambda: all(agent.run.done.is_open for agent in tree_of(stage).below("main")))
        assert [agent.run.status for agent in tree_of(stage).below("main")] == [Status.CANCELLED]
        hold.release()


def test_a_loop_that_is_gone_does_not_disturb_the_end() -> None:
    """The loop that awaited a handle is closed before the subagent ends; others still get the result."""
    hold = Hold()
    with staged(hold, config=MANY) as stage:
        handle = SubagentManager(stage.client).spawn("plain", "slow")

        async def glimpse() -> None:
            with pytest.raises(SubagentTimeoutError):
                await handle.result(0)

        asyncio.run(glimpse())
        loop = asyncio.new_event_loop()
        orphan = loop.create_task(handle.awaited())
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        hold.release()
        assert handle.wait(PATIENCE).success
        del orphan
        assert_at_rest(stage)


def test_the_hosts_token_reaches_a_delegation_from_a_loop() -> None:
    hold, token = Hold(), CancelToken()

    async def main(manager: SubagentManager) -> SubagentResult:
        handle = await manager.delegate_async("plain", "slow", cancel=token)
        await asyncio.get_running_loop().run_in_executor(None, hold.wait_entered)
        token.cancel("the host said so")
        found: SubagentResult = await handle.result(PATIENCE)
        return found

    with staged(hold, config=MANY) as stage:
        assert asyncio.run(main(SubagentManager(stage.client))).error == "the host said so"
        hold.release()


def test_errors_are_raised_where_they_are_awaited() -> None:
    with staged(echo, config=MANY) as stage, pytest.raises(SubagentNotFoundError, match="'nobody'"):
        asyncio.run(SubagentManager(stage.client).delegate_async("nobody", "go"))


def test_an_async_tool_of_a_subagent_awaits_without_a_slot() -> None:
    """One slot for all, and the subagent that awaits another one gives it up."""
    found: list[str] = []

    async def ask(question: str) -> str:
        """Ask somebody below."""
        asker = next(each for each in tree_of(stage).below("main") if each.plan.label == "asker")
        assert asker.session is not None
        result = await SubagentManager(asker.session).delegate("plain", question, timeout=PATIENCE)
        found.append(result.output)
        return result.output

    def child(request: ModelRequest) -> Step:
        if user_texts(request)[0] == "below":
            return "from the leaf"
        return str(last_answer(request)) if answers_in(request) else calling(("ask", {"question": "below"}))

    with staged(child, config={"max_depth": 2, "max_concurrent": 1, **profiles(PLAIN)}) as stage:
        asker = {"name": "asker", "plugins": ["subagent"], "tools": [ask, "spawn_subagent"]}
        manager = SubagentManager(stage.client, [asker])
        assert manager.delegate_sync("asker", "go", timeout=PATIENCE).output == "from the leaf"
        assert found == ["from the leaf"]
        assert_at_rest(stage)
