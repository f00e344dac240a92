"""State in the continuous mode: changes of keys in a log, pages beside it, and the files that checkpoints are in."""

import copy
import os
import random
import tracemalloc
from pathlib import Path

import pytest

from penstock.runtime.plan.offset import Offset
from penstock.runtime.savepoint.storage import ArrowDirectory
from penstock.runtime.state import logged_pages
from penstock.runtime.state.backend import KeyedStateBackend
from penstock.runtime.state.change_log import ChangeLog
from penstock.runtime.state.pages import FIRST_SLOT, MemoryPageStore
from penstock.spark.continuous import checkpoint_files, state_files
from penstock.spark.continuous.checkpoint_files import CheckpointFiles
from penstock.spark.continuous.local_pages import LocalPages, PageFile
from penstock.spark.continuous.state_files import LevelChanges, LoadedLevel, StateFiles

pytestmark = pytest.mark.exhaustive

OPERATOR = "counts"


@pytest.fixture(autouse=True)
def _no_flushing(monkeypatch):
    """No test here ends the machine."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


class Task:
    """One operator with one state, and the files of its checkpoints."""

    def __init__(self, location, *, files=(), directory=None, budget=4_000, attempt="1", least_bytes=2_000):
        self.files = StateFiles(str(location), attempt, 0, file_bytes=20_000)
        self.state = self.files.load(files).get(1) or LoadedLevel(LocalPages(memory_limit=2_000))
        self.state.log.least_bytes = least_bytes
        self.backend = KeyedStateBackend(
            OPERATOR, OPERATOR, self.state.pages, 128, directory, page_bytes=300, memory_budget=budget
        )
        self.backend.log_to(self.state.log)
        self.slot = self.backend.register("value", "value state")
        self.checkpoint = 0
        self.changes = LevelChanges()

    def put(self, key, value):
        self.backend.set_current_key(key)
        entry = self.backend.entry
        entry[self.slot] = value
        entry[0].dirty = True

    def get(self, key):
        self.backend.set_current_key(key)
        self.backend.entry[0].maybe_mutated = True
        return self.backend.entry[self.slot]

    def take_checkpoint(self):
        """Returns the files and the directory, which the engine keeps."""
        directory = copy.deepcopy(self.backend.snapshot(0))
        self.checkpoint += 1
        self.changes.add(*self.state.pages.take(), self.state.log.take())
        changes, self.changes = self.changes, LevelChanges()
        return self.files.write(self.checkpoint, {1: changes}), directory

    def log_early(self):
        if self.backend.log_early():
            self.changes.add(*self.state.pages.take(), self.state.log.take())

    def content(self):
        return {key: values[FIRST_SLOT - 1] for key, *values in self.backend.scan(0)}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("budget", [None, 2_000])
def test_state_that_is_loaded_is_that_of_the_checkpoint(tmp_path, seed, budget, monkeypatch):
    monkeypatch.setattr(logged_pages, "_EARLY_KEYS", 1_000 if seed % 2 else 10)
    chance = random.Random(seed)
    task = Task(tmp_path, budget=budget)
    model, saved, kept = {}, {}, ([], None)
    for attempt in range(2, 8):
        for _ in range(chance.randint(5, 60)):
            for _ in range(chance.randint(0, 30)):
                key = chance.randrange(300)
                match chance.randrange(5):
                    case 0:
                        task.put(key, None)
                        model.pop(key, None)
                    case 1:
                        assert task.get(key) == model.get(key)
                    case 2:
                        value = task.get(key) or [0]
                        value.append(1)  # in place, without an update
                        if key in model:
                            model[key] = list(value)
                    case _:
                        task.put(key, [chance.random()])
                        model[key] = list(task.get(key))
            for _ in range(chance.randint(0, 3)):
                task.backend.tidy()
            task.log_early()
            if chance.random() < 0.6:
                kept = task.take_checkpoint()
                saved = {key: list(value) for key, value in model.items()}
        assert task.content() == model
        files, directory = kept
        task = Task(tmp_path, files=files, directory=directory, budget=budget, attempt=str(attempt))
        task.checkpoint = attempt * 1000
        assert task.content() == saved
        model = {key: list(value) for key, value in saved.items()}


def test_a_checkpoint_writes_only_the_keys_that_have_changed(tmp_path):
    task = Task(tmp_path, budget=None, least_bytes=1 << 20)
    for key in range(2_000):
        task.put(key, key)
    task.take_checkpoint()
    while task.backend.tidy():
        pass
    task.take_checkpoint()
    task.put(7, -7)
    task.backend.snapshot(0)
    pages, removed = task.state.pages.take()
    assert not pages
    assert not removed
    assert sum(len(blob) for _, blob in task.state.log.take().changes) < 100


def test_the_number_and_the_size_of_files_stay_bounded(tmp_path):
    task = Task(tmp_path, budget=None)
    most = 0
    for round_ in range(600):
        for key in range(round_ % 50, 500, 50):
            task.put(key, round_)
        files, directory = task.take_checkpoint()
        for _ in range(3):
            task.backend.tidy()
        if round_ > 100:
            most = max(most, len(files))
            assert sum(file.size for file in files) < 8 * directory.total_bytes + 20_000
        for path in tmp_path.iterdir():  # as the driver does after the manifest
            if path.name not in {file.name for file in files}:
                path.unlink()
    assert most < 20
    assert Task(tmp_path, files=files, directory=directory, attempt="2").content() == task.content()


def test_pages_in_memory_stay_within_the_budget(tmp_path):
    task = Task(tmp_path, budget=2_000)
    for key in range(5_000):
        task.put(key, key)
        if not key % 100:
            task.take_checkpoint()
    while task.backend.tidy():
        pass
    assert sum(page.size for page in task.backend.pages.values()) < 3_000
    assert task.backend.directory.total_bytes > 20_000
    assert all(task.get(key) == key for key in random.Random(1).sample(range(5_000), 200))


def test_a_large_collection_is_stored_in_chunks_beside_its_page(tmp_path):
    task = Task(tmp_path, budget=None)
    task.backend._chunks.growing[task.slot] = lambda value: [()]  # as a list state registers it
    values = [f"value {n}" for n in range(500)]
    task.put("long", values)
    task.put("short", [1])
    files, directory = task.take_checkpoint()
    task = Task(tmp_path, files=files, directory=directory, attempt="2")
    assert {key: list(value) for key, value in task.content().items()} == {"long": values, "short": [1]}


def test_checkpoints_can_be_in_any_file_system_that_savepoints_can_be_in(tmp_path, monkeypatch):
    for module in (state_files, checkpoint_files):
        monkeypatch.setattr(module, "directory_at", lambda path: ArrowDirectory(Path(path).as_uri()))
    where = tmp_path / "deep" / "down"
    task, driver = Task(where, budget=None), CheckpointFiles(str(where), epoch=3)
    assert driver.adopt() is None
    for value in range(4):
        task.put("key", [value])
        files, directory = task.take_checkpoint()
        driver.complete(task.checkpoint, Offset(checkpoint_id=task.checkpoint), {0: files})
    found = CheckpointFiles(str(where), epoch=4).adopt()
    assert found.checkpoint_id == 4
    assert Task(where, files=found.tasks[0], directory=directory).content() == {"key": [3]}
    assert len(list(where.iterdir())) == 1 + len(files)


def test_memory_stays_flat_over_many_checkpoints(tmp_path):
    """Of what a task keeps beside its pages."""
    task = Task(tmp_path, budget=20_000)

    def run(checkpoints):
        for number in range(checkpoints):
            for key in range(number % 40, 2_000, 40):
                task.put(key, number)
            files, _ = task.take_checkpoint()
            while task.backend.tidy():
                pass
            for path in tmp_path.iterdir():
                if path.name not in {file.name for file in files}:
                    path.unlink()

    run(120)
    tracemalloc.start()
    run(40)
    before = tracemalloc.get_traced_memory()[0]
    run(120)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 150_000  # 120 times 50 keys would be more


def test_a_slot_of_the_page_file_is_used_again():
    pages = PageFile()
    for round_ in range(50):
        for name in range(20):
            pages.put(str(name), bytes([round_]) * (5_000 * (1 + (round_ + name) % 2)))
    assert pages.size <= 20 * (8_192 + 16_384)
    assert pages.get("3") == bytes([49]) * 5_000


def test_a_store_that_has_moved_to_a_file_gives_what_a_store_in_memory_gives():
    chance = random.Random(5)
    local, memory = LocalPages(memory_limit=10_000), MemoryPageStore()
    for _ in range(2_000):
        name = str(chance.randrange(40))
        if chance.random() < 0.2:
            local.remove(name)
            memory.remove(name)
        else:
            blob = chance.randbytes(chance.randrange(3_000))
            local.put(name, blob)
            memory.put(name, blob)
        assert local.get(name) == memory.get(name)
    assert {name: local.get(name) for name in memory.blobs} == memory.blobs


def test_an_empty_log_has_nothing_to_say():
    assert ChangeLog().take().changes == []
