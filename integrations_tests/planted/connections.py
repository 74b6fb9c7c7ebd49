"""Faults of what connects other programs: the MCP server, hooks, spans and events."""

from .fault import Fault

_MCP = "integrations_tests/test_mcp_server.py"
_SIGNED_TESTS = "integrations_tests/test_signed_tokens.py"
_TOKENS = "core/commonplace/mcp_server/tokens.py"
_TELEMETRY = "core/commonplace/telemetry.py"

FAULTS = (
    Fault(
        name="mcp-user-unread",
        what="Every user over HTTP reads and writes the same memories",
        file="core/commonplace/mcp_server/server.py",
        old="return Scope(user_id=token.client_id, agent_id=agent_id)",
        new='return Scope(user_id="somebody", agent_id=agent_id)',
        tests=(_MCP, "-k", "users"),
    ),
    Fault(
        name="mcp-token-unchecked",
        what="A token that the file does not have is let in",
        file=_TOKENS,
        old=".get(hash_token(token))",
        new='.get(hash_token(token), "guest")',
        tests=(_MCP, "-k", "users"),
    ),
    Fault(
        name="jwt-audience-unchecked",
        what="A signed token for another server is let in",
        file=_TOKENS,
        old="audience=self.audience,\n",
        new="audience=jwt.decode(token, options={'verify_signature': False})['aud'],\n",
        tests=(_SIGNED_TESTS, "-k", "says"),
    ),
    Fault(
        name="jwt-endless",
        what="A signed token without an end is let in",
        file=_TOKENS,
        old='["exp", "iss", "aud", "sub"]',
        new='["iss", "aud", "sub"]',
        tests=(_SIGNED_TESTS, "-k", "says"),
    ),
    Fault(
        name="jwt-shared-secret",
        what="A token that a shared secret signs is let in",
        file=_TOKENS,
        old='"EdDSA"',
        new='"EdDSA", "HS256"',
        tests=(_SIGNED_TESTS, "-k", "says"),
    ),
    Fault(
        name="jwt-keys-asked-for",
        what="Each request with an unknown key asks the identity provider",
        file=_TOKENS,
        old="(age > _PAUSE and key_id not in self._keys)",
        new="key_id not in self._keys",
        tests=(_SIGNED_TESTS, "-k", "again"),
    ),
    Fault(
        name="mcp-argument-ignored",
        what="A tool takes an argument that it does not have",
        file="core/commonplace/mcp_server/server.py",
        old="if unknown := sorted(set(arguments).difference(known)):",
        new="if unknown := sorted(set(arguments).difference(arguments)):",
        tests=(_MCP, "-k", "wrong"),
    ),
    Fault(
        name="hook-stops-agent",
        what="A hook that fails stops the agent",
        file="core/commonplace/cli/connections.py",
        old="raise typer.Exit(FAILURE) from None",
        new="raise typer.Exit(2) from None",
        tests=("integrations_tests/test_coding_agent.py", "-k", "never"),
    ),
    Fault(
        name="hook-keeps-secrets",
        what="A key that was shown in a session is stored",
        file="core/commonplace/cli/connections.py",
        old="embedder, redact=secrets)",
        new="embedder)",
        tests=("integrations_tests/test_coding_agent.py", "-k", "next"),
    ),
    Fault(
        name="span-on-thread-lost",
        what="What an asynchronous call does on a thread is no part of its span",
        file=_TELEMETRY,
        old="    if here is None:\n        return call\n",
        new="    if here is not ...:\n        return call\n",
        tests=("integrations_tests/test_telemetry.py", "-k", "loop"),
    ),
    Fault(
        name="span-tells-text",
        what="A span has the texts of memories that nobody asked for",
        file=_TELEMETRY,
        old='is_asked = os.environ.get(CONTENT, "").lower() in _ASKED',
        new="is_asked = True",
        tests=("integrations_tests/test_telemetry.py", "-k", "convention"),
    ),
    Fault(
        name="event-told-twice",
        what="A call that is awaited is two events",
        file="core/commonplace/blocking_memory.py",
        old="call = unreported(call)",
        new="call = call",
        tests=("core/tests/test_events.py", "-k", "scope"),
    ),
)
