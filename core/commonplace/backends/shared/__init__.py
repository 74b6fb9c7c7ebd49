"""Rules and formats that several engines share: rows, tokens, names, retention."""
