"""The write path: operations are validated, journaled, planned with the models and applied.

In this order: `operations` validates a request, `worker` accepts it, `planning` asks the models,
`applying` and `erasure` write to the stores.
"""
