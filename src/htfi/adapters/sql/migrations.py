"""The tables of a service's database, as numbered steps that are run once each, in order, on SQLite and PostgreSQL.

A step that has been released is never changed; what is new is a step more.
"""

from sqlalchemy import Connection, inspect, text

from htfi.domain.errors import InvalidInput

STEPS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE keys (
            id TEXT PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, digest TEXT NOT NULL,
            scopes TEXT NOT NULL, created_ns BIGINT NOT NULL, expires_ns BIGINT, revoked_ns BIGINT,
            used_ns BIGINT, person TEXT NOT NULL, quota TEXT NOT NULL)""",
        """CREATE TABLE usage (
            tenant TEXT NOT NULL, key_id TEXT NOT NULL, day BIGINT NOT NULL, requests BIGINT NOT NULL,
            refused BIGINT NOT NULL, tokens BIGINT NOT NULL, cpu_us BIGINT NOT NULL,
            money_nano BIGINT NOT NULL, PRIMARY KEY (tenant, key_id, day))""",
        "CREATE INDEX usage_by_day ON usage (day)",
        """CREATE TABLE ledger_sizes (
            tenant TEXT NOT NULL, day BIGINT NOT NULL, size BIGINT NOT NULL, PRIMARY KEY (tenant, day))""",
        "CREATE TABLE servers (id TEXT PRIMARY KEY, last_batch BIGINT NOT NULL)",
        "CREATE TABLE counters (name TEXT PRIMARY KEY, value BIGINT NOT NULL)",
        "INSERT INTO counters (name, value) VALUES ('keys', 0)",
    ),
    (
        """CREATE TABLE deletions (
            id TEXT PRIMARY KEY, at_ns BIGINT NOT NULL, tenant TEXT NOT NULL, what TEXT NOT NULL,
            before_day BIGINT NOT NULL, num_rows BIGINT NOT NULL, ordered_by TEXT NOT NULL, why TEXT NOT NULL)""",
    ),
)
_LOCK = 0x48544649  # of PostgreSQL's advisory locks: servers that start together migrate one after the other


def run_next_step(connection: Connection, num_steps: int = len(STEPS)) -> bool:
    """Run the first step that is missing of `num_steps`, in the connection's transaction; whether there was one.

    Raises: InvalidInput for a newer database.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    connection.execute(text("CREATE TABLE IF NOT EXISTS schema_steps (num BIGINT PRIMARY KEY)"))
    done = num_steps_done(connection)
    if done >= num_steps:
        return False
    for statement in STEPS[done]:
        connection.execute(text(statement))
    connection.execute(text("INSERT INTO schema_steps (num) VALUES (:num)"), {"num": done + 1})
    return True


def num_steps_done(connection: Connection) -> int:
    """How many steps a database has; 0 where it has none of our tables. Raises: InvalidInput for a newer database."""
    if not inspect(connection).has_table("schema_steps"):
        return 0
    done = connection.execute(text("SELECT count(*) FROM schema_steps")).scalar_one()
    if done > len(STEPS):
        raise InvalidInput(f"the database is of a newer version ({done} steps; this one knows {len(STEPS)})")
    return done
