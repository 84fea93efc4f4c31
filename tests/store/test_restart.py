"""After a crash: what was unfinished can be continued, nothing resumes by itself, and all news is told once."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from support.crashes import crash, hosted
from support.stores import statuses
from support.subagents import PATIENCE, Hold, Play, Stage, answers_in, calling, task_of, user_texts

from shared.errors import StoreError
from shared.providers.base import ModelRequest
from shared.providers.script import Step
from shared.store import Reader
from shared.store.conversations import UNKNOWN
from shared.store.mail import LATE
from shared.subagents.inbox import HEAD
from shared.testing import check_history
from shared.types import Role


def digests(stage: Stage) -> list[str]:
    said = [message.text or "" for message in stage.client.get_history() if message.role is Role.USER]
    return [text for text in said if text.startswith(HEAD)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def test_a_run_at_a_tool_is_interrupted_and_listed_and_nothing_resumes_by_itself(path: Path) -> None:
    crash("at_a_tool", path)
    play = Play("noted", "never asked")
    with hosted(path, play, resume=True) as stage:
        listed = {each["name"]: each for each in stage.call("list_active_subagents")["active_sessions"]}
        assert listed["sawyer"]["last_status"] == "interrupted"
        assert listed["quick"]["last_status"] == "completed"
        result = stage.call("get_subagent_result", agent_id="sawyer")
        assert result["status"] == "interrupted"
        assert result["complete"]
        assert result["tool_calls"] == 2
        assert result["token_usage"]["total_tokens"] > 0
        assert "process ended" in result["error"]
        assert stage.call("get_subagent_result", agent_id="quick")["response"] == "quick work"
        assert not play.child_requests
    assert sorted(statuses(path).values()) == ["completed", "interrupted"]


def test_it_goes_on_with_its_history_and_model_and_learns_what_nobody_knows(path: Path) -> None:
    crash("at_a_tool", path)
    play = Play("noted", "I looked: the oak is sawed")
    with hosted(path, play, resume=True) as stage:
        answer = stage.call("continue_subagent", agent_id="sawyer", message="go on")
        assert answer["status"] == "completed"
        assert answer["model"] == "a-model"
        [request] = play.child_requests
        check_history(list(request.messages))
        assert answers_in(request) == ["oak is 3 m long", UNKNOWN]
        assert user_texts(request) == ["saw oak", "go on"]
        [unknown] = request.messages[-2].results
        assert (unknown.name, unknown.error_kind, unknown.is_error) == ("saw", "unknown", True)
    with hosted(path, Play("noted", "and again"), resume=True) as stage:
        stage.call("continue_subagent", agent_id="sawyer", message="once more")
        [request] = stage.play.child_requests
        assert user_texts(request) == ["saw oak", "go on", "once more"]
        assert answers_in(request) == ["oak is 3 m long", UNKNOWN], "told once"


def test_the_budget_that_was_spent_stays_spent(path: Path) -> None:
    crash("at_a_tool", path)

    def child(request: ModelRequest) -> Step:
        done = len(answers_in(request)) - 2
        return calling(("measure", {"wood": str(done)}))

    with hosted(path, Play("noted", child), resume=True) as stage:
        answer = stage.call("continue_subagent", agent_id="sawyer", message="measure everything")
        assert (answer["status"], answer["reason"]) == ("partial", "budget")
        assert answer["tool_calls"] <= 3 + 1, "two of five were used before; the one too many is refused"
        refused = [text for text in answers_in(stage.play.child_requests[-1]) if "not run" in str(text)]
        assert refused
        with Reader(path) as reader:
            assert len(reader.tool_calls(reader.agent("sawyer").key)) == 5


def test_rights_are_decided_anew_and_never_wider(path: Path) -> None:
    crash("at_a_tool", path)
    with hosted(path, Play("noted", "ok"), resume=True) as stage:
        registry = stage.client.get_runtime().registry
        assert registry is not None
        registry.disable_tool("saw")
        stage.call("continue_subagent", agent_id="sawyer", message="go on")
        names = [schema.name for schema in stage.play.child_requests[0].tools.schemas]
        assert "measure" in names
        assert "saw" not in names
    with hosted(path, Play("noted", "ok"), resume=True) as stage:
        stage.call("continue_subagent", agent_id="sawyer", message="go on")
        names = [schema.name for schema in stage.play.child_requests[0].tools.schemas]
        assert "saw" not in names, "what was lost does not come back"
        assert "spawn_subagent" not in names


def test_the_text_so_far_is_kept(path: Path) -> None:
    crash("in_a_model_call", path)
    with hosted(path, "unused", resume=True) as stage:
        result = stage.call("get_subagent_result", agent_id="thinker")
        assert (result["status"], result["response"]) == ("interrupted", "thinking aloud")


def test_parallel_calls_that_had_a_result_keep_it(path: Path) -> None:
    crash("at_parallel_tools", path)
    play = Play("I see")
    with hosted(path, play, resume=True) as stage:
        check_history(stage.client.get_history())
        assert stage.ask("and?") == "I see"
        assert answers_in(play.parent_requests[0]) == ["elm is 3 m long", UNKNOWN]


def test_shared_values_come_back_with_their_versions(path: Path) -> None:
    crash("at_a_tool", path)
    with hosted(path, "unused", resume=True) as stage:
        found = stage.call("get_shared_state", key="plan")
        assert (found["value"], found["version"]) == ({"step": 3}, 1)
        assert stage.call("set_shared_state", key="plan", value=4, expected_version=1)["version"] == 2


def test_a_parent_that_is_back_hears_of_everything_once(path: Path) -> None:
    crash("unannounced", path)
    with hosted(path, Play("thanks"), resume=True) as stage:
        assert [message.text for message in stage.client.get_history()] == ["hello", "noted"]
        stage.ask("I am back")
        [digest] = digests(stage)
        assert "'first': completed" in digest
        assert "did second" in digest
        stage.ask("anything else?")
        assert digests(stage) == [digest]
    with hosted(path, Play("thanks"), resume=True) as stage:
        stage.ask("I am back again")
        assert digests(stage) == [digest], "it is in the history, and nowhere else"


def test_interrupted_runs_are_announced_too(path: Path) -> None:
    crash("at_a_tool", path)
    with hosted(path, Play("I see"), resume=True) as stage:
        stage.ask("I am back")
        [digest] = digests(stage)
        assert "'sawyer': interrupted" in digest
        assert "quick" not in digest, "its result was read before"


def test_an_announcement_that_waited_for_descendants_comes_with_them(path: Path) -> None:
    crash("with_descendants", path)
    with Reader(path) as reader:
        boss = reader.agent("boss")
        [run] = reader.runs(boss.key)
        assert (run.status, run.told_at) == ("completed", None)
        [leaf] = reader.below(boss)
        assert reader.newest_runs([leaf.key])[leaf.key].status == "interrupted"
    config = {"max_depth": 2, "profiles": {"boss": {"plugins": ["subagent", "bench"]}}}
    with hosted(path, Play("I see", "ok"), resume=True, config=config) as stage:
        stage.ask("I am back")
        [digest] = digests(stage)
        assert "'boss': completed" in digest
        assert leaf.agent_id not in digest, "it is its own parent's news"
        stage.call("continue_subagent", agent_id="boss", message="what became of it?")
        [heard] = [text for text in user_texts(stage.play.child_requests[0]) if text.startswith(HEAD)]
        assert f"{leaf.agent_id}: interrupted" in heard


def test_one_that_is_below_another_can_be_continued_by_the_main_session(path: Path) -> None:
    crash("with_descendants", path)
    with Reader(path) as reader:
        [leaf] = reader.below(reader.agent("boss"))
    config = {"max_depth": 2, "profiles": {"boss": {"plugins": ["subagent", "bench"]}}}
    with hosted(path, Play("I see", "the pine is fine"), resume=True, config=config) as stage:
        answer = stage.call("continue_subagent", agent_id=leaf.agent_id, message="go on")
        assert answer["response"] == "the pine is fine"


def test_a_profile_that_is_gone_is_an_error_that_names_it(path: Path) -> None:
    crash("with_descendants", path)
    with hosted(path, "unused", resume=True) as stage:
        answer = stage.call("continue_subagent", agent_id="boss", message="go on")
        assert not answer["success"]
        assert "boss" in answer["error"]
        assert stage.call("get_subagent_result", agent_id="boss")["response"] == "sent", "it stays readable"


def test_a_conversation_that_is_led_elsewhere_is_not_taken_over(path: Path) -> None:
    with hosted(path, Play("noted", "done")) as first:
        first.spawn()
        conversation = first.client.conversation_id
        assert conversation is not None
        with hosted(path, "unused") as second:
            with pytest.raises(StoreError, match="another process"):
                second.client.resume_conversation(conversation)
            with pytest.raises(StoreError, match="no conversation that could be taken up"):
                second.client.resume_conversation()
            with pytest.raises(StoreError, match=rf"no conversation 'nope'.*{conversation}"):
                second.client.resume_conversation("nope")
    with hosted(path, "unused", resume=conversation) as third:
        assert third.client.conversation_id == conversation


def test_a_main_conversation_alone_is_kept_when_the_host_asks(path: Path) -> None:
    with hosted(path, Play(lambda request: f"heard {user_texts(request)[-1]}")) as stage:
        stage.ask("before")
        assert stage.client.conversation_id is None
        kept = stage.client.keep_conversation()
        stage.ask("after")
    with hosted(path, Play("again")) as stage:
        [record] = stage.client.list_conversations()
        assert (record.id, record.title, record.messages) == (kept, "before", 4)
        stage.client.resume_conversation()
        texts = [message.text for message in stage.client.get_history()]
        assert texts == ["before", "heard before", "after", "heard after"]


def test_a_history_that_was_collected_comes_back_collected_and_nothing_said_is_lost(path: Path) -> None:
    with hosted(path, Play("noted")) as stage:
        stage.client.keep_conversation()
        for number in range(12):
            stage.ask(f"message {number} " + "x" * 200)
        stage.client.get_session().manual_gc()
        stage.ask("after collecting")
        shortened = stage.client.get_history()
        assert len(shortened) < 26
    with hosted(path, Play("noted"), resume=True) as stage:
        assert stage.client.get_history() == shortened
        stage.ask("more")
        after = stage.client.get_history()
    with Reader(path) as reader:
        main = next(agent for agent in reader.agents() if agent.is_main)
        assert [each.message for each in reader.history(main.key)] == after
        said = " ".join(each.message.text or "" for each in reader.transcript(main.key))
        assert all(f"message {number} " in said for number in range(12))


def test_a_session_that_begins_anew_stays_so(path: Path) -> None:
    with hosted(path, Play("noted")) as stage:
        stage.client.keep_conversation()
        stage.ask("old")
        stage.client.reset_session()
        stage.ask("new")
    with hosted(path, Play("noted"), resume=True) as stage:
        assert [message.text for message in stage.client.get_history()] == ["new", "noted"]


def test_what_was_stopped_with_the_parents_turn_is_no_news(path: Path) -> None:
    hold = Hold()

    def parent(request: ModelRequest) -> Step:
        return calling(("spawn_subagent", {"task": "long"})) if not answers_in(request) else "stopped"

    with hosted(path, Play(parent, hold)) as stage:
        asking = threading.Thread(target=stage.ask)
        asking.start()
        hold.wait_entered()
        assert stage.client.stop()
        asking.join(PATIENCE)
        hold.release()
    with hosted(path, Play("hello"), resume=True) as stage:
        stage.ask("I am back")
        assert digests(stage) == []


def test_a_result_that_the_host_reads_during_a_turn_is_no_news(path: Path) -> None:
    hold = Hold("the parent's answer")
    with hosted(path, Play(hold, "done")) as stage:
        stage.client.keep_conversation()
        asking = threading.Thread(target=stage.ask)
        asking.start()
        hold.wait_entered()
        assert stage.spawn("task")["status"] == "completed"
        hold.release()
        asking.join(PATIENCE)
    with hosted(path, Play("hello"), resume=True) as stage:
        stage.ask("I am back")
        assert digests(stage) == []


def test_shared_values_that_many_write_at_once_come_back_as_they_were(path: Path) -> None:
    with hosted(path, "unused") as stage:
        stage.spawn("so that it is stored")
        start = threading.Barrier(6)

        def write(name: int) -> None:
            start.wait(PATIENCE)
            for number in range(20):
                stage.call("set_shared_state", key=f"key {number % 3}", value=[name, number])

        threads = [threading.Thread(target=write, args=(name,)) for name in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        before = [stage.call("get_shared_state", key=f"key {number}") for number in range(3)]
        stage.call("set_shared_state", key="lease", value=1, ttl_seconds=0.001)
    with hosted(path, "unused", resume=True) as stage:
        assert [stage.call("get_shared_state", key=f"key {number}") for number in range(3)] == before
        assert sum(each["version"] for each in before) == 120
        assert stage.call("get_shared_state", key="lease")["value"] is None, "its time was up"


def test_what_a_child_was_told_and_had_not_read_is_read_when_it_goes_on_and_once(path: Path) -> None:
    crash("with_unread_mail", path)
    play = Play("noted", lambda request: "went on")
    with hosted(path, play, resume=True) as stage:
        stage.call("continue_subagent", agent_id="sawyer", message="go on")
        assert user_texts(play.child_requests[-1]) == [
            "saw oak",
            "go on",
            f"{LATE}\nuse the fine blade",
            f"{LATE}\nand hurry",
        ]
        stage.call("continue_subagent", agent_id="measurer", message="go on")
        assert user_texts(play.child_requests[-1]) == ["measure elm", "mind the knots", "go on"], "it was read before"
        stage.ask("hello")
        assert f"{LATE}\n[the user has lunch]" in user_texts(play.parent_requests[-1])
    with hosted(path, play, resume=True) as stage:
        for name in ("sawyer", "measurer"):
            stage.call("continue_subagent", agent_id=name, message="once more")
            assert user_texts(play.child_requests[-1])[-1] == "once more"
        stage.ask("again")
        assert sum("lunch" in text for text in user_texts(play.parent_requests[-1])) == 1


def test_a_letter_to_one_that_was_cancelled_in_the_queue_is_read_once(path: Path) -> None:
    with hosted(path, Play("noted", "did it")) as stage:
        stage.ask("hello")
        stage.spawn("task one", name="one")
    hold = Hold("released")
    play = Play("noted", lambda request: hold(request) if task_of(request) == "blocker" else "ok")
    with hosted(path, play, resume=True, config={"max_concurrent": 1}) as stage:
        blocker = stage.launch("blocker", name="blocker")
        hold.wait_entered()
        stage.call("continue_subagent", agent_id="one", message="again", background=True)
        stage.call("send_to_subagent", agent_id="one", message="use the fine blade")
        stage.call("cancel_subagent", agent_id="one")
        hold.release()
        stage.result(blocker)
        stage.call("continue_subagent", agent_id="one", message="third run")
        said = user_texts(play.child_requests[-1])
        assert said[0] == "task one", "with its history"
        assert sum("fine blade" in text for text in said) == 1, said


def test_a_letter_stays_with_its_conversation(path: Path) -> None:
    with hosted(path, Play("noted")) as stage:
        former = stage.client.keep_conversation()
        stage.ask("I am B")
    with hosted(path, Play("noted")) as stage:
        own = stage.client.keep_conversation()
        stage.ask("I am A")
        stage.client.get_session().steer("for A only")
        stage.client.resume_conversation(former)
        stage.ask("on with B")
        assert "for A only" not in " ".join(user_texts(stage.play.parent_requests[-1]))
    with hosted(path, Play("noted"), resume=own) as stage:
        stage.ask("back")
        assert f"{LATE}\nfor A only" in user_texts(stage.play.parent_requests[-1])


def test_equal_letters_are_two(path: Path) -> None:
    hold = Hold("released")
    with hosted(path, Play("noted", [hold, "read them"])) as stage:
        stage.ask("hello")
        agent_id = stage.launch("work", name="one")
        hold.wait_entered()
        agent = stage.client.get_session().extras["subagents"].tree.get(agent_id)
        first, second = agent.tell("stop"), agent.tell("stop")
        assert agent.take_back(second)
        assert not agent.take_back(second)
        assert agent.letters == {first.key}
        with Reader(path) as reader:
            assert [key for key, _ in reader.mail(agent.stored)] == [first.key]
        hold.release()
        stage.result(agent_id)
        with Reader(path) as reader:
            assert reader.mail(agent.stored) == []


def test_mail_outlives_a_callback_that_fails(path: Path) -> None:
    with hosted(path, Play("noted")) as stage:
        session = stage.client.get_session()
        session.steer("important")
        session.set_mid_turn_prompt_callback(lambda: 1 // 0 and None)
        with pytest.raises(ZeroDivisionError):
            stage.ask("one")
        session.set_mid_turn_prompt_callback(None)
        stage.ask("two")
        assert "important" in user_texts(stage.play.parent_requests[-1])
