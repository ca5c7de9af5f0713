-- as its owner: an application's role may change the queue, and has no business in the trail; by name and with its own
-- path, since a session's temporary tables come first unless the path says otherwise
CREATE OR REPLACE FUNCTION {moved}() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $moved$
BEGIN
    INSERT INTO public.queue_audit (queue, row_key, from_status, to_status, attempt, claimed_by, actor, reason)
    SELECT {table_word}, n.{key}::text, o.{status}::text, n.{status}::text, n.{attempts},
           coalesce(n.claimed_by, o.claimed_by),
           coalesce(nullif(current_setting('almanac.actor', true), ''), session_user::text),
           CASE WHEN n.{status} IN ({due_word}, {failed_word}) THEN n.{error} END
    FROM new_rows AS n
    JOIN old_rows AS o ON o.{key} = n.{key}
    WHERE o.{status} IS DISTINCT FROM n.{status};
    IF EXISTS (
        SELECT FROM new_rows AS q
        WHERE q.{status} = {due_word} AND {due_at} <= clock_timestamp()
    ) THEN
        PERFORM pg_notify({channel_word}, '');
    END IF;
    RETURN NULL;
END
$moved$
