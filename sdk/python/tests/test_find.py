"""Where the server is looked for, how one shows who one is, and the agent that is started."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from concurrent import futures
from pathlib import Path

import grpc
import pytest
from conftest import PATIENCE_SECONDS, Running, Scripted

import minerva
from minerva import _find
from minerva._address import Address
from minerva.v1 import participation_pb2_grpc as v1_grpc


@pytest.mark.parametrize(
    "text",
    [
        "unix:/run/minerva/tenant.sock",
        "vsock:2:7420",
        "https://host.example:7420",
        "http://127.0.0.1:7420",
        "http://[::1]:7420",
        "http://localhost:1",
    ],
)
def test_every_form_reads_back_as_it_is_written(text: str) -> None:
    assert str(Address.parse(text)) == text
    assert Address.parse("unix:///a/b").path == "/a/b"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("/run/minerva/tenant.sock", "begins with unix:"),
        ("unix:relative", "whole path"),
        ("vsock:2", "vsock:CID:PORT"),
        ("vsock:host:7420", "numbers"),
        ("https://host", "port is missing"),
        ("https://host:port", "https://host:port"),
        ("http://192.0.2.1:7420", "loopback"),
        ("tcp://host:1", "begins with unix:"),
    ],
)
def test_what_is_no_address_is_refused_with_what_to_write(text: str, part: str) -> None:
    with pytest.raises(minerva.AddressError, match=part) as raised:
        minerva.connect(text)
    assert repr(text) in str(raised.value)


def test_half_an_identity_a_missing_file_and_a_missing_authority_are_told() -> None:
    with pytest.raises(minerva.CredentialsError, match="go together"):
        minerva.Credentials.from_environment({"MINERVA_KEY": "/dev/null"})
    with pytest.raises(minerva.CredentialsError, match="MINERVA_CA"):
        minerva.Credentials.from_environment({"MINERVA_CA": "/nonexistent/ca.pem"})
    with pytest.raises(minerva.CredentialsError, match="set MINERVA_CA"):
        minerva.Credentials().for_channel(Address.parse("https://host:7420"))


def test_a_token_is_sent_over_tcp_and_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "token"
    file.write_text("secret\n")
    monkeypatch.setenv("MINERVA_TOKEN_FILE", str(file))
    credentials = minerva.Credentials.from_environment()
    assert credentials.token == "secret" and "secret" not in repr(credentials)
    assert minerva.Credentials.from_environment({"MINERVA_TOKEN": "secret\n"}).token == "secret"
    with pytest.raises(minerva.CredentialsError, match="no request can carry") as refused:
        minerva.Credentials(token="sec\nret").metadata(Address.parse("http://127.0.0.1:1"))
    assert "sec\nret" not in str(refused.value)
    assert credentials.metadata(Address.parse("unix:/a")) == ()
    script = Scripted()
    server = grpc.server(futures.ThreadPoolExecutor(4))
    v1_grpc.add_ParticipationServicer_to_server(script, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with minerva.connect(f"http://127.0.0.1:{port}") as client:
        client.describe()
    server.stop(grace=0).wait()
    assert script.metadata["authorization"] == "Bearer secret"


def openssl(directory: Path, *words: str) -> None:
    subprocess.run(["openssl", *words], cwd=directory, check=True, capture_output=True)


def test_tls_shows_a_certificate_and_knows_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("skipped: needs openssl")
    names = "subjectAltName=DNS:localhost,IP:127.0.0.1"
    new = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    for name in ("server", "client"):
        openssl(
            tmp_path, *new, "-subj", f"/CN={name}", "-addext", names, "-keyout", f"{name}.key", "-out", f"{name}.pem"
        )

    def pem(name: str) -> bytes:
        return (tmp_path / name).read_bytes()

    script = Scripted()
    server = grpc.server(futures.ThreadPoolExecutor(4))
    v1_grpc.add_ParticipationServicer_to_server(script, server)
    port = server.add_secure_port(
        "127.0.0.1:0",
        grpc.ssl_server_credentials([(pem("server.key"), pem("server.pem"))], pem("client.pem"), True),
    )
    server.start()
    address = f"https://localhost:{port}"
    monkeypatch.setenv("MINERVA_CA", str(tmp_path / "server.pem"))
    with minerva.connect(address, patience_seconds=1) as stranger:
        with pytest.raises(minerva.Unreachable):
            stranger.describe()
    monkeypatch.setenv("MINERVA_CERTIFICATE", str(tmp_path / "client.pem"))
    monkeypatch.setenv("MINERVA_KEY", str(tmp_path / "client.key"))
    with minerva.connect(address) as client:
        assert client.describe().tenant == "vm4"
    server.stop(grace=0).wait()


@pytest.mark.filterwarnings("default")
def test_a_named_server_that_is_not_there_harms_nobody(tmp_path: Path) -> None:
    left_over = tmp_path / "left.sock"
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(left_over))
    with pytest.warns(minerva.NoServerWarning, match="nobody listens at unix:"):
        for path in (left_over, tmp_path / "never.sock"):
            with minerva.connect(f"unix:{path}") as client, client.deprioritized("low"):
                assert client.absence is not None and client.credits() == minerva.Credits()


def test_the_sockets_are_tried_in_their_order(server: Running, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "runtime/minerva").mkdir(parents=True, mode=0o700)
    other = Running(tmp_path / "runtime/minerva/agent.sock")
    monkeypatch.setattr(_find, "_SOCKETS", ("/nonexistent.sock", server.address.removeprefix("unix:")))
    with minerva.connect() as client:
        assert client.address == server.address
    server.kill()
    with minerva.connect() as client:
        assert client.address == other.address
    other.kill()


def test_a_socket_in_a_directory_of_others_is_not_trusted(tmp_path: Path) -> None:
    directory = Path("/tmp") / f"minerva-test-python-{os.getpid()}"
    directory.mkdir(mode=0o700)
    try:
        assert _find._is_trusted(f"{directory}/agent.sock")
        directory.chmod(0o777)
        assert not _find._is_trusted(f"{directory}/agent.sock")
        with pytest.raises(PermissionError, match="lets others write"):
            _find._own_directory(str(directory))
    finally:
        directory.rmdir()


# Stands for an agent: a program that listens where it is told and knows its upstream. Ends when it is asked to buy.
AGENT = """#!{python}
import os, sys
sys.path[:0] = {path}
import conftest, pathlib
assert sys.argv[1] == "--socket" and sys.argv[3:] == ["--idle-exit", "60s"], sys.argv
pathlib.Path({log}).open("a").write(os.environ["MINERVA_UPSTREAM"] + "\\n")
agent = conftest.Running(pathlib.Path(sys.argv[2]))
agent.script.until("it is killed", lambda: agent.script.calls["Boost"] > 0)
agent.kill()
"""


def test_the_agent_is_started_where_none_runs_and_again_when_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, log = tmp_path / "minerva-agent", tmp_path / "log"
    here = str(Path(__file__).parent)
    program.write_text(AGENT.format(python=sys.executable, path=[here, *sys.path], log=repr(str(log))))
    program.chmod(0o755)
    monkeypatch.delenv("MINERVA_AGENT")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("MINERVA_UPSTREAM", "https://host:7420")
    # While the agent is started again, the request that needs it waits.
    with minerva.connect(patience_seconds=PATIENCE_SECONDS) as client:
        assert client.address == f"unix:{tmp_path}/runtime/minerva/agent.sock"
        assert client.describe().tenant == "vm4"
        # Whether the answer comes before the agent ends is a matter of luck; it is asked again if not.
        client.boost(slices=1)
        end = time.monotonic() + PATIENCE_SECONDS
        while _find._listens(f"{tmp_path}/runtime/minerva/agent.sock"):
            assert time.monotonic() < end
            time.sleep(0.01)
        assert client.describe().tenant == "vm4"
        assert set(log.read_text().split()) == {"https://host:7420"} and len(log.read_text().split()) >= 2
    # vsock is the agent's to speak.
    with minerva.connect("vsock:2:7420") as client:
        assert client.describe().tenant == "vm4"
    end_agent(f"unix:{tmp_path}/runtime/minerva/agent.sock")


def end_agent(address: str) -> None:
    with minerva.connect(address, patience_seconds=1) as client:
        try:
            client.boost(slices=1)
        except minerva.Unreachable:
            pass
