"""TLS: certificates of the service and of its clients."""

import datetime as dt
import ipaddress
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from penstock.cli.remote import RestClient
from penstock.cluster.rest_server import RestServer
from penstock.cluster.tls import TlsFiles, tls_files
from penstock.common.errors import InvalidProgramError, JobExecutionError


def certificate(directory, name):
    """A certificate for 127.0.0.1 that is its own authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    public, private = directory / f"{name}.crt", directory / f"{name}.key"
    public.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    pem = serialization.PrivateFormat.PKCS8
    private.write_bytes(key.private_bytes(serialization.Encoding.PEM, pem, serialization.NoEncryption()))
    (directory / f"{name}.pem").write_bytes(public.read_bytes() + private.read_bytes())
    return public, private


@pytest.fixture
def serve():
    app = Starlette(routes=[Route("/v1/x", lambda request: PlainTextResponse("1"))])
    servers = []

    def start(tls):
        servers.append(RestServer.on_port(app, "127.0.0.1", "0", tls))
        return servers[-1].address

    yield start
    for server in servers:
        server.close()


def test_o150_a_client_that_trusts_the_certificate_is_answered(serve, tmp_path, monkeypatch):
    public, private = certificate(tmp_path, "service")
    address = serve(TlsFiles(public, private))
    assert address.startswith("https://")
    with pytest.raises(JobExecutionError, match="CERTIFICATE_VERIFY_FAILED"):
        RestClient(address).send("GET", "/x")
    monkeypatch.setenv("PENSTOCK_CA_FILE", str(public))
    assert RestClient(address).send("GET", "/x") == 1


def test_o150_with_mutual_authentication_a_client_needs_a_certificate(serve, tmp_path, monkeypatch):
    public, private = certificate(tmp_path, "service")
    authority, _ = certificate(tmp_path, "client")
    address = serve(TlsFiles(public, private, authority))
    monkeypatch.setenv("PENSTOCK_CA_FILE", str(public))
    with pytest.raises((JobExecutionError, OSError)):
        RestClient(address).send("GET", "/x")
    monkeypatch.setenv("PENSTOCK_CLIENT_CERT", str(tmp_path / "client.pem"))
    assert RestClient(address).send("GET", "/x") == 1


def test_o150_a_new_certificate_needs_no_restart(tmp_path):
    public, private = certificate(tmp_path, "service")
    files = TlsFiles(public, private)
    context = files.context()
    assert not files.has_changed()
    certificate(tmp_path, "service")
    assert files.has_changed()
    files.load(context)
    assert not files.has_changed()


def test_o150_versions_before_1_2_are_rejected(tmp_path):
    assert TlsFiles(*certificate(tmp_path, "service")).context().minimum_version is ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "cert and security.ssl.rest.key"),
        ({"keystore": "a.jks"}, "openssl pkcs12"),
        ({"cert": "/none.crt", "key": "/none.key", "authentication-enabled": "true"}, "security.ssl.rest.ca"),
    ],
)
def test_o150_settings_that_are_incomplete_say_what_is_missing(settings, message):
    given = {f"security.ssl.rest.{name}": value for name, value in settings.items()}
    with pytest.raises(InvalidProgramError, match=message):
        tls_files({"security.ssl.rest.enabled": "true", **given})


def test_o150_there_is_no_tls_unless_it_is_switched_on():
    assert tls_files({"security.ssl.rest.cert": "/a"}) is None
