"""The tables of a database, and the triggers that keep some of them as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from sqlalchemy import BigInteger, Connection, Integer, MetaData, Text, bindparam, text

from dpmanifold.errors import DPManifoldError

NUMBER = BigInteger().with_variant(Integer(), "sqlite")
"""A number of a row: SQLite finds and numbers rows by INTEGER alone."""
NAME = Text().with_variant(Text(collation="C"), "postgresql")
"""Text that is compared byte by byte on every engine, so that names and times sort the same everywhere."""

# Of tables that are only appended to. A trigger on INSERT as well: INSERT OR REPLACE removes the row that is in its way
# without asking the others.
_KEPT_SQLITE: tuple[str, ...] = (
    """
    CREATE TRIGGER {table}_stay BEFORE UPDATE ON {table}
    BEGIN SELECT RAISE(ABORT, 'what is in {table} is never changed'); END
    """,
    """
    CREATE TRIGGER {table}_remain BEFORE DELETE ON {table}
    BEGIN SELECT RAISE(ABORT, 'what is in {table} is never removed'); END
    """,
)
_CHAINED_SQLITE: tuple[str, ...] = (
    """
    CREATE TRIGGER {table}_follow BEFORE INSERT ON {table}
    BEGIN
        SELECT RAISE(ABORT, 'what is appended has the number after the last one')
        WHERE NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM {table});
        SELECT RAISE(ABORT, 'what is appended names the hash of what is before it')
        WHERE NEW.prev IS NOT coalesce((SELECT hash FROM {table} ORDER BY seq DESC LIMIT 1), printf('%064d', 0));
        SELECT RAISE(ABORT, 'what is appended has the hash before it to itself')
        WHERE EXISTS (SELECT 1 FROM {table} WHERE prev = NEW.prev);
    END
    """,
)

# Triggers as the server itself would write them (events in its order): audits compare them.
_KEPT_POSTGRESQL: tuple[str, ...] = (
    """
    CREATE TRIGGER {table}_stay BEFORE DELETE OR UPDATE OR TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION {noun}_refuse()
    """,
)
_CHAINED_POSTGRESQL: tuple[str, ...] = (
    """
    CREATE FUNCTION {noun}_refuse() RETURNS trigger LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
    BEGIN
        RAISE EXCEPTION 'what is in a {noun} is never changed and never removed';
    END $$
    """,
    """
    CREATE FUNCTION {noun}_follow() RETURNS trigger LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
    DECLARE
        head_seq bigint;
        head_hash text;
    BEGIN
        SELECT seq, hash INTO head_seq, head_hash FROM {table} ORDER BY seq DESC LIMIT 1;
        IF NEW.seq <> coalesce(head_seq, 0) + 1 THEN
            RAISE EXCEPTION 'what is appended has the number after the last one';
        END IF;
        IF NEW.prev <> coalesce(head_hash, repeat('0', 64)) THEN
            RAISE EXCEPTION 'what is appended names the hash of what is before it';
        END IF;
        RETURN NEW;
    END $$
    """,
    "CREATE TRIGGER {table}_follow BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION {noun}_follow()",
)

# They are compared word for word: one of the same name may do nothing.
_FOUND_SQLITE = text("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name IN :tables").bindparams(
    bindparam("tables", expanding=True)
)
_FOUND_POSTGRESQL = text("""
    SELECT tgname, pg_get_triggerdef(pg_trigger.oid, true) || ' AS ' || prosrc
    FROM pg_trigger
    JOIN pg_class ON pg_class.oid = tgrelid
    JOIN pg_namespace ON pg_namespace.oid = relnamespace
    JOIN pg_proc ON pg_proc.oid = tgfoid
    JOIN pg_language ON pg_language.oid = prolang
    WHERE tgrelid IN (SELECT to_regclass(name) FROM unnest(CAST(:tables AS text[])) AS name)
      AND NOT tgisinternal AND tgenabled IN ('O', 'A') AND lanname = 'plpgsql'
      AND proconfig IS NOT DISTINCT FROM ARRAY['search_path=' || quote_ident(nspname) || ', pg_temp']
""")


@final
@dataclass(frozen=True)
class Schema:
    """What a database has.

    Attributes
    ----------
    noun : what it is, in messages and in names: "ledger"
    version : of the tables; those of another version are refused
    metadata : the tables
    chained : the name of the one whose rows are chained by their hashes
    kept : the names of others that are only appended to
    sqlite, postgresql : statements that make further triggers of both kinds, one function or trigger each, with
        {schema} for the schema that they are in
    problem : what to raise where the tables are other ones
    """

    noun: str
    version: int
    metadata: MetaData
    problem: type[DPManifoldError]
    chained: str
    kept: tuple[str, ...] = ()
    sqlite: tuple[str, ...] = ()
    postgresql: tuple[str, ...] = ()

    @property
    def versions(self) -> str:
        """The name of the table with the version, by which the database is known."""
        return f"{self.noun}_version"

    def make(self, connection: Connection) -> None:
        """Make the tables and their triggers, in the transaction that is open."""
        self.metadata.create_all(connection, checkfirst=False)
        versions = f"CREATE TABLE {self.versions} (version INTEGER NOT NULL)"
        for statement in (*self.triggers(connection), versions, f"INSERT INTO {self.versions} VALUES ({self.version})"):
            connection.exec_driver_sql(statement)

    def triggers(self, connection: Connection) -> list[str]:
        """Return what makes the triggers in this database, a line for each function and each trigger."""
        if connection.dialect.name == "sqlite":
            schema, chained, kept, more = "", _CHAINED_SQLITE, _KEPT_SQLITE, self.sqlite
        else:
            found = connection.execute(text("SELECT current_schema()")).scalar_one()
            schema = connection.dialect.identifier_preparer.quote(found)
            chained, kept, more = _CHAINED_POSTGRESQL, _KEPT_POSTGRESQL, self.postgresql
        made = [(statement, self.chained) for statement in (*chained, *more)]
        made += [(statement, table) for table in (self.chained, *self.kept) for statement in kept]
        return [_in_one_line(line.format(noun=self.noun, schema=schema, table=table)) for line, table in made]

    def missing(self, connection: Connection) -> list[str]:
        """Return the names of the triggers that are not there, are switched off, or are other ones."""
        made = {line.split()[2].removesuffix("()"): line for line in self.triggers(connection)}
        query = _FOUND_SQLITE
        if connection.dialect.name != "sqlite":
            query = _FOUND_POSTGRESQL
            made = {  # each with what its function does
                name: _in_one_line(f"{line} AS {made[line.split()[-1].removesuffix('()')].split('$$')[1]}")
                for name, line in made.items()
                if line.startswith("CREATE TRIGGER")
            }
        found = connection.execute(query, {"tables": [self.chained, *self.kept]})
        there = {name: _in_one_line(made_by) for name, made_by in found}
        return [name for name, line in made.items() if there.get(name) != line]


def _in_one_line(statement: str) -> str:
    return " ".join(statement.split())
