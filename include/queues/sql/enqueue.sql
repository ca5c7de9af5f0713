-- a row is a new row that may start after the delay, or at the instant that it brings; a known dedupe key adds none
INSERT INTO {table} ({given}, {due})
SELECT {given_values}, coalesce({due_given}, now() + make_interval(secs => :delay))
FROM jsonb_populate_recordset(CAST(NULL AS {table}), CAST(:rows AS jsonb)) WITH ORDINALITY AS q
ORDER BY q.ordinality
{on_known}
RETURNING {key}
