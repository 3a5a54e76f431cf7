"""The ledger as static files over HTTP, by c2sp.org/tlog-tiles: what witnesses and monitors read."""

import re

from fastapi import APIRouter, Depends, Request, Response

from htfi.apps.service.callers import needs
from htfi.apps.service.schema import gives
from htfi.apps.service.served_run import record_of
from htfi.domain.errors import NotFound
from htfi.library.serving.callers import Scope

router = APIRouter(dependencies=[Depends(needs(Scope.READ))])
_INDEX = re.compile(r"(?:x[0-9]{3}/){0,6}[0-9]{3}(?:\.p/([0-9]{1,3}))?")
_FOREVER = {"Cache-Control": "public, max-age=31536000, immutable"}
_WIDTH = 256


@router.get(
    "/checkpoint",
    summary="The newest signed checkpoint, with its cosignatures",
    response_class=Response,
    responses=gives(None, media_type="text/plain"),
)
async def checkpoint(request: Request) -> Response:
    """A signed note (c2sp.org/tlog-checkpoint)."""
    _, note = await record_of(request).ask(lambda reader: reader.checkpoint())
    return Response(note, media_type="text/plain; charset=utf-8", headers={"Cache-Control": "no-cache"})


@router.get(
    "/tile/{level}/{path:path}",
    summary="A tile of hashes, or a bundle of entries",
    response_class=Response,
    responses=gives(None, media_type="application/octet-stream"),
)
async def tile(request: Request, level: str, path: str) -> Response:
    """`tile/<L>/<N>[.p/<W>]`, N in groups of three digits; `entries` in place of a level for a bundle."""
    matched = _INDEX.fullmatch(path)
    is_level = level == "entries" or (
        level.isdecimal() and len(level) <= 2 and str(int(level)) == level and int(level) < 8
    )
    width = int(matched[1]) if matched and matched[1] else _WIDTH
    if matched is None or not is_level or not 1 <= width <= _WIDTH or (matched[1] and width == _WIDTH):
        raise NotFound(f"tile/{level}/{path} is not a tile's path: see c2sp.org/tlog-tiles")
    index = int(path.partition(".p/")[0].replace("x", "").replace("/", ""))
    record = record_of(request)
    if level == "entries":
        content = await record.ask(lambda reader: reader.entry_tile(index, width))
    else:
        content = await record.ask(lambda reader: reader.hash_tile(int(level), index, width))
    if content is None:
        raise NotFound(f"tile/{level}/{path}: the ledger has not so many entries, or one of them was deleted")
    return Response(content, media_type="application/octet-stream", headers=_FOREVER)
