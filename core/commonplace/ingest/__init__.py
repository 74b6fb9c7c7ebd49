"""The write path: operations are validated, journaled, planned with the models and applied.

In this order: `operations` validates a request, `submission` hands it over, `direct` carries it out
at once or else `worker` accepts it, `planning` asks the models, `applying` and `erasure` write to
the stores.
"""
