"""Precedence: which of several definitions of one name counts, and why the others do not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shared.definitions.profile import SubagentProfile
from shared.definitions.profile_file import Reading
from shared.definitions.source import Problem, Source, SourceKind, one_line
from shared.errors import ConfigError, unknown_name


@dataclass(frozen=True)
class Scope:
    """Definitions of equal strength."""

    kind: SourceKind
    readings: tuple[Reading, ...]


@dataclass(frozen=True)
class Candidate:
    """A definition that asked for a name and did not get it; without a profile if its file cannot be used."""

    name: str
    source: Source
    profile: SubagentProfile | None
    reason: str

    def __str__(self) -> str:
        return one_line(f"{self.name} from {self.source}: {self.reason}")


@dataclass(frozen=True)
class Explanation:
    """The whole story of one name."""

    name: str
    winner: SubagentProfile | None
    losers: tuple[Candidate, ...]
    problems: tuple[Problem, ...]

    def __str__(self) -> str:
        head = f"{self.name}: from {self.winner.source}" if self.winner else f"{self.name}: no usable profile"
        lost = [f"  lost: {each}" for each in self.losers]
        more = [f"  {problem}" for problem in self.problems if not any(str(problem) in line for line in lost)]
        return "\n".join([one_line(head), *lost, *more])


@dataclass(frozen=True)
class Ranking:
    """The outcome for all names."""

    winners: Mapping[str, SubagentProfile]
    losers: tuple[Candidate, ...]
    problems: tuple[Problem, ...]

    def get(self, name: str) -> SubagentProfile:
        """The profile of a name; raises ConfigError that says what is wrong or what there is."""
        if (found := self.winners.get(name)) is not None:
            return found
        failed = next((each for each in self.losers if each.name == name), None)
        if failed is not None:
            raise ConfigError(f"profile '{name}' cannot be used: {one_line(failed.reason)}")
        offered = [each.name for each in self.winners.values() if each.visibility != "internal"]
        raise ConfigError(unknown_name("profile", name, offered))

    def explain(self, name: str) -> Explanation:
        """What happened to one name."""
        losers = tuple(each for each in self.losers if each.name == name)
        winner = self.winners.get(name)
        paths = {each.source.path for each in losers} | {winner.source.path if winner else None}
        problems = tuple(problem for problem in self.problems if problem.path in paths)
        return Explanation(name, winner, losers, problems)


def rank(scopes: Sequence[Scope], problems: Iterable[Problem]) -> Ranking:
    """Let the strongest scope win each name; within one scope two of a name are both refused.

    A file that cannot be used still holds its name against weaker scopes: its author may have
    written it to narrow what the weaker one allows.
    """
    contest = _Contest(list(problems))
    for scope in scopes:
        contest.enter(scope)
    return Ranking(contest.winners, tuple(contest.losers), tuple(contest.problems))


class _Contest:
    def __init__(self, problems: list[Problem]) -> None:
        self.winners: dict[str, SubagentProfile] = {}
        self.losers: list[Candidate] = []
        self.problems = problems
        self._held: dict[str, str] = {}  # name → why weaker scopes do not get it

    def enter(self, scope: Scope) -> None:
        """Settle the names of the next weaker scope."""
        usable: dict[str, list[Reading]] = {}
        broken: dict[str, str] = {}
        for reading in scope.readings:
            self.problems += reading.problems
            error = next((problem for problem in reading.problems if problem.severity == "error"), None)
            error = error or next((problem for problem in reading.problems if problem.code == "disabled"), None)
            if reading.profile is not None:
                usable.setdefault(reading.name, []).append(reading)
            elif error is not None:
                self.losers.append(Candidate(reading.name, reading.source, None, str(error)))
                broken.setdefault(reading.name, f"the stronger {reading.source} cannot be used; mend or remove it")
        held = broken | {name: self._settle(name, group, scope) for name, group in usable.items()}
        self._held = held | self._held

    def _settle(self, name: str, group: list[Reading], scope: Scope) -> str:
        """Give a name to the only one that asks for it, and say why weaker scopes will not get it."""
        if name in self._held:
            self._lose(group, self._held[name])
            return self._held[name]
        if len(group) == 1 and (profile := group[0].profile) is not None:
            self.winners[name] = profile
            return f"overridden by {profile.source}"
        places = ", ".join(str(reading.source.path or reading.source) for reading in group)
        reason = f"{len(group)} profiles of the {scope.kind} scope are named '{name}': {places}; rename all but one"
        self._lose(group, reason)
        for reading in group:
            self.problems.append(
                Problem(reading.source.path or scope.kind, None, "duplicate-name", "name", reason, "error")
            )
        return reason

    def _lose(self, group: list[Reading], reason: str) -> None:
        self.losers += [Candidate(reading.name, reading.source, reading.profile, reason) for reading in group]
