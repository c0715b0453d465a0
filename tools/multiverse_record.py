"""Keeps the runs of the committed grid of readings (`neuclust multiverse`) as docs/records/multiverse.json.

python -m tools.multiverse_record multiverse.jsonl [MORE.jsonl ...]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from neuclust.experiment.multiverse.grid import read_grid
from neuclust.experiment.multiverse.grids import FULL
from neuclust.experiment.multiverse.record import record_of, write_record
from neuclust.experiment.multiverse.rows import read_rows

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "docs" / "records" / "multiverse.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lines", type=Path, nargs="+", help="what the runner of the grid wrote")
    record = record_of(read_grid(FULL), read_rows(parser.parse_args().lines))
    write_record(RECORD, record)
    print(f"wrote {RECORD.relative_to(ROOT)}: {len(record['cells'])} cells")


if __name__ == "__main__":
    main()
