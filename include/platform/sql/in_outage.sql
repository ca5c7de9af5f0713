-- one row that says whether an outage of the service is open
SELECT EXISTS (SELECT 1 FROM outage WHERE service = :service AND closed_at IS NULL)
