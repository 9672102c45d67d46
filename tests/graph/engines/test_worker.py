"""The worker process, driven by an engine that misbehaves on demand."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from byokg.errors import CallStopped, EntityNotFound, QueryRefused, QueryTimeout, QueryTooLarge, StoreUnavailable
from byokg.graph.cancellation import CancelToken
from byokg.graph.engines.worker import Worker
from tests.graph.query_engines import NAME

ROOT = Path(__file__).resolve().parents[3]
PROC = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is watched through /proc")


@pytest.fixture
def start() -> Iterator[Callable[..., Worker]]:
    """Make workers that are ended after the test."""
    made: list[Worker] = []

    def start(memory_mb: int = 2000, start_timeout_s: float = 60.0, reply_mb: int = 256, **settings: object) -> Worker:
        made.append(Worker(NAME, settings, "the test engine", memory_mb, start_timeout_s, reply_mb))
        return made[-1]

    yield start
    for worker in made:
        worker.close()


def gone(pid: int) -> bool:
    """Wait until no such process is left, not even as a zombie of ours."""
    for _ in range(300):
        try:
            os.kill(pid, 0)
            state, parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
        except (ProcessLookupError, FileNotFoundError):
            return True
        if state == "Z" and int(parent) != os.getpid():
            return True  # whoever inherits orphans here does not reap them
        time.sleep(0.1)
    return False


def run_script(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script that nothing guards with `if __name__`, from a folder that is not the repository."""
    script = folder / "script.py"
    script.write_text(f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{text}", "utf-8")
    return subprocess.run([sys.executable, str(script)], cwd=folder, capture_output=True, text=True, timeout=120)


class TestCalls:
    def test_values_of_every_kind_come_back_as_they_were(self, start: Callable[..., Worker]) -> None:
        value = {
            "list": [1, 2.5, None, True],
            "text": "naïve 東京 😀\n\ud800",
            "big": "x" * 3_000_000,
            "bytes": b"\0\xff",
        }
        assert start().call("echo", value) == value

    def test_one_process_serves_all_calls_and_is_not_ours(self, start: Callable[..., Worker]) -> None:
        worker = start()
        assert worker.pid is None
        pids = {worker.call("pid") for _ in range(5)}
        assert pids == {worker.pid}
        assert pids != {os.getpid()}

    def test_what_the_engine_prints_does_not_disturb_the_answers(self, start: Callable[..., Worker]) -> None:
        worker = start(says="hello")
        worker.call("prints", "noise\n" * 20_000)
        assert worker.call("echo", 1) == 1

    def test_errors_of_ours_arrive_as_they_were_raised(self, start: Callable[..., Worker]) -> None:
        with pytest.raises(QueryRefused, match="line 2, column 5") as caught:
            start().call("refuses")
        assert (caught.value.found, caught.value.reason) == ("SET", "it writes")

    def test_any_other_error_is_named(self, start: Callable[..., Worker]) -> None:
        worker = start()
        with pytest.raises(StoreUnavailable, match="ZeroDivisionError: by the engine"):
            worker.call("fails")
        assert worker.call("echo", 1) == 1

    def test_threads_take_turns_and_each_gets_its_own_answer(self, start: Callable[..., Worker]) -> None:
        worker = start()
        with ThreadPoolExecutor(16) as pool:
            assert list(pool.map(lambda n: worker.call("echo", n), range(400))) == list(range(400))


class TestLimits:
    @pytest.mark.parametrize("method", ["sleeps", "computes"])
    def test_a_call_that_takes_too_long_is_killed_and_the_next_one_works(
        self, start: Callable[..., Worker], method: str
    ) -> None:
        worker = start()
        first = worker.call("pid")
        with pytest.raises(QueryTimeout, match=r"0\.2 s"):
            worker.call(method, *([60] if method == "sleeps" else []), timeout_s=0.2)
        assert gone(first)
        assert worker.call("echo", "again", timeout_s=5) == "again"
        assert worker.pid != first

    def test_a_call_that_nobody_waits_for_is_killed_and_another_process_stands_ready(
        self, start: Callable[..., Worker]
    ) -> None:
        worker = start()
        first = worker.call("pid")
        stops = [CancelToken(), CancelToken()]

        def work(stop: CancelToken) -> None:
            with stop.work():
                worker.call("sleeps", 60)

        with ThreadPoolExecutor(2) as pool:
            calls = [pool.submit(work, stop) for stop in stops]  # one of them waits for its turn
            for stop, call in zip(stops, calls, strict=True):
                stop.end()
                with pytest.raises(CallStopped):
                    call.result(30)
        assert gone(first)
        assert worker.call("echo", "again", timeout_s=5) == "again"
        assert worker.pid != first

    def test_waiting_for_a_turn_does_not_use_up_the_time(self, start: Callable[..., Worker]) -> None:
        worker = start()
        worker.call("echo", 0)
        with ThreadPoolExecutor(4) as pool:
            calls = [pool.submit(worker.call, "sleeps", 0.7, timeout_s=2.0) for _ in range(4)]
            assert [call.result() for call in calls] == [None] * 4

    @PROC
    def test_a_call_that_needs_too_much_memory_is_killed_and_the_next_one_works(
        self, start: Callable[..., Worker]
    ) -> None:
        worker = start(memory_mb=300)
        with pytest.raises(QueryTooLarge, match="300 MB are allowed"):
            worker.call("eats", timeout_s=60)
        assert worker.call("echo", 1) == 1
        assert 200 << 20 < worker.peak_bytes < 600 << 20

    def test_a_reply_that_is_too_long_is_not_taken(self, start: Callable[..., Worker]) -> None:
        worker = start(reply_mb=1)
        with pytest.raises(QueryTooLarge, match="1 MB are allowed"):
            worker.call("echo", "x" * (2 << 20))
        assert worker.call("echo", 1) == 1


class TestEnds:
    def test_a_crash_is_reported_with_the_last_words_and_the_next_call_works(
        self, start: Callable[..., Worker]
    ) -> None:
        worker = start()
        with pytest.raises(StoreUnavailable, match=r"exit code 9.*disk on fire") as caught:
            worker.call("crashes", "disk on fire")
        assert caught.value.retryable
        assert worker.call("echo", 1) == 1

    @pytest.mark.parametrize("words", ["java.lang.OutOfMemoryError: Java heap space", "memory allocation of 9 bytes"])
    def test_a_crash_for_want_of_memory_says_so(self, start: Callable[..., Worker], words: str) -> None:
        with pytest.raises(QueryTooLarge, match="ran out of memory"):
            start().call("crashes", words)

    def test_a_process_that_died_between_two_calls_is_replaced(self, start: Callable[..., Worker]) -> None:
        worker = start()
        pid = worker.call("pid")
        os.kill(pid, signal.SIGKILL)
        assert gone(pid)
        assert worker.call("pid") != pid

    def test_an_engine_that_cannot_open_says_why_each_time(self, start: Callable[..., Worker]) -> None:
        worker = start(lacks=True)
        for _ in range(2):
            with pytest.raises(EntityNotFound, match="Alien"):
                worker.call("echo", 1)
        assert worker.pid is None

    def test_an_engine_that_dies_at_the_start_is_reported(self, start: Callable[..., Worker]) -> None:
        with pytest.raises(StoreUnavailable, match=r"exit code 7.*cannot go on"):
            start(dies=True).call("echo", 1)

    def test_an_engine_that_does_not_get_ready_is_given_up(self, start: Callable[..., Worker]) -> None:
        with pytest.raises(StoreUnavailable, match="not ready"):
            start(start_timeout_s=1.0, dawdles=True).call("echo", 1)

    def test_new_settings_hold_for_the_next_process(self, start: Callable[..., Worker]) -> None:
        worker = start(colour="red")
        assert worker.call("setting", "colour") == "red"
        worker.update({"colour": "blue"})
        assert worker.call("setting", "colour") == "red"
        with pytest.raises(StoreUnavailable):
            worker.call("crashes", "")
        assert worker.call("setting", "colour") == "blue"

    def test_closing_lets_the_engine_close_and_leaves_no_process(
        self, start: Callable[..., Worker], tmp_path: Path
    ) -> None:
        worker = start(goodbye=str(tmp_path / "goodbye"))
        pid = worker.call("pid")
        worker.close()
        assert gone(pid)
        assert (tmp_path / "goodbye").read_text() == "closed"
        with pytest.raises(StoreUnavailable, match="closed"):
            worker.call("echo", 1)

    def test_closing_ends_a_call_of_another_thread(self, start: Callable[..., Worker]) -> None:
        worker = start()
        pid = worker.call("pid")
        with ThreadPoolExecutor(1) as pool:
            call = pool.submit(worker.call, "sleeps", 60)
            while not worker._lock.locked():
                time.sleep(0.01)
            worker.close()
            with pytest.raises(StoreUnavailable, match="closed"):
                call.result()
        assert gone(pid)

    def test_a_worker_that_is_forgotten_takes_its_process_along(self, start: Callable[..., Worker]) -> None:
        worker = Worker(NAME, {}, "forgotten", 500)
        pid = worker.call("pid")
        del worker
        assert gone(pid)

    def test_no_descriptors_or_threads_stay_behind(self, tmp_path: Path) -> None:
        # In a process of its own: other tests' engines end whenever they like.
        done = run_script(
            f"""
import os, threading
from byokg.errors import QueryTimeout
from byokg.graph.engines.worker import Worker

counts = []
for _ in range(4):
    worker = Worker({NAME!r}, {{}}, "one of many", 500)
    try:
        worker.call("sleeps", 60, timeout_s=0.05)
    except QueryTimeout:
        pass
    worker.call("echo", 1)
    worker.close()
    for thread in set(threading.enumerate()) - {{threading.current_thread()}}:
        thread.join(30)
    counts.append((len(os.listdir("/dev/fd")), threading.active_count()))
print(len(set(counts)), counts)
""",
            tmp_path,
        )
        assert done.stdout.startswith("1 "), (done.stdout, done.stderr)


class TestWhereItIsStarted:
    SCRIPT = f"""
from byokg.graph.engines.worker import Worker
print("top of the script")
worker = Worker({NAME!r}, {{}}, "script", 500)
print(worker.call("echo", "answer"))
"""

    def test_from_an_unguarded_script_that_does_not_run_twice_and_closes_nothing(self, tmp_path: Path) -> None:
        done = run_script(self.SCRIPT, tmp_path)
        assert (done.stdout, done.stderr) == ("top of the script\nanswer\n", "")

    def test_from_a_folder_with_files_named_like_library_modules(self, tmp_path: Path) -> None:
        (tmp_path / "pickle.py").write_text("raise SystemExit('the wrong pickle')")
        script = "import sys; sys.path.pop(1)\n" + self.SCRIPT  # the caller itself does not look there
        assert run_script(script, tmp_path).stdout == "top of the script\nanswer\n"

    def test_from_a_notebook(self, tmp_path: Path) -> None:
        nbformat = pytest.importorskip("nbformat")
        nbclient = pytest.importorskip("nbclient")
        pytest.importorskip("ipykernel")
        book = nbformat.v4.new_notebook()
        book.cells = [
            nbformat.v4.new_code_cell(f"import sys; sys.path.insert(0, {str(ROOT)!r})"),
            nbformat.v4.new_code_cell(self.SCRIPT),
            nbformat.v4.new_code_cell("print(worker.call('echo', 'next cell')); worker.close()"),
        ]
        client = nbclient.NotebookClient(
            book, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
        )
        client.execute()
        printed = ["".join(out.get("text", "") for out in cell.outputs) for cell in book.cells]
        assert printed[1:] == ["top of the script\nanswer\n", "next cell\n"]

    @pytest.mark.parametrize("call", ["echo", "sleeps", "computes"])
    def test_the_process_ends_when_its_parent_is_killed(self, tmp_path: Path, call: str) -> None:
        arguments = {"echo": "1", "sleeps": "600", "computes": ""}[call]
        script = tmp_path / "parent.py"
        script.write_text(
            f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
            "from byokg.graph.engines.worker import Worker\n"
            f"worker = Worker({NAME!r}, {{}}, 'orphan', 500)\n"
            "print(worker.call('pid'), flush=True)\n"
            f"worker.call('{call}', *[{arguments}], timeout_s=3)\n"
            "import time; time.sleep(600)\n"
        )
        with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as parent:
            assert parent.stdout
            pid = int(parent.stdout.readline())
            time.sleep(0.5)
            parent.kill()
        assert gone(pid)

    def test_a_fork_of_the_caller_gets_a_process_of_its_own_and_spares_the_other(self, tmp_path: Path) -> None:
        script = self.SCRIPT + (
            "import os, warnings\n"
            "warnings.simplefilter('ignore')\n"
            "mine = worker.call('pid')\n"
            "child = os.fork()\n"
            "if child == 0:\n"
            "    other = worker.call('pid')\n"
            "    worker.close()\n"
            "    os._exit(0 if other != mine else 1)\n"
            "status = os.waitpid(child, 0)[1]\n"
            "print(status, worker.call('pid') == mine)\n"
        )
        assert run_script(script, tmp_path).stdout.splitlines()[-1] == "0 True"

    def test_ctrl_c_while_waiting_leaves_a_worker_that_can_be_asked_again(self, tmp_path: Path) -> None:
        script = self.SCRIPT + (
            "import os, signal, threading, time\n"
            f"asleep = {str(tmp_path / 'asleep')!r}\n"
            "def interrupt():\n"
            "    while not os.path.exists(asleep):\n"
            "        time.sleep(0.01)\n"
            "    os.kill(os.getpid(), signal.SIGINT)\n"
            "threading.Thread(target=interrupt).start()\n"
            "try:\n"
            "    worker.call('sleeps', 600, asleep)\n"
            "except KeyboardInterrupt:\n"
            "    print('interrupted')\n"
            "print(worker.call('echo', 'and asked again'))\n"
        )
        assert run_script(script, tmp_path).stdout.splitlines()[-2:] == ["interrupted", "and asked again"]
