"""What may be shown of values, of files and of explanations."""

from __future__ import annotations

import time

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._config.masking import (
    MASK,
    masked,
    masked_bytes,
    masked_explanation,
    masked_file,
    masked_text,
)
from ansible_collections.edpm.services.plugins.plugin_utils._config.provenance import explain
from ansible_collections.edpm.services.plugins.plugin_utils._config.sources import Layer, Source
from hypothesis import given
from hypothesis import strategies as st

from .samples import folder, generated, snippet

PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEabc=\ndef+/==\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("option", "value", "shown"),
    [
        ("DEFAULT.debug", "True", "True"),
        ("neutron.metadata_proxy_shared_secret", "hunter2", MASK),
        ("password", "line one\nline two", MASK),
        ("password", "", ""),
        ("password", "$other", MASK),
        ("ovn_sb_private_key", "/etc/pki/tls/private/ovndb.key", "/etc/pki/tls/private/ovndb.key"),
        ("backup_swift_key", "/8sK+abc/def==", MASK),
        ("password", "/etc/passwd", MASK),
        ("transport_url", "rabbit://nova:hunter2@host:5671/?ssl=1", f"rabbit://nova:{MASK}@host:5671/?ssl=1"),
        (
            "transport_url",
            "rabbit://n1:hunter2@h1:5671,n2:hunter3@[fd00::1]:5671/vhost?ssl=1&password=hunter4",
            f"rabbit://n1:{MASK}@h1:5671,n2:{MASK}@[fd00::1]:5671/vhost?ssl=1&password={MASK}",
        ),
        ("transport_url", "fake://", "fake://"),
        ("transport_url", "rabbit://u:$rabbit_pw@$host:$port/", f"rabbit://u:{MASK}@$host:$port/"),
        ("connection", "mysql+pymysql://nova:p%40ss@db/nova_cell1?charset=utf8", f"mysql+pymysql://nova:{MASK}@db/nova_cell1?charset=utf8"),
        ("connection", "mysql://nova:hun@ter2@db/nova", MASK),
        ("connection", "mysql://nova:hun/ter2@db/nova", MASK),
        ("connection", "mysql://nova:hun ter2@db/nova", MASK),
        ("connection", "nova:hunter2@db", MASK),
        ("connection", "sqlite:////var/lib/nova/nova.sqlite", "sqlite:////var/lib/nova/nova.sqlite"),
        ("ovn_sb_connection", "ssl:10.0.0.1:6642,ssl:10.0.0.2:6642", "ssl:10.0.0.1:6642,ssl:10.0.0.2:6642"),
        ("live_migration_uri", "qemu+ssh://nova@%s/system?keyfile=/var/lib/nova/.ssh/id", "qemu+ssh://nova@%s/system?keyfile=/var/lib/nova/.ssh/id"),
        ("proxy", "see http://user:hunter2@proxy:3128 for it", f"see http://user:{MASK}@proxy:3128 for it"),
        ("proxy", "http://u:hun@ter2@proxy/x", f"http://u:{MASK}@proxy/x"),
        ("proxy", "http://u:12/3hunter@proxy/x", f"http://u:{MASK}@proxy/x"),
        ("urls", "http://u:hunter2@a,http://v:hunter3@b", f"http://u:{MASK}@a,http://v:{MASK}@b"),
        ("auth_url", "https://keystone:5000/v3", "https://keystone:5000/v3"),
        ("replication_device", "backend_id:x,san_password:hunter2,ip:::1", f"backend_id:x,san_password:{MASK},ip:::1"),
        ("device", '{"user": "x", "password": "hunter2 hunter3"}', f'{{"user": "x", "password": {MASK}}}'),
        ("device", '{"password": "hunter2 hunter3', f'{{"password": {MASK}'),
        ("device", "x=password=hunter2", f"x=password={MASK}"),
        ("anything", PEM, MASK),
    ],
)  # fmt: skip
def test_a_value_is_shown_as_its_options_name_and_its_own_form_allow(option: str, value: str, shown: str) -> None:
    assert masked(value, option) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[DEFAULT]\ndebug = True\n", "[DEFAULT]\ndebug = True\n"),
        ("[a]\npassword = hunter2\r\nx = 1\r\n", "[a]\npassword = ***\r\nx = 1\r\n"),
        ("[a]\npassword: 'hunter2'", "[a]\npassword: '***'"),
        ("[a]\npassword =\n  hunter2\n\thunter3\nx = 1\n  2", "[a]\npassword =\n  ***\n\t***\nx = 1\n  2"),
        ("[a]\npassword = hunter2\nhunter3\n", "[a]\npassword = ***\n***\n"),
        ("[a]\npassword = hun\u2028ter2\n", "[a]\npassword = ***\n"),
        ("[a]\nx = 1\n  password = hunter2\n  hunter3\n", "[a]\nx = 1\n  password = ***\n  ***\n"),
        ("[a]\n#password = hunter2\n# Ask for the password.\n", "[a]\n#password = ***\n# Ask for the password.\n"),
        ("; admin_token: hunter2", "; admin_token: ***"),
        ("# it was rabbit://u:hunter2@h\n", "# it was rabbit://u:***@h\n"),
        ("[a]\ntransport_url = \"rabbit://u:hunter2@h\"  \n", "[a]\ntransport_url = \"rabbit://u:***@h\"\n"),
        ("[a]\nssl_key = /etc/pki/x.key  \n", "[a]\nssl_key = /etc/pki/x.key  \n"),
        (f"[a]\ncert = {PEM}\nx = 1\n", "[a]\ncert = ***\n***\n***\n***\nx = 1\n"),
        ("users:\n  - name: x\n    password: hunter2\n", "users:\n  - name: x\n    password: ***\n"),
        ("no setting at all", "no setting at all"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_files_text_keeps_all_but_its_secrets(text: str, shown: str) -> None:
    assert masked_text(text.encode()) == shown


def test_bytes_that_are_not_utf8_are_kept_in_a_tree_and_escaped_for_the_eye() -> None:
    content = b"\xef\xbb\xbf[a]\nx = \xff\0\npassword = \xff\xfe"
    assert masked_bytes(content) == b"\xef\xbb\xbf[a]\nx = \xff\0\npassword = ***"
    assert masked_text(content) == "\ufeff[a]\nx = \\xff\0\npassword = ***"


@pytest.mark.parametrize(
    ("name", "secret", "shown"),
    [
        ("01-nova.conf", True, b"[a]\nx = 1\npassword = ***"),
        ("tls.crt", True, b"***\n"),
        ("rabbitmq_user_name", True, b"***\n"),
        ("provider.yaml", False, b"[a]\nx = 1\npassword = ***"),
        ("ceph.client.openstack.keyring", False, b"***\n"),
        ("secure.yaml", False, b"***\n"),
        ("ssh-privatekey", False, b"***\n"),
    ],
)
def test_what_comes_from_a_secret_and_is_no_configuration_is_one_mask(name: str, secret: bool, shown: bytes) -> None:
    content = b"[a]\nx = 1\npassword = hunter2"
    assert masked_file(Source(name, content, "Secret o/s", f"key {name}", Layer.GENERATED, secret)) == shown


def test_an_empty_file_shows_as_empty() -> None:
    assert masked_file(Source("tls.key", b"", "Secret o/s", "key tls.key", Layer.GENERATED, secret=True)) == b""


def test_an_explanation_is_masked_in_its_values_and_in_every_place() -> None:
    conf_d = folder(
        generated("01-nova.conf", "[DEFAULT]\nx = 1\n[db]\npassword = hunter2\n"),
        snippet("[db]\npassword = hunter3\n"),
    )
    shown = masked_explanation(explain(conf_d))
    password, plain = shown.find("db.password"), shown.find("x")
    assert password is not None
    assert plain is not None
    assert password.values == (MASK,)
    assert [place.value for place in password.places] == [MASK, MASK]
    assert plain.value == plain.places[0].value == "1"


@pytest.mark.parametrize(
    ("name", "value", "password", "shown"),
    [
        ("url", "http://u:$password@h", "hunter2", MASK),
        ("greeting", "say $password", "hunter2", MASK),
        ("indirect", "<$greeting2>", "hunter2", MASK),
        ("connection", "mysql://nova:$password@db/nova", "hunter2", "mysql://nova:***@db/nova"),
        ("connection", "mysql://nova:$password@db/nova", "hunter@two,three:four", MASK),
        ("connection", "mysql://$password@db/nova", "hunter2", MASK),
        ("plain", "$x", "hunter2", "1"),
    ],
)
def test_a_secret_that_a_reference_brings_in_is_masked_where_it_arrives(
    name: str, value: str, password: str, shown: str
) -> None:
    text = f"[g]\nx = 1\npassword = {password}\ngreeting2 = $password!\n{name} = {value}\n"
    option = masked_explanation(explain(folder(generated("01.conf", text)))).find(f"g.{name}")
    assert option is not None
    assert option.values == (shown,)


SECRET_NAMES = st.sampled_from(["password", "admin_password", "shared_secret", "api_token", "fixed_key", "a.b.passwd"])
# Letters and signs that no other part of a drawn file has, so that any four of them in the output are a leak.
SECRETS = st.text("QWXYZ0123456789!#*+-/=:$%&ß\u2028\x0b", min_size=4, max_size=24).map(lambda text: f"Q{text}Z")
URL_SECRETS = st.text("QWXYZ0123456789!*+-_.~$%:", min_size=4, max_size=24)
INNOCENT = st.text(" \tabc=:;#[]'\"éx.{}\0\x0c\u2028", max_size=20)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


@st.composite
def secret_settings(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """The lines of a setting, and the secrets in them."""
    form = draw(st.integers(0, 3))
    secret = draw(URL_SECRETS if form == 1 else SECRETS)
    if form == 0:
        return [f"{draw(SECRET_NAMES)} {draw(st.sampled_from('=:'))} {secret}"], [secret]
    if form == 1:
        other = draw(URL_SECRETS)
        return [f"transport_url = rabbit://u:{secret}@h1,v:{other}@h2/x"], [secret, other]
    more = draw(st.lists(SECRETS, max_size=3))
    comment = "#" if form == 2 else ""
    return [f"{comment}{draw(SECRET_NAMES)}={secret}", *(f"  {text}" for text in more)], [secret, *more]


@given(st.lists(st.one_of(secret_settings(), INNOCENT.map(lambda line: ([line], []))), max_size=8), ENDS)
def test_no_four_characters_of_a_secret_are_left_in_a_files_text(
    parts: list[tuple[list[str], list[str]]], end: str
) -> None:
    shown = masked_text(end.join(line for lines, _secrets in parts for line in lines).encode())
    for secret in (secret for _lines, secrets in parts for secret in secrets):
        pieces = (secret[start : start + 4] for start in range(len(secret) - 3))
        leaked = [piece for piece in pieces if piece in shown and "*" not in piece]
        assert not leaked


@given(st.lists(INNOCENT, max_size=8), ENDS)
def test_text_without_secrets_is_kept_to_the_byte(lines: list[str], end: str) -> None:
    content = end.join(lines).encode()
    assert masked_bytes(content) == content


@given(st.binary(max_size=60))
def test_any_bytes_can_be_masked_and_masking_twice_changes_no_more(content: bytes) -> None:
    once = masked_bytes(content)
    assert masked_bytes(once) == once


@given(SECRET_NAMES, SECRETS)
def test_a_secret_value_is_a_mask_of_one_length(name: str, secret: str) -> None:
    assert masked(secret, name) == MASK


@pytest.mark.parametrize(
    "text", ["a" * 200_000, "a," * 100_000, "http://" + "a:" * 100_000, "password" * 25_000, "= " * 100_000]
)
def test_a_long_text_is_masked_in_time_that_grows_with_its_length_only(text: str) -> None:
    started = time.process_time()
    masked(text, "anything")
    masked(f"rabbit://{text}@h", "transport_url")
    assert time.process_time() - started < 5
