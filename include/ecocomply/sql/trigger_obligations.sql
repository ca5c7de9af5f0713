-- a row is an obligation that a rule makes schedules or deadlines for
SELECT o.id, o.company_id, o.frequency::text AS frequency,
       (o.status <> 'NOT_APPLICABLE' AND o.deleted_at IS NULL) AS applicable
FROM obligations AS o
WHERE o.id = ANY (CAST(:ids AS uuid[]))
