-- a row is a digest with what its mail says: how much is unread, and the newest of it
SELECT d.id, d.due_at, d.unsubscribe_token, u.email, u.name, u.digests_stopped_at IS NOT NULL AS is_stopped,
       c.unread, coalesce(e.entries, '[]'::jsonb) AS entries
FROM digests AS d
JOIN users AS u ON u.id = d.user_id
CROSS JOIN LATERAL (
    SELECT count(*) AS unread
    FROM notifications AS n
    WHERE n.digest_id = d.id
      AND n.read IS NOT TRUE
) AS c
CROSS JOIN LATERAL (
    SELECT jsonb_agg(
        jsonb_build_object(
            'title', left(s.title, 2000), 'content', left(s.content, 2000), 'url', s.source_url,
            'subscription', s.subscription
        )
        ORDER BY s.place
    ) AS entries
    FROM (
        SELECT n.title, n.content, n.source_url, left(p.name, 2000) AS subscription,
               row_number() OVER (ORDER BY n.created_at DESC, n.source_url, n.id) AS place
        FROM notifications AS n
        JOIN subscriptions AS p ON p.id = n.subscription_id
        WHERE n.digest_id = d.id
          AND n.read IS NOT TRUE
        ORDER BY n.created_at DESC, n.source_url, n.id
        LIMIT :most
    ) AS s
) AS e
WHERE d.id = ANY (CAST(:ids AS uuid[]))
ORDER BY d.due_at, d.user_id
