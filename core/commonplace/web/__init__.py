"""Web pages that show a memory: why something was recalled, and what is known of whom.

Its packages come with the extra `serve`.
"""

from ..errors import MissingExtraError
from ..user_tokens import add_user_token, read_users

try:
    from .app import create_app
    from .security import LOOPBACK, Login, header_login
except ImportError as error:
    raise MissingExtraError(package="starlette and jinja2", extra="serve") from error

__all__ = ["LOOPBACK", "Login", "add_user_token", "create_app", "header_login", "read_users"]
