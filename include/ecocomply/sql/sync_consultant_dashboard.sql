-- a row is what a consultant sees of a client, where that is new or otherwise than a run as of then or before had it
WITH pairs AS MATERIALIZED (
    SELECT a.consultant_id, a.company_id
    FROM consultant_client_assignments AS a
    JOIN companies AS c ON c.id = a.company_id
    JOIN users AS u ON u.id = a.consultant_id AND u.is_active AND u.deleted_at IS NULL
    WHERE a.consultant_id = ANY (CAST(:ids AS uuid[]))
      AND a.status = 'ACTIVE'
      AND (c.deleted_at IS NULL OR c.deleted_at > :as_of)
      AND EXISTS (SELECT FROM user_roles AS r WHERE r.user_id = u.id AND r.role::text = 'CONSULTANT')
),
-- several consultants may look after the same client
facts AS MATERIALIZED (
    SELECT k.company_id,
           due.overdue + undated.overdue AS overdue_count,
           due.due_soon + undated.due_soon AS due_soon_count,
           gaps.open_count AS open_gap_count,
           round(100.0 * due.in_time / nullif(due.counted, 0), 1) AS compliance_score,
           coalesce(upcoming.deadlines, '[]'::jsonb) AS upcoming_deadlines,
           coalesce(recent.activity, '[]'::jsonb) AS recent_activity
    FROM (SELECT DISTINCT company_id FROM pairs) AS k
    CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE d.status <> 'COMPLETED' AND d.due_date < CAST(:today AS date)) AS overdue,
               count(*) FILTER (WHERE d.status <> 'COMPLETED' AND d.due_date >= CAST(:today AS date)) AS due_soon,
               count(*) FILTER (
                   WHERE d.due_date >= CAST(:today AS date) - 90 AND d.due_date < CAST(:today AS date)
               ) AS counted,
               -- without a stamp nothing says that it was late
               count(*) FILTER (
                   WHERE d.due_date >= CAST(:today AS date) - 90
                     AND d.due_date < CAST(:today AS date)
                     AND d.status = 'COMPLETED'
                     AND (d.completed_at IS NULL OR CAST(d.completed_at AT TIME ZONE 'UTC' AS date) <= d.due_date)
               ) AS in_time
        FROM deadlines AS d
        JOIN obligations AS o ON o.id = d.obligation_id
        WHERE d.company_id = k.company_id
          AND d.due_date <= CAST(:today AS date) + 30
          AND d.status <> 'NOT_APPLICABLE'
          AND o.status <> 'NOT_APPLICABLE'
          AND o.deleted_at IS NULL
    ) AS due
    CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE o.deadline_date < CAST(:today AS date)) AS overdue,
               count(*) FILTER (WHERE o.deadline_date >= CAST(:today AS date)) AS due_soon
        FROM obligations AS o
        WHERE o.company_id = k.company_id
          AND o.deadline_date <= CAST(:today AS date) + 30
          AND o.status NOT IN ('COMPLETED', 'NOT_APPLICABLE')
          AND o.deleted_at IS NULL
          AND NOT EXISTS (SELECT FROM deadlines AS d WHERE d.obligation_id = o.id)
    ) AS undated
    CROSS JOIN LATERAL (
        SELECT count(*) AS open_count
        FROM evidence_gaps AS g
        WHERE g.company_id = k.company_id
          AND g.resolved_at IS NULL
    ) AS gaps
    CROSS JOIN LATERAL (
        SELECT jsonb_agg(
                   jsonb_build_object(
                       'deadline_id', n.id, 'obligation_id', n.obligation_id, 'site_id', n.site_id,
                       'obligation', n.summary, 'due_date', n.due_date
                   )
                   ORDER BY n.due_date, n.id
               ) AS deadlines
        FROM (
            SELECT d.id, d.obligation_id, d.site_id, o.summary, d.due_date
            FROM deadlines AS d
            JOIN obligations AS o ON o.id = d.obligation_id
            WHERE d.company_id = k.company_id
              AND d.due_date BETWEEN CAST(:today AS date) AND CAST(:today AS date) + 30
              AND d.status NOT IN ('COMPLETED', 'NOT_APPLICABLE')
              AND o.status <> 'NOT_APPLICABLE'
              AND o.deleted_at IS NULL
            ORDER BY d.due_date, d.id
            LIMIT 10
        ) AS n
    ) AS upcoming
    CROSS JOIN LATERAL (
        SELECT jsonb_agg(
                   jsonb_build_object(
                       'id', l.id, 'action_type', l.action_type, 'entity_type', l.entity_type,
                       'entity_id', l.entity_id, 'user_id', l.user_id,
                       'created_at', to_char(l.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
                   )
                   ORDER BY l.created_at DESC, l.id
               ) AS activity
        FROM (
            SELECT a.id, a.action_type, a.entity_type, a.entity_id, a.user_id, a.created_at
            FROM audit_logs AS a
            WHERE a.company_id = k.company_id
              AND a.created_at <= :as_of
            ORDER BY a.created_at DESC, a.id
            LIMIT 10
        ) AS l
    ) AS recent
)
INSERT INTO consultant_dashboard AS d (
    consultant_id, company_id, overdue_count, due_soon_count, open_gap_count, compliance_score, upcoming_deadlines,
    recent_activity, synced_at
)
SELECT p.consultant_id, p.company_id, f.overdue_count, f.due_soon_count, f.open_gap_count, f.compliance_score,
       f.upcoming_deadlines, f.recent_activity, :as_of
FROM pairs AS p
JOIN facts AS f ON f.company_id = p.company_id
ORDER BY p.consultant_id, p.company_id
ON CONFLICT (consultant_id, company_id) DO UPDATE
SET overdue_count = excluded.overdue_count,
    due_soon_count = excluded.due_soon_count,
    open_gap_count = excluded.open_gap_count,
    compliance_score = excluded.compliance_score,
    upcoming_deadlines = excluded.upcoming_deadlines,
    recent_activity = excluded.recent_activity,
    synced_at = excluded.synced_at,
    sync_error = NULL,
    updated_at = clock_timestamp()
-- a run that makes up for an older day leaves what a newer one saw
WHERE (d.synced_at IS NULL OR d.synced_at <= excluded.synced_at)
  AND (
      d.overdue_count, d.due_soon_count, d.open_gap_count, d.compliance_score, d.upcoming_deadlines, d.recent_activity,
      d.synced_at, d.sync_error
  ) IS DISTINCT FROM (
      excluded.overdue_count, excluded.due_soon_count, excluded.open_gap_count, excluded.compliance_score,
      excluded.upcoming_deadlines, excluded.recent_activity, excluded.synced_at, NULL
  )
