"""What was shown and what came back: the log format, its writers and readers (docs/logs.md)."""

from neuclust.logs.copying import copy_log
from neuclust.logs.decisions import Design, LoggedDecision
from neuclust.logs.events import RunStart, json_schema
from neuclust.logs.obp import read_obp
from neuclust.logs.obp_writing import write_obp
from neuclust.logs.reader import Log, open_log
from neuclust.logs.runs import DecisionLog
from neuclust.logs.table_blocks import TableBlock, TableLog
from neuclust.logs.tables import read_table
from neuclust.logs.vw import read_vw_ccb
from neuclust.logs.vw_writing import write_vw_ccb
from neuclust.logs.writer import LogWriter

__all__ = [
    "DecisionLog", "Design", "Log", "LogWriter", "LoggedDecision", "RunStart", "TableBlock", "TableLog", "copy_log",
    "json_schema", "open_log", "read_obp", "read_table", "read_vw_ccb", "write_obp", "write_vw_ccb",
]  # fmt: skip
