"""The read path: `search` gets candidates from index and graph, `ranking` orders them.

`features` says what the score of each is the sum of; `decay` weighs it by age and use, if wanted.
"""
