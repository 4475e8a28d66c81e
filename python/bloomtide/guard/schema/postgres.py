"""The catalogue of PostgreSQL."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from bloomtide.guard.schema.bodies import may_change_row, may_write
from bloomtide.guard.schema.facts import (
    OWN_NUMBER,
    OWN_PREFIX,
    ColumnFacts,
    Run,
    TableFacts,
    fingerprint_of,
    full_name,
    literal,
)
from bloomtide.guard.writes.tokens import cut

_FAMILIES = {
    "smallint": "integer",
    "integer": "integer",
    "bigint": "integer",
    "boolean": "integer",
    "text": "text",
    "character varying": "text",
    "character": "text",
    "bpchar": "text",
    "citext": "text",
    "uuid": "uuid",
    "bytea": "bytes",
    "numeric": "number",
    "date": "date",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "instant",
    "time without time zone": "time",
}
_FORMATTED = re.compile(r"(?:.*\.)?([^(]+?)(?:\((\d+)(?:,(\d+))?\))?( with(?:out)? time zone)?")

_QUERY = """
WITH RECURSIVE
target AS (SELECT CAST(to_regclass({table}) AS oid) AS rel),
above AS (
    SELECT rel FROM target
    UNION SELECT inhparent FROM pg_inherits JOIN above ON inhrelid = rel
),
tree AS (
    SELECT rel FROM above UNION SELECT inhrelid FROM pg_inherits JOIN tree ON inhparent = rel
),
reached AS (
    SELECT attrelid AS rel, attnum AS att, false AS linked FROM pg_attribute
    WHERE attrelid IN (SELECT rel FROM tree) AND attname IN ({columns})
    UNION
    SELECT c.confrelid, link.there, true FROM reached
    JOIN pg_constraint AS c ON c.contype = 'f' AND c.conrelid = rel AND c.confupdtype IN ('c', 'd')
    CROSS JOIN LATERAL unnest(c.conkey, c.confkey) AS link (here, there)
    WHERE link.here = att
),
parents AS (
    SELECT rel, att FROM reached WHERE linked
    UNION SELECT i.inhrelid, att FROM parents JOIN pg_inherits AS i ON i.inhparent = rel
),
resetting AS (
    SELECT c.confrelid AS rel FROM reached
    JOIN pg_constraint AS c ON c.contype = 'f' AND c.conrelid = rel AND c.confdeltype = 'd'
    WHERE att = ANY (c.conkey)
),
tables AS (
    SELECT rel FROM tree UNION SELECT rel FROM parents UNION SELECT rel FROM resetting
),
views AS (
    SELECT r.ev_class AS rel FROM pg_rewrite AS r
    JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
    WHERE r.ev_type = '1' AND d.refclassid = 'pg_class'::regclass
    AND d.refobjid IN (SELECT rel FROM tables) AND r.ev_class <> d.refobjid
    UNION
    SELECT r.ev_class FROM views
    JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.refobjid = views.rel
    JOIN pg_rewrite AS r ON r.oid = d.objid AND r.ev_type = '1' AND r.ev_class <> views.rel
)
SELECT 'table' AS kind,
jsonb_build_array(n.nspname, c.relname, c.oid, c.relfilenode, c.relkind) AS row
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.oid IN (SELECT rel FROM target)
UNION ALL
SELECT 'also', jsonb_build_array(n.nspname, c.relname, c.oid, c.relfilenode, c.relkind)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.oid IN (SELECT rel FROM tree) AND c.oid NOT IN (SELECT rel FROM target)
UNION ALL
SELECT 'column', jsonb_build_array(
    a.attname, t.typtype = 'e',
    CASE WHEN t.typtype = 'd' THEN format_type(t.typbasetype, t.typtypmod)
    ELSE format_type(t.oid, a.atttypmod) END,
    a.attidentity <> '', a.attgenerated <> '',
    coalesce(pg_get_expr(d.adbin, d.adrelid), t.typdefault), a.attcollation,
    (SELECT jsonb_agg(e.enumlabel ORDER BY e.enumsortorder) FROM pg_enum AS e
    WHERE e.enumtypid = t.oid), a.attnum, a.xmin::text
)
FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid IN (SELECT rel FROM tree) AND a.attname IN ({columns})
UNION ALL
SELECT 'parent', jsonb_build_array(c.relname, a.attname)
FROM parents JOIN pg_class AS c ON c.oid = rel
JOIN pg_attribute AS a ON a.attrelid = rel AND a.attnum = att
UNION ALL
SELECT 'resetting', jsonb_build_array(c.relname)
FROM resetting JOIN pg_class AS c ON c.oid = rel
UNION ALL
SELECT 'view', jsonb_build_array(c.relname) FROM views JOIN pg_class AS c ON c.oid = rel
UNION ALL
SELECT 'rule', jsonb_build_array(r.rulename, r.oid)
FROM pg_rewrite AS r WHERE r.ev_type <> '1' AND (
    r.ev_class IN (SELECT rel FROM tables UNION SELECT rel FROM views)
    OR EXISTS (
        SELECT FROM pg_depend AS d WHERE d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
        AND d.refclassid = 'pg_class'::regclass
        AND d.refobjid IN (SELECT rel FROM tables UNION SELECT rel FROM views)
    )
)
UNION ALL
SELECT 'trigger', jsonb_build_array(
    g.tgname, g.oid, g.xmin::text, g.tgenabled,
    g.tgrelid IN (SELECT rel FROM tree UNION SELECT rel FROM parents), g.tgtype & 2 <> 0,
    l.lanname, p.prosrc
)
FROM pg_trigger AS g JOIN pg_proc AS p ON p.oid = g.tgfoid
JOIN pg_language AS l ON l.oid = p.prolang
WHERE NOT g.tgisinternal
ORDER BY 1, 2
"""
_INSTEAD = {"v": "a view", "m": "a materialized view", "f": "a foreign table"}


def read(run: Run, table: str, schema: str | None, columns: Sequence[str]) -> TableFacts:
    """Reads the table, its relatives, and all triggers."""
    names = ", ".join(map(literal, columns))
    rows = [
        (kind, json.loads(row) if isinstance(row, str) else row)
        for kind, row in run(_QUERY.format(table=literal(full_name(table, schema)), columns=names))
    ]
    facts = TableFacts(schema=schema)
    wanted = {cut(name): name for name in columns}
    triggers = []
    for kind, row in rows:
        if kind in ("table", "also") and row[4] in _INSTEAD:
            of = "" if kind == "table" else "partly "
            facts.instead = of + _INSTEAD[row[4]]
        if kind == "table":
            facts.schema = row[0]
        elif kind == "also":
            facts.also.add((row[0], row[1]))
        elif kind == "column":
            name = wanted.get(row[0], row[0])
            facts.columns[name] = _column(row, facts.columns.get(name))
        elif kind == "parent":
            facts.parents.add((row[0], row[1]))
        elif kind == "resetting":
            facts.resetting.add(row[0])
        elif kind == "view":
            facts.views.add(row[0])
        elif kind == "rule":
            facts.writers.append(f"the rule `{row[0]}`")
        else:
            triggers.append(row)
    written = {cut(table), *(name for _, name in facts.also), *facts.views}
    written |= {name for name, _ in facts.parents}
    keys = {cut(name) for name in columns} | {column for _, column in facts.parents}
    resetting = facts.resetting | facts.views if facts.resetting else set()
    for row in triggers:
        if not row[0].startswith(OWN_PREFIX) and _writes_keys(row, written, keys, resetting):
            facts.writers.append(f"the trigger `{row[0]}`")
    own = [row for row in triggers if row[0].startswith(OWN_PREFIX)]
    facts.fingerprint = fingerprint_of([row for row in rows if row[1] not in own])
    facts.own_triggers = fingerprint_of(own)
    return facts


def _writes_keys(
    trigger: Sequence[Any], tables: set[str], columns: set[str], resetting: set[str]
) -> bool:
    _, _, _, enabled, is_ours, is_before, language, source = trigger
    if enabled == "D" or language == "internal":  # none of PostgreSQL's own writes keys
        return False
    return (
        language != "plpgsql"
        or may_write(source, exact=True, tables=tables, columns=columns, resetting=resetting)
        or (is_ours and is_before and may_change_row(source, columns))
    )


def _column(row: Sequence[Any], before: ColumnFacts | None) -> ColumnFacts:
    _, is_enum, declared, identity, generated, default, *_ = row
    match = _FORMATTED.fullmatch(declared)
    plain, digits, scale, zone = match.groups() if match else ("", None, None, None)
    family = "text" if is_enum else _FAMILIES.get(plain + (zone or ""), "")
    null = default is None or default.upper().startswith("NULL")
    filled = OWN_NUMBER if identity else "" if null else f"its default {default}"
    if before is not None and before.filled_by:
        filled = before.filled_by
    return ColumnFacts(
        declared,
        frozenset({family, "uuid"} if family == "text" else {family}),
        None if digits is None else int(digits),
        None if scale is None else int(scale),
        filled_by=filled,
        generated=generated or bool(before and before.generated),
        is_native_enum=is_enum,
    )
