"""The state of the service: /api/health for people and load balancers, /metrics for Prometheus."""

from dataclasses import asdict
from importlib import metadata

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Request
from fastapi.responses import PlainTextResponse

from resight.apps.service import schemas
from resight.apps.service.auth import require_full_scope
from resight.apps.service.serializers import AsciiJSONResponse
from resight.apps.service.state import Service
from resight.ray_cluster import parse_engine

VERSION = metadata.version("resight")


def router(service: Service) -> APIRouter:
    routes = APIRouter(tags=["service"])

    @routes.get("/api/health", response_model=schemas.Health)
    async def read_health(request: Request) -> AsciiJSONResponse:
        """`degraded`: it works in part, and `faults` says why; 503 while the service stops.

        `ready`: at least one collection can be searched. Clients without access see neither names nor counts.
        """
        stopping, known = service.stopping.is_set(), request.state.caller is not None
        faults = await run_sync(service.list_faults)
        body = {
            "status": "stopping" if stopping else "degraded" if faults else "ok",
            "version": VERSION,
            "ready": bool(service.collections) and not stopping,
            "faults": faults if known else {},
            "images": await run_sync(service.count_images) if known else None,
            "collections": list(service.collections) if known else [],
            "quarantined": await run_sync(service.count_quarantined) if known else None,
            "cluster": read_cluster_status(service.settings.engine) if known else None,
        }
        return AsciiJSONResponse(body, 503 if stopping else 200)

    @routes.get("/metrics", response_class=PlainTextResponse, dependencies=[Depends(require_full_scope)])
    async def read_metrics() -> PlainTextResponse:
        """Counts, times and gauges of all processes of the service."""
        cluster = read_cluster_status(service.settings.engine) or {}
        service.metrics.set({f"resight_cluster_{name}": count for name, count in cluster.items()})
        service.metrics.set({"resight_images": await run_sync(service.count_images)})
        service.update_gauges()
        return PlainTextResponse(await run_sync(service.metrics.write), media_type="text/plain; version=0.0.4")

    return routes


def read_cluster_status(engine: str) -> dict[str, int] | None:
    """Nodes, shards and replicas; None where searches run in this process."""
    if parse_engine(engine).kind != "ray":
        return None
    from resight.index.shards.replica_manager import find_replica_manager

    return asdict(find_replica_manager().describe_state())
