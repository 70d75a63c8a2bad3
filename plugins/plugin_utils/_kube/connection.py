# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From connection options to a connection, by the kubernetes package's own means.

Only its configuration (kubeconfig, exec plugins, in-cluster tokens) and its transport
(TLS, client certificates, proxies) are used. Its generated API changes with every release.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

import yaml
from ansible.module_utils.common.parameters import env_fallback

from .errors import BadSettingsError, LibraryMissingError, UnreachableError, one_line

REQUIREMENT = "kubernetes>=35,<38"
CONNECT_TIMEOUT = 10.0
READ_TIMEOUT = 60.0


def _option(variable: str, **rest: object) -> dict[str, object]:
    return {"fallback": (env_fallback, [f"K8S_AUTH_{variable}"]), **rest}


#: For actions. Inventory and lookup plugins get the same from the doc fragment.
ARGUMENT_SPEC: dict[str, dict[str, object]] = {
    "kubeconfig": _option("KUBECONFIG", type="raw"),
    "context": _option("CONTEXT", type="str"),
    "host": _option("HOST", type="str"),
    "api_key": _option("API_KEY", type="str", no_log=True),
    "username": _option("USERNAME", type="str"),
    "password": _option("PASSWORD", type="str", no_log=True),
    "validate_certs": _option("VERIFY_SSL", type="bool", aliases=["verify_ssl"]),
    "ca_cert": _option("SSL_CA_CERT", type="path", aliases=["ssl_ca_cert"]),
    "client_cert": _option("CERT_FILE", type="path", aliases=["cert_file"]),
    "client_key": _option("KEY_FILE", type="path", aliases=["key_file"]),
    "proxy": _option("PROXY", type="str"),
    "no_proxy": _option("NO_PROXY", type="str"),
    "proxy_headers": {
        "type": "dict",
        "options": {
            "proxy_basic_auth": {"type": "str", "no_log": True},
            "basic_auth": {"type": "str", "no_log": True},
            "user_agent": {"type": "str"},
        },
    },
    "impersonate_user": _option("IMPERSONATE_USER", type="str"),
    "impersonate_groups": _option("IMPERSONATE_GROUPS", type="list", elements="str"),
}


@dataclass(frozen=True)
class Settings:
    """The connection options, as the doc fragment names them."""

    kubeconfig: str | Mapping[str, object] | None = field(default=None, repr=False)
    context: str | None = None
    host: str | None = None
    api_key: str | None = field(default=None, repr=False)
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    validate_certs: bool | None = None
    ca_cert: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    proxy: str | None = field(default=None, repr=False)
    no_proxy: str | None = None
    proxy_headers: Mapping[str, str | None] | None = field(default=None, repr=False)
    impersonate_user: str | None = None
    impersonate_groups: tuple[str, ...] = ()

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Self:
        """Take what belongs here out of a plugin's options; an empty value counts as not given."""
        given = {name: options[name] for name in ARGUMENT_SPEC if options.get(name) not in (None, "", [], {})}
        if "impersonate_groups" in given:
            given["impersonate_groups"] = tuple(given["impersonate_groups"])
        return cls(**given)


