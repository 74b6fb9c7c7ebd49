"""The patterns of keys and tokens: what they find, what they leave, and their time."""

import json
import time

import pytest

from commonplace.secret_patterns import PATTERNS, secrets

A40, A36 = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "0123456789abcdefghijklmnopqrstuvwxyz"
PEM = "-----BEGIN {0}PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nMIIEow\n-----END {0}PRIVATE KEY-----"
FOUND = [
    ("AWS key", "AKIA" + "IOSFODNN7EXAMPLE", ""),
    ("AWS secret", A40, "aws_secret_access_key = "),
    ("AWS secret", A40, 'AWS_SECRET_ACCESS_KEY="'),
    ("Google key", "AIza" + A36[:35], ""),
    ("Google key", "ya29." + A36, ""),
    ("GitHub token", "ghp_" + A36, ""),
    ("GitHub token", "github_pat_" + A36, ""),
    ("Slack token", "xoxb-123456789012-abcdef", ""),
    ("Slack token", "T00000000/B00000000/" + A36[:24], "https://hooks.slack.com/services/"),
    ("OpenAI key", "sk-proj-" + A36, ""),
    ("Anthropic key", "sk-ant-api03-" + A36, ""),
    ("JWT", f"eyJ{A36}.eyJ{A36}.{A36}", ""),
    ("token", A36, "Authorization: Bearer "),
    ("private key", PEM.format("RSA "), ""),
    ("private key", PEM.format(""), ""),
    ("private key", "-----BEGIN PRIVATE KEY-----\n" + A36, ""),
]


@pytest.mark.parametrize(("name", "secret", "before"), FOUND)
def test_a_key_or_token_is_redacted_in_text_and_in_json(name: str, secret: str, before: str):
    text = f"Mine is {before}{secret}"

    assert secrets(text) == f"Mine is {before}[redacted {name}]"
    assert secrets(secrets(text)) == secrets(text)
    written = secrets(json.dumps({"a": text, "b": 1}))
    assert json.loads(written)["b"] == 1
    assert json.dumps(secret)[1:-1] not in written


@pytest.mark.parametrize(
    "text",
    [
        "I ask for a risk-assessment-of-everything-we-own.",
        "The bearer of-internationalization-efforts came.",
        "AKIA is short, sk-short too, and eyJ.is.no token.",
        "The commit is 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b.",
        "Alice lives at 5f3a1c52-0b0e-5a5c-9a0b-7d2f6c1e4b11.",
        "密钥在保险箱里。",
    ],
)
def test_what_is_no_secret_stays(text: str):
    assert secrets(text) == text


HOSTILE = [
    "-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "-", "AKIA", "sk-", "sk-ant-", "eyJ", "-eyJ",
    "eyJaaaaaaaa.", "bearer ", "bearer a", "ghp_", " ghp_a", "xoxb-", "AIza", "ya29.", "a", "A",
    "secret_access_key=", "secret_access_key    =    ", "hooks.slack.com/services/T", " ", "0",
    "T0000000/B0000000/", "[redacted ", '\\"', "_",
]  # fmt: skip


@pytest.mark.parametrize("name", PATTERNS)
def test_a_hostile_text_takes_no_longer(name: str):
    for part in HOSTILE:
        for tail in ("", "!", "\n"):
            text = (part * (32 * 1024 // len(part) + 1))[: 32 * 1024 - 1] + tail
            times = []
            for _ in range(3):
                started = time.process_time()
                PATTERNS[name].sub("", text)
                times.append(time.process_time() - started)
            assert min(times) < 0.02, (part, tail)
