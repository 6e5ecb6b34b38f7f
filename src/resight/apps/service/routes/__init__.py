"""What can be asked, one subject a module. Each has `router(service) -> APIRouter`."""
