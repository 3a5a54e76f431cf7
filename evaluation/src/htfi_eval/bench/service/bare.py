"""The peer of `htfi bench service`: FastAPI and uvicorn as they come, answering one body from memory."""

import socket
import sys
from pathlib import Path

import uvicorn
from fastapi import FastAPI, Response


def main(body: bytes) -> None:
    """Print the port, then answer GET /body until a signal."""
    app = FastAPI()

    @app.get("/body")
    async def answer() -> Response:
        return Response(body, media_type="application/json")

    listening = socket.create_server(("127.0.0.1", 0), backlog=1_024)
    sys.stdout.write(f"{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    config = uvicorn.Config(app, loop="uvloop", http="httptools", log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main(Path(sys.argv[1]).read_bytes())