@dataclass(frozen=True)
class Response:
    """One answer, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Connection:
    """An open way to one API server. Close it: it may hold a client key in a private folder."""

    def __init__(self, settings: Settings) -> None:
        client, rest = _package("kubernetes.client"), _package("kubernetes.client.rest")
        # The package writes keys out of a kubeconfig to files that it removes when Python ends,
        # which a worker of Ansible never does in an orderly way: so they get a folder of ours.
        self._folder = tempfile.TemporaryDirectory(prefix="edpm-kube-", ignore_cleanup_errors=True)
        try:
            self._configuration = client.Configuration()
            _load(settings, self._configuration, self._folder.name)
            _override(settings, self._configuration)
            self._pool = rest.RESTClientObject(self._configuration).pool_manager
        except BaseException:
            self._folder.cleanup()
            raise
        self._settings = settings
        self.server: str = self._configuration.host

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._pool.clear()
        self._folder.cleanup()

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        body: bytes | None = None,
        content_type: str = "application/json",
    ) -> Response:
        """Ask once. Every answer comes back, whatever its status; no answer is UnreachableError."""
        urllib3 = _transport()
        headers = self._headers()
        if body is not None:
            headers["Content-Type"] = content_type
        try:
            answer = self._pool.request(
                method,
                f"{self.server.rstrip('/')}{path}" + (f"?{urlencode(query)}" if query else ""),
                body=body,
                headers=headers,
                timeout=urllib3.Timeout(connect=CONNECT_TIMEOUT, read=READ_TIMEOUT),
                retries=False,
                redirect=False,
            )
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise _unreachable(self.server, error) from error
        return Response(answer.status, answer.headers, answer.data)

    def _headers(self) -> Any:
        headers = _transport().HTTPHeaderDict({"Accept": "application/json", "User-Agent": "edpm.services"})
        # Asked for anew each time: this is where the package refreshes a token that expires.
        for setting in self._configuration.auth_settings().values():
            if setting["value"]:
                headers[setting["key"]] = setting["value"]
        if self._settings.username is not None and self._settings.password is not None:
            headers["Authorization"] = self._configuration.get_basic_auth_token()
        if self._settings.impersonate_user is not None:
            headers["Impersonate-User"] = self._settings.impersonate_user
        for group in self._settings.impersonate_groups:
            headers.add("Impersonate-Group", group)
        return headers


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise LibraryMissingError(
            f"The Python that runs Ansible cannot import the kubernetes package ({one_line(error)}); "
            f"install it there: pip install '{REQUIREMENT}'."
        ) from error


def _transport() -> Any:
    """It comes with the kubernetes package; a run over manifests does without both."""
    return _package("urllib3")


def _load(settings: Settings, configuration: Any, folder: str) -> None:
    """Fill the configuration from the first source there is; a host with its own credentials needs none."""
    if isinstance(settings.kubeconfig, Mapping):
        _load_kubeconfig(settings, configuration, folder, "The kubeconfig mapping")
    elif files := _kubeconfig_files(settings):
        _load_kubeconfig(settings, configuration, folder, f"The kubeconfig {files}", files)
    elif settings.host is None:
        _load_in_cluster(configuration)


def _kubeconfig_files(settings: Settings) -> str | None:
    """The kubeconfig, as a list of paths with colons; None when another source is meant."""
    if isinstance(settings.kubeconfig, str):
        asked, where = settings.kubeconfig, "kubeconfig or K8S_AUTH_KUBECONFIG"
    elif settings.host is not None and settings.context is None:
        return None
    elif os.environ.get("KUBECONFIG"):
        asked, where = os.environ["KUBECONFIG"], "KUBECONFIG"
    else:
        default = Path("~/.kube/config").expanduser()
        return str(default) if default.exists() or settings.context is not None else None
    if not any(Path(part).expanduser().exists() for part in asked.split(os.pathsep) if part):
        raise BadSettingsError(f"The kubeconfig {asked} does not exist; correct the path in {where}.")
    return asked


def _load_kubeconfig(settings: Settings, configuration: Any, folder: str, what: str, files: str | None = None) -> None:
    config = _package("kubernetes.config")
    common = {"context": settings.context, "client_configuration": configuration, "persist_config": False}
    try:
        if files is None:
            plain = json.loads(json.dumps(settings.kubeconfig))
            config.load_kube_config_from_dict(plain, **common, temp_file_path=folder)
        else:
            config.load_kube_config(files, **common, temp_file_path=folder)
    except Exception as error:  # every shape of a broken file ends here, and there are many
        names = _contexts(config, settings, files)
        if settings.context is not None and names and settings.context not in names:
            raise BadSettingsError(
                f"{what} has no context {settings.context}; it has {', '.join(names)}: choose one of them."
            ) from error
        raise BadSettingsError(f"{what} cannot be used: {_without_secrets(error)}; correct or replace it.") from error


def _contexts(config: Any, settings: Settings, files: str | None) -> list[str]:
    try:
        given: Any = settings.kubeconfig
        found = given["contexts"] if files is None else config.list_kube_config_contexts(files)[0]
        return [str(context["name"]) for context in found]
    except Exception:  # noqa: BLE001 - broken in another way, which the caller tells
        return []


def _without_secrets(error: Exception) -> str:
    """What was wrong, without a parser's quotation of the file."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"it is not YAML (line {error.problem_mark.line + 1}: {one_line(error.problem)})"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    if type(error).__name__ == "ConfigException":
        return one_line(error)
    return "it does not have the form of a kubeconfig"


def _load_in_cluster(configuration: Any) -> None:
    config = _package("kubernetes.config")
    try:
        config.load_incluster_config(client_configuration=configuration)
    except config.ConfigException as error:
        raise BadSettingsError(
            "No cluster is named: there is no kubeconfig, no host, and this is not a pod; "
            "set kubeconfig, or KUBECONFIG, or host with api_key."
        ) from error


def _override(settings: Settings, configuration: Any) -> None:
    """Lay single options over what the kubeconfig or the pod gave."""
    for option, attribute in (
        ("host", "host"),
        ("validate_certs", "verify_ssl"),
        ("ca_cert", "ssl_ca_cert"),
        ("client_cert", "cert_file"),
        ("client_key", "key_file"),
        ("proxy", "proxy"),
        ("no_proxy", "no_proxy"),
        ("username", "username"),
        ("password", "password"),
    ):
        value = getattr(settings, option)
        if value is not None:
            setattr(configuration, attribute, value)
    if settings.api_key is not None:
        configuration.refresh_api_key_hook = None
        configuration.api_key = {"authorization": f"Bearer {settings.api_key}"}
    if settings.proxy_headers is not None:
        given = settings.proxy_headers
        configuration.proxy_headers = _transport().make_headers(
            proxy_basic_auth=given.get("proxy_basic_auth"),
            basic_auth=given.get("basic_auth"),
            user_agent=given.get("user_agent"),
        )
    if settings.validate_certs is False:
        urllib3 = _transport()
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    for option in ("ca_cert", "client_cert", "client_key"):
        path = getattr(settings, option)
        if path is not None and not os.access(path, os.R_OK):
            raise BadSettingsError(f"The file {path} in {option} cannot be read; correct the path or its permissions.")
    if not configuration.host.startswith(("https://", "http://")):
        raise BadSettingsError(f"The host {configuration.host} is not a URL; write it as https://name:port.")


def _unreachable(server: str, error: Exception) -> UnreachableError:
    faults = _transport().exceptions
    cause = one_line(getattr(error.__cause__, "strerror", None) or error)
    if isinstance(error, faults.SSLError):
        return UnreachableError(
            f"The certificate of {server} or the client's own is not accepted: {cause}; "
            "check ca_cert, client_cert and client_key, or the kubeconfig that names them."
        )
    if isinstance(error, faults.TimeoutError) and not isinstance(error, faults.NewConnectionError):
        return UnreachableError(
            f"{server} does not answer in time; check the network and the API server.", transient=True
        )
    if isinstance(error, faults.ProxyError):
        return UnreachableError(f"The proxy on the way to {server} fails: {cause}; check proxy and no_proxy.")
    return UnreachableError(
        f"{server} cannot be reached: {cause}; check the address in the kubeconfig, context or host, and the network.",
        transient=isinstance(error, faults.ProtocolError),
    )
