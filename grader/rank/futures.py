"""Futures of operations, which say who waits for them.

``Request.get_future`` gives one.  torch's own are waited for in C++, where nobody would see
it; these report the wait, and check the buffers, as ``Request.wait`` does.  A callback that
has yet to run is known to the recorder: it may still send what others wait for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.futures import Future as TorchFuture

if TYPE_CHECKING:
    from grader.rank.requests import Request

__all__ = ["Future", "collect_all", "settle_later", "wait_all"]

_torch_collect_all, _torch_wait_all = torch.futures.collect_all, torch.futures.wait_all


class Future(TorchFuture[Any]):
    """A future that is complete when some operations are, and what follows them.

    Args:
        requests: of these operations, at least one.
    """

    def __init__(self, requests: Sequence[Request]) -> None:
        devices = [request.device for request in requests]
        on_gpu = [device for device in devices if device.type == "cuda"]
        super().__init__(devices=list(dict.fromkeys(on_gpu)) or None)
        self._requests = requests

    def wait(self) -> Any:
        """Block until it is complete; its value."""
        for request in self._requests:
            request.await_future()
        self._observe()
        return super().wait()

    def value(self) -> Any:
        """Its value, once it is complete."""
        if self.done():
            self._observe()
        return super().value()

    def done(self) -> bool:
        """Whether it is complete."""
        done = super().done()
        if done:
            self._observe()
        return done

    def _observe(self) -> None:
        for request in self._requests:
            request.observe()

    def then(self, callback: Callable[[Any], Any]) -> Future:
        """The future of what a callback will give, which runs when this is complete."""
        child = Future(self._requests)

        def follow(_: Any) -> None:
            try:
                value = callback(self)
            except Exception as error:
                child.set_exception(error)
            else:
                child.set_result(value)

        self._follow(follow)
        return child

    def add_done_callback(self, callback: Callable[[Any], Any]) -> None:
        """Run a callback when this is complete."""
        self._follow(lambda _: callback(self))

    def _follow(self, callback: Callable[[Any], None]) -> None:
        recorder, token = self._requests[0].recorder, object()
        recorder.callbacks[token] = [request.op for request in self._requests]

        def begin(done: Any) -> None:
            # the grader's own thread has others to serve, and a callback may wait for them
            if threading.current_thread() in recorder.helpers:
                threading.Thread(target=run, args=(done,), daemon=True).start()
            else:
                run(done)

        def run(done: Any) -> None:
            # from here on the thread that runs it can be seen
            recorder.callbacks.pop(token, None)
            self._observe()
            callback(done)

        super().add_done_callback(begin)

    @property
    def complete(self) -> bool:
        """Whether it is complete, asked for by nobody."""
        return super().done()

    def block(self) -> None:
        """Wait for it in torch, without a word."""
        torch._C.Future.wait(self)


def settle_later(
    inner: Any,
    future: Future,
    settled: Callable[[Any], Any],
    lost: Callable[[Exception], Exception],
) -> None:
    """Complete a future when the transport's own is.

    Args:
        inner: the transport's.
        future: what follows it.
        settled: called with its value; gives the value of ``future``.
        lost: called with its error; gives the error of ``future``.
    """

    def follow(done: Any) -> None:
        try:
            value = done.value()
        except Exception as error:
            future.set_exception(lost(error))
            return
        try:
            value = settled(value)
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(value)

    inner.add_done_callback(follow)


def collect_all(futures: Sequence[Any]) -> Any:
    """``torch.futures.collect_all``, whose future reports who waits for it."""
    ours = [future for future in futures if isinstance(future, Future)]
    collected = _torch_collect_all(list(futures))
    if not ours:
        return collected
    every = Future([request for future in ours for request in future._requests])

    def follow(done: Any) -> None:
        # each of them holds its own value or error
        every.set_result(list(futures))

    collected.add_done_callback(follow)
    return every


def wait_all(futures: Sequence[Any]) -> list[Any]:
    """``torch.futures.wait_all``, which reports that it waits."""
    for future in futures:
        if isinstance(future, Future):
            for request in future._requests:
                request.await_future()
    _torch_collect_all(list(futures)).wait()
    return [future.wait() for future in futures]
