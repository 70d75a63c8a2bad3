"""From options to a connection: which source counts, what a request carries, what is told when it cannot be made."""

from __future__ import annotations

import base64
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.edpm.services.plugins.doc_fragments.kubernetes import ModuleDocFragment
from ansible_collections.edpm.services.plugins.plugin_utils._kube.connection import (
    ARGUMENT_SPEC,
    Connection,
    Settings,
)
from ansible_collections.edpm.services.plugins.plugin_utils._kube.errors import (
    BadSettingsError,
    LibraryMissingError,
    UnreachableError,
)

from .api import Api


def kubeconfig(server: str, **user: object) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "lab",
        "clusters": [{"name": "lab", "cluster": {"server": server}}],
        "users": [{"name": "me", "user": user}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "me"}}],
    }


@pytest.fixture(autouse=True)
def nothing_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)


def headers_sent(api: Api, settings: Settings) -> dict[str, list[str]]:
    with Connection(settings) as connection:
        connection.request("GET", "/version", {})
    return api.requests[-1].headers


def test_a_kubeconfig_may_be_a_mapping(api: Api) -> None:
    sent = headers_sent(api, Settings(kubeconfig=kubeconfig(api.url, token="abc")))
    assert sent["authorization"] == ["Bearer abc"]


def test_a_kubeconfig_may_be_a_file_named_by_the_option_or_the_environment(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kc"
    file.write_text(yaml.safe_dump(kubeconfig(api.url, token="abc")))
    assert headers_sent(api, Settings(kubeconfig=str(file)))["authorization"] == ["Bearer abc"]
    monkeypatch.setenv("KUBECONFIG", f"/does/not/exist:{file}")
    assert headers_sent(api, Settings())["authorization"] == ["Bearer abc"]


def test_the_default_kubeconfig_is_read_where_nothing_is_said(api: Api, tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text(yaml.safe_dump(kubeconfig(api.url, token="abc")))
    assert headers_sent(api, Settings())["authorization"] == ["Bearer abc"]


def test_single_options_lie_over_the_kubeconfig(api: Api) -> None:
    file = kubeconfig("http://127.0.0.1:9", token="abc")
    sent = headers_sent(api, Settings(kubeconfig=file, host=api.url, api_key="mine"))
    assert sent["authorization"] == ["Bearer mine"]


def test_a_host_with_a_token_needs_no_kubeconfig(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/does/not/exist")
    assert headers_sent(api, Settings(host=api.url, api_key="mine"))["authorization"] == ["Bearer mine"]


def test_basic_authentication_and_impersonation_are_headers(api: Api) -> None:
    settings = Settings(
        host=api.url, username="ann", password="pw", impersonate_user="bob", impersonate_groups=("one", "two")
    )
    sent = headers_sent(api, settings)
    assert sent["authorization"] == ["Basic " + base64.b64encode(b"ann:pw").decode()]
    assert sent["impersonate-user"] == ["bob"]
    assert ", ".join(sent["impersonate-group"]) == "one, two"


def test_a_proxy_is_asked_with_its_own_credentials_instead_of_the_server(api: Api) -> None:
    proxied = Settings(
        host="http://cluster.invalid", api_key="mine", proxy=api.url, proxy_headers={"proxy_basic_auth": "ann:pw"}
    )
    sent = headers_sent(api, proxied)
    assert sent["host"] == ["cluster.invalid"]
    assert sent["proxy-authorization"] == ["Basic " + base64.b64encode(b"ann:pw").decode()]


def test_a_server_that_no_proxy_names_is_asked_itself(api: Api) -> None:
    direct = Settings(host=api.url, api_key="mine", proxy="http://127.0.0.1:9", no_proxy="127.0.0.1")
    assert headers_sent(api, direct)["authorization"] == ["Bearer mine"]


def test_a_client_key_out_of_a_kubeconfig_is_gone_with_the_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    secret = {name: base64.b64encode(name.encode()).decode() for name in ("client-key-data", "client-certificate-data")}
    with Connection(Settings(kubeconfig=kubeconfig("https://127.0.0.1:9", **secret))):
        written = [file for file in tmp_path.rglob("*") if file.is_file()]
        assert sorted(file.read_text() for file in written) == sorted(secret)
        assert {file.parent.stat().st_mode & 0o777 for file in written} == {0o700}
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]


def test_settings_show_no_secret() -> None:
    shown = repr(Settings(kubeconfig={"token": "abc"}, api_key="abc", password="abc", proxy="http://u:abc@proxy"))
    assert "abc" not in shown


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(kubeconfig="/does/not/exist"), "The kubeconfig /does/not/exist does not exist; correct the path in "),
        (Settings(), "No cluster is named: there is no kubeconfig, no host, and this is not a pod; set "),
        (
            Settings(kubeconfig=kubeconfig("http://x"), context="moon"),
            "The kubeconfig mapping has no context moon; it has lab: choose one of them.",
        ),
        (Settings(kubeconfig={"a": "b"}), "The kubeconfig mapping cannot be used: "),
        (Settings(host="lab:6443"), "The host lab:6443 is not a URL; write it as https://name:port."),
        (Settings(host="https://x", ca_cert="/no/ca"), "The file /no/ca in ca_cert cannot be read; "),
    ],
)
def test_settings_that_name_no_cluster_are_told_in_one_sentence(settings: Settings, words: str) -> None:
    with pytest.raises(BadSettingsError) as caught:
        Connection(settings)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("users: [\n", "it is not YAML (line 2: "),
        ("just text\n", "it does not have the form of a kubeconfig"),
        ("token: hunter2\n", "cannot be used: "),
    ],
)
def test_a_broken_kubeconfig_is_told_without_its_content(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "kc"
    file.write_text(text)
    with pytest.raises(BadSettingsError) as caught:
        Connection(Settings(kubeconfig=str(file)))
    assert str(caught.value).startswith(f"The kubeconfig {file} cannot be used: ")
    assert words in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "words", "transient"),
    [
        ("http://127.0.0.1:9", "cannot be reached: Connection refused; check the address", False),
        ("https://nowhere.invalid", "cannot be reached: ", False),
    ],
)
def test_no_answer_is_told_with_its_cause(host: str, words: str, transient: bool) -> None:
    with Connection(Settings(host=host)) as connection, pytest.raises(UnreachableError) as caught:
        connection.request("GET", "/version", {})
    assert f"{host} {words}" in str(caught.value)
    assert caught.value.transient is transient
    assert "\n" not in str(caught.value)


