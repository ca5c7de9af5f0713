-- a row is how many deadlines are in breach of their SLA, and for how long
SELECT count(*) AS tracked,
       coalesce(
           -- an application may have written NaN, or as many hours as no calendar has
           round(avg(d.sla_breach_duration_hours) FILTER (WHERE d.sla_breach_duration_hours BETWEEN 0 AND 10000000)), 0
       )::integer AS average_hours,
       count(*) FILTER (WHERE d.sla_breach_duration_hours < 24) AS under_24h,
       count(*) FILTER (WHERE d.sla_breach_duration_hours BETWEEN 24 AND 48) AS from_24h_to_48h,
       count(*) FILTER (WHERE d.sla_breach_duration_hours > 48) AS over_48h
FROM deadlines AS d
WHERE d.sla_breached_at <= :as_of
  AND d.status <> 'COMPLETED'
  AND (CAST(:company_id AS uuid) IS NULL OR d.company_id = CAST(:company_id AS uuid))
