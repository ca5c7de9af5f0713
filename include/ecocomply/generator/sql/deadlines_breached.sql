-- an internal target that passed is breached since the day after it
UPDATE deadlines AS d
SET sla_breached_at = pg_temp.at(d.sla_target_date + 1, 0),
    sla_breach_duration_hours = 24 * (pg_temp.today() - d.sla_target_date - 1)
WHERE d.sla_target_date < pg_temp.today() - 1 AND d.status = 'OVERDUE'
