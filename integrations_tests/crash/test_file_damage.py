"""Damages of the embedded file: right answers or typed errors, and never another user's text."""

from pathlib import Path

import pytest

from .file_damage import WAYS, run

pytestmark = pytest.mark.slow


def test_a_damaged_file_answers_rightly_or_says_that_it_is_damaged(tmp_path: Path):
    # The long form, with more of each, is `benchmarks/proofs.py damage`.
    counts = run(tmp_path, 2 * len(WAYS), seed=1)

    assert counts.faults == 0, counts.examples[:10]
    assert counts.runs == 2 * len(WAYS)
    assert counts.refused >= len(WAYS) // 2
    assert all(counts.ways[f"{way}: refused"] == 2 for way in ("cut the file", "empty the file"))
