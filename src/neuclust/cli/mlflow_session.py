"""`neuclust sweep --mlflow`: every record as it comes, what an earlier sweep did not send, and the report."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from neuclust.analysis.sources import read_source
from neuclust.cli.outputs import say_bad
from neuclust.doors.mlflow.sweeps import EXPERIMENT, MlflowSink
from neuclust.doors.mlflow.tracking import Tracking
from neuclust.experiment.store import MARK, read_store
from neuclust.experiment.tasks import Task
from neuclust.report.folder import write_report


@contextmanager
def sent_to_mlflow(uri: str, name: str, folder: Path, tasks: Sequence[Task]) -> Iterator[MlflowSink]:
    """The sink of a sweep, which has all records of the folder and its report after the block."""
    sink = MlflowSink(Tracking.opened(uri, EXPERIMENT), name, say_bad)
    try:
        yield sink
    finally:
        if not (folder / MARK).exists():
            sink.close()
        else:
            _complete(sink, name, folder, tasks)


def _complete(sink: MlflowSink, name: str, folder: Path, tasks: Sequence[Task]) -> None:
    titles = {task.key: task.title for task in tasks}
    for key, record in read_store(folder, keys=set(titles), on_bad=say_bad).items():
        sink.send(key, record, titles[key])
    with tempfile.TemporaryDirectory() as scratch:
        source = read_source(folder, on_bad=say_bad)
        if source.records:
            write_report(source, Path(scratch), title=name, command=f"neuclust report {folder}")
        sink.close(Path(scratch) if source.records else None)
