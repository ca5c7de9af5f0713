-- a row says whether an event is a company's
SELECT EXISTS (
    SELECT FROM recurrence_events AS e
    WHERE e.id = CAST(:id AS uuid)
      AND e.company_id = CAST(:company_id AS uuid)
)
