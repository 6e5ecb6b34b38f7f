"""The HTTP routes, one subject per module. Each module has `router(service) -> APIRouter`."""
