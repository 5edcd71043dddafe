"""A service with FastAPI, and the worker of its jobs, in one file.

    uvicorn web_fastapi:app     serves
    python web_fastapi.py       runs the jobs

Both need the same things, such as a pool of connections: `lifespan` opens them once in each process. FastAPI enters
it when it starts, and Holdfast in each handler process before its first job."""

from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

from holdfast_queue import Holdfast


class Mailer:
    """Stands for a pool of connections."""

    is_open = False

    async def send(self, to: str, text: str) -> str:
        assert self.is_open
        return f"{to}: {text}"


class Signup(BaseModel):
    email: str
    name: str


mailer = Mailer()


@asynccontextmanager
async def lifespan(owner: Any):  # the FastAPI, or the Holdfast
    mailer.is_open = True
    yield
    mailer.is_open = False
    await hf.aclose()


hf = Holdfast(lifespan=lifespan)  # REDIS_URL
app = FastAPI(lifespan=lifespan)


@hf.job("signup.welcome", timeout="30s", max_attempts=5, keep="1h")
async def welcome(signup: Signup) -> str:
    return await mailer.send(signup.email, f"Welcome, {signup.name}!")


@app.post("/signups", status_code=202)
async def sign_up(signup: Signup) -> dict[str, str]:
    ref = await welcome.aenqueue(signup)
    return {"id": ref.id}


@app.get("/signups/{id}")
async def show(id: str) -> dict[str, Any]:
    try:
        ref = hf.ref(id)
    except ValueError:  # no id looks like this
        raise HTTPException(404) from None
    state = await ref.astate()
    if state == "unknown":
        raise HTTPException(404)
    return {"state": state, "sent": await ref.aresult(timeout=1) if state == "done" else None}


if __name__ == "__main__":
    hf.run()
