"""What a rank says of its threads, without a rank."""

from __future__ import annotations

import signal
import threading

from headcount.rank.threads import Threads


class Recorder:
    """As much of a recorder as an inspection asks for."""

    def __init__(self, listener):
        self.main, self.helpers, self.waits = threading.get_ident(), {listener}, {}

    def awaited_by_callbacks(self):
        return []


def test_a_rank_whose_function_has_returned_goes_on_once_no_thread_is_left(monkeypatch):
    """The judge may ask at the moment between the last look for threads and the end."""
    found = []
    asked, answered = threading.Event(), threading.Event()

    def listen():
        asked.wait()
        found.append(threads.inspect())
        answered.set()

    listener = threading.Thread(target=listen)
    threads = Threads(Recorder(listener), {})
    listener.start()
    main = threading.get_ident()

    def enumerate_threads():
        if threading.get_ident() == main:
            asked.set()
            answered.wait()
        return []

    # that of pytest's own time limit, which may call for a thread's end
    monkeypatch.setattr(signal, "getitimer", lambda which: (0.0, 0.0))
    monkeypatch.setattr(threading, "enumerate", enumerate_threads)
    threads.finish()
    listener.join()
    assert found[0].acting
