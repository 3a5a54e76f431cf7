"""The nodes of a run over HTTP: peers and links, queues, energy, and where readings ran."""

from fastapi import APIRouter, Depends, Request, Response

from htfi.apps.service.callers import Scope, needs
from htfi.apps.service.schema import gives
from htfi.apps.service.served_run import run_of
from htfi.apps.service.tags import tagged_response
from htfi.wiring.service.nodes import NodesBody

readers = APIRouter(dependencies=[Depends(needs(Scope.READ))])
router = APIRouter()
SHAPES = (NodesBody,)


@readers.get("/nodes", summary="Nodes, links, queues and energy", responses=gives(NodesBody))
async def nodes(request: Request) -> Response:
    """As the edge of the run wrote them last; of a run on one machine this machine's own figures alone."""
    run = run_of(request)
    newest = [
        one.newest.decision
        for one in run.record.series.values()
        if one.newest is not None and one.newest.decision is not None
    ]
    return tagged_response(request, await run.files.call(lambda: run.nodes.read(newest)))
