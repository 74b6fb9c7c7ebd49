"""The write path: operations are validated, journaled, planned with the models and applied.

In this order: `operations` validates a request; `submission` carries it out at once, or hands it to
`worker`, which accepts it; `planning` asks the models; `applying` writes to the stores.
"""
