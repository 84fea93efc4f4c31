"""`jaato runs show`: one run with its task, what it said and did, its result and what it cost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import click
from rich.text import Text

from shared.cli.figures import count, precise
from shared.cli.plain_text import plain_line
from shared.cli.runs.ages import age
from shared.cli.runs.counts import counted
from shared.cli.runs.id_argument import id_argument
from shared.cli.runs.naming import find_agent
from shared.cli.runs.place import required_store, store_option
from shared.cli.runs.screen import open_console, print_json
from shared.cli.runs.story import Story, read_story
from shared.cli.runs.table import mark, priced
from shared.cli.runs.transcript import Transcript
from shared.store import Reader
from shared.store.records import Cost, RunRecord


@click.command()
@id_argument
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@click.option("--full", is_flag=True, help="Cut nothing short.")
@store_option
def show(name: str, as_json: bool, full: bool, store: Path | None) -> None:
    """Task, transcript, result and costs of a run, by its id or name; a conversation's id shows its main agent."""
    with Reader(required_store(store)) as reader:
        story = read_story(reader, find_agent(reader, name))
    if as_json:
        print_json(story.as_dict())
        return
    console = open_console()
    for line in page(story, full=full, now=time.time()):
        console.print(line, soft_wrap=True)


def page(story: Story, *, full: bool, now: float) -> Iterator[Text]:
    """The whole page, line by line; the task and the answer stand once, in sections of their own."""
    transcript = Transcript(full=full, calls=story.calls)
    yield from _head(story, now)
    messages, newest = list(story.messages), story.newest
    if story.runs:
        task = story.runs[0].message
        yield from _section("Task", transcript.piece(task.text or ""))
        if messages and messages[0].message.parts == task.parts:
            del messages[0]
    answer = str((newest.result or {}).get("response") or "") if newest is not None else ""
    if answer and messages and _says(messages[-1].message.text, answer) and not messages[-1].message.function_calls:
        del messages[-1]
    said = [line for each in messages for line in transcript.lines(each)]
    said += transcript.unanswered(is_live=story.is_led and (newest is None or newest.is_live))
    if said:
        yield from _section("Transcript", said)
    if newest is not None and not newest.is_live:
        yield from _section("Result", result_lines(newest, transcript))


def result_lines(run: RunRecord, transcript: Transcript, *, said: str | None = None) -> Iterator[Text]:
    """How a run ended, and its answer, unless that is what was `said` just before."""
    result, (sign, colour) = run.result or {}, mark(run.status)
    reason = f" ({result['reason']})" if result.get("reason") else ""
    took = precise(max(0.0, (run.ended_at or run.created_at) - (run.started_at or run.created_at)))
    yield Text.assemble("  ", (f"{sign} {run.status}{plain_line(reason)}", colour), (f" after {took}", "dim"))
    if result.get("error"):
        yield from transcript.piece(str(result["error"]), "red")
    answer = str(result.get("response") or "")
    if answer and not _says(said, answer):
        yield from transcript.piece(answer)


def _head(story: Story, now: float) -> Iterator[Text]:
    agent, (sign, colour) = story.agent, mark(story.status)
    name = "" if agent.name == agent.agent_id else f"  {plain_line(agent.name)}"
    closed = ", closed" if agent.closed_at is not None else ""
    yield Text.assemble((plain_line(agent.agent_id), "bold"), name, "  ", (f"{sign} {story.status}{closed}", colour))
    led = "a process is at it" if story.is_led else "its process is gone"
    facts = {
        "profile": plain_line(agent.profile or "none"),
        "parent": plain_line(agent.parent_id or "none: this is the main agent"),
        "model": plain_line(f"{agent.model} of {agent.provider}"),
        "conversation": f"{plain_line(agent.conversation)}, {led}",
        "folder": plain_line(story.conversation.workspace),
        "begun": f"{_moment(agent.created_at)}, {age(now - agent.created_at)} ago",
        "runs": str(len(story.runs)),
        "costs": f"{_costs(story.own)}, {counted(len(story.calls), 'tool call')}",
    }
    if story.below:
        facts["with all below"] = f"{_costs(story.whole)}, {counted(len(story.below), 'agent')} below it"
    for key, value in facts.items():
        yield Text.assemble((f"  {key:<15}", "dim"), value)


def _costs(cost: Cost) -> str:
    usage = cost.usage
    cached = f", {count(usage.cache_read_tokens)} of it cached" if usage.cache_read_tokens else ""
    tokens = f"{count(usage.prompt_tokens)} tokens in{cached}, {count(usage.output_tokens)} out"
    price = priced(cost)
    return f"{counted(cost.calls, 'turn')}, {tokens}, {'price unknown' if price == '-' else price}"


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def _section(title: str, lines: Iterator[Text] | list[Text]) -> Iterator[Text]:
    yield Text("")
    yield Text(title, style="bold")
    yield from lines


def _says(text: str | None, answer: str) -> bool:
    return (text or "").strip() == answer.strip()
