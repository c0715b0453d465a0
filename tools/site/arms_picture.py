"""The picture of the start page: what a round costs as arms grow.

python -m tools.site.arms_picture, from docs/records/scaling.json into docs/figures/arms.svg.
"""

import json
from pathlib import Path

from benchmarks.growth import growth_figure
from benchmarks.scaling import panels
from neuclust.report.drawing import svg_text

DOCS = Path(__file__).parents[2] / "docs"
RECORD, PICTURE = DOCS / "records" / "scaling.json", DOCS / "figures" / "arms.svg"


def picture_text() -> str:
    """Time and memory against the number of arms."""
    points = json.loads(RECORD.read_text(encoding="utf-8"))["points"]
    return svg_text(growth_figure(panels([each for each in points if each["axis"] == "arms"]), columns=2))


if __name__ == "__main__":
    PICTURE.write_text(picture_text(), encoding="utf-8")
    print(f"wrote {PICTURE}")
