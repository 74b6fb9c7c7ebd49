"""Tests for engines and adapters of other projects: `fakes`, and `contracts` to inherit from.

`fakes` needs nothing more than this package; `contracts` needs pytest, of the extra `testing`.
"""
