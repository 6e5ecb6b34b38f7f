"""Whether the service is there and well: /api/health for people and load balancers, /metrics for Prometheus."""

from dataclasses import asdict
from importlib import metadata

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse

from resight.apps.service import schemas
from resight.apps.service.metrics import measure_memory
from resight.apps.service.serializers import Json
from resight.apps.service.state import Service
from resight.ray_cluster import parse_engine

VERSION = metadata.version("resight")


def router(service: Service) -> APIRouter:
    routes = APIRouter(tags=["service"])

    def count_images() -> int:
        return sum(len(collection.view()) for collection in service.collections.values())

    @routes.get("/api/health", response_model=schemas.Health)
    async def read_health(request: Request) -> Json:
        """503 while the service stops. What it holds is told to those who may ask for it."""
        stopping, known = service.stopping.is_set(), request.state.caller is not None
        body = {
            "status": "stopping" if stopping else "ok",
            "version": VERSION,
            "images": await run_sync(count_images) if known else None,
            "collections": list(service.collections) if known else [],
            "cluster": tell_cluster(service.settings.engine) if known else None,
        }
        return Json(body, 503 if stopping else 200)

    @routes.get("/metrics", response_class=PlainTextResponse)
    async def read_metrics() -> PlainTextResponse:
        """Counts, times and gauges of the process that answers."""
        gauges = {
            "resight_searches_running": service.pool.running,
            "resight_searches_waiting": max(0, service.pool.taken - service.pool.running),
            "resight_decoders_replaced": service.decoders.replaced,
            "resight_images": await run_sync(count_images),
            "resight_memory_bytes": measure_memory(),
        }
        cluster = tell_cluster(service.settings.engine) or {}
        gauges |= {f"resight_cluster_{name}": count for name, count in cluster.items()}
        return PlainTextResponse(service.metrics.write(gauges), media_type="text/plain; version=0.0.4")

    return routes


def tell_cluster(engine: str) -> dict[str, int] | None:
    """Nodes, shards and replicas; None where searches run in this process."""
    if parse_engine(engine).kind != "ray":
        return None
    from resight.index.shards.replica_manager import find_keeper

    return asdict(find_keeper().tell())
