"""The checksum inside a Parquet file: any other byte is noticed, and readers of Parquet do not notice it."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl
import pytest

from neuclust.experiment.seal import is_intact, sealed

FRAME = pl.DataFrame({"key": ["a", "b"], "value": [0.1, 1e300], "text": ["x" * 100, "é"]})
BESIDE = (b"a name", b"+a curve", b"-")


def plain() -> bytes:
    content = io.BytesIO()
    FRAME.write_parquet(content)
    return content.getvalue()


def test_every_single_changed_byte_is_noticed() -> None:
    whole = sealed(plain(), BESIDE)
    assert is_intact(whole, BESIDE)
    unsealed = 0
    for place in range(len(whole)):
        damaged = whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :]
        try:
            found = is_intact(damaged, BESIDE)
        except ValueError:
            continue  # no Parquet file any more
        unsealed += found is None
        assert not found
    assert 16 <= unsealed <= 20  # the mark of the seal and the length of the footer: a file that seems to have none


def test_every_shortened_file_is_refused() -> None:
    whole = sealed(plain(), BESIDE)
    for length in range(len(whole)):
        with pytest.raises(ValueError, match=r"empty|cut short"):
            is_intact(whole[:length], BESIDE)


@pytest.mark.parametrize("other", [(), BESIDE[:2], (*BESIDE[:2], b"+"), (b"a name+", b"a curve", b"-"), BESIDE[::-1]])
def test_other_belongings_do_not_fit(other: tuple[bytes, ...]) -> None:
    assert is_intact(sealed(plain(), BESIDE), other) is False


def test_a_file_without_a_seal_is_told_from_a_broken_one() -> None:
    assert is_intact(plain(), BESIDE) is None


def test_readers_of_parquet_read_a_sealed_file(tmp_path: Path) -> None:
    file = tmp_path / "sealed.parquet"
    file.write_bytes(sealed(plain(), BESIDE))
    assert pl.read_parquet(file).equals(FRAME)
    assert pl.scan_parquet(file).filter(pl.col("value") > 1).collect().height == 1
    for name in ("pyarrow.parquet", "duckdb"):
        module = pytest.importorskip(name, reason=f"{name} is not installed")
        if name == "duckdb":
            assert module.sql(f"select count(*) from '{file}'").fetchall() == [(2,)]
        else:
            assert module.read_table(file).to_pylist() == FRAME.to_dicts()
