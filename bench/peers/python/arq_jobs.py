"""arq_jobs.py - arq as one of the queues that ../README.md describes: arq_jobs.py JOBS enqueues, without JOBS it
works. Its own command writes a line for each job, this program none."""
import asyncio
import sys
import time

from arq import create_pool, run_worker
from arq.connections import RedisSettings
from peer import SOCKET, TEXT, WARM_UP, say

REDIS = RedisSettings(unix_socket_path=SOCKET)


async def nothing(ctx, text):
    pass


class Settings:
    functions = [nothing]
    redis_settings = REDIS
    keep_result = 0
    max_jobs = 100


async def fill(jobs):
    pool = await create_pool(REDIS)
    warm_up = int(jobs * WARM_UP)
    for done in range(jobs):
        if done == warm_up:
            since = time.perf_counter()
        await pool.enqueue_job("nothing", TEXT)
    say(per_s=(jobs - warm_up) / (time.perf_counter() - since))


if len(sys.argv) > 1:
    asyncio.run(fill(int(sys.argv[1])))
else:
    run_worker(Settings)
