"""The write path: operations are validated, journaled, planned with the models and applied.

In this order: `operations` and `changes` validate a request, `submission` hands it to the `worker`,
`planning` asks the models, `applying` and `erasure` write to the stores.
"""
