-- a row is a digest with what its mail says: how much there is of each type, and the newest of it
SELECT d.id, d.frequency::text AS frequency, d.unsubscribe_token, btrim(u.email) AS email, u.full_name AS name,
       u.is_active AND u.deleted_at IS NULL AS is_active,
       coalesce(c.counts, '{}'::jsonb) AS counts, coalesce(e.entries, '[]'::jsonb) AS entries
FROM digests AS d
JOIN users AS u ON u.id = d.user_id
CROSS JOIN LATERAL (
    SELECT jsonb_object_agg(t.notification_type, t.number) AS counts
    FROM (
        SELECT n.notification_type, count(*) AS number
        FROM notifications AS n
        WHERE n.digest_id = d.id
          AND n.status = 'PENDING'
        GROUP BY n.notification_type
    ) AS t
) AS c
CROSS JOIN LATERAL (
    SELECT jsonb_agg(
        jsonb_build_object('type', s.notification_type, 'subject', left(s.subject, 2000), 'url', s.action_url)
        ORDER BY s.place
    ) AS entries
    FROM (
        SELECT n.notification_type, n.subject, n.action_url,
               row_number() OVER (ORDER BY n.urgency DESC, n.created_at DESC, n.id) AS place
        FROM notifications AS n
        WHERE n.digest_id = d.id
          AND n.status = 'PENDING'
        ORDER BY n.urgency DESC, n.created_at DESC, n.id
        LIMIT :most
    ) AS s
) AS e
WHERE d.id = ANY (CAST(:ids AS uuid[]))
ORDER BY d.period_start, d.user_id
