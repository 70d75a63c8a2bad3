"""Which options hold a secret: the decision table, row by row."""

from __future__ import annotations

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._config.secret_names import Kind, kind_of

ROWS = {
    Kind.SECRET: """
        password admin_password rabbit_password ssl_key_password host_password vmware_host_password san_password
        connection_password memcache_password db_passwd key_passphrase rootpassword
        metadata_proxy_shared_secret client_secret memcache_secret_key approle_secret_id secret ec2_secret
        admin_token api_token authtoken root_token_id pure_api_token token tokens
        authorization session_cookie credentials nas_pwd user_pass chap_psk
    """,
    Kind.KEY: """
        fixed_key key keys hmac_keys backup_swift_key encryption_key access_key access_key_id api_key apikey private_key
        ovn_sb_private_key vencrypt_client_key
    """,
    Kind.ADDRESS: """
        transport_url connection slave_connection sql_connection connection_string notification_transport_url
    """,
    Kind.PLAIN: """
        debug host my_ip username rabbit_userid live_migration_uri connection_uri auth_url token_endpoint auth_type
        ovn_sb_connection ovn_nb_connection ovsdb_connection rbd_secret_uuid rbd_user keyring
        send_service_user_token enable_instance_password inject_key inject_password use_token validate_token_roles
        password_file ssl_key_file keyfile ca_file token_cache_time token_ttl key_manager service_token_roles
        service_token_roles_required memcache_security_strategy compute_driver passthrough_whitelist bypass monkey
        public_key host_public_keys max_connections replication_device
    """,
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in ROWS.items() for name in names.split()])
def test_an_options_name_tells_whether_it_is_secret(kind: Kind, name: str) -> None:
    assert kind_of(name) is kind


@pytest.mark.parametrize(
    "name", ["database.password", "PASSWORD", "admin-password", ' "password"', "- password", "\x0bpassword\u2003"]
)
def test_a_secret_name_is_known_however_it_is_written(name: str) -> None:
    assert kind_of(name) is Kind.SECRET
