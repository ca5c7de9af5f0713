-- the row is what came of all notices: how many told anybody something new, and the places of those for nobody
WITH notices AS MATERIALIZED (
    SELECT *
    FROM jsonb_to_recordset(CAST(:notices AS jsonb)) AS n (
        place integer, rule integer, company_id uuid, site_id uuid, named uuid[], notification_type text,
        priority text, channels text[], subject text, body_text text, body_html text, action_url text, variables jsonb,
        entity_type text, entity_id uuid, obligation_id uuid, evidence_id uuid, escalation_level integer,
        metadata jsonb, told_key text
    )
),
-- of what is deleted nobody is told any more, whatever still refers to it
gone AS MATERIALIZED (
    SELECT n.place
    FROM notices AS n
    JOIN companies AS c ON c.id = n.company_id
    LEFT JOIN sites AS s ON s.id = n.site_id
    WHERE c.deleted_at IS NOT NULL
       OR s.deleted_at IS NOT NULL
),
-- as arrays, of which the planner knows how long they are: guessed at, all users would be read for each chunk
asked AS MATERIALIZED (
    SELECT n.place, n.company_id, n.site_id, a.chain, a.rank, a.word
    FROM unnest(
        CAST(:rules AS integer[]), CAST(:chains AS integer[]), CAST(:ranks AS integer[]), CAST(:words AS text[])
    ) AS a (rule, chain, rank, word)
    JOIN notices AS n ON n.rule = a.rule
    WHERE NOT EXISTS (SELECT FROM gone WHERE gone.place = n.place)
),
-- once for all notices of a company or site: who is in a group
groups AS MATERIALIZED (
    SELECT DISTINCT a.company_id, CASE WHEN a.word LIKE 'SITE %' THEN a.site_id END AS site_id, a.word
    FROM asked AS a
),
members AS MATERIALIZED (
    SELECT g.company_id, g.site_id, g.word, r.user_id
    FROM groups AS g
    JOIN user_roles AS r ON r.company_id = g.company_id AND r.role::text = g.word
    UNION ALL
    SELECT g.company_id, g.site_id, g.word, s.user_id
    FROM groups AS g
    JOIN user_site_assignments AS s ON s.site_id = g.site_id
    WHERE g.word = 'SITE PEOPLE'
    UNION ALL
    SELECT g.company_id, g.site_id, g.word, s.user_id
    FROM groups AS g
    JOIN user_site_assignments AS s ON s.site_id = g.site_id
    JOIN user_roles AS r
        ON r.user_id = s.user_id
        AND r.company_id = g.company_id
        AND r.role::text = substr(g.word, length('SITE ') + 1)
    UNION ALL
    SELECT g.company_id, g.site_id, g.word, c.consultant_id
    FROM groups AS g
    JOIN consultant_client_assignments AS c ON c.company_id = g.company_id AND c.status::text = 'ACTIVE'
    WHERE g.word = 'CONSULTANTS'
),
candidates AS MATERIALIZED (
    SELECT a.place, a.company_id, a.chain, a.rank, m.user_id
    FROM asked AS a
    JOIN members AS m
        ON m.company_id = a.company_id
        AND m.word = a.word
        AND (a.word NOT LIKE 'SITE %' OR m.site_id = a.site_id)
    UNION ALL
    SELECT a.place, a.company_id, a.chain, a.rank, named.user_id
    FROM asked AS a
    JOIN notices AS n ON n.place = a.place
    CROSS JOIN LATERAL unnest(n.named) AS named (user_id)
    WHERE a.word = 'NAMED'
),
-- who is active, and of the company or its consultant; a user's job sees no user of another company, and asks for them
eligible AS MATERIALIZED (
    SELECT k.company_id, u.id AS user_id, nullif(btrim(u.email), '') AS email, nullif(btrim(u.phone), '') AS phone
    FROM (SELECT DISTINCT company_id, user_id FROM candidates) AS k
    JOIN users AS u ON u.id = k.user_id
    WHERE u.is_active
      AND u.deleted_at IS NULL
      AND (
          u.company_id = k.company_id
          OR EXISTS (
              SELECT FROM consultant_client_assignments AS c
              JOIN user_roles AS r ON r.user_id = c.consultant_id AND r.role::text = 'CONSULTANT'
              WHERE c.consultant_id = u.id
                AND c.company_id = k.company_id
                AND c.status::text = 'ACTIVE'
          )
      )
    UNION
    SELECT c.company_id, c.user_id, nullif(btrim(c.email), ''), nullif(btrim(c.phone), '')
    FROM ecocomply_consultants() AS c
),
ranked AS (
    SELECT c.place, e.user_id, e.email, e.phone, c.rank, min(c.rank) OVER (PARTITION BY c.place, c.chain) AS first
    FROM candidates AS c
    JOIN eligible AS e ON e.company_id = c.company_id AND e.user_id = c.user_id
),
recipients AS MATERIALIZED (
    SELECT DISTINCT place, user_id, email, phone
    FROM ranked
    WHERE rank = first
),
wanted AS MATERIALIZED (
    SELECT r.place, r.user_id, r.email, r.phone, w.channel,
           (w.channel = 'SMS' AND r.phone IS NULL) AS without_phone,
           (w.channel = 'EMAIL' AND r.email IS NULL) AS without_email
    FROM recipients AS r
    JOIN notices AS n ON n.place = r.place
    CROSS JOIN LATERAL unnest(
        coalesce(
            n.channels,
            CASE
                WHEN n.priority IN ('URGENT', 'CRITICAL') THEN ARRAY['IN_APP', 'EMAIL', 'SMS']
                ELSE ARRAY['IN_APP', 'EMAIL']
            END
        )
    ) AS w (channel)
),
-- an application may have enum types of its own for these words
words AS MATERIALIZED (
    SELECT d.channel AS channel_word, d.priority AS priority_word, d.escalation_level AS level, t.channel, t.priority,
           t.escalation_state
    FROM (
        SELECT DISTINCT w.channel, n.priority, n.escalation_level
        FROM wanted AS w
        JOIN notices AS n ON n.place = w.place
    ) AS d
    CROSS JOIN LATERAL jsonb_populate_record(
        NULL::notifications,
        jsonb_build_object(
            'channel', d.channel,
            'priority', d.priority,
            'escalation_state', coalesce('ESCALATED_LEVEL_' || d.escalation_level, 'PENDING')
        )
    ) AS t
),
made AS (
    INSERT INTO notifications (
        user_id, company_id, site_id, recipient_email, recipient_phone, notification_type, channel, priority, subject,
        body_text, body_html, variables, is_escalation, escalation_level, escalation_state, entity_type, entity_id,
        obligation_id, evidence_id, action_url, metadata, dedupe_key
    )
    SELECT w.user_id, n.company_id, n.site_id, w.email, w.phone, n.notification_type, t.channel, t.priority, n.subject,
           n.body_text, CASE WHEN w.channel = 'EMAIL' THEN n.body_html END, n.variables,
           n.escalation_level IS NOT NULL, n.escalation_level, t.escalation_state, n.entity_type, n.entity_id,
           n.obligation_id, n.evidence_id, n.action_url, n.metadata,
           n.told_key || '/' || w.user_id || '/' || w.channel
    FROM wanted AS w
    JOIN notices AS n ON n.place = w.place
    JOIN words AS t
        ON t.channel_word = w.channel
        AND t.priority_word = n.priority
        AND t.level IS NOT DISTINCT FROM n.escalation_level
    WHERE NOT w.without_phone
      AND NOT w.without_email
    ORDER BY w.place, w.user_id, w.channel
    ON CONFLICT (dedupe_key) DO NOTHING
    RETURNING dedupe_key, channel::text
),
made_of AS (
    -- the key ends in the recipient, who has 36 letters, and the channel, with a slash before each
    SELECT left(dedupe_key, -(1 + 36 + 1 + length(channel))) AS told_key, count(*) AS made
    FROM made
    GROUP BY 1
),
wanted_of AS (
    SELECT place,
           count(*) FILTER (WHERE NOT without_phone AND NOT without_email) AS wanted,
           count(*) FILTER (WHERE without_phone) AS without_phone,
           count(*) FILTER (WHERE without_email) AS without_email
    FROM wanted
    GROUP BY place
),
-- two notices of one key are one: the first of them counts what was made
first_of AS (
    SELECT told_key, min(place) AS place
    FROM notices
    GROUP BY told_key
)
SELECT count(*) FILTER (WHERE m.made > 0) AS news,
       coalesce(sum(m.made), 0)::bigint AS made,
       coalesce(sum(w.wanted), 0)::bigint AS wanted,
       coalesce(sum(w.without_phone), 0)::bigint AS without_phone,
       coalesce(sum(w.without_email), 0)::bigint AS without_email,
       count(gone.place) AS of_deleted,
       coalesce(
           array_agg(n.place ORDER BY n.place) FILTER (WHERE w.place IS NULL AND gone.place IS NULL), '{}'
       ) AS for_nobody
FROM notices AS n
LEFT JOIN gone ON gone.place = n.place
LEFT JOIN wanted_of AS w ON w.place = n.place
LEFT JOIN first_of AS f ON f.place = n.place
LEFT JOIN made_of AS m ON m.told_key = f.told_key
