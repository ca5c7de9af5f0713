-- a row is an outage of an outside service, the open ones first
SELECT o.id, o.service, o.opened_at, o.closed_at, o.reason
FROM outage AS o
ORDER BY o.closed_at IS NOT NULL, o.opened_at DESC
LIMIT :limit
