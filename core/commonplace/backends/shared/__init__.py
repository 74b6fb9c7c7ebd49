"""Rules and formats that several engines share: rows, vectors, names, retention."""
