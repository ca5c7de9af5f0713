-- a row is a parameter whose next sample is on another day than before; the audit trail hears of it
WITH due AS (
    SELECT p.id, n.base_date, n.next_date
    FROM unnest(CAST(:ids AS uuid[]), CAST(:bases AS date[]), CAST(:nexts AS date[])) AS n (id, base_date, next_date)
    JOIN parameters AS p ON p.id = n.id
    WHERE p.is_active
      AND p.next_sample_date IS DISTINCT FROM n.next_date
      -- the world moved: a sample was taken since it was worked out
      AND NOT EXISTS (
          SELECT FROM lab_results AS l
          WHERE l.parameter_id = p.id
            AND l.sample_date > n.base_date
            AND l.sample_date <= CAST(:today AS date)
      )
      -- a run of a later day went from a sample that this day does not know yet
      AND NOT EXISTS (
          SELECT FROM lab_results AS l
          WHERE l.parameter_id = p.id
            AND l.sample_date > CAST(:today AS date)
            AND l.sample_date < p.next_sample_date
      )
    ORDER BY p.id
    FOR NO KEY UPDATE OF p
),
changed AS (
    UPDATE parameters AS p
    SET next_sample_date = due.next_date,
        updated_at = clock_timestamp()
    FROM due
    WHERE p.id = due.id
    RETURNING p.id, p.company_id, p.next_sample_date, p.sampling_frequency
)
INSERT INTO audit_logs (company_id, action_type, entity_type, entity_id, new_values)
SELECT c.company_id, 'SAMPLING_SCHEDULE_GENERATED', 'PARAMETER', c.id,
       jsonb_build_object('next_sample_date', c.next_sample_date, 'sampling_frequency', c.sampling_frequency)
FROM changed AS c
ORDER BY c.id
