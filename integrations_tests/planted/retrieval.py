"""Faults of the read path: what a search finds, and in which order."""

from .fault import Fault

_SEARCH = "core/commonplace/retrieval/search.py"
_RANKING = "core/commonplace/retrieval/ranking.py"
_FEATURES = "core/commonplace/retrieval/features.py"
_TESTS = "integrations_tests"

FAULTS = (
    Fault(
        name="threshold-ignored",
        what="A search ignores the threshold",
        file=_SEARCH,
        old="            threshold=request.threshold,\n        )\n        if decays:",
        new="        )\n        if decays:",
        tests=(f"{_TESTS}/test_memory.py", "-k", "threshold"),
    ),
    Fault(
        name="cosine-threshold-ignored",
        what="A search by cosine ignores the threshold",
        file=_SEARCH,
        old="return [one for one in matches if one.score >= request.threshold]",
        new="return list(matches)",
        tests=(f"{_TESTS}/test_memory_scopes.py", "-k", "below_the_threshold"),
    ),
    Fault(
        name="threshold-of-logits",
        what="The threshold is compared with the logit and not with the score",
        file=_RANKING,
        old="        if scores[best] < threshold:\n",
        new="        if logits[best] < threshold:\n",
        tests=("core/tests/test_ranking.py", "-k", "threshold"),
    ),
    Fault(
        name="tie-order",
        what="Records of equal score come in the order in which they are stored",
        file=_RANKING,
        old="key=lambda i: (-logits[i], records[i].id))",
        new="key=lambda i: -logits[i])",
        tests=("core/tests/test_ranking.py",),
    ),
    Fault(
        name="details-without-slope",
        what="What each feature added does not sum to the logit of the score",
        file=_RANKING,
        old="        details = dict(zip(FEATURES, parts[best].tolist(), strict=True))\n",
        new="        details = dict(zip(FEATURES, (parts[best] / slope).tolist(), strict=True))\n",
        tests=("core/tests/test_ranking.py",),
    ),
    Fault(
        name="ignorance-speaks",
        what="A turn that says that it knows nothing raises those around it",
        file=_FEATURES,
        old="        return np.where(self._is_mute, 0.0, self.own)\n",
        new="        return self.own\n",
        tests=("core/tests/test_features.py", "-k", "knows_nothing"),
    ),
    Fault(
        name="sessions-mixed",
        what="Turns gain by turns of other sessions of the same places",
        file=_FEATURES,
        old="numbers.setdefault(one.scope, len(numbers))",
        new="numbers.setdefault(one.scope.owner, len(numbers))",
        tests=("core/tests/test_features.py", "-k", "another_session"),
    ),
    Fault(
        name="index-tie-order",
        what="Points of equal cosine come in the order in which they were written",
        file="core/commonplace/backends/sqlite/candidate_points.py",
        old="sorted(zip((-scores).tolist(), ids, candidates.tolist(), strict=True))",
        new="sorted(zip((-scores).tolist(), candidates.tolist(), candidates.tolist(), strict=True))",
        tests=(f"{_TESTS}/backends/test_sqlite_index.py", "-k", "ties or equal"),
    ),
    Fault(
        name="small-vectors-order",
        what="In a large scope, the best are in the order of cosines that are only near",
        file="core/commonplace/backends/sqlite/small_vectors.py",
        old="return lowest + self._error, at, self[at]",
        new="return lowest, at, self[at]",
        tests=(f"{_TESTS}/backends/test_sqlite_index.py", "-k", "small_vectors_find"),
    ),
    Fault(
        name="rarity-of-others",
        what="How rare a word is, is counted over all that the partition holds",
        file="core/commonplace/backends/sqlite/point_cache.py",
        old="            inside = found.terms[covered[found.places]]\n",
        new="            inside = found.terms\n",
        tests=(f"{_TESTS}/backends/test_sqlite_index.py", "-k", "rarity_is_that_of_its_agent"),
    ),
    Fault(
        name="one-scope-searched",
        what="Of several scopes only the first is searched",
        file=_SEARCH,
        old="            for one in request.scopes\n        ]\n        hits = _best(",
        new="            for one in request.scopes[:1]\n        ]\n        hits = _best(",
        tests=(f"{_TESTS}/test_memory_scopes.py",),
    ),
    Fault(
        name="metadata-shared",
        what="Changing the metadata of a match changes what others find",
        file=_SEARCH,
        old="self._access_log, self._settings)\n"
        "        return [_with_copied_metadata(one) for one in matches]",
        new="self._access_log, self._settings)\n        return list(matches)",
        tests=(f"{_TESTS}/test_hazards.py", "-k", "changing_what"),
    ),
    Fault(
        name="time-ignored",
        what="A search for what was true at a time finds what is true now",
        file=_SEARCH,
        old="            as_of=request.as_of,\n        )\n        if by_cosine:",
        new="        )\n        if by_cosine:",
        tests=(f"{_TESTS}/test_graph.py", "-k", "embedded and (past or now or late)"),
    ),
    Fault(
        name="pinned-decays",
        what="A pinned record loses by age",
        file="core/commonplace/retrieval/decay.py",
        old="        if match.record.pinned:\n            factor = max(1.0, factor)\n",
        new="",
        tests=("core/tests/test_decay.py",),
    ),
    Fault(
        name="pinned-over-limit",
        what="What is pinned is pruned when it is old",
        file="core/commonplace/retrieval/pruning.py",
        old="all(exceeds) and not record.pinned)",
        new="all(exceeds))",
        tests=("core/tests/test_decay.py",),
    ),
    Fault(
        name="access-not-logged",
        what="A search where records decay logs no access",
        file=_SEARCH,
        old="        access_log.add(scope, ids, now())\n",
        new="",
        tests=(f"{_TESTS}/test_graph.py", "-k", "recalled and embedded"),
    ),
    Fault(
        name="oldest-of-equal-turns",
        what="Of equal turns the oldest is shown and not the newest",
        file=_RANKING,
        old="        shown = best if found.dated[best] > found.dated[standing] else standing\n",
        new="        shown = best\n",
        tests=("core/tests/test_ranking.py", "-k", "repeat"),
    ),
)  # fmt: skip
