"""A scheduler and a worker that lie, in one process: what a row's tag ``lie`` names is what comes back for it."""

from __future__ import annotations

import asyncio
import copyreg
import json
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from distributed import Scheduler, Worker, get_worker
from distributed.protocol.serialize import ToPickle

from uaccel.runner.sweep import worker as honest

FOLDER = Path.cwd()


class Bomb:
    """When it is unpickled, the process that does so writes its number down."""

    def __reduce__(self) -> Any:
        return eval, (f"open({str(FOLDER / 'unpickled')!r}, 'a').write(str(__import__('os').getpid()) + ' ')",)


class BombMeta(type):
    """The type of a type whose pickle is a bomb."""


copyreg.pickle(BombMeta, lambda _: Bomb().__reduce__())


class Typed(metaclass=BombMeta):
    """An object whose type is a bomb."""


def events() -> str:
    """Says something to whoever listens, with what Dask's client would print, and unpickle."""
    get_worker().log_event("print", {"args": ("\x1b[2Jprinted",)})
    get_worker().log_event("warn", {"message": pickle.dumps(Bomb()), "category": pickle.dumps(Bomb())})
    return json.dumps({"result": None, "board": None, "lost": {"failure": "said", "log": "", "attempts": 1}})


def stream(scheduler: Scheduler) -> str:
    """Has the scheduler send a bomb itself, between its messages."""

    def send() -> None:
        for comm in scheduler.client_comms.values():
            comm.send({"op": "key-in-memory", "key": "x", "type": ToPickle(Bomb())})

    scheduler.loop.add_callback(send)
    time.sleep(0.5)
    return "too late"


def raised() -> str:
    raise RuntimeError(Bomb())


async def lie() -> None:
    class Liar(Worker):  # type: ignore[misc]
        async def get_data(self, comm: Any, keys: Any, who: Any = None, serializers: Any = None) -> Any:
            text = all(isinstance(self.data[key], str) for key in keys)
            return await super().get_data(comm, keys, who, serializers if text else None)  # None: pickled

    options: dict[str, Any] = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    async with Scheduler(**options) as scheduler:
        lies: dict[str, Callable[[], Any]] = {
            "object": Bomb,
            "type": Typed,
            "exception": raised,
            "events": events,
            "stream": lambda: stream(scheduler),
            "greeting": lambda: scheduler.handlers.update(identity=lambda **_: ToPickle(Bomb())) or "",
        }

        def do_task(task: honest.Task, parcels: Any, before: Any) -> Any:
            return lies[task.row["tags"]["lie"]]()

        do_task.__module__, do_task.__qualname__ = honest.__name__, "do_task"  # pickled by name, as the honest one
        honest.do_task = do_task
        async with Liar(scheduler.address, resources={"build": 8}, nthreads=8, **options):
            (FOLDER / "scheduler.json").write_text(json.dumps({"address": scheduler.address}))
            await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(lie())
