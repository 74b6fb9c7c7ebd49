"""English words that say little by themselves; words and token vectors leave them out."""

STOP_WORDS = frozenset(
    "a an the and or of to in on at for is are was were be been do does did what when where who "
    "which how why with his her their its it he she they i we you my your that this".split()
)
