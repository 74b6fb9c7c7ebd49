"""The stages of writing and reading; none knows another, `lanes` and `memory` put them in order."""
