-- one row with the id of the outage, if it is new
INSERT INTO outage (service, reason)
VALUES (:service, :reason)
ON CONFLICT (service) WHERE closed_at IS NULL DO NOTHING
RETURNING id
