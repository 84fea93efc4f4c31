"""How to reach Gemini: an API key, or a Google Cloud project on Vertex; from the config, then the environment."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared import config as settings
from shared.errors import AuthFailed, ConfigError, unknown_name
from shared.providers.base import ProviderConfig
from shared.providers.google_messages import NAME
from shared.providers.transport import check_base_url

_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
_EXTRAS = ("api_version", "credentials")


@dataclass(frozen=True)
class Access:
    """What the SDK's client is made from; exactly one of key and project is used."""

    vertex: bool
    api_key: str | None = field(default=None, repr=False)
    project: str | None = None
    location: str | None = None
    base_url: str | None = None
    credentials_path: str | None = None
    credentials: Any = field(default=None, repr=False)  # a google.auth credentials object given by the host
    api_version: str | None = None

    @property
    def url(self) -> str:
        """The address, for error messages."""
        if self.base_url is not None:
            return self.base_url
        return "https://aiplatform.googleapis.com" if self.vertex else "https://generativelanguage.googleapis.com"

    @property
    def identity(self) -> str:
        """A text that tells credentials apart."""
        if self.api_key is not None:
            return f"{'vertex' if self.vertex else 'key'}:{self.api_key}"
        return f"vertex:{self.project}:{self.location}:{self.credentials_path}:{id(self.credentials)}"


def resolve(config: ProviderConfig) -> Access:
    """Decide between API key and Vertex.

    `use_vertex_ai` decides if it is set, then Google's own variables. Otherwise what was given in code
    beats the environment, and a key beats a project.
    """
    for name in config.extra:
        if name not in _EXTRAS:
            raise ConfigError(f"{NAME}: {unknown_name('setting in extra', name, _EXTRAS)}")
    project = config.project or settings.google_project()
    env_key = settings.google_api_key()
    vertex = config.use_vertex_ai if config.use_vertex_ai is not None else settings.google_use_vertex()
    if vertex is None:
        given = config.api_key or (None if config.project else env_key)
        vertex = given is None and project is not None
    if vertex:
        return _vertex(config, project, env_key)
    key = config.api_key or env_key
    if key is None:
        raise AuthFailed(
            f"{NAME}: no credentials; set GOOGLE_API_KEY or GEMINI_API_KEY (or ProviderConfig.api_key), "
            "or for Vertex a project with GOOGLE_CLOUD_PROJECT (or ProviderConfig.project)",
            provider=NAME,
        )
    return Access(
        vertex=False,
        api_key=key,
        base_url=_base_url(config, vertex=False),
        api_version=config.extra.get("api_version"),
    )


def _vertex(config: ProviderConfig, project: str | None, env_key: str | None) -> Access:
    base_url = _base_url(config, vertex=True)
    version = config.extra.get("api_version")
    key = config.api_key or (None if project else env_key)
    if key is not None:  # "express mode": Vertex with a key instead of a project
        return Access(vertex=True, api_key=key, base_url=base_url, api_version=version)
    if project is None:
        raise AuthFailed(
            f"{NAME}: Vertex needs a project; set GOOGLE_CLOUD_PROJECT (or ProviderConfig.project), "
            "or an API key in GOOGLE_API_KEY",
            provider=NAME,
        )
    if config.credentials_path is not None and not Path(config.credentials_path).expanduser().is_file():
        raise AuthFailed(
            f"{NAME}: the credentials file '{config.credentials_path}' does not exist; "
            "give the path of a service account key, or leave it out to use application default credentials",
            provider=NAME,
        )
    return Access(
        vertex=True,
        project=project,
        location=config.location or settings.google_location() or "global",
        base_url=base_url,
        credentials_path=config.credentials_path,
        credentials=config.extra.get("credentials"),
        api_version=version,
    )


def _base_url(config: ProviderConfig, *, vertex: bool) -> str | None:
    if config.base_url is not None:
        return check_base_url(config.base_url, source="base_url")
    value = settings.google_base_url(vertex=vertex)
    return check_base_url(value, source="the base URL in the environment") if value is not None else None


def load_credentials(access: Access) -> Any:
    """The credentials object for Vertex; None leaves the search for default credentials to the SDK."""
    if access.credentials is not None or access.credentials_path is None:
        return access.credentials
    from google.auth.exceptions import GoogleAuthError
    from google.oauth2 import credentials as user
    from google.oauth2 import service_account as service

    path = str(Path(access.credentials_path).expanduser())
    try:
        kind = json.loads(Path(path).read_text(encoding="utf-8")).get("type")
        if kind == "service_account":
            return service.Credentials.from_service_account_file(path, scopes=_SCOPES)  # type: ignore[no-untyped-call]
        if kind == "authorized_user":
            return user.Credentials.from_authorized_user_file(path)  # type: ignore[no-untyped-call]
    except (GoogleAuthError, AttributeError, ValueError, OSError) as error:
        raise AuthFailed(f"{NAME}: the credentials file '{path}' cannot be used: {error}", provider=NAME) from error
    raise AuthFailed(
        f"{NAME}: the credentials file '{path}' is of type {kind!r}, not service_account or authorized_user; "
        "for other types set GOOGLE_APPLICATION_CREDENTIALS instead",
        provider=NAME,
    )
