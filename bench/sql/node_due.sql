-- a row is a mail that is due, as the specification's first step asks for it
SELECT id
FROM email_log
WHERE status = 'queued'
  AND scheduled_at <= now()
ORDER BY scheduled_at
LIMIT :limit
