r"""Redaction of secrets in text: patterns for keys and tokens.

    from commonplace.secret_patterns import secrets

    memory = Memory.open("./memory", redact=secrets)

Each pattern reads a text once: no part of a match can be read in two ways.
"""

import re

_SOURCES = {
    "private key": r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----(?:"
    # Groups are repeated as usual: before 3.11.5 Python repeats them wrongly where possessive.
    r"(?:[^-]|-(?!----))*-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----"
    r"|(?:\s|\\[nr]|[A-Za-z0-9+/=]{16,}+)*)",  # cut off: what looks like a key alone
    "AWS key": r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    "AWS secret": r"(?i:(?<=secret_access_key)|(?<=secretaccesskey))"
    r"(?P<before>[\"'\\]{0,4}\s{0,4}[:=]\s{0,4}[\"'\\]{0,4})[A-Za-z0-9/+]{40}",
    "Google key": r"(?<![A-Za-z0-9_-])(?:AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}+)",
    "GitHub token": r"(?<![A-Za-z0-9_])(?:gh[pousr]_[A-Za-z0-9]{36,}+|github_pat_\w{22,}+)",
    "Slack token": r"(?<![A-Za-z0-9-])(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,}+"
    r"|(?<=hooks\.slack\.com/services/)T[A-Z0-9]{6,}+/B[A-Z0-9]{6,}+/\w{16,}+",
    "Anthropic key": r"(?<![A-Za-z0-9_-])sk-ant-[A-Za-z0-9_-]{20,}+",
    "OpenAI key": r"(?<![A-Za-z0-9_-])sk-(?!ant-)[A-Za-z0-9_-]{20,}+",
    "JWT": r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+",
    "token": r"(?i:(?<![a-z0-9])(?P<before>bearer\s{1,4}))"
    r"(?=[A-Za-z._~+/-]{0,100}[0-9])[A-Za-z0-9._~+/-]{16,}+=*+",
}
PATTERNS = {name: re.compile(source) for name, source in _SOURCES.items()}


def secrets(text: str) -> str:
    """Put `[redacted NAME]` in place of each key or token in a text.

    Found are the keys of AWS, Google, OpenAI and Anthropic, the tokens of GitHub and Slack, JWTs,
    private keys in PEM and tokens behind `Bearer`. Passwords and numbers of cards are not.
    """
    for name, pattern in PATTERNS.items():
        before = r"\g<before>" if "before" in pattern.groupindex else ""
        text = pattern.sub(rf"{before}[redacted {name}]", text)
    return text
