"""The read path: `search` gets candidates from index and graph, `ranking` orders them.

The signals come from `lexical` terms, relations and, if wanted, `decay`.
"""
