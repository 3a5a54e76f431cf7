"""A disk that fills while a service answers its tenants: readers go on, and usage is counted once there is room."""

import resource
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from htfi.adapters.sql.tenant_store import open_tenant_store
from htfi.tenancy.config import SERVICE_FILE
from htfi.tenancy.usage import UsageKey, day_of
from service_process import ServiceProcess
from tenant_service import bearer, issue, record_run, serve_tenants, until


@contextmanager
def full_disk(service: ServiceProcess) -> Generator[None]:
    """The service can write no file any further."""
    pid = service.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


@pytest.mark.slow
def test_tenants_are_answered_on_a_full_disk_and_each_request_is_counted_afterwards(tmp_path: Path) -> None:
    folder = tmp_path / "service"
    folder.mkdir()
    (folder / SERVICE_FILE).write_text('[tenants.acme]\nrun = "acme"\nquota = {}\n', encoding="utf-8")
    record_run(folder / "acme", ("ACME",))
    key, key_id = issue(folder, "acme")
    today = day_of(time.time_ns())
    once = bearer(key) | {"Idempotency-Key": "8d1f"}
    item = {"items": [{"headline": "Acme falls", "id": "n1"}]}
    with serve_tenants(folder) as service:

        def counted() -> int:
            with closing(open_tenant_store("", folder)) as store:
                found = store.usage(today, today).get(UsageKey("acme", key_id, today))
                return 0 if found is None else found.requests

        def ask() -> int:
            return service.client.get("/v1/series", headers=bearer(key)).status_code

        statuses = [ask() for _ in range(20)]
        until(lambda: counted() == 20)
        with full_disk(service):
            end = time.monotonic() + 2.5  # usage is written every second
            while time.monotonic() < end:
                statuses.append(ask())
            refused = service.client.post("/v1/news", json=item, headers=once)
            unknown = service.client.get("/v1/series", headers=bearer("htfi_wrong")).status_code
            before = counted()
        accepted = service.client.post("/v1/news", json=item, headers=once)
        num = len(statuses) + 2
        until(lambda: counted() == num)
        assert service.end() == 0
    assert set(statuses) == {200}
    assert (refused.status_code, unknown, accepted.status_code) == (503, 401, 202)
    assert "\n" not in refused.json()["detail"]
    assert before == 20
    assert counted() == num
