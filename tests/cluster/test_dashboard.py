"""The dashboard in headless Chromium, over live jobs of the mini cluster."""

import importlib.util
import os
import time
from pathlib import Path

import pytest
from tests.cluster.live_site import HOSTILE, needs_browser

from penstock.common.job_status import JobStatus

ROOT = Path(__file__).resolve().parents[2]


def _module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def keep_picture(page, name):
    """With PENSTOCK_SCREENSHOTS=directory the pictures of the guide are taken."""
    if directory := os.environ.get("PENSTOCK_SCREENSHOTS"):
        time.sleep(1.5)
        page.screenshot(Path(directory) / f"dashboard-{name}.png")


def test_o162_the_committed_build_belongs_to_the_sources():
    tool = _module(ROOT / "scripts/dashboard_fingerprint.py")
    assert tool.NOTE.read_text() == tool.fingerprint(), "run make dashboard"


def test_o162_the_build_is_small_and_the_lock_names_no_addresses():
    built = ROOT / "src/penstock/cluster/static"
    assert sum(file.stat().st_size for file in built.rglob("*") if file.is_file()) < 400 * 1024
    assert "resolved" not in (ROOT / "dashboard/package-lock.json").read_text()


@needs_browser
def test_o91_the_overview_lists_running_and_ended_jobs(page, site):
    page.open(site.url)
    page.wait_for_text("counts")
    page.wait_for_text("RUNNING")
    page.wait_for_text("FAILED")
    keep_picture(page, "overview")


@needs_browser
def test_o152_a_job_named_like_a_tag_is_shown_as_text(page, site):
    page.open(site.job(HOSTILE))
    page.wait_for_text(HOSTILE)
    page.wait_for("document.querySelectorAll('.vertex').length >= 2")
    assert page.run("document.title") == "Penstock"
    assert page.run("document.querySelectorAll('img').length") == 0


@needs_browser
def test_o99_the_graph_shows_rates_busy_shares_and_lag(page, site):
    page.open(site.job("counts"))
    page.wait_for(
        "document.querySelectorAll('.vertex').length === 2 && document.querySelectorAll('.edge').length === 1"
    )
    page.wait_for("parseFloat(document.querySelector('.edge-rate').textContent) > 0")
    text = page.wait_for("[...document.querySelectorAll('.vertex')].map((one) => one.textContent).join(' ')")
    assert "Busy" in text
    assert "Watermark" in text
    assert "Lag" in text
    page.wait_for("/Lag [0-9]/.test(document.querySelectorAll('.vertex')[1].textContent)")
    keep_picture(page, "job")
    page.run("document.querySelector('.vertex').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    page.wait_for("document.querySelectorAll('.vertex-card tbody tr').length === 2")


@needs_browser
@pytest.mark.parametrize(
    ("tab", "job", "expected"),
    [
        ("timeline", "counts", "The last"),
        ("checkpoints", "counts", "Summary of all"),
        ("splits", "counts", "ACTIVE"),
        ("state", "counts", "Operators"),
        ("exceptions", "bad", "order 17 has no customer"),
        ("configuration", "counts", "job-parallelism"),
        ("log", "counts", "ERROR something odd"),
    ],
)
def test_o97_every_tab_of_a_job_has_its_content(page, site, tab, job, expected):
    page.open(f"{site.job(job)}/{tab}")
    page.wait_for_text(expected)
    keep_picture(page, tab)


@needs_browser
def test_o102_the_state_browser_shows_keys_and_finds_one(page, site):
    page.open(f"{site.job('counts')}/state")
    page.wait_for("document.querySelectorAll('.keys li').length === 7")
    page.run("document.querySelectorAll('.key')[3].click()")
    page.wait_for("/[0-9]/.test(document.querySelector('.value pre').innerText)")
    keep_picture(page, "state")
    page.run(
        "(() => { const box = document.querySelector('input[type=search]'); box.value = '6'; "
        "box.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )
    page.wait_for("document.querySelectorAll('.keys li').length === 1")


@needs_browser
def test_o94_the_traceback_shows_the_users_own_frame(page, site):
    page.open(f"{site.job('bad')}/exceptions")
    page.wait_for_text("check_order")


@needs_browser
@pytest.mark.parametrize(
    ("path", "expected"), [("workers", "Memory"), ("service", "Environment"), ("submit", "penstock cluster start")]
)
def test_o95_every_page_of_the_service_has_its_content(page, site, path, expected):
    page.open(f"{site.url}/#/{path}")
    page.wait_for_text(expected)
    keep_picture(page, path)


@needs_browser
def test_o105_colours_follow_the_system_and_the_switch(page, site):
    page.colours("dark")
    page.open(site.job("counts"))
    page.wait_for("document.querySelectorAll('.vertex').length === 2")
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.run(background) == "rgb(14, 21, 25)"
    keep_picture(page, "dark")
    page.click("☀ Light")
    page.wait_for(f"{background} === 'rgb(245, 247, 248)'")
    page.run("localStorage.clear()")


@needs_browser
@pytest.mark.parametrize("tab", ["overview", "timeline", "checkpoints", "splits"])
def test_o105_nothing_is_wider_than_a_phone(page, site, tab):
    page.size(360, 740)
    page.open(f"{site.job('counts')}/{tab}")
    page.wait_for_text("counts")
    page.wait_for("document.querySelectorAll('.card').length > 0")
    page.wait_for(
        "document.documentElement.scrollWidth <= 360", seconds=20
    )  # charts find their width after the first drawing
    if tab == "overview":
        keep_picture(page, "phone")


@needs_browser
def test_o103_the_buttons_take_a_savepoint_rescale_and_cancel(page, site):
    client = site.clients["counts"]
    page.open(site.job("counts"))
    page.click("Savepoint")
    page.wait_for_text("The job keeps running.")
    keep_picture(page, "savepoint")
    _fill(page, "directory", str(site.directory / "savepoints"))
    page.click("Take a savepoint", "dialog")
    page.wait_for("document.querySelector('dialog .copy code').innerText.startsWith('file:')")
    page.click("Close", "dialog")
    page.click("Rescale")
    _fill(page, "parallelism", "3")
    page.click("Change the parallelism", "dialog")
    page.wait_for("!!document.querySelector('dialog .done')")
    page.click("Close", "dialog")
    page.wait_for("[...document.querySelectorAll('.vertex')].some((one) => one.textContent.includes('\\u00d73'))")
    page.click("Cancel")
    page.click("Cancel the job", "dialog")
    page.wait_for("!!document.querySelector('dialog .done')")
    page.click("Close", "dialog")
    page.wait_for_text("CANCELED")
    assert client.get_job_status().result() is JobStatus.CANCELED


@needs_browser
def test_o103_the_stop_button_ends_a_job_with_a_savepoint(page, site):
    page.open(site.job(HOSTILE))
    page.click("Stop")
    _fill(page, "directory", str(site.directory / "savepoints"))
    page.click("Stop with a savepoint", "dialog")
    page.wait_for("document.querySelector('dialog .copy code').innerText.startsWith('file:')")
    page.click("Close", "dialog")
    page.wait_for_text("FINISHED")


def _fill(page, name, value):
    page.wait_for(
        f"(() => {{ const box = document.querySelector('dialog input[name={name}]'); box.value = {value!r}; "
        "box.dispatchEvent(new Event('input', {bubbles: true})); return true; })()"
    )