def test_a_server_that_hangs_up_may_be_asked_again(api: Api) -> None:
    api.answer("GET", "/version", status=0)
    with Connection(Settings(host=api.url)) as connection, pytest.raises(UnreachableError) as caught:
        connection.request("GET", "/version", {})
    assert caught.value.transient


def test_a_missing_package_is_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes.client", None)
    with pytest.raises(LibraryMissingError, match=r"install it there: pip install 'kubernetes>=35,<38'\."):
        Connection(Settings(host="https://x"))


def test_options_come_from_the_environment_by_the_names_that_kubernetes_core_users_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("K8S_AUTH_HOST", "https://x")
    monkeypatch.setenv("K8S_AUTH_VERIFY_SSL", "no")
    monkeypatch.setenv("K8S_AUTH_IMPERSONATE_GROUPS", "one,two")
    result = ArgumentSpecValidator(ARGUMENT_SPEC).validate({"ssl_ca_cert": "/ca"})
    settings = Settings.from_options(result.validated_parameters)
    assert settings == Settings(
        host="https://x", validate_certs=False, impersonate_groups=("one", "two"), ca_cert="/ca"
    )


@pytest.mark.parametrize("name", ["DOCUMENTATION", "PLUGIN"])
def test_the_documentation_and_the_code_know_the_same_options(name: str) -> None:
    documented = yaml.safe_load(getattr(ModuleDocFragment, name))["options"]
    assert list(documented) == list(ARGUMENT_SPEC)
    for option, spec in ARGUMENT_SPEC.items():
        entry = documented[option]
        assert {key: entry.get(key) for key in ("type", "elements", "aliases")} == {
            key: spec.get(key) for key in ("type", "elements", "aliases")
        }, option
        fallback: Any = spec.get("fallback", (None, []))
        named = [each["name"] for each in entry.get("env", [])] if name == "PLUGIN" else None
        if named is not None:
            assert named == fallback[1], option
        else:
            assert all(f"E({variable})" in " ".join(entry["description"]) for variable in fallback[1]), option
