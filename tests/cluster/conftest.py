"""Fixtures of tests that look at live jobs in a browser."""

import time

import pytest
from tests.cluster.browser import Browser
from tests.cluster.live_site import CHROMIUM, HOSTILE, Record, Records, Site, endless, failing

from penstock.cluster.driver_rest import DriverRest
from penstock.cluster.gateway import create_gateway
from penstock.cluster.rest_server import RestServer


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    directory = tmp_path_factory.mktemp("dashboard")
    clients = {"counts": endless("counts", directory), HOSTILE: endless(HOSTILE, directory), "bad": failing("bad")}
    driver, records = DriverRest("job.py"), Records(directory / "archive")
    (directory / "socket").mkdir()
    log = directory / "job.log"
    log.write_text("INFO started\nERROR something odd\n")
    for name, client in clients.items():
        rest = driver.follow(client, directory / "socket", records.archive)
        records.known.append(Record(str(client.get_job_id()), name, rest, started=time.time(), log=str(log)))
    server = RestServer.on_port(create_gateway(records), "127.0.0.1", "0")
    yield Site(server.address, clients, directory, records)
    server.close()
    for client in clients.values():
        if not client.get_job_status().result().is_terminal_state():
            client.cancel().result()
    driver.close()


@pytest.fixture(scope="module")
def shared_browser(tmp_path_factory):
    browser = Browser(CHROMIUM, tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()


@pytest.fixture
def page(shared_browser):
    shared_browser.size(1360, 900)
    shared_browser.colours("light")
    shared_browser.messages.clear()
    yield shared_browser
    assert shared_browser.problems() == []
    shared_browser.open("about:blank")
