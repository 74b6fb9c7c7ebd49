"""Rules and formats that several engines share: rows, payloads, names, retention."""
