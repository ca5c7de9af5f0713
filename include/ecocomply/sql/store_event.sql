-- a row is an event of a company that there is, stored once
INSERT INTO recurrence_events (id, company_id, event_type, event_data, occurred_at)
SELECT CAST(:id AS uuid), c.id, :event_type, CAST(:event_data AS jsonb), :as_of
FROM companies AS c
WHERE c.id = CAST(:company_id AS uuid)
  AND c.deleted_at IS NULL
ON CONFLICT (id) DO NOTHING
