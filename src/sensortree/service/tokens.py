"""Callers: bearer tokens, each of a tenant, with scopes.

Tokens are 256 random bits, so their plain SHA-256 can be stored: they cannot be guessed,
and a slow hash would only slow down every request.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from sensortree.exceptions import ParameterError

Scope = Literal["read", "ask", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)

# read: models, pages, one's sessions; ask: steps, answers, changes of sessions;
# admin: what is about all tenants: metrics, the watch, the head of the ledger.
ENVIRONMENT = "SENSORTREE_TOKEN"
PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,100}")
LEAST = 20  # characters of a token that is given in clear


@dataclass(frozen=True)
class Caller:
    """A caller."""

    name: str  # of the token, for logs
    tenant: str  # whose sessions are seen
    scopes: frozenset[str]


LOCAL = Caller("local", "local", frozenset(SCOPES))  # on loopback, without tokens


class Tokens:
    """Callers by the hash of their token (see `digest_of`)."""

    def __init__(self, callers: Mapping[str, Caller]):
        self._callers = tuple((d.encode(), caller) for d, caller in callers.items())

    def __len__(self) -> int:
        return len(self._callers)

    def find(self, token: str) -> Caller | None:
        """The caller of a token, in the same time for right and wrong ones."""
        given = digest_of(token).encode()
        found = None
        for digest, caller in self._callers:
            if hmac.compare_digest(given, digest):
                found = caller
        return found


def digest_of(token: str) -> str:
    """The hash of a token, which is what we store."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def new_token() -> str:
    """A token that nobody can guess."""
    return secrets.token_urlsafe(32)


def add_entry(
    path: Path, name: str, tenant: str, scopes: tuple[str, ...], token: str
) -> None:
    """Add a token to a token file, which only its owner may read; not the token itself."""
    for what, text in {"name": name, "tenant": tenant}.items():
        if not PLAIN.fullmatch(text):
            raise ParameterError(
                f"the {what} {text!r} must be of letters, digits, '-', '_' and '.'."
            )
    known = _read_file(path) if path.exists() else {}
    if name in {caller.name for caller in known.values()}:
        raise ParameterError(f"{path} has a token {name!r} already; take another name.")
    listed = ", ".join(f'"{scope}"' for scope in scopes)
    entry = (
        f'[tokens."{name}"]\ntenant = "{tenant}"\nscopes = [{listed}]\n'
        f'sha256 = "{digest_of(token)}"\n\n'
    )
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    with open(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
        file.write(entry)


def read_tokens(path: Path | None, environment: Mapping[str, str]) -> Tokens:
    """The tokens of a file, and one with all scopes that the environment has."""
    callers = {} if path is None else _read_file(path)
    given = environment.get(ENVIRONMENT, "")
    if given:
        if len(given) < LEAST:
            raise ParameterError(
                f"the token in {ENVIRONMENT} has {len(given)} characters; it needs at "
                f"least {LEAST}: take one that `sensortree token` makes."
            )
        callers[digest_of(given)] = Caller("environment", "default", LOCAL.scopes)
    return Tokens(callers)


def _read_file(path: Path) -> dict[str, Caller]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParameterError(f"{path} is no TOML ({error}).") from error
    entries = document.pop("tokens", None)
    if document or not isinstance(entries, dict) or not entries:
        raise ParameterError(
            f"{path} must hold tables [tokens.NAME] and nothing else; `sensortree token` "
            f"writes them."
        )
    found: dict[str, Caller] = {}
    for name, entry in entries.items():
        digest, caller = _read_entry(f"{path}: token {name!r}", name, entry)
        if digest in found:
            raise ParameterError(f"{path}: token {name!r} is there twice; remove one.")
        found[digest] = caller
    return found


def _read_entry(where: str, name: str, entry: Any) -> tuple[str, Caller]:
    keys = {"tenant", "scopes", "sha256"}
    if not isinstance(entry, dict) or set(entry) != keys:
        raise ParameterError(f"{where} must have {', '.join(sorted(keys))}.")
    tenant, scopes, digest = entry["tenant"], entry["scopes"], entry["sha256"]
    if not isinstance(tenant, str) or not tenant or not tenant.isprintable():
        raise ParameterError(f"{where}: tenant must be a text.")
    if not isinstance(scopes, list) or not scopes or not {*scopes} <= {*SCOPES}:
        raise ParameterError(f"{where}: scopes must list some of {', '.join(SCOPES)}.")
    plain = isinstance(digest, str) and len(digest) == 64
    if not plain or not {*digest} <= {*"0123456789abcdef"}:
        raise ParameterError(
            f"{where}: sha256 must be 64 hexadecimal digits, as `sensortree token` writes "
            f"them; the token itself does not belong into the file."
        )
    return digest, Caller(name, tenant, frozenset(scopes))
