"""What was shown and what came back: the log format, its writers and readers (docs/logs.md)."""

from neuclust.logs.decisions import Design, LoggedDecision
from neuclust.logs.events import RunStart, json_schema
from neuclust.logs.reader import Log, open_log
from neuclust.logs.runs import DecisionLog
from neuclust.logs.writer import LogWriter

__all__ = ["DecisionLog", "Design", "Log", "LogWriter", "LoggedDecision", "RunStart", "json_schema", "open_log"]
